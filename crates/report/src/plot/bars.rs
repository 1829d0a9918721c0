//! Draws a bar chart: a row for each value, with a bar from zero; or a row whose bar has parts, one after the other.

use std::fmt::Write;

use super::canvas::{Width, described, fitted, frame, is_narrow, legend, text, text_width, x_axis};
use super::scale::{Scale, Spread, range};
use super::{Bars, Plot};
use crate::escape::html;

/// Height of a bar with the space below it.
const BAR: f64 = 18.0;
/// Least length of a bar, so that its colour is seen.
const LEAST: f64 = 3.0;
/// A shorter bar has no outline, which would cover it.
const THIN: f64 = 6.0;

pub(super) fn svg(plot: &Plot, chart: &Bars, has_parts: bool, width: Width) -> String {
    let names = chart.rows.iter().map(|(name, _)| text_width(name)).fold(0.0, f64::max);
    // Names that do not fit beside the bars are above them.
    let is_above = is_narrow(width) || names > width * 0.34;
    let names = if is_above { 0.0 } else { names };
    let above = if is_above { 16.0 } else { 0.0 };
    let values = || {
        chart.rows.iter().flat_map(|(_, values)| {
            let there = values.iter().flatten().copied();
            if has_parts { vec![there.sum::<f64>()] } else { there.collect() }
        })
    };
    let texts = values().map(|value| text_width(&chart.axis.quantity.text(value))).fold(0.0, f64::max);
    let (left, right) = (names + 16.0, width - 16.0 - texts);
    let x_values = range(Spread::Linear, values().chain(chart.axis.reach), true, 5);
    let x = Scale { spread: Spread::Linear, values: x_values, pixels: (left, right) };
    let keys: Vec<(String, String)> = chart
        .groups
        .iter()
        .enumerate()
        .filter(|_| chart.groups.len() > 1)
        .map(|(number, name)| {
            (
                format!("<rect class=\"bar b{number}\" x=\"4\" y=\"-6\" width=\"20\" height=\"12\"/>"),
                name.clone(),
            )
        })
        .collect();
    let (mut drawn, top) = legend(&keys, width);
    let top = top + 8.0;
    let lines = if has_parts { 1 } else { chart.groups.len() };
    let row_height = BAR * lines as f64 + above + 6.0;
    let bottom = top + row_height * chart.rows.len() as f64;
    drawn += &x_axis(&chart.axis, &x, (top, bottom), 0.0, width);
    for (number, (name, values)) in chart.rows.iter().enumerate() {
        let from = top + row_height * number as f64 + 3.0;
        let (name_at, room) = if is_above {
            (from + 11.0, width - 20.0)
        } else {
            (from + (row_height - 6.0) / 2.0 + 4.0, names + 4.0)
        };
        drawn += &text(8.0, name_at, "start name", &fitted(name, room));
        let mut before = 0.0;
        for (group, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|value| !has_parts || *value > 0.0) else { continue };
            let line = if has_parts { 0 } else { group };
            let y = from + above + BAR * line as f64 + 1.0;
            let start = x.at(before);
            let least = if value > 0.0 { LEAST } else { 1.0 };
            let length = (x.at(before + value) - start).max(least);
            let thin = if length < THIN { " data-thin=\"\"" } else { "" };
            let shown = chart.axis.quantity.text(value);
            let part = if has_parts { format!(", {}", chart.groups[group]) } else { String::new() };
            let _ = writeln!(
                drawn,
                "<rect class=\"bar b{group}\" x=\"{start:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\"{thin}><title>{}: {}</title></rect>",
                BAR - 3.0,
                html(&format!("{name}{part}")),
                html(&shown)
            );
            if has_parts {
                before += value;
            } else {
                drawn += &text(start + length + 5.0, y + 12.0, "start", &shown);
            }
        }
        if has_parts {
            let whole = values.iter().flatten().sum::<f64>();
            drawn += &text(x.at(whole) + 6.0, from + above + 13.0, "start", &chart.axis.quantity.text(whole));
        }
    }
    let attributes = format!(" data-axis=\"{}\"", described(&chart.axis, &x));
    frame(plot, width, bottom + 42.0, &attributes, &drawn)
}
