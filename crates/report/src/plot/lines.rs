//! Series over time or another value, with events.

use std::fmt::Write;

use super::canvas::{STYLES, Width, frame, legend};
use super::path::Path;
use super::plane::{Plane, event_keys, gap};
use super::scale::Scale;
use super::thin::thinned;
use super::{Lines, Plot};
use crate::escape::html;

/// Points of a series that each get a marker.
const MARKED: usize = 40;

pub(super) fn svg(plot: &Plot, chart: &Lines, width: Width) -> String {
    let points = || chart.series.iter().flat_map(|line| &line.points);
    let (xs, ys): (Vec<f64>, Vec<f64>) = points().copied().unzip();
    let (keys, top) = legend(&keys(chart), width);
    let (axes, plane) = Plane::new((&chart.x, &xs), (&chart.y, &ys), top, width);
    let mut drawn = keys + &axes;
    for span in &chart.spans {
        drawn += &plane.event(span);
    }
    for (number, line) in chart.series.iter().enumerate() {
        let style = number % STYLES;
        let path = path(&line.points, &plane.x, &plane.y);
        let _ = writeln!(
            drawn,
            "<path class=\"line s{style}\" data-name=\"{}\" d=\"{path}\"/>",
            html(&line.name)
        );
        if line.points.len() <= MARKED {
            for point in &line.points {
                drawn += &marker(style, plane.x.at(point.0), plane.y.at(point.1));
            }
        }
    }
    frame(plot, width, plane.bottom + 42.0, &plane.attributes, &drawn)
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

/// The line through the points: thinned, and with gaps where there are none.
fn path(points: &[(f64, f64)], x: &Scale, y: &Scale) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a pixel of a drawing")]
    let kept = thinned(points, |value| x.at(value).floor() as i64);
    let gap = gap(points.iter().map(|point| point.0), x.spread);
    let mut path = Path::default();
    let mut before: Option<f64> = None;
    for (at, value) in kept {
        let pixel = (x.at(at), y.at(value));
        match before {
            Some(before) if at - before <= gap => path.line(pixel),
            _ => path.start(pixel),
        }
        before = Some(at);
    }
    path.finish()
}
