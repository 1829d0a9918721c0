//! Parts of a whole over time, one on top of the other.

use std::fmt::Write;

use super::canvas::{STYLES, Width, frame, legend, text, text_width};
use super::path::Path;
use super::plane::{Plane, event_keys, gap};
use super::{Plot, Stack};
use crate::escape::html;

/// Height of a layer that has room for its name.
const LABEL: f64 = 15.0;

pub(super) fn svg(plot: &Plot, chart: &Stack, width: Width) -> String {
    // The legend is in the order of the layers, the upmost first.
    let keys = chart.layers.iter().enumerate().rev().map(|(number, (name, _))| {
        (
            format!("<rect class=\"{}\" x=\"2\" y=\"-7\" width=\"24\" height=\"14\"/>", class(number)),
            name.clone(),
        )
    });
    let (keys, top) = legend(&keys.chain(event_keys(&chart.spans)).collect::<Vec<_>>(), width);
    let heights: Vec<f64> =
        (0..chart.xs.len()).map(|at| chart.layers.iter().map(|(_, values)| values[at]).sum()).collect();
    let (axes, plane) = Plane::new((&chart.x, &chart.xs), (&chart.y, &heights), top, width);
    let mut drawn = keys + &axes;
    // Each layer reaches down to zero, and the next covers all but its own part.
    for number in (0..chart.layers.len()).rev() {
        let (name, _) = &chart.layers[number];
        let _ = writeln!(
            drawn,
            "<path class=\"{}\" data-layer=\"{}\" d=\"{}\"/>",
            class(number),
            html(name),
            outline(chart, &plane, number)
        );
    }
    for span in &chart.spans {
        drawn += &plane.event(span);
    }
    for number in 0..chart.layers.len() {
        drawn += &label(chart, &plane, number).unwrap_or_default();
    }
    frame(plot, width, plane.bottom + 42.0, &plane.attributes, &drawn)
}

fn class(number: usize) -> String {
    format!("layer b{}", number % STYLES)
}

/// The pixel of the upper edge of so many layers at a place.
fn edge(chart: &Stack, plane: &Plane, layers: usize, at: usize) -> f64 {
    plane.y.at(chart.layers[..layers].iter().map(|(_, values)| values[at]).sum())
}

/// The name within its layer, where there is most room; nothing where there is too little.
fn label(chart: &Stack, plane: &Plane, number: usize) -> Option<String> {
    let name = &chart.layers[number].0;
    let half = text_width(name) / 2.0 + 4.0;
    let places: Vec<f64> = chart.xs.iter().map(|x| plane.x.at(*x)).collect();
    let room = |at: usize| {
        let middle = places[at];
        if middle - half < places[0] || middle + half > places[places.len() - 1] {
            return None;
        }
        let first = places.partition_point(|place| *place < middle - half).saturating_sub(1);
        let last = places.partition_point(|place| *place <= middle + half).min(places.len() - 1);
        let upper = (first..=last).map(|at| edge(chart, plane, number + 1, at)).fold(0.0, f64::max);
        let lower = (first..=last).map(|at| edge(chart, plane, number, at)).fold(f64::INFINITY, f64::min);
        (lower - upper >= LABEL).then_some((lower - upper, middle, f64::midpoint(lower, upper)))
    };
    let (_, x, y) = (0..places.len()).filter_map(room).max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(text(x, y + 4.0, "middle within", name))
}

/// From zero along the upper edge back to zero, with a part of its own between gaps.
fn outline(chart: &Stack, plane: &Plane, number: usize) -> String {
    let gap = gap(chart.xs.iter().copied(), chart.x.spread);
    let mut path = Path::default();
    let mut before: Option<f64> = None;
    for (at, x) in chart.xs.iter().enumerate() {
        let at_x = plane.x.at(*x);
        if before.is_none_or(|before| x - before > gap) {
            if before.is_some() {
                path.close(plane.bottom);
            }
            path.start((at_x, plane.bottom));
        }
        path.line((at_x, edge(chart, plane, number + 1, at)));
        before = Some(*x);
    }
    path.close(plane.bottom);
    path.finish()
}
