//! The live view's picture: what happens to throughput and latency, in a few lines.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};
use workload::tps::Phase;

use super::history::{History, Point};
use measure::human::{count, grouped};

/// Lines that the view takes.
pub(super) const HEIGHT: u16 = 12;
/// Seconds that charts show at least, so that a run's first ones do not jump.
const SHORTEST: f64 = 10.0;
/// Below this width there is one chart, not two.
const TWO_CHARTS: u16 = 60;

/// Colours, unless the user wants none.
#[derive(Clone, Copy)]
pub(super) struct Palette {
    pub(super) is_coloured: bool,
}

impl Palette {
    fn of(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, history: &History, palette: Palette) {
    let [head, charts, counts, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(headline(history), head);
    if charts.width >= TWO_CHARTS {
        let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(charts);
        throughput(frame, left, history, palette);
        latency(frame, right, history, palette);
    } else {
        throughput(frame, charts, history, palette);
    }
    frame.render_widget(totals(history), counts);
    if !history.is_over {
        frame.render_widget(Line::from("Ctrl-C ends the run and prints results").dim(), foot);
    }
}

/// The last second, and how far the run is.
fn headline(history: &History) -> Line<'static> {
    let mut spans = Vec::new();
    if let Some(Point { tps, p50, p99, .. }) = history.points.last() {
        spans.push(Span::from(format!("{} tps", count(*tps))).bold());
        for (name, value) in [("p50", p50), ("p99", p99)] {
            if let Some(value) = value {
                spans.push(Span::from(format!("  {name} {}", measure::human::latency(value / 1e3))));
            }
        }
    }
    let phase = match history.phase {
        Phase::Ramp => "  ramp: not counted",
        Phase::Warmup => "  warm-up: not counted",
        Phase::Measured => "",
    };
    spans.push(Span::from(phase));
    if history.is_over {
        spans.push(Span::from(format!("  {}", clock(history.at))));
        return Line::from(spans);
    }
    let progress = history.progress();
    let remaining = progress.remaining.map_or(String::new(), |left| format!(", {} left", clock(left)));
    spans.push(Span::from(format!("  {}{remaining} ({:.0} %)", clock(history.at), progress.share * 100.0)));
    Line::from(spans)
}

/// What became of transactions so far.
fn totals(history: &History) -> Line<'static> {
    let counts = &history.counts;
    let mut text = format!("{} transactions", grouped(counts.succeeded));
    let failed = counts.all_failed();
    for (number, what) in
        [(failed, "failed"), (counts.retried, "retried"), (counts.skipped, "skipped"), (counts.late, "late")]
    {
        if number > 0 {
            text += &format!(", {} {what}", grouped(number));
        }
    }
    if failed > 0 { Line::from(text).bold() } else { Line::from(text) }
}

fn throughput(frame: &mut Frame<'_>, area: Rect, history: &History, palette: Palette) {
    let points: Vec<(f64, f64)> = history.points.iter().map(|point| (point.at, point.tps)).collect();
    let datasets = vec![dataset(&points, palette.of(Color::Cyan))];
    chart(frame, area, history, "tps", datasets, highest(&points), |tps| count(tps));
}

fn latency(frame: &mut Frame<'_>, area: Rect, history: &History, palette: Palette) {
    let of = |value: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        history.points.iter().filter_map(|point| Some((point.at, value(point)?))).collect()
    };
    let (p50, p99) = (of(|point| point.p50), of(|point| point.p99));
    let datasets = vec![
        dataset(&p99, palette.of(Color::Yellow)),
        dataset(&p50, palette.of(Color::Green)),
    ];
    let highest = highest(&p99).max(highest(&p50));
    chart(frame, area, history, "ms: p50 and above it p99", datasets, highest, milliseconds);
}

fn dataset(points: &[(f64, f64)], style: Style) -> Dataset<'_> {
    Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(style).data(points)
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    history: &History,
    title: &'static str,
    datasets: Vec<Dataset<'_>>,
    highest: f64,
    label: impl Fn(f64) -> String,
) {
    let top = nice(highest);
    let end = history.at.max(SHORTEST);
    let x = Axis::default().bounds([0.0, end]).labels(["0 s".to_owned(), clock(end)]).style(Style::new().dim());
    let y = Axis::default()
        .title(title)
        .bounds([0.0, top])
        .labels(["0".to_owned(), label(top)])
        .style(Style::new().dim());
    frame.render_widget(Chart::new(datasets).x_axis(x).y_axis(y).legend_position(None), area);
}

fn highest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

/// The next 1, 2 or 5 with zeros, so that axes rarely change.
fn nice(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(highest.log10().floor());
    let found = [1.0, 2.0, 5.0].into_iter().map(|step| step * unit).find(|top| *top >= highest);
    found.unwrap_or(10.0 * unit)
}

fn milliseconds(number: f64) -> String {
    if number < 1.0 { format!("{number:.3}") } else { count(number) }
}

/// `7 s`, `3:05 min`, `2:10 h`.
fn clock(seconds: f64) -> String {
    crate::progress::clock(seconds)
}
