//! Draws the live view: throughput and latency over time, in a few lines.

use std::fmt::Write;

use measure::Quantile;
use measure::human::{count, grouped};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};
use tps::Phase;

use crate::app::numbers::clock;
use crate::cmd::tps::live::history::{History, Point};

/// Lines that the view takes.
pub(crate) const HEIGHT: u16 = 13;
/// Least time that charts show, seconds, so that they do not jump at the beginning of a run.
const SHORTEST: f64 = 10.0;
/// Least width for two charts side by side.
const TWO_CHARTS: u16 = 60;

/// Colours, unless the user wants none.
#[derive(Clone, Copy)]
pub(crate) struct Palette {
    pub(crate) is_coloured: bool,
}

impl Palette {
    fn of(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws the whole view.
pub(crate) fn draw(frame: &mut Frame<'_>, history: &History, palette: Palette) {
    let [head, charts, counts, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(headline(history), head);
    if charts.width >= TWO_CHARTS {
        let [left, right] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2).areas(charts);
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

/// Figures of the last second, and the progress of the run.
fn headline(history: &History) -> Line<'static> {
    let mut spans = Vec::new();
    if let Some(Point { tps, p50, p99, .. }) = history.points.last() {
        spans.push(Span::from(format!("{} tps", count(*tps))).bold());
        for (name, value) in [("p50", p50), ("p99", p99)] {
            if let Some(value) = value {
                spans.push(Span::from(format!("  {name} {}", value.shown())));
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

/// Transactions so far, by outcome.
fn totals(history: &History) -> Line<'static> {
    let counts = &history.counts;
    let mut text = format!("{} transactions", grouped(counts.succeeded));
    let failed = counts.all_failed();
    for (number, what) in
        [(failed, "failed"), (counts.retried, "retried"), (counts.skipped, "skipped"), (counts.late, "late")]
    {
        if number > 0 {
            let _ = write!(text, ", {} {what}", grouped(number));
        }
    }
    if failed > 0 { Line::from(text).bold() } else { Line::from(text) }
}

fn throughput(frame: &mut Frame<'_>, area: Rect, history: &History, palette: Palette) {
    let points: Vec<(f64, f64)> = history.points.iter().map(|point| (point.at, point.tps)).collect();
    let datasets = vec![dataset(&points, palette.of(Color::Cyan))];
    chart(frame, area, history, "tps", datasets, highest(&points), count);
}

fn latency(frame: &mut Frame<'_>, area: Rect, history: &History, palette: Palette) {
    let of = |value: fn(&Point) -> Option<Quantile>| -> Vec<(f64, f64)> {
        let milliseconds = |quantile: Quantile| quantile.least().as_secs_f64() * 1e3;
        history.points.iter().filter_map(|point| Some((point.at, milliseconds(value(point)?)))).collect()
    };
    let (p50, p99) = (of(|point| point.p50), of(|point| point.p99));
    let datasets = vec![dataset(&p99, palette.of(Color::Yellow)), dataset(&p50, palette.of(Color::Green))];
    let highest = highest(&p99).max(highest(&p50));
    chart(frame, area, history, "ms, p50 and above it p99", datasets, highest, milliseconds);
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
    let x =
        Axis::default().bounds([0.0, end]).labels(["0 s".to_owned(), clock(end)]).style(Style::new().dim());
    let y = Axis::default().bounds([0.0, top]).labels(["0".to_owned(), label(top)]).style(Style::new().dim());
    frame.render_widget(
        Chart::new(datasets).block(Block::new().title(title)).x_axis(x).y_axis(y).legend_position(None),
        area,
    );
}

fn highest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

/// The next greater 1, 2 or 5 times a power of ten, so that axes rarely change.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tps::{Counts, Length};

    use super::super::history::tests::{request, second};
    use super::*;

    fn history(length: Length, seconds: u64) -> History {
        let mut history = History::new(&request(length, 0));
        for at in 1..=seconds {
            let counts = Counts { succeeded: 1000 / at, skipped: at, ..Counts::default() };
            history.add(&second(at, Phase::Measured, counts));
        }
        history
    }

    /// The view as text, line by line.
    fn picture(history: &History, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, HEIGHT)).unwrap();
        terminal.draw(|frame| draw(frame, history, Palette { is_coloured: true })).unwrap();
        terminal.backend().to_string()
    }

    fn braille(picture: &str) -> usize {
        picture.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count()
    }

    #[test]
    fn it_shows_the_last_second_and_what_happened_before() {
        let picture = picture(&history(Length::Time(Duration::from_secs(30)), 10), 80);
        for told in [
            "100 tps  p50 5.00 ms  p99 9.9",
            "10 s, 20 s left (33 %)",
            "2,927 transactions, 55 skipped",
            "Ctrl-C",
        ] {
            assert!(picture.contains(told), "{told} is not in\n{picture}");
        }
        // Axes end at the next round number.
        for told in ["1000│", "p50 and", "10│"] {
            assert!(picture.contains(told), "{told} is not in\n{picture}");
        }
        assert!(braille(&picture) > 20, "no lines in\n{picture}");
    }

    #[test]
    fn a_narrow_terminal_has_throughput_alone() {
        let picture = picture(&history(Length::Transactions(10_000), 3), 40);
        assert!(!picture.contains("p50 and"), "{picture}");
        assert!(braille(&picture) > 3, "no lines in\n{picture}");
        assert!(picture.contains("333 tps  p50 1.50 ms"), "{picture}");
    }

    #[test]
    fn nothing_yet_and_hardly_any_room_are_drawn_too() {
        let mut empty = history(Length::Time(Duration::from_secs(30)), 0);
        assert!(picture(&empty, 80).contains("0 s, 30 s left (0 %)"));
        for width in 1..30 {
            picture(&empty, width);
        }
        empty.is_over = true;
        assert!(!picture(&empty, 80).contains("Ctrl-C"));
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (highest, top) in [(0.0, 1.0), (0.9, 1.0), (1.0, 1.0), (1.1, 2.0), (4.2, 5.0), (5001.0, 10_000.0)]
        {
            assert!((nice(highest) - top).abs() < 1e-9, "{highest}: {}", nice(highest));
        }
    }
}
