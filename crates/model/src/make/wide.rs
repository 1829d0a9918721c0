//! Widths of values that ANALYZE does not keep, because they have more than 1 kB. `pg_stats` has their number and their mean width in
//! the row, which is that of a pointer if they are in the TOAST table. The bytes of that table have their length.

use std::collections::BTreeMap;

use rowgen::Kind;

use super::of_values;
use super::text::{QUANTILES, is_text, quantiles};
use crate::facts::{ColumnFacts, Facts, Statistics, TableFacts};
use crate::file::{Bytes, Column, Model, Values};

/// Bytes of a pointer to a value in the TOAST table.
const POINTER: f64 = 18.0;
/// Bytes by which a mean that is computed from rounded widths may differ from it.
const ERROR: f64 = 3.0;
/// Bytes of a row from which on its values go there, about.
const ROW: f64 = 2000.0;
/// Bytes that a value there has at least, and that one has of which nothing is known.
const LEAST: f64 = 1000.0;
const USUAL: f64 = 4000.0;
/// Characters of the shortest type whose values go there.
const CHARACTERS: u32 = 500;
/// Bytes by which the width of other values must differ from that of a pointer, so that a mean width tells their shares; and the least share that
/// it tells.
const DISTANCE: f64 = 6.0;
const SHARE: f64 = 0.15;
/// Share of the values from which on all are there.
const ALL: f64 = 0.95;
/// Share of values without statistics that is no error of rounding.
const UNKNOWN: f64 = 0.005;

/// Bytes of a page of a TOAST table, those for tuples, those of a chunk of a value, and those of its tuple in addition.
const BLOCK: f64 = 8192.0;
const PAGE: usize = 8168;
const CHUNK: usize = 1996;
const HEADER: usize = 36;
const LINE_POINTER: usize = 4;
/// Bytes of an empty index, and the part of the table that its index and its maps take.
const INDEX: u64 = 8192;
const BESIDE: f64 = 0.013;
/// Values of a length that are laid out to know the pages that they take.
const VALUES: u32 = 64;
/// Values in the row for each of which there is a length; and bytes of the header of a long value.
const POINTS: f64 = 100.0;
const HEADER_OF_LONG: f64 = 4.0;
/// Least share of a table's bytes that its TOAST table has, and of a column's values that are there, for a warning.
const TOLD: f64 = 0.1;
/// Greatest length that a value may have.
const MOST: f64 = 1e6;

/// Widths of a column some of whose values ANALYZE does not keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    /// Share of the values, without NULL, that are in no statistics.
    pub(super) unknown: f64,
    /// Share of the values, without NULL, that are in the TOAST table.
    pub(super) outside: f64,
    /// Bytes of each value there.
    bytes: f64,
    /// Mean bytes of all values, there and in the row.
    mean: f64,
    /// The same of the values in the row.
    inside: f64,
}

impl Wide {
    /// Those of the columns that have some, by their names.
    pub(super) fn of_table(table: &TableFacts) -> BTreeMap<String, Self> {
        let rows = table.rows as f64;
        let toast = table.bytes.toast.saturating_sub(INDEX) as f64 / (1.0 + BESIDE);
        let mut seen: Vec<Seen> = table.columns.iter().filter_map(|column| Seen::of(column, rows)).collect();
        if seen.iter().all(|one| one.outside <= 0.0) {
            for one in &mut seen {
                one.outside = one.perhaps;
            }
        }
        if toast > 0.0 && seen.iter().all(|one| one.outside <= 0.0) {
            // Few of the values of one column, so that the mean width does not tell.
            let widest = seen.iter_mut().filter(|one| one.is_long);
            let widest = widest.max_by(|one, other| one.known.total_cmp(&other.known));
            if let Some(one) = widest {
                one.outside = (toast / USUAL / one.values).min(1.0);
            }
        }
        let number: f64 = seen.iter().map(|one| one.outside * one.values).sum();
        let each = if toast > 0.0 && number > 0.0 { toast / number } else { 0.0 };
        let part = (each / LEAST).min(1.0);
        let bytes = length_of(each.max(LEAST));
        let wide = |one: Seen| {
            let outside = one.outside * part;
            let inside = if outside < ALL {
                ((one.width - POINTER * outside) / (1.0 - outside)).max(1.0)
            } else {
                POINTER
            };
            let mean = inside * (1.0 - outside) + bytes * outside;
            (one.name.to_owned(), Self { unknown: one.unknown, outside, bytes, mean, inside })
        };
        let is_wide = |(_, wide): &(String, Self)| wide.unknown > 0.0 || wide.outside > 0.0;
        seen.into_iter().map(wide).filter(is_wide).collect()
    }

    /// Mean bytes of all values, there and in the row.
    pub(super) fn width(&self) -> u32 {
        whole(self.mean.clamp(1.0, MOST))
    }

    /// Lengths of the values in the row: of frequent ones, with their shares, and of those that are in no statistics.
    pub(super) fn inside_lengths(&self, common: impl Iterator<Item = (usize, f64)>) -> Vec<usize> {
        let common: Vec<(usize, f64)> = common.collect();
        let shared: f64 = common.iter().map(|(_, share)| share).sum();
        let of_common: f64 = common.iter().map(|(length, share)| *length as f64 * share).sum();
        let rest = (1.0 - self.outside - shared).max(0.0);
        let all = (1.0 - self.outside).max(f64::MIN_POSITIVE);
        let times = |share: f64| whole((share / all * POINTS).round().max(0.0)) as usize;
        let mut lengths: Vec<usize> =
            common.iter().flat_map(|(length, share)| std::iter::repeat_n(*length, times(*share))).collect();
        if rest > UNKNOWN || lengths.is_empty() {
            let other = (self.inside * all - of_common) / rest.max(UNKNOWN) - HEADER_OF_LONG;
            let other = whole(other.clamp(1.0, MOST)) as usize;
            lengths.extend(std::iter::repeat_n(other, times(rest).max(1)));
        }
        lengths
    }

    /// Quantiles of the lengths, of which those of the values in the row are known.
    pub(super) fn lengths(&self, inside: Vec<usize>, most: Option<u32>) -> Vec<u32> {
        let limit = |length: f64| {
            let length = whole(length.clamp(1.0, MOST));
            most.map_or(length, |most| length.min(most.max(1)))
        };
        if self.outside >= ALL {
            return vec![limit(self.bytes)];
        }
        let short = quantiles(inside, whole(self.inside.clamp(0.0, MOST)), most);
        if self.outside <= 0.0 {
            return short;
        }
        let last = (QUANTILES - 1) as f64;
        let long = (self.outside * last).round().clamp(1.0, last - 1.0);
        // Between the last short quantile and the first long one, lengths ascend evenly.
        let length = limit(self.outside * self.bytes * last / (long - 0.5));
        let count = QUANTILES - whole(long) as usize;
        let mut lengths: Vec<u32> =
            (0..count).map(|at| short[at * (short.len() - 1) / (count - 1).max(1)]).collect();
        lengths.resize(QUANTILES, length.max(lengths.last().copied().unwrap_or(1)));
        lengths
    }
}

/// Whether values of the table are in a TOAST table.
pub(super) fn has_toast(table: &TableFacts) -> bool {
    table.bytes.toast > INDEX
}

/// Columns whose values are in TOAST tables, and that have shorter ones by the model: pgrig makes none so long of the type, or constraints decide
/// on them. Each is `schema.table.column`.
pub fn shortened(facts: &Facts, model: &Model) -> Vec<String> {
    let mut found = Vec::new();
    for (table, made) in facts.tables.iter().zip(&model.tables) {
        let Bytes { heap, toast, .. } = table.bytes;
        if (toast as f64) < TOLD * (heap + toast) as f64 {
            continue;
        }
        let wide = Wide::of_table(table);
        let is_short = |column: &&Column| {
            let is_as_long =
                matches!(column.values, Values::Letters { .. } | Values::Any { lengths: Some(_), .. });
            !is_as_long && wide.get(&column.name).is_some_and(|wide| wide.outside >= TOLD)
        };
        let short = made.columns.iter().filter(is_short);
        found.extend(short.map(|column| format!("{}.{}", table.name, column.name)));
    }
    found
}

/// The widths and shares of a column's values, by its statistics.
struct Seen<'a> {
    name: &'a str,
    /// Number of values.
    values: f64,
    /// Mean width in the row.
    width: f64,
    /// Mean width of the values that statistics have.
    known: f64,
    /// Whether a value may be in the TOAST table.
    is_long: bool,
    unknown: f64,
    outside: f64,
    /// The share of the values that may be in the TOAST table, if those of no column certainly are: others are compressed.
    perhaps: f64,
}

impl<'a> Seen<'a> {
    /// None if it has no statistics, or no values.
    fn of(column: &'a ColumnFacts, rows: f64) -> Option<Self> {
        let statistics = column.statistics.as_ref().filter(|of| of.null_frac < 1.0 && of.avg_width > 0)?;
        let is_long = column.kind.as_ref().is_none_or(is_long);
        let values = rows * (1.0 - statistics.null_frac);
        let statistics = of_values(statistics);
        // The server cuts the mean off.
        let width = f64::from(statistics.avg_width);
        let width = if (width - POINTER).abs() < 0.5 { width } else { width + 0.5 };
        let known = column.kind.as_ref().and_then(|kind| known(kind, &statistics));
        let unknown = unknown(&statistics, values);
        let (outside, perhaps) = if !is_long {
            (0.0, 0.0)
        } else if unknown > 0.0 {
            let of_known = known.unwrap_or(0.0) * (1.0 - unknown);
            let mean = (width - of_known) / unknown;
            if (mean - POINTER).abs() < ERROR {
                (unknown, unknown)
            } else if mean > POINTER {
                (0.0, unknown * ((ROW - mean) / (ROW - POINTER)).max(0.0))
            } else {
                (0.0, 0.0)
            }
        } else {
            (known.map_or(0.0, |known| of_mean(width, known)), 0.0)
        };
        let is_long = is_long && known.is_some();
        let known = known.unwrap_or(0.0);
        Some(Self { name: &column.name, values, width, known, is_long, unknown, outside, perhaps })
    }
}

/// Whether a value of the type may be in the TOAST table.
fn is_long(kind: &Kind) -> bool {
    match kind {
        Kind::Json | Kind::Jsonb | Kind::Bytea | Kind::Xml | Kind::Array(_) => true,
        _ => is_text(kind) && kind.characters().is_none_or(|characters| characters >= CHARACTERS),
    }
}

/// The share of the values that are in no statistics.
fn unknown(statistics: &Statistics, values: f64) -> f64 {
    let Statistics { common, bounds, n_distinct, .. } = statistics;
    if common.is_empty() && bounds.is_empty() {
        return 1.0;
    }
    let rest = 1.0 - common.iter().map(|(_, share)| share).sum::<f64>();
    let different = if *n_distinct < 0.0 { -n_distinct * values } else { *n_distinct };
    // One other value makes no histogram.
    let is_more = different > common.len() as f64 + 1.5;
    if bounds.is_empty() && !common.is_empty() && is_more && rest > UNKNOWN { rest } else { 0.0 }
}

/// The mean width of the values that statistics have; none if the type has no values whose text tells it.
fn known(kind: &Kind, statistics: &Statistics) -> Option<f64> {
    if !is_text(kind) && !matches!(kind, Kind::Json | Kind::Jsonb | Kind::Bytea) {
        return None;
    }
    let width = |text: &str| {
        let bytes = if *kind == Kind::Bytea { text.len().saturating_sub(2) / 2 } else { text.len() };
        bytes as f64 + if bytes < 127 { 1.0 } else { 4.0 }
    };
    let Statistics { common, bounds, .. } = statistics;
    let shared: f64 = common.iter().map(|(_, share)| share).sum();
    let of_common: f64 = common.iter().map(|(value, share)| width(value) * share).sum();
    if bounds.is_empty() {
        return (shared > 0.0).then(|| of_common / shared);
    }
    let of_bounds = bounds.iter().map(|bound| width(bound)).sum::<f64>() / bounds.len() as f64;
    Some(of_common + of_bounds * (1.0 - shared).max(0.0))
}

/// The share of pointers among values of a known width that have this mean width.
fn of_mean(width: f64, known: f64) -> f64 {
    if (known - POINTER).abs() < DISTANCE {
        return 0.0;
    }
    let share = (width - known) / (POINTER - known);
    if (SHARE..=1.0 + SHARE).contains(&share) { share.min(1.0) } else { 0.0 }
}

/// A length of values that take so many bytes each of a TOAST table.
fn length_of(bytes: f64) -> f64 {
    let most = f64::min(bytes, MOST);
    let lengths: Vec<f64> = (60..=98).map(|percent| (most * f64::from(percent) / 100.0).floor()).collect();
    let off: Vec<f64> = lengths.iter().map(|length| (paged(whole(*length)) - most).abs()).collect();
    let least = off.iter().copied().fold(f64::INFINITY, f64::min);
    // Several lengths may take as many pages: the middle one.
    let near: Vec<f64> =
        lengths.into_iter().zip(off).filter(|(_, off)| *off <= least).map(|(length, _)| length).collect();
    near.get(near.len() / 2).copied().unwrap_or(most)
}

/// Bytes of the pages that a value of a length takes, in a table of such values.
fn paged(length: u32) -> f64 {
    let (mut pages, mut free) = (0_u32, 0_usize);
    for _ in 0..VALUES {
        let mut rest = length as usize;
        while rest > 0 {
            let chunk = rest.min(CHUNK);
            let tuple = (chunk + HEADER).next_multiple_of(8) + LINE_POINTER;
            if tuple > free {
                pages += 1;
                free = PAGE;
            }
            free -= tuple;
            rest -= chunk;
        }
    }
    f64::from(pages) * BLOCK / f64::from(VALUES)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths are small, and not negative"
)]
fn whole(length: f64) -> u32 {
    length as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::ColumnRole;
    use crate::make::Privacy;
    use crate::testing::{column, facts, strings};

    fn statistics(avg_width: u32, n_distinct: f64) -> Statistics {
        Statistics { n_distinct, avg_width, ..Statistics::default() }
    }

    /// The values of the columns of a table with 3,000 rows and so many bytes of TOAST.
    fn made(toast: u64, columns: Vec<ColumnFacts>) -> Vec<Values> {
        let mut facts = facts(3000, columns);
        facts.tables[0].bytes.toast = toast;
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        model.tables[0].columns.iter().map(|column| column.values.clone()).collect()
    }

    fn text(name: &str, statistics: Statistics) -> ColumnFacts {
        column(name, Kind::Text, ColumnRole::Free, statistics)
    }

    /// Mean of lengths that ascend evenly between their quantiles.
    fn mean(values: &Values) -> f64 {
        match values {
            Values::Letters { lengths, .. } if lengths.len() == 1 => f64::from(lengths[0]),
            Values::Letters { lengths, .. } => {
                let pairs = lengths.windows(2).map(|pair| f64::from(pair[0] + pair[1]) / 2.0);
                pairs.sum::<f64>() / (lengths.len() - 1) as f64
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn texts_without_values_have_the_width_in_the_row() {
        let values = made(8192, vec![text("a", statistics(1084, -1.0))]);
        assert!((1078.0..1082.0).contains(&mean(&values[0])), "{values:?}");
    }

    #[test]
    fn texts_in_the_toast_table_share_its_bytes() {
        // 6,400 characters take a page.
        let values = made(24_895_488, vec![text("a", statistics(18, -1.0))]);
        assert!((6000.0..7984.0).contains(&mean(&values[0])), "{values:?}");
        let half = Statistics { null_frac: 0.5, ..statistics(18, -0.5) };
        let values = made(24_895_488, vec![text("a", half)]);
        assert!((12_000.0..16_000.0).contains(&mean(&values[0])), "{values:?}");
        let two = made(24_895_488, vec![text("a", statistics(18, -1.0)), text("b", statistics(18, -1.0))]);
        assert!(two.iter().all(|values| (3000.0..4000.0).contains(&mean(values))), "{two:?}");
    }

    #[test]
    fn long_texts_beside_short_ones_have_their_share() {
        let bounds = strings(&["small10", "small20", "small30", "small40"]);
        let mixed = Statistics { bounds, ..statistics(13, -1.0) };
        let values = made(6_000_000, vec![text("a", mixed)]);
        assert!((1300.0..2000.0).contains(&mean(&values[0])), "{values:?}");
        let Values::Letters { lengths, .. } = &values[0] else { panic!("{values:?}") };
        assert!(lengths[0] < 10 && lengths[10] > 2000 && lengths.is_sorted(), "{lengths:?}");
        let common = vec![("state0".to_owned(), 0.17), ("state1".to_owned(), 0.16)];
        let listed = Statistics { common, ..statistics(14, -0.667) };
        let values = made(6_000_000, vec![text("a", listed)]);
        assert!((1300.0..2000.0).contains(&mean(&values[0])), "{values:?}");
    }

    #[test]
    fn compressed_texts_stay_in_the_row_beside_others_outside() {
        let columns = vec![text("a", statistics(198, -1.0)), text("b", statistics(18, -1.0))];
        let values = made(24_895_488, columns);
        assert!((190.0..197.0).contains(&mean(&values[0])), "{values:?}");
        assert!(mean(&values[1]) > 6000.0, "{values:?}");
    }

    #[test]
    fn few_long_texts_are_those_of_the_widest_column() {
        let of = |text: &str| strings(&[text, text]);
        let narrow = Statistics { bounds: of("abc"), ..statistics(4, -1.0) };
        let wider = Statistics { bounds: of("abcdefghijklmnopqrstuvwxyz"), ..statistics(27, -1.0) };
        let values = made(1_300_000, vec![text("a", narrow), text("b", wider)]);
        assert!(mean(&values[0]) < 5.0, "{values:?}");
        assert!((350.0..550.0).contains(&mean(&values[1])), "{values:?}");
    }

    #[test]
    fn columns_without_long_values_in_the_model_are_told() {
        let of = |name: &str, kind: Kind, role: ColumnRole| column(name, kind, role, statistics(18, -1.0));
        let constrained = ColumnRole::Constrained("constraint c".to_owned());
        let columns = vec![
            of("text", Kind::Text, ColumnRole::Free),
            of("bytes", Kind::Bytea, ColumnRole::Free),
            of("array", Kind::Array(Box::new(Kind::Text)), ColumnRole::Free),
            of("checked", Kind::Text, constrained),
        ];
        let mut facts = facts(3000, columns);
        let told = |facts: &Facts| {
            shortened(facts, &Model::of(facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 }))
        };
        assert_eq!(told(&facts), Vec::<String>::new(), "the table has no bytes of TOAST");
        facts.tables[0].bytes.toast = 24_000_000;
        assert_eq!(told(&facts), ["public.t.array", "public.t.checked"]);
    }

    #[test]
    fn columns_without_wide_values_stay_as_they_are() {
        let common = vec![("a".to_owned(), 0.6), ("b".to_owned(), 0.4)];
        let listed = Statistics { common, ..statistics(2, 2.0) };
        let empty = Statistics { null_frac: 1.0, ..statistics(0, 0.0) };
        let values = made(0, vec![text("a", listed), text("b", empty)]);
        assert!(matches!(values[0], Values::List { .. }), "{values:?}");
        assert!(matches!(values[1], Values::Any { .. }), "{values:?}");
    }
}
