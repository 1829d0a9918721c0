//! Parts of a whole over time, one on top of the other.

use std::fmt::Write;

use super::canvas::{STYLES, Width, frame, legend, text, text_width};
use super::path::Path;
use super::plane::{Plane, event_keys, gap};
use super::table::MOST;
use super::{Layer, Plot, Stack};
use crate::escape::html;

/// Height of a layer that has room for its name.
const LABEL: f64 = 15.0;

pub(super) fn svg(plot: &Plot, chart: &Stack, width: Width) -> String {
    let periods = Periods::of(chart);
    // The legend is in the order of the layers, the upmost first.
    let layers = chart.layers.iter().rev().map(|layer| {
        (
            format!("<rect class=\"{}\" x=\"2\" y=\"-7\" width=\"24\" height=\"14\"/>", class(layer)),
            layer.name.clone(),
        )
    });
    let peak = periods
        .peaks
        .iter()
        .map(|_| ("<path class=\"line peak\" d=\"M0 0H28\"/>".to_owned(), chart.peak.clone()));
    let keys: Vec<(String, String)> = layers.chain(peak).chain(event_keys(&chart.spans)).collect();
    let (keys, top) = legend(&keys, width);
    let highest = periods.peaks.as_deref().unwrap_or(periods.whole());
    let (axes, plane) = Plane::new((&chart.x, &chart.xs), (&chart.y, highest), &chart.spans, top, width);
    let mut drawn = keys + &axes;
    // Each layer reaches down to zero, and the next covers all but its own part.
    for (number, layer) in chart.layers.iter().enumerate().rev() {
        let _ = writeln!(
            drawn,
            "<path class=\"{}\" data-layer=\"{}\" d=\"{}\"/>",
            class(layer),
            html(&layer.name),
            periods.path(&plane, &periods.edges[number + 1], true)
        );
    }
    if let Some(peaks) = &periods.peaks {
        let (name, path) = (html(&chart.peak), periods.path(&plane, peaks, false));
        let _ = writeln!(drawn, "<path class=\"line peak\" data-name=\"{name}\" d=\"{path}\"/>");
    }
    drawn += &plane.events(&chart.spans);
    for (number, layer) in chart.layers.iter().enumerate() {
        drawn += &periods.label(&plane, number, &layer.name).unwrap_or_default();
    }
    frame(plot, width, plane.height(), &plane.attributes, &drawn)
}

fn class(layer: &Layer) -> String {
    format!("layer b{}", layer.style % STYLES)
}

/// The points to draw. Of a long series, these are means of periods: layers that change with each pixel cannot be told apart.
struct Periods {
    /// The end of each period.
    xs: Vec<f64>,
    /// Whether nothing was observed before a period.
    begins: Vec<bool>,
    /// The sum of the lowest layers in each period: of none, of one, of two and so on.
    edges: Vec<Vec<f64>>,
    /// The highest sum in each period, if periods have several values.
    peaks: Option<Vec<f64>>,
}

impl Periods {
    fn of(chart: &Stack) -> Self {
        let gap = gap(chart.xs.iter().copied(), &chart.x);
        let together = chart.xs.len().div_ceil(MOST).max(1);
        let mut periods: Vec<std::ops::Range<usize>> = Vec::new();
        let mut begins = Vec::new();
        for (at, x) in chart.xs.iter().enumerate() {
            let is_gap = at == 0 || x - chart.xs[at - 1] > gap;
            if let Some(period) = periods.last_mut().filter(|period| !is_gap && period.len() < together) {
                period.end = at + 1;
            } else {
                periods.push(at..at + 1);
                begins.push(is_gap);
            }
        }
        let sum = |layers: usize, at: usize| {
            chart.layers[..layers].iter().map(|layer| layer.heights[at]).sum::<f64>()
        };
        let edge = |layers: usize| -> Vec<f64> {
            let mean = |period: &std::ops::Range<usize>| {
                period.clone().map(|at| sum(layers, at)).sum::<f64>() / period.len() as f64
            };
            periods.iter().map(mean).collect()
        };
        let highest = |period: &std::ops::Range<usize>| {
            period.clone().map(|at| sum(chart.layers.len(), at)).fold(0.0, f64::max)
        };
        Self {
            xs: periods.iter().map(|period| chart.xs[period.end - 1]).collect(),
            begins,
            edges: (0..=chart.layers.len()).map(edge).collect(),
            peaks: (together > 1).then(|| periods.iter().map(highest).collect()),
        }
    }

    /// The upper edge of all layers.
    fn whole(&self) -> &[f64] {
        self.edges.last().map_or(&[], Vec::as_slice)
    }

    /// The line along these heights. An area begins and ends at zero, and has a part of its own between gaps.
    fn path(&self, plane: &Plane, heights: &[f64], is_area: bool) -> String {
        let mut path = Path::default();
        for ((x, height), begins) in self.xs.iter().zip(heights).zip(&self.begins) {
            let point = (plane.x.at(*x), plane.y.at(*height));
            if *begins && is_area {
                if *x > self.xs[0] {
                    path.close(plane.bottom);
                }
                path.start((point.0, plane.bottom));
            }
            if *begins && !is_area { path.start(point) } else { path.line(point) }
        }
        if is_area {
            path.close(plane.bottom);
        }
        path.finish()
    }

    /// The name within its layer, where there is most room; nothing where there is too little.
    fn label(&self, plane: &Plane, layer: usize, name: &str) -> Option<String> {
        let half = text_width(name) / 2.0 + 4.0;
        let places: Vec<f64> = self.xs.iter().map(|x| plane.x.at(*x)).collect();
        let room = |at: usize| {
            let middle = places[at];
            if middle - half < places[0] || middle + half > places[places.len() - 1] {
                return None;
            }
            let first = places.partition_point(|place| *place < middle - half).saturating_sub(1);
            let last = places.partition_point(|place| *place <= middle + half).min(places.len() - 1);
            let edge = |layers: usize| (first..=last).map(move |at| plane.y.at(self.edges[layers][at]));
            let (upper, lower) =
                (edge(layer + 1).fold(0.0, f64::max), edge(layer).fold(f64::INFINITY, f64::min));
            (lower - upper >= LABEL).then_some((lower - upper, middle, f64::midpoint(lower, upper)))
        };
        let (_, x, y) = (0..places.len()).filter_map(room).max_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(text(x, y + 4.0, "middle within", name))
    }
}
