//! Values of several runs beside each other, a row for each configuration.

use std::fmt::Write;

use super::canvas::{
    STYLES, Width, described, fitted, frame, is_narrow, legend, rule, text, text_width, x_axis,
};
use super::lines::marker;
use super::scale::{Scale, range};
use super::{Groups, Plot};
use crate::escape::html;

/// Height of a value.
const LINE: f64 = 15.0;
/// Space between rows.
const SPACE: f64 = 9.0;

pub(super) fn svg(plot: &Plot, chart: &Groups, width: Width) -> String {
    let quantity = chart.axis.quantity;
    let keys: Vec<(String, String)> = chart
        .series
        .iter()
        .enumerate()
        .map(|(number, name)| (marker(number % STYLES, 14.0, 0.0), name.clone()))
        .collect();
    let (mut drawn, top) = legend(&keys, width);
    let top = top + 8.0;
    let values = || chart.rows.iter().flat_map(|row| row.1.iter().flatten());
    let longest =
        |texts: &mut dyn Iterator<Item = String>| texts.map(|text| text_width(&text)).fold(0.0, f64::max);
    let names = longest(&mut chart.rows.iter().map(|row| row.0.clone()));
    // Names that do not fit beside their rows are above them.
    let is_above = is_narrow(width) || names > width * 0.36;
    let names = if is_above { 0.0 } else { names };
    let texts = longest(&mut values().map(|value| quantity.text(value.value)));
    let (left, right) = (names + 16.0, width - 24.0 - texts);
    let all = values()
        .flat_map(|value| [Some(value.value), value.interval.map(|of| of.0), value.interval.map(|of| of.1)]);
    let x = Scale {
        spread: chart.axis.spread,
        values: range(chart.axis.spread, all.flatten(), chart.axis.from_zero, 5),
        pixels: (left, right),
    };
    let above = if is_above { 17.0 } else { 0.0 };
    let row_height = above + LINE * chart.series.len() as f64 + SPACE;
    let bottom = top + row_height * chart.rows.len() as f64;
    drawn += &x_axis(&chart.axis, &x, (top, bottom), 0.0, width);
    for (number, (name, values)) in chart.rows.iter().enumerate() {
        let from = top + row_height * number as f64;
        if number > 0 {
            drawn += &rule("grid", (8.0, from), (right, from));
        }
        let (name_at, room) =
            if is_above { (from + 14.0, width - 20.0) } else { (from + row_height / 2.0 + 4.0, names + 4.0) };
        drawn += &text(8.0, name_at, "start name", &fitted(name, room));
        for (series, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let style = series % STYLES;
            let y = from + above + SPACE / 2.0 + LINE * (series as f64 + 0.5);
            let shown = quantity.text(value.value);
            let mut title = format!("{name}, {}: {shown}", chart.series[series]);
            let mut marks = String::new();
            if let Some((low, high)) = value.interval {
                let _ = write!(title, " ({} to {})", quantity.text(low), quantity.text(high));
                let _ = write!(
                    marks,
                    "<path class=\"line s{style}\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                    x.at(low),
                    x.at(high)
                );
            }
            let _ = write!(
                drawn,
                "<g data-series=\"{}\"><title>{}</title>{marks}{}</g>\n{}",
                html(&chart.series[series]),
                html(&title),
                marker(style, x.at(value.value), y).trim_end(),
                text(right + 14.0, y + 4.0, "start", &shown)
            );
        }
    }
    let attributes = format!(" data-axis=\"{}\"", described(&chart.axis, &x));
    frame(plot, width, bottom + 42.0, &attributes, &drawn)
}
