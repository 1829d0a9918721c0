//! Two axes, and events along the first.

use super::canvas::{Width, described, is_narrow, rule, text, text_width, x_axis};
use super::scale::{Scale, Spread, range};
use super::{Axis, Span, SpanKind};
use crate::escape::html;

/// Intervals between points, as a multiple of the typical one, over which no line is drawn: nothing was observed there.
const GAP: f64 = 2.5;

/// The place of a drawing with two axes.
pub(super) struct Plane {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// For the script of a page.
    pub(super) attributes: String,
}

impl Plane {
    /// Both axes with their grid, below `top`; and the plane that they span. `xs` and `ys` are all values.
    pub(super) fn new(
        (x_axis_of, xs): (&Axis, &[f64]),
        (y_axis_of, ys): (&Axis, &[f64]),
        top: f64,
        width: Width,
    ) -> (String, Self) {
        let top = top + 26.0;
        let bottom = top + if is_narrow(width) { 200.0 } else { 240.0 };
        let y_values = range(y_axis_of.spread, ys.iter().copied(), y_axis_of.from_zero, 5);
        let y = Scale { spread: y_axis_of.spread, values: y_values, pixels: (bottom, top) };
        let ticks = y.ticks(6, y_axis_of.quantity.is_elapsed());
        let names: Vec<String> = ticks.iter().map(|tick| y_axis_of.quantity.tick(*tick)).collect();
        let left = names.iter().map(|name| text_width(name)).fold(20.0, f64::max) + 12.0;
        let x_values = match x_axis_of.spread {
            Spread::Linear => ends(xs, x_axis_of.from_zero),
            Spread::Log => range(Spread::Log, xs.iter().copied(), false, 6),
            Spread::Nines => (0.0, xs.iter().copied().filter(|x| *x < 1.0).fold(0.9, f64::max)),
        };
        let x = Scale { spread: x_axis_of.spread, values: x_values, pixels: (left, width - 14.0) };
        let mut drawn = text(4.0, top - 10.0, "start soft", &y_axis_of.label);
        for (tick, name) in ticks.iter().zip(&names) {
            drawn += &rule("grid", (left, y.at(*tick)), (x.pixels.1, y.at(*tick)));
            drawn += &text(left - 6.0, y.at(*tick) + 4.0, "end", name);
        }
        drawn += &x_axis(x_axis_of, &x, (top, bottom));
        let attributes =
            format!(" data-x=\"{}\" data-y=\"{}\"", described(x_axis_of, &x), described(y_axis_of, &y));
        (drawn, Self { x, y, top, bottom, attributes })
    }

    /// A time in which something happened.
    pub(super) fn event(&self, span: &Span) -> String {
        let (top, bottom) = (self.top, self.bottom);
        let (from, until) = (self.x.at(span.from), self.x.at(span.until));
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
}

/// The lowest and the highest value.
fn ends(values: &[f64], from_zero: bool) -> (f64, f64) {
    let start = if from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
    let (low, high) =
        values.iter().fold(start, |(low, high), value| (f64::min(low, *value), f64::max(high, *value)));
    if low < high { (low, high) } else { (0.0, 1.0) }
}

/// Samples and names of the kinds of events that there are. A moment is named if it is the only one.
pub(super) fn event_keys(spans: &[Span]) -> impl Iterator<Item = (String, String)> {
    let mut moments = spans.iter().filter(|span| span.kind == SpanKind::Moment);
    let moment = match (moments.next(), moments.next()) {
        (Some(only), None) => only.text.as_str(),
        _ => "event",
    };
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
        (SpanKind::Moment, moment, "<path class=\"moment\" d=\"M14 -7V7\"/>"),
    ];
    let there = kinds.into_iter().filter(|(kind, ..)| spans.iter().any(|span| span.kind == *kind));
    there.map(|(_, name, sample)| (sample.to_owned(), name.to_owned()))
}

/// The distance over which no line is drawn between points at these places.
pub(super) fn gap(xs: impl Iterator<Item = f64>, spread: Spread) -> f64 {
    let xs: Vec<f64> = xs.collect();
    let mut steps: Vec<f64> = xs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if spread != Spread::Linear || steps.len() < 4 {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    let pixels = (xs[xs.len() - 1] - xs[0]) / 200.0;
    (GAP * *steps.select_nth_unstable_by(middle, f64::total_cmp).1).max(pixels)
}
