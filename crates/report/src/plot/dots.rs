//! Draws values with intervals, a row each.

use std::fmt::Write;

use super::canvas::{Width, described, fitted, frame, is_narrow, rule, text, text_width, x_axis};
use super::scale::{Scale, range};
use super::{Dot, Dots, Plot};
use crate::escape::html;

pub(super) fn svg(plot: &Plot, chart: &Dots, width: Width) -> String {
    let longest =
        |of: &dyn Fn(&Dot) -> String| chart.rows.iter().map(|row| text_width(&of(row))).fold(0.0, f64::max);
    let names = longest(&|row| row.name.clone());
    // Names that do not fit beside their rows are above them.
    let is_above = is_narrow(width) || names > width * 0.36;
    let names = if is_above { 0.0 } else { names };
    let row_height = match chart.rows.len() {
        _ if is_above => 38.0,
        ..=12 => 26.0,
        _ => 20.0,
    };
    // Beside a name above there is room for its remark.
    let beside = |row: &Dot| {
        if is_above { chart.axis.quantity.text(row.value) } else { remark(chart, row) }
    };
    let remarks = longest(&beside).min(width * 0.36);
    let (left, right) = (names + 16.0, width - 16.0 - remarks);
    let values = chart.rows.iter().flat_map(|row| {
        let interval = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
        row.observed.iter().copied().chain([row.value]).chain(interval)
    });
    let others =
        chart.reference.into_iter().chain(chart.band.iter().flat_map(|(low, high, _)| [*low, *high]));
    let values = range(chart.axis.spread, values.chain(others), chart.axis.from_zero, 5);
    let x = Scale { spread: chart.axis.spread, values, pixels: (left, right) };
    let top = if chart.band.is_some() { 26.0 } else { 8.0 };
    let bottom = top + row_height * chart.rows.len() as f64;
    let mut drawn = String::new();
    if let Some((low, high, name)) = &chart.band {
        let (from, to) = (x.at(*low), x.at(*high));
        let _ = writeln!(
            drawn,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            (to - from).max(1.0),
            bottom - top
        );
        let name = fitted(name, width - 40.0);
        let _ = write!(
            drawn,
            "<rect class=\"band\" x=\"8\" y=\"4\" width=\"20\" height=\"12\"/>\n{}",
            text(34.0, 14.0, "", &name)
        );
    }
    drawn += &x_axis(&chart.axis, &x, (top, bottom), 0.0, width);
    if let Some(reference) = chart.reference {
        drawn += &rule("reference", (x.at(reference), top), (x.at(reference), bottom));
    }
    for (number, row) in chart.rows.iter().enumerate() {
        let from = top + row_height * number as f64;
        let y = from + row_height - if is_above { 13.0 } else { row_height / 2.0 };
        let (name_at, room) = if is_above { (from + 12.0, width - 20.0) } else { (y + 4.0, names + 4.0) };
        let name = if is_above && !row.remark.is_empty() {
            format!("{}: {}", row.name, row.remark.trim_matches(['(', ')']))
        } else {
            row.name.clone()
        };
        drawn += &text(8.0, name_at, "start name", &fitted(&name, room));
        drawn += &dot(chart, row, &x, y);
        drawn += &text(right + 10.0, y + 4.0, "start", &fitted(&beside(row), remarks + 4.0));
    }
    let attributes = format!(" data-axis=\"{}\"", described(&chart.axis, &x));
    frame(plot, width, bottom + 42.0, &attributes, &drawn)
}

/// The value as text, with the row's remark.
fn remark(chart: &Dots, row: &Dot) -> String {
    format!("{} {}", chart.axis.quantity.text(row.value), row.remark).trim_end().to_owned()
}

fn dot(chart: &Dots, row: &Dot, x: &Scale, y: f64) -> String {
    let quantity = chart.axis.quantity;
    let mut title = format!("{}: {}", row.name, quantity.text(row.value));
    let mut drawn = String::new();
    for observed in &row.observed {
        let _ =
            write!(drawn, "<circle class=\"observed\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\"/>", x.at(*observed));
    }
    if let Some((low, high)) = row.interval {
        let _ = write!(title, ", {} to {}", quantity.text(low), quantity.text(high));
        let (low, high) = (x.at(low), x.at(high));
        let _ =
            write!(drawn, "<path class=\"interval\" d=\"M{low:.1} {:.1}v8m0-4H{high:.1}m0-4v8\"/>", y - 4.0);
    }
    let middle = x.at(row.value);
    if !row.observed.is_empty() && row.interval.is_none() {
        let _ = write!(drawn, "<path class=\"interval\" d=\"M{middle:.1} {:.1}v14\"/>", y - 7.0);
    } else {
        // A hollow dot is a value whose interval is not known, beside others.
        let class =
            if chart.reference.is_some() && row.interval.is_none() { "value hollow" } else { "value" };
        let _ = write!(drawn, "<circle class=\"{class}\" cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>");
    }
    format!("<g><title>{}</title>{drawn}</g>\n", html(&title))
}
