//! Two axes, and events along the first.

use std::fmt::Write;

use super::canvas::{Width, described, is_narrow, minor, rule, text, text_width, titled, x_axis};
use super::scale::{Scale, Spread, range};
use super::{Axis, Span, SpanKind};
use crate::escape::{html, shortened};

/// Intervals between points, as a multiple of the typical one, over which no line is drawn: nothing was observed there.
const GAP: f64 = 2.5;

/// The kinds of events that have a lane below the plane, the upmost first; its height, that of its bars, and their least width.
const LANES: [SpanKind; 2] = [SpanKind::Checkpoint, SpanKind::Maintenance];
const LANE: f64 = 11.0;
const BAR: f64 = 7.0;
const LEAST: f64 = 3.0;

/// Moments that get a number; more could not be told apart.
const NUMBERED: usize = 9;

/// Several moments as a sentence, each with the number that it has in a drawing; nothing of one, which the legend names.
pub(crate) fn numbered(spans: &[Span]) -> String {
    let moments: Vec<&Span> = lines(spans).collect();
    if !(2..=NUMBERED).contains(&moments.len()) {
        return String::new();
    }
    let named = |(number, span): (usize, &&Span)| {
        let whole = span.text.split(" (").next().unwrap_or_default();
        let text = whole.split(": ").take(2).collect::<Vec<_>>().join(": ");
        format!("({}) {}", number + 1, shortened(&text, 80))
    };
    format!(" Marked: {}.", moments.iter().enumerate().map(named).collect::<Vec<_>>().join("; "))
}

/// The moments that take no time.
fn lines(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|span| span.kind == SpanKind::Moment && span.from >= span.until)
}

/// The place of a drawing with two axes.
pub(super) struct Plane {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) top: f64,
    pub(super) bottom: f64,
    width: Width,
    /// Height of the lanes of events below the plane.
    below: f64,
    /// For the script of a page.
    pub(super) attributes: String,
}

impl Plane {
    /// Both axes with their grid, below `top`; and the plane that they span. `xs` and `ys` are all values.
    pub(super) fn new(
        (x_axis_of, xs): (&Axis, &[f64]),
        (y_axis_of, ys): (&Axis, &[f64]),
        spans: &[Span],
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
            Spread::Linear => ends(xs, x_axis_of),
            Spread::Log => range(Spread::Log, xs.iter().copied(), false, 6),
            Spread::Nines => (0.0, xs.iter().copied().filter(|x| *x < 1.0).fold(0.9, f64::max)),
        };
        // The last name of the axis stands half beyond its end.
        let beyond = if is_narrow(width) { 14.0 } else { 26.0 };
        let x = Scale { spread: x_axis_of.spread, values: x_values, pixels: (left, width - beyond) };
        let mut drawn = text(4.0, top - 10.0, "start soft", &titled(y_axis_of, width - 8.0));
        if y.spread == Spread::Log {
            let lines = y
                .between()
                .into_iter()
                .map(|value| format!("M{left:.1} {:.1}H{:.1}", y.at(value), x.pixels.1));
            drawn += &minor("grid minor", lines);
        }
        for (tick, name) in ticks.iter().zip(&names) {
            drawn += &rule("grid", (left, y.at(*tick)), (x.pixels.1, y.at(*tick)));
            drawn += &text(left - 6.0, y.at(*tick) + 4.0, "end", name);
        }
        let below =
            LANES.iter().filter(|lane| spans.iter().any(|span| span.kind == **lane)).count() as f64 * LANE;
        drawn += &x_axis(x_axis_of, &x, (top, bottom), below, width);
        let attributes = format!(
            " data-x=\"{}\" data-y=\"{}\" data-below=\"{below}\"",
            described(x_axis_of, &x),
            described(y_axis_of, &y)
        );
        (drawn, Self { x, y, top, bottom, width, below, attributes })
    }

    /// Height of the drawing, with the names of the axis.
    pub(super) fn height(&self) -> f64 {
        self.bottom + self.below + 42.0
    }

    /// Events: those that take time in lanes below the plane, where they cover no value; moments as lines over it.
    pub(super) fn events(&self, spans: &[Span]) -> String {
        let (top, bottom) = (self.top, self.bottom);
        let mut drawn = String::new();
        for span in spans.iter().filter(|span| span.kind == SpanKind::Moment) {
            let (from, until, title) = (self.x.at(span.from), self.x.at(span.until), html(&span.text));
            let _ = if until - from >= 1.0 {
                writeln!(
                    drawn,
                    "<path class=\"band moment\" d=\"M{from:.1} {top:.1}H{until:.1}V{bottom:.1}H{from:.1}Z\"><title>{title}</title></path>"
                )
            } else {
                writeln!(
                    drawn,
                    "<path class=\"moment\" d=\"M{from:.1} {top:.1}V{bottom:.1}\"><title>{title}</title></path>"
                )
            };
        }
        let numbers = lines(spans).count();
        for (number, span) in lines(spans).enumerate().filter(|_| (2..=NUMBERED).contains(&numbers)) {
            // Two that are near each other are not at the same height.
            let y = top + if number % 2 == 0 { 12.0 } else { 26.0 };
            let x = (self.x.at(span.from) - 3.0).max(self.x.pixels.0 + 8.0);
            drawn += &text(x, y, "end count name", &(number + 1).to_string());
        }
        let kinds = LANES.into_iter().filter(|kind| spans.iter().any(|span| span.kind == *kind));
        for (number, kind) in kinds.enumerate() {
            let y = bottom + LANE * number as f64 + LANE - BAR - 1.0;
            let bars = self.bars(spans, kind);
            for (at, bar) in bars.iter().enumerate() {
                let before = at.checked_sub(1).map_or(self.x.pixels.0, |before| bars[before].until);
                let after = bars.get(at + 1).map_or(self.width, |next| next.from);
                drawn += &bar.count((before, after), y);
                let class = if kind == SpanKind::Checkpoint { "checkpoint" } else { "maintenance" };
                let _ = writeln!(
                    drawn,
                    "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"><title>{}</title></rect>",
                    bar.from,
                    bar.until - bar.from,
                    html(&bar.texts.join("\n"))
                );
            }
        }
        drawn
    }

    /// The bars of a lane: each so wide that it is seen; those that touch are one.
    fn bars(&self, spans: &[Span], kind: SpanKind) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        let mut of_kind: Vec<&Span> = spans.iter().filter(|span| span.kind == kind).collect();
        of_kind.sort_by(|one, other| one.from.total_cmp(&other.from));
        for span in of_kind {
            let until = self.x.at(span.until);
            let from = self.x.at(span.from).min(self.x.pixels.1 - LEAST);
            let until = until.max(from + LEAST);
            // Two checkpoints are never one: the next begins after the last.
            match bars.last_mut().filter(|bar| kind == SpanKind::Maintenance && from < bar.until) {
                Some(bar) => {
                    bar.until = bar.until.max(until);
                    bar.texts.push(span.text.clone());
                }
                None => bars.push(Bar { from, until, texts: vec![span.text.clone()] }),
            }
        }
        bars
    }
}

/// A bar in a lane, in pixels.
struct Bar {
    from: f64,
    until: f64,
    texts: Vec<String>,
}

impl Bar {
    /// The number of events in it beside it, if there are several, and if there is room between its neighbours.
    fn count(&self, (before, after): (f64, f64), y: f64) -> String {
        let count = format!("×{}", self.texts.len());
        let needed = text_width(&count) + 5.0;
        if self.texts.len() < 2 {
            String::new()
        } else if self.until + needed < after {
            text(self.until + 3.0, y + BAR + 1.0, "start count", &count)
        } else if self.from - needed > before {
            text(self.from - 3.0, y + BAR + 1.0, "end count", &count)
        } else {
            String::new()
        }
    }
}

/// The lowest and the highest value. A time that ends a little before a round one, as a run of an hour does, ends there.
fn ends(values: &[f64], axis: &Axis) -> (f64, f64) {
    let start = if axis.from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
    let (low, high) =
        values.iter().fold(start, |(low, high), value| (f64::min(low, *value), f64::max(high, *value)));
    if low >= high {
        return (0.0, 1.0);
    }
    let round = (high / 5.0).ceil() * 5.0;
    let is_almost = axis.quantity.is_elapsed() && round - high < high / 500.0;
    (low, if is_almost { round } else { high })
}

/// Samples and names of the kinds of events that there are. A moment is named if it is the only one.
pub(super) fn event_keys(spans: &[Span]) -> impl Iterator<Item = (String, String)> {
    let mut moments = spans.iter().filter(|span| span.kind == SpanKind::Moment);
    let (moment, sample) = match (moments.next(), moments.next()) {
        (Some(only), None) if only.until > only.from => {
            (only.text.as_str(), "<rect class=\"band\" x=\"4\" y=\"-6\" width=\"20\" height=\"12\"/>")
        }
        (Some(only), None) => (only.text.as_str(), "<path class=\"moment\" d=\"M14 -7V7\"/>"),
        _ => ("event", "<path class=\"moment\" d=\"M14 -7V7\"/>"),
    };
    let kinds = [
        (
            SpanKind::Checkpoint,
            "checkpoint",
            "<rect class=\"checkpoint\" x=\"4\" y=\"-3.5\" width=\"20\" height=\"7\"/>",
        ),
        (
            SpanKind::Maintenance,
            "vacuum or analyze",
            "<rect class=\"maintenance\" x=\"12\" y=\"-3.5\" width=\"4\" height=\"7\"/>",
        ),
        (SpanKind::Moment, moment, sample),
    ];
    let there = kinds.into_iter().filter(|(kind, ..)| spans.iter().any(|span| span.kind == *kind));
    there.map(|(_, name, sample)| (sample.to_owned(), name.to_owned()))
}

/// The distance over which no line is drawn between points at these places.
/// Sizes and numbers may double from one point to the next: only times have gaps.
pub(super) fn gap(xs: impl Iterator<Item = f64>, axis: &Axis) -> f64 {
    let xs: Vec<f64> = xs.collect();
    let mut steps: Vec<f64> = xs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if !axis.quantity.is_elapsed() || steps.len() < 4 {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    let pixels = (xs[xs.len() - 1] - xs[0]) / 200.0;
    (GAP * *steps.select_nth_unstable_by(middle, f64::total_cmp).1).max(pixels)
}
