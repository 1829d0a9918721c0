//! Draws a heat map: numbers in cells, coloured by size.

use std::fmt::Write;

use super::canvas::{Width, frame, is_narrow, legend, middle_cut, text, text_width};
use super::{Colours, Heat, Plot};
use crate::escape::html;

/// Number of colours, from the lowest to the highest value.
pub(super) const SHADES: usize = 7;
/// Colours of values beyond a limit, from those a little beyond.
const BEYOND: usize = 3;
/// A value so many times the limit has the last of them.
const FAR: f64 = 10.0;
const CELL: f64 = 30.0;
/// Height of a line of a column's name.
const LINE: f64 = 14.0;

/// A colour: its class, and the values that have it.
struct Shade {
    class: String,
    values: String,
}

/// Assigns colours to values.
struct Scheme {
    shades: Vec<Shade>,
    /// For each value in descending order, the number of its shade.
    of: Vec<(f64, usize)>,
}

impl Scheme {
    fn shade(&self, value: f64) -> &str {
        let found = self.of.iter().find(|(known, _)| known.to_bits() == value.to_bits());
        found.map_or("", |(_, shade)| &self.shades[*shade].class)
    }

    fn new(chart: &Heat) -> Self {
        let mut all: Vec<f64> = chart.cells.iter().flatten().flatten().copied().collect();
        all.sort_by(|one, other| other.total_cmp(one));
        all.dedup_by(|one, other| one.to_bits() == other.to_bits());
        match chart.colours {
            Colours::Limit(limit) => Self::by_limit(chart, &all, limit),
            Colours::Steps(least) => Self::by_size(chart, &all, least),
        }
    }

    /// From the highest value down: a colour has all values that are less than `least` below its highest. So values of one
    /// colour may be the same, and two colours stand for a difference.
    fn by_size(chart: &Heat, all: &[f64], least: f64) -> Self {
        let (Some(high), Some(low)) = (all.first(), all.last()) else {
            return Self { shades: Vec::new(), of: Vec::new() };
        };
        // Not more colours than there are.
        let step = least.max((high - low) / SHADES as f64);
        let mut of: Vec<(f64, usize)> = Vec::new();
        let mut from = *high;
        let mut number = 0;
        for value in all {
            if from - value > step * (1.0 + 1e-9) {
                (from, number) = (*value, number + 1);
            }
            of.push((*value, number));
        }
        let count = number + 1;
        let shade = |number: usize| {
            let own = || of.iter().filter(|(_, shade)| *shade == number).map(|(value, _)| *value);
            let (high, low) = (own().fold(f64::MIN, f64::max), own().fold(f64::MAX, f64::min));
            let (low, high) = (chart.quantity.tick(low), chart.quantity.tick(high));
            let values = if low == high { low } else { format!("{low} to {high}") };
            // The highest has the last colour; few colours are far apart.
            let class =
                if count == 1 { SHADES - 1 } else { (SHADES - 1) * (count - 1 - number) / (count - 1) };
            Shade { class: format!("h{class}"), values }
        };
        Self { shades: (0..count).map(shade).collect(), of }
    }

    /// Values up to the limit have one colour, those beyond stand out.
    fn by_limit(chart: &Heat, all: &[f64], limit: f64) -> Self {
        let ends: Vec<f64> =
            (0..BEYOND).map(|step| limit * FAR.powf(step as f64 / (BEYOND - 1) as f64)).collect();
        let beyond = |value: f64| ends.iter().rposition(|end| value > *end).map_or(0, |step| step + 1);
        let text = |value: f64| chart.quantity.tick((value * 10.0).round() / 10.0);
        let mut shades = vec![Shade {
            class: "within-limit".to_owned(),
            values: format!("up to {}, as the original", text(limit)),
        }];
        shades.extend((0..BEYOND).map(|step| Shade {
            class: format!("beyond{step}"),
            values: format!("over {}", text(ends[step])),
        }));
        Self { shades, of: all.iter().map(|value| (*value, beyond(*value))).collect() }
    }
}

pub(super) fn svg(plot: &Plot, chart: &Heat, width: Width) -> String {
    let scheme = Scheme::new(chart);
    let keys: Vec<(String, String)> = scheme
        .shades
        .iter()
        .map(|shade| {
            (
                format!("<g class=\"{}\"><path class=\"shade\" d=\"M4-7h20v14h-20z\"/></g>", shade.class),
                shade.values.clone(),
            )
        })
        .collect();
    let (mut drawn, top) = legend(&keys, width);
    let names = chart.rows.iter().map(|name| text_width(name)).fold(0.0, f64::max);
    let names = if is_narrow(width) { 0.0 } else { names.min(width * 0.4) };
    let left = names + if is_narrow(width) { 8.0 } else { 16.0 };
    let cell = ((width - left - 8.0) / chart.columns.len().max(1) as f64).min(120.0);
    let above = if is_narrow(width) { 18.0 } else { 0.0 };
    let label_at = top + 14.0;
    drawn += &text(left, label_at, "start soft", &middle_cut(&chart.column_label, width - left));
    let lines: Vec<Vec<String>> = chart.columns.iter().map(|name| in_lines(name, cell - 4.0)).collect();
    let most = lines.iter().map(Vec::len).max().unwrap_or(1);
    for (number, parts) in lines.iter().enumerate() {
        for (line, part) in parts.iter().enumerate() {
            // The last lines of all columns are at the same height.
            let y = label_at + 6.0 + LINE * (most - parts.len() + line + 1) as f64;
            drawn += &text(left + cell * (number as f64 + 0.5), y, "middle", part);
        }
    }
    let from = label_at + 14.0 + LINE * most as f64;
    let row_height = CELL + above;
    for (number, (name, cells)) in chart.rows.iter().zip(&chart.cells).enumerate() {
        let y = from + row_height * number as f64;
        let (at, room) =
            if is_narrow(width) { (y + 13.0, width - 16.0) } else { (y + CELL / 2.0 + 4.0, names + 4.0) };
        drawn += &text(8.0, at, "start", &middle_cut(name, room));
        for (column, value) in cells.iter().enumerate() {
            let Some(value) = value else { continue };
            let x = left + cell * column as f64;
            let shown = in_room(chart, *value, cell - 6.0);
            let _ = writeln!(
                drawn,
                "<g class=\"{}\"><title>{}, {}: {}</title><rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>{}</g>",
                scheme.shade(*value),
                html(name),
                html(&chart.columns[column]),
                html(&chart.quantity.text(*value)),
                y + above,
                cell - 2.0,
                CELL - 2.0,
                text(x + cell / 2.0 - 1.0, y + above + CELL / 2.0 + 3.0, "middle", &shown).trim_end()
            );
        }
    }
    frame(plot, width, from + 6.0 + row_height * chart.rows.len() as f64, "", &drawn)
}

/// The number in a cell: with a limit in few digits, as only their distance from it counts.
fn in_room(chart: &Heat, value: f64, room: f64) -> String {
    let shown = match chart.colours {
        Colours::Limit(_) if value == 0.0 => "0".to_owned(),
        Colours::Limit(_) if value < 0.1 => "<.1".to_owned(),
        Colours::Limit(limit) if value > limit * FAR => format!(">{}", chart.quantity.tick(limit * FAR)),
        Colours::Limit(limit) => {
            let text = format!("{value:.1}");
            // Rounding brings no value to the limit.
            if value > limit && text == format!("{limit:.1}") { format!("{value:.2}") } else { text }
        }
        Colours::Steps(_) => chart.quantity.tick(value),
    };
    middle_cut(&shown, room.max(20.0))
}

/// The name in as many lines as its words need in this width, at most three.
fn in_lines(name: &str, room: f64) -> Vec<String> {
    let words = name.split_inclusive([' ', '_']).flat_map(|word| hyphenated(word, room));
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if !is_full(line, &word, room) => line.push_str(&word),
            _ => lines.push(word),
        }
    }
    if lines.len() > 3 {
        let rest = lines.split_off(2).concat();
        lines.push(rest);
    }
    lines.iter().map(|line| middle_cut(line.trim_end(), room)).collect()
}

fn is_full(line: &str, word: &str, room: f64) -> bool {
    text_width(line) + text_width(word.trim_end()) > room
}

/// A word that is too long for a line, in two halves.
fn hyphenated(word: &str, room: f64) -> Vec<String> {
    let half = word.chars().count().div_ceil(2);
    if text_width(word.trim_end()) <= room || half < 4 {
        return vec![word.to_owned()];
    }
    let first: String = word.chars().take(half).chain(['-']).collect();
    vec![first, word.chars().skip(half).collect()]
}
