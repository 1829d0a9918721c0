//! Series over time or another value, with events.

use std::fmt::Write;

use super::canvas::{STYLES, Width, described, frame, is_narrow, legend, rule, text, text_width, x_axis};
use super::scale::{Scale, Spread, range};
use super::thin::thinned;
use super::{Lines, Plot, SpanKind};
use crate::escape::html;

/// Intervals between points, as a multiple of the typical one, over which no line is drawn: nothing was observed there.
const GAP: f64 = 2.5;
/// Points of a series that each get a marker.
const MARKED: usize = 40;

pub(super) fn svg(plot: &Plot, chart: &Lines, width: Width) -> String {
    let height = if is_narrow(width) { 200.0 } else { 240.0 };
    let xs = || chart.series.iter().flat_map(|line| &line.points).map(|point| point.0);
    let ys = chart.series.iter().flat_map(|line| &line.points).map(|point| point.1);
    let y_values = range(chart.y.spread, ys, chart.y.from_zero, 5);
    let (keys, top) = legend(&keys(chart), width);
    let top = top + 26.0;
    let bottom = top + height;
    let y = Scale { spread: chart.y.spread, values: y_values, pixels: (bottom, top) };
    let ticks = y.ticks(6, chart.y.quantity.is_elapsed());
    let names: Vec<String> = ticks.iter().map(|tick| chart.y.quantity.tick(*tick)).collect();
    let left = names.iter().map(|name| text_width(name)).fold(20.0, f64::max) + 12.0;
    let x_values = match chart.x.spread {
        Spread::Linear => ends(xs(), chart.x.from_zero),
        Spread::Log => range(Spread::Log, xs(), false, 6),
        Spread::Nines => (0.0, xs().filter(|x| *x < 1.0).fold(0.9, f64::max)),
    };
    let x = Scale { spread: chart.x.spread, values: x_values, pixels: (left, width - 14.0) };
    let mut drawn = keys;
    drawn += &text(4.0, top - 10.0, "start soft", &chart.y.label);
    for (tick, name) in ticks.iter().zip(&names) {
        drawn += &rule("grid", (left, y.at(*tick)), (x.pixels.1, y.at(*tick)));
        drawn += &text(left - 6.0, y.at(*tick) + 4.0, "end", name);
    }
    drawn += &x_axis(&chart.x, &x, (top, bottom));
    for span in &chart.spans {
        drawn += &event(span, &x, (top, bottom));
    }
    for (number, line) in chart.series.iter().enumerate() {
        let style = number % STYLES;
        let path = path(&line.points, &x, &y);
        let _ = writeln!(
            drawn,
            "<path class=\"line s{style}\" data-name=\"{}\" d=\"{path}\"/>",
            html(&line.name)
        );
        if line.points.len() <= MARKED {
            for point in &line.points {
                drawn += &marker(style, x.at(point.0), y.at(point.1));
            }
        }
    }
    let attributes =
        format!(" data-x=\"{}\" data-y=\"{}\"", described(&chart.x, &x), described(&chart.y, &y));
    frame(plot, width, bottom + 42.0, &attributes, &drawn)
}

/// The lowest and the highest value.
fn ends(values: impl Iterator<Item = f64>, from_zero: bool) -> (f64, f64) {
    let start = if from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
    let (low, high) = values.fold(start, |(low, high), value| (f64::min(low, value), f64::max(high, value)));
    if low < high { (low, high) } else { (0.0, 1.0) }
}

fn keys(chart: &Lines) -> Vec<(String, String)> {
    let is_named = chart.series.len() > 1 || !chart.spans.is_empty();
    let named = chart.series.iter().enumerate().filter(|_| is_named).map(|(number, line)| {
        let style = number % STYLES;
        let marker = if line.points.len() <= MARKED { marker(style, 14.0, 0.0) } else { String::new() };
        (format!("<path class=\"line s{style}\" d=\"M0 0H28\"/>{marker}"), line.name.clone())
    });
    let kinds = [
        (
            SpanKind::Checkpoint,
            "checkpoint",
            "<rect class=\"checkpoint\" x=\"4\" y=\"-6\" width=\"20\" height=\"12\"/>",
        ),
        (
            SpanKind::Maintenance,
            "vacuum or analyze",
            "<rect class=\"maintenance\" x=\"4\" y=\"-2\" width=\"20\" height=\"6\"/>",
        ),
        (SpanKind::Moment, "event", "<path class=\"moment\" d=\"M14 -7V7\"/>"),
    ];
    let there = kinds.into_iter().filter(|(kind, ..)| chart.spans.iter().any(|span| span.kind == *kind));
    named.chain(there.map(|(_, name, sample)| (sample.to_owned(), name.to_owned()))).collect()
}

fn event(span: &super::Span, x: &Scale, (top, bottom): (f64, f64)) -> String {
    let (from, until) = (x.at(span.from), x.at(span.until));
    let width = (until - from).max(2.0);
    let title = html(&span.text);
    match span.kind {
        SpanKind::Checkpoint => format!(
            "<rect class=\"checkpoint\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{title}</title></rect>\n",
            bottom - top
        ),
        SpanKind::Maintenance => format!(
            "<rect class=\"maintenance\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"6\"><title>{title}</title></rect>\n",
            bottom - 6.0
        ),
        SpanKind::Moment => {
            format!(
                "<path class=\"moment\" d=\"M{from:.1} {top:.1}V{bottom:.1}\"><title>{title}</title></path>\n"
            )
        }
    }
}

/// A sign of the style's own shape: lines differ by it too.
pub(super) fn marker(style: usize, x: f64, y: f64) -> String {
    let shape = match style % 4 {
        0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
        1 => "m-3-3h6v6h-6z",
        2 => "m0-4l4 7h-8z",
        _ => "m0-4l4 4l-4 4l-4-4z",
    };
    format!("<path class=\"mark m{style}\" d=\"M{x:.1} {y:.1}{shape}\"/>\n")
}

/// The line through the points: thinned, and with gaps where there are none. Coordinates are relative, in tenths of a
/// pixel and without what is not needed, as a long series has thousands of them.
fn path(points: &[(f64, f64)], x: &Scale, y: &Scale) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a pixel of a drawing")]
    let kept = thinned(points, |value| x.at(value).floor() as i64);
    #[expect(clippy::cast_possible_truncation, reason = "a pixel of a drawing")]
    let tenths = |pixel: f64| (pixel * 10.0).round() as i64;
    let gap = gap(points, x.spread);
    let mut path = Path::default();
    let mut before: Option<f64> = None;
    for (at, value) in kept {
        let pixel = (tenths(x.at(at)), tenths(y.at(value)));
        match before {
            Some(before) if at - before <= gap => path.line(pixel),
            _ => path.start(pixel),
        }
        before = Some(at);
    }
    path.finish()
}

/// Data of a path, as SVG defines them.
#[derive(Default)]
struct Path {
    text: String,
    /// Tenths of pixels of the last point.
    at: (i64, i64),
    /// Lines since the last start.
    lines: usize,
    /// Whether the last number has a point: the next one may then begin with a point and without a blank.
    is_fraction: bool,
}

impl Path {
    fn start(&mut self, to: (i64, i64)) {
        self.dot();
        self.text.push('M');
        self.pair(to.0, to.1);
        (self.at, self.lines) = (to, 0);
    }

    fn line(&mut self, to: (i64, i64)) {
        if self.lines == 0 {
            self.text.push('l');
        }
        self.pair(to.0 - self.at.0, to.1 - self.at.1);
        (self.at, self.lines) = (to, self.lines + 1);
    }

    /// A point between two gaps is a dot.
    fn dot(&mut self) {
        if self.lines == 0 && !self.text.is_empty() {
            self.text += "h0";
        }
    }

    fn pair(&mut self, x: i64, y: i64) {
        self.number(x);
        self.number(y);
    }

    fn number(&mut self, tenths: i64) {
        let mut number = if tenths % 10 == 0 {
            (tenths / 10).to_string()
        } else {
            let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
            format!("{sign}{}.{}", tenths / 10, tenths % 10)
        };
        if let Some(fraction) = number.strip_prefix("0.").map(str::len) {
            number.drain(..number.len() - fraction - 1);
        } else if number.starts_with("-0.") {
            number.remove(1);
        }
        let stands_apart = number.starts_with('-') || number.starts_with('.') && self.is_fraction;
        let follows_number = self.text.ends_with(|last: char| last.is_ascii_digit());
        if follows_number && !stands_apart {
            self.text.push(' ');
        }
        self.text += &number;
        self.is_fraction = number.contains('.');
    }

    fn finish(mut self) -> String {
        self.dot();
        self.text
    }
}

/// The distance over which no line is drawn.
fn gap(points: &[(f64, f64)], spread: Spread) -> f64 {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if spread != Spread::Linear || steps.len() < 4 {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    let pixels = (points[points.len() - 1].0 - points[0].0) / 200.0;
    (GAP * *steps.select_nth_unstable_by(middle, f64::total_cmp).1).max(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short() {
        let mut path = Path::default();
        for point in [(412, 1003), (416, 971), (421, 992), (431, 992), (440, 987)] {
            if path.text.is_empty() { path.start(point) } else { path.line(point) }
        }
        path.start((500, 7));
        path.start((600, 0));
        path.line((605, 10));
        assert_eq!(path.finish(), "M41.2 100.3l.4-3.2.5 2.1 1 0 .9-.5M50 .7h0M60 0l.5 1");
    }
}
