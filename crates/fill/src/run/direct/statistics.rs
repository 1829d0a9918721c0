//! The statistics that ANALYZE would find in a table whose values follow from row numbers, without reading it.
//!
//! The shapes are those of `compute_scalar_stats` in `analyze.c`: values that all occur often enough are
//! listed as most common, others described by a histogram.

use rowgen::{Column, Kind, Table, Values};

/// Most common values and histogram bounds at most (`default_statistics_target`).
const TARGET: u64 = 100;

/// Statistics of a column, as `pg_restore_attribute_stats` (PostgreSQL 18) takes them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnStatistics {
    /// Unquoted name of the column.
    pub(crate) column: String,
    /// Share of NULLs.
    pub(crate) null_frac: f32,
    /// Average width, bytes.
    pub(crate) avg_width: i32,
    /// As in `pg_stats`: below 0 a share of the rows.
    pub(crate) n_distinct: f32,
    /// The most common values as an array literal, and their shares of the rows.
    pub(crate) most_common: Option<(String, Vec<f32>)>,
    /// The histogram bounds as an array literal.
    pub(crate) histogram: Option<String>,
    /// Correlation with the order of the rows; none where values have no order.
    pub(crate) correlation: Option<f32>,
}

/// Statistics of every column of a table filled with all its rows in order; none if those of one
/// column can be found only by reading the table.
pub(crate) fn of(table: &Table) -> Option<Vec<ColumnStatistics>> {
    table.columns.iter().map(|column| of_column(column, table.rows)).collect()
}

fn of_column(column: &Column, rows: u64) -> Option<ColumnStatistics> {
    let known = |avg_width| ColumnStatistics {
        column: column.name.clone(),
        null_frac: 0.0,
        avg_width,
        n_distinct: 0.0,
        most_common: None,
        histogram: None,
        correlation: Some(1.0),
    };
    Some(match &column.values {
        Values::Null => {
            ColumnStatistics { null_frac: 1.0, correlation: None, ..known(width(&column.kind).unwrap_or(0)) }
        }
        Values::Int(value) => {
            let most_common = Some((format!("{{{value}}}"), vec![1.0]));
            ColumnStatistics { n_distinct: 1.0, most_common, ..known(width(&column.kind)?) }
        }
        Values::Text(text) => {
            let Kind::Char(length) = column.kind else { return None };
            let padded = format!("{text:length$}", length = length as usize);
            // One byte of header, as long as that can tell the length.
            let bytes = i32::try_from(padded.len()).ok().filter(|bytes| *bytes <= 126)? + 1;
            let quoted = padded.replace('\\', "\\\\").replace('"', "\\\"");
            let most_common = Some((format!("{{\"{quoted}\"}}"), vec![1.0]));
            ColumnStatistics { n_distinct: 1.0, most_common, ..known(bytes) }
        }
        Values::Serial { start, step } if *step > 0 => {
            let value = |row: u64| i128::from(*start) + i128::from(*step) * i128::from(row);
            let histogram = Some(bounds(rows, value));
            ColumnStatistics { n_distinct: -1.0, histogram, ..known(width(&column.kind)?) }
        }
        Values::Group { size, groups } => {
            let there = rows.div_ceil((*size).max(1)).min(*groups);
            let known = ColumnStatistics { n_distinct: there as f32, ..known(width(&column.kind)?) };
            let value = |row: u64| i128::from((row / size + 1).min(*groups));
            if there > TARGET {
                return Some(ColumnStatistics { histogram: Some(bounds(rows, value)), ..known });
            }
            let of_group = |group: u64| {
                let last = if group == there { rows } else { group * size };
                (last - (group - 1) * size) as f32 / rows as f32
            };
            let values: Vec<String> = (1..=there).map(|group| group.to_string()).collect();
            let most_common =
                Some((format!("{{{}}}", values.join(",")), (1..=there).map(of_group).collect()));
            ColumnStatistics { most_common, ..known }
        }
        _ => return None,
    })
}

/// An array literal of values that cut the rows in equal parts.
fn bounds(rows: u64, value: impl Fn(u64) -> i128) -> String {
    let parts = TARGET.min(rows.saturating_sub(1)).max(1);
    let bound = |part: u64| {
        let row = u128::from(rows.saturating_sub(1)) * u128::from(part) / u128::from(parts);
        value(u64::try_from(row).unwrap_or(u64::MAX)).to_string()
    };
    format!("{{{}}}", (0..=parts).map(bound).collect::<Vec<_>>().join(","))
}

/// Bytes of a type of fixed length.
fn width(kind: &Kind) -> Option<i32> {
    match kind {
        Kind::Int2 => Some(2),
        Kind::Int4 => Some(4),
        Kind::Int8 => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rowgen::{Payload, pgbench};

    use super::*;

    #[test]
    fn accounts_are_known_without_looking() {
        let known = of(&pgbench::accounts(250_000, 2, Payload::Blank)).unwrap();
        let [aid, bid, abalance, filler] = &*known else { panic!("four columns") };
        let histogram = aid.histogram.as_ref().unwrap();
        assert!(histogram.starts_with("{1,2500,5000,"), "{histogram}");
        assert!(histogram.ends_with(",250000}"), "{histogram}");
        assert_eq!(bid.most_common, Some(("{1,2}".to_owned(), vec![0.4, 0.6])));
        assert_eq!(abalance.most_common, Some(("{0}".to_owned(), vec![1.0])));
        assert_eq!((filler.avg_width, filler.n_distinct), (85, 1.0));
    }

    #[test]
    fn many_groups_have_a_histogram() {
        let known = of(&pgbench::accounts(100_000_000, 1000, Payload::Blank)).unwrap();
        assert!((known[1].n_distinct - 1000.0).abs() < f32::EPSILON);
        assert_eq!(known[1].most_common, None);
        assert!(known[1].histogram.as_ref().unwrap().starts_with("{1,10,20,30,"));
    }

    #[test]
    fn what_is_drawn_has_to_be_looked_at() {
        assert_eq!(of(&pgbench::accounts(1000, 1, Payload::Random)), None);
    }
}
