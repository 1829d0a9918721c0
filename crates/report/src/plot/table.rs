//! Writes the numbers of a plot as a table.

use std::collections::BTreeMap;

use super::{Bars, Dots, Groups, Heat, Layer, Line, Lines, Stack};

/// Most periods of a stack and of a line of medians.
pub(crate) const MOST: usize = 240;
/// Most rows of a table of a series: a longer one is summed up.
const ROWS: usize = 60;

/// Rows and columns of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    pub(crate) fn add<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }
}

/// A row for each x; of long series one for each period, with the lowest and the highest value.
pub(super) fn of_lines(chart: &Lines) -> Table {
    let header =
        std::iter::once(chart.x.label.clone()).chain(chart.series.iter().map(|line| line.name.clone()));
    let mut by_x: BTreeMap<u64, (f64, Vec<Option<f64>>)> = BTreeMap::new();
    for (number, line) in chart.series.iter().enumerate() {
        for (x, y) in line.points.iter().filter(|point| point.0 >= 0.0) {
            // The bits of numbers that are not negative are in their order.
            let row = by_x.entry(x.to_bits()).or_insert_with(|| (*x, vec![None; chart.series.len()]));
            row.1[number] = Some(*y);
        }
    }
    let all: Vec<(f64, Vec<Option<f64>>)> = by_x.into_values().collect();
    let together = all.len().div_ceil(ROWS).max(1);
    let y = |value: f64| chart.y.quantity.text(value);
    let rows = all.chunks(together).map(|period| {
        let x = |at: usize| chart.x.quantity.text(period[at].0);
        let last = period.len() - 1;
        let name = if last == 0 { x(0) } else { format!("{} to {}", x(0), x(last)) };
        let cells = (0..chart.series.len()).map(|line| {
            let values = || period.iter().filter_map(|(_, values)| values[line]);
            let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
            match (low, high) {
                (Some(low), Some(high)) if y(low) != y(high) => format!("{} to {}", y(low), y(high)),
                (Some(value), _) => {
                    let is_here = |interval: &&(f64, f64, f64)| {
                        last == 0 && interval.0.to_bits() == period[0].0.to_bits()
                    };
                    let interval = chart.series[line].intervals.iter().find(is_here);
                    interval.map_or_else(
                        || y(value),
                        |(_, low, high)| format!("{} ({} to {})", y(value), y(*low), y(*high)),
                    )
                }
                _ => "–".to_owned(),
            }
        });
        std::iter::once(name).chain(cells).collect()
    });
    Table { header: header.collect(), rows: rows.collect() }
}

/// As of lines, a column for each part.
pub(super) fn of_stack(chart: &Stack) -> Table {
    let line = |layer: &Layer| {
        Line::new(&layer.name, chart.xs.iter().copied().zip(layer.heights.iter().copied()).collect())
    };
    let (x, y) = (chart.x.clone(), chart.y.clone());
    of_lines(&Lines { x, y, series: chart.layers.iter().map(line).collect(), spans: Vec::new() })
}

pub(super) fn of_dots(chart: &Dots) -> Table {
    let text = |value: f64| chart.axis.quantity.text(value);
    let mut table = Table::new(&["", &chart.axis.label, "interval", "observed", ""]);
    for row in &chart.rows {
        let interval =
            row.interval.map_or_else(String::new, |(low, high)| format!("{} to {}", text(low), text(high)));
        let observed: Vec<String> = row.observed.iter().map(|value| text(*value)).collect();
        table.add([row.name.clone(), text(row.value), interval, observed.join(", "), row.remark.clone()]);
    }
    table.without_empty_columns()
}

pub(super) fn of_groups(chart: &Groups) -> Table {
    let text = |value: f64| chart.axis.quantity.text(value);
    let cell = |value: &Option<super::Grouped>| match value {
        Some(super::Grouped { value, interval: Some((low, high)) }) => {
            format!("{} ({} to {})", text(*value), text(*low), text(*high))
        }
        Some(one) => text(one.value),
        None => "–".to_owned(),
    };
    let rows = chart
        .rows
        .iter()
        .map(|(name, values)| std::iter::once(name.clone()).chain(values.iter().map(cell)).collect());
    Table {
        header: std::iter::once(String::new()).chain(chart.series.iter().cloned()).collect(),
        rows: rows.collect(),
    }
}

pub(super) fn of_bars(chart: &Bars) -> Table {
    let groups: Vec<String> = match chart.groups.as_slice() {
        [_] => vec![chart.axis.label.clone()],
        several => several.to_vec(),
    };
    let rows = chart.rows.iter().map(|(name, values)| {
        let text = |value: &Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| chart.axis.quantity.text(value))
        };
        std::iter::once(name.clone()).chain(values.iter().map(text)).collect()
    });
    Table { header: std::iter::once(String::new()).chain(groups).collect(), rows: rows.collect() }
}

pub(super) fn of_heat(chart: &Heat) -> Table {
    let rows = chart.rows.iter().zip(&chart.cells).map(|(name, cells)| {
        let text =
            |value: &Option<f64>| value.map_or_else(|| "–".to_owned(), |value| chart.quantity.text(value));
        std::iter::once(name.clone()).chain(cells.iter().map(text)).collect()
    });
    let header = std::iter::once(chart.row_label.clone()).chain(chart.columns.iter().cloned());
    Table { header: header.collect(), rows: rows.collect() }
}

impl Table {
    fn without_empty_columns(mut self) -> Self {
        for column in (1..self.header.len()).rev() {
            if self.rows.iter().all(|row| row[column].is_empty()) {
                self.header.remove(column);
                self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            }
        }
        self
    }
}
