//! Draws a heat map: numbers in cells, coloured by size.

use std::fmt::Write;

use super::canvas::{Width, fitted, frame, is_narrow, text, text_width};
use super::{Heat, Plot};
use crate::escape::html;

/// Number of colours, from the lowest to the highest value.
pub(super) const SHADES: usize = 7;
const CELL: f64 = 30.0;

pub(super) fn svg(plot: &Plot, chart: &Heat, width: Width) -> String {
    let all = || chart.cells.iter().flatten().flatten().copied();
    let (low, high) = all()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    // By the logarithm where numbers differ greatly.
    let by = |value: f64| if low > 0.0 && high / low > 5.0 { value.ln() } else { value };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of few shades")]
    let shade = |value: f64| {
        let share = if high > low { (by(value) - by(low)) / (by(high) - by(low)) } else { 1.0 };
        (share * (SHADES - 1) as f64).round() as usize
    };
    let names = chart.rows.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let names = if is_narrow(width) { 0.0 } else { names.min(width * 0.4) };
    let left = names + if is_narrow(width) { 8.0 } else { 16.0 };
    let cell = ((width - left - 8.0) / chart.columns.len().max(1) as f64).min(120.0);
    let above = if is_narrow(width) { 18.0 } else { 0.0 };
    let mut drawn = text(left, 14.0, "start soft", &fitted(&chart.column_label, width - left));
    for (number, name) in chart.columns.iter().enumerate() {
        drawn += &text(left + cell * (number as f64 + 0.5), 34.0, "middle", &fitted(name, cell - 2.0));
    }
    let row_height = CELL + above;
    for (number, (name, cells)) in chart.rows.iter().zip(&chart.cells).enumerate() {
        let y = 42.0 + row_height * number as f64;
        let (at, room) =
            if is_narrow(width) { (y + 13.0, width - 16.0) } else { (y + CELL / 2.0 + 4.0, names + 4.0) };
        drawn += &text(8.0, at, "start", &fitted(name, room));
        for (column, value) in cells.iter().enumerate() {
            let Some(value) = value else { continue };
            let x = left + cell * column as f64;
            let shade = shade(*value);
            let shown = chart.quantity.tick(*value);
            let _ = writeln!(
                drawn,
                "<g class=\"h{shade}\"><title>{}, {}: {}</title><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>{}</g>",
                html(name),
                html(&chart.columns[column]),
                html(&chart.quantity.text(*value)),
                y + above,
                cell - 2.0,
                CELL - 2.0,
                text(x + cell / 2.0 - 1.0, y + above + CELL / 2.0 + 3.0, "middle", &fitted(&shown, cell))
                    .trim_end()
            );
        }
    }
    frame(plot, width, 48.0 + row_height * chart.rows.len() as f64, "", &drawn)
}
