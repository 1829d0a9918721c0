//! Series over time or another value, with events.

use std::fmt::Write;

use super::canvas::{STYLES, Width, frame, legend};
use super::path::Path;
use super::plane::{Plane, event_keys, gap};
use super::scale::Scale;
use super::table::MOST;
use super::thin::{extremes, thinned};
use super::{Axis, Line, Lines, Long, Plot};
use crate::escape::html;

/// Points of a series that each get a marker.
const MARKED: usize = 40;
/// With more points than these, the points of a series cannot be told apart.
const DISTINCT: usize = 400;

pub(super) fn svg(plot: &Plot, chart: &Lines, width: Width) -> String {
    let points = || chart.series.iter().flat_map(|line| &line.points);
    let (xs, mut ys): (Vec<f64>, Vec<f64>) = points().copied().unzip();
    ys.extend(chart.series.iter().flat_map(|line| &line.intervals).flat_map(|(_, low, high)| [*low, *high]));
    let (keys, top) = legend(&keys(chart), width);
    let (axes, plane) = Plane::new((&chart.x, &xs), (&chart.y, &ys), &chart.spans, top, width);
    let mut drawn = keys + &axes;
    for (number, line) in chart.series.iter().enumerate() {
        if is_long(line) && line.long == Long::Medians {
            let _ = writeln!(
                drawn,
                "<path class=\"range m{}\" data-range=\"{}\" d=\"{}\"/>",
                number % STYLES,
                html(&line.name),
                area(&line.points, &chart.x, &plane)
            );
        }
    }
    drawn += &plane.events(&chart.spans);
    // The first series is drawn last: the highest one is not covered.
    for (number, line) in chart.series.iter().enumerate().rev() {
        let style = number % STYLES;
        let _ = writeln!(
            drawn,
            "<path class=\"line s{style}\" data-name=\"{}\" d=\"{}\"/>",
            html(&line.name),
            path(line, &chart.x, &plane)
        );
        if let (Some(from), Some(to)) = (line.from, line.points.first()) {
            let [(left, start), (right, end)] =
                [from, *to].map(|point| (plane.x.at(point.0), plane.y.at(point.1)));
            let _ = writeln!(
                drawn,
                "<path class=\"mark link w{style}\" d=\"M{left:.1} {start:.1}L{right:.1} {end:.1}\"/>"
            );
        }
        // Wider than a marker, so that a short interval is seen beside it.
        for (x, low, high) in &line.intervals {
            let (x, low, high) = (plane.x.at(*x), plane.y.at(*low), plane.y.at(*high));
            let _ = writeln!(
                drawn,
                "<path class=\"mark whisker w{style}\" d=\"M{:.1} {low:.1}h14m-7 0V{high:.1}m-7 0h14\"/>",
                x - 7.0
            );
        }
        if line.points.len() <= MARKED {
            for point in &line.points {
                drawn += &marker(style, plane.x.at(point.0), plane.y.at(point.1));
            }
        }
    }
    frame(plot, width, plane.height(), &plane.attributes, &drawn)
}

fn is_long(line: &Line) -> bool {
    line.points.len() > DISTINCT
}

/// The number of points of which a long series of so many draws the median; 1 of a series that is not long.
pub(crate) fn together(points: usize) -> usize {
    if points > DISTINCT { points.div_ceil(MOST) } else { 1 }
}

fn keys(chart: &Lines) -> Vec<(String, String)> {
    let is_named = chart.series.len() > 1 || !chart.spans.is_empty();
    let named = chart.series.iter().enumerate().filter(|_| is_named).map(|(number, line)| {
        let style = number % STYLES;
        let marker = if line.points.len() <= MARKED { marker(style, 14.0, 0.0) } else { String::new() };
        (format!("<path class=\"line s{style}\" d=\"M0 0H28\"/>{marker}"), line.name.clone())
    });
    named.chain(event_keys(&chart.spans)).collect()
}

/// A marker in the style's own shape, so that lines do not differ only by colour.
pub(super) fn marker(style: usize, x: f64, y: f64) -> String {
    let shape = match style % 4 {
        0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
        1 => "m-3-3h6v6h-6z",
        2 => "m0-4l4 7h-8z",
        _ => "m0-4l4 4l-4 4l-4-4z",
    };
    format!("<path class=\"mark m{style}\" d=\"M{x:.1} {y:.1}{shape}\"/>\n")
}

/// The column of pixels of a value.
#[expect(clippy::cast_possible_truncation, reason = "a pixel of a drawing")]
fn column(x: &Scale) -> impl Fn(f64) -> i64 {
    |value| x.at(value).floor() as i64
}

/// The line through the points, with gaps where there are none. Of a long series, as [`Long`] says.
fn path(line: &Line, x: &Axis, plane: &Plane) -> String {
    let points = &line.points;
    let mut path = Path::default();
    for part in parts(points, x) {
        let kept = match line.long {
            _ if !is_long(line) => thinned(part, column(&plane.x)),
            Long::Medians => medians(part, together(points.len())),
            Long::Highest => {
                extremes(part, column(&plane.x)).into_iter().map(|(x, _, high)| (x, high)).collect()
            }
        };
        for (number, point) in kept.into_iter().enumerate() {
            let pixel = (plane.x.at(point.0), plane.y.at(point.1));
            if number == 0 { path.start(pixel) } else { path.line(pixel) }
        }
    }
    path.finish()
}

/// The area between the lowest and the highest value of each column of pixels.
fn area(points: &[(f64, f64)], x: &Axis, plane: &Plane) -> String {
    let mut path = Path::default();
    for part in parts(points, x) {
        let columns = extremes(part, column(&plane.x));
        let highest = columns.iter().map(|(x, _, high)| (*x, *high));
        let lowest = columns.iter().rev().map(|(x, low, _)| (*x, *low));
        for (number, point) in highest.chain(lowest).enumerate() {
            let pixel = (plane.x.at(point.0), plane.y.at(point.1));
            if number == 0 { path.start(pixel) } else { path.line(pixel) }
        }
        path.shut();
    }
    path.finish()
}

/// The middle and the median of each period.
fn medians(points: &[(f64, f64)], together: usize) -> Vec<(f64, f64)> {
    let median = |period: &[(f64, f64)]| {
        let mut heights: Vec<f64> = period.iter().map(|point| point.1).collect();
        let middle = heights.len() / 2;
        let median = *heights.select_nth_unstable_by(middle, f64::total_cmp).1;
        (f64::midpoint(period[0].0, period[period.len() - 1].0), median)
    };
    points.chunks(together).map(median).collect()
}

/// The points between gaps.
fn parts<'a>(points: &'a [(f64, f64)], x: &Axis) -> impl Iterator<Item = &'a [(f64, f64)]> {
    let gap = gap(points.iter().map(|point| point.0), x);
    points.chunk_by(move |one, next| next.0 - one.0 <= gap)
}
