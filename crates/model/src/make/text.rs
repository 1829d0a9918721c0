//! Text and other values that always are replaced.

use rowgen::{Alphabet, Kind};

use super::places::texts_in_order;
use super::wide::{Wide, has_toast};
use super::{Maker, correlation, round};
use crate::facts::{ColumnFacts, ColumnRole, Statistics};
use crate::file::Values;
use crate::replace::{self, alphabet_of};

/// Most characters of a text.
const LONGEST: u32 = 1_000_000;

/// Number of quantiles of a length.
pub(super) const QUANTILES: usize = 11;

/// Points between two quantiles of a length at which a width is computed.
const BETWEEN: usize = 8;

/// Factors that are tried for lengths, and their distance.
const TRIED: i32 = 40;
const STEP: f64 = 0.0025;

impl Maker<'_> {
    pub(super) fn text(&mut self, facts: &ColumnFacts, kind: &Kind, statistics: &Statistics) -> Values {
        let Statistics { common, bounds, .. } = statistics;
        let is_unique = facts.role == ColumnRole::Unique;
        let wide = self.wide.get(&facts.name).copied();
        let kept = self.is_kept(&facts.name) && !(common.is_empty() && bounds.is_empty());
        let are_all_common = bounds.len() < 2 && !is_unique && wide.is_none_or(|wide| wide.unknown <= 0.0);
        if kept || are_all_common {
            let each = (1.0 - common.iter().map(|(_, share)| share).sum::<f64>()).max(0.0)
                / bounds.len().max(1) as f64;
            let others = bounds.iter().map(|bound| (bound.clone(), each)).filter(|(_, share)| *share > 0.0);
            let mut values: Vec<(String, f64)> = common.iter().cloned().chain(others).collect();
            values.sort_by(|one, other| one.0.cmp(&other.0));
            values.dedup_by(|one, other| one.0 == other.0);
            if !kept {
                let originals: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
                let replaced = replace::texts(&originals, kind.characters(), self.rng);
                for (value, replaced) in values.iter_mut().zip(replaced) {
                    value.0 = replaced;
                }
            }
            let values = values.into_iter().map(|(value, share)| (value, round(share))).collect();
            return Values::List { correlation: correlation(statistics), values, kept };
        }
        let originals = || bounds.iter().chain(common.iter().map(|(value, _)| value)).map(String::as_str);
        let common = if is_unique {
            Vec::new()
        } else {
            texts_in_order(statistics).into_iter().map(|(_, place, share)| (place, share)).collect()
        };
        let distinct = if is_unique { -1.0 } else { statistics.n_distinct };
        let most = kind.characters();
        let lengths = match wide {
            _ if has_toast(self.table) && mean(&facts.lengths) > 1.5 * f64::from(statistics.avg_width) => {
                unstretched(facts.lengths.clone(), most)
            }
            Some(wide) if facts.lengths.is_empty() => wide.lengths(inside(&wide, statistics), most),
            _ => quantiles(known_lengths(facts, statistics), statistics.avg_width, most),
        };
        Values::Letters {
            distinct: if distinct == 0.0 { -1.0 } else { distinct },
            correlation: correlation(statistics),
            common,
            alphabet: match &facts.characters {
                // A blank at the end is none.
                Some(characters) => alphabet_of(std::iter::once(format!("{characters}x").as_str())),
                // Their bytes in the TOAST table are known, so the texts must not be compressed.
                None if wide.is_some_and(|wide| wide.outside > 0.0) => Alphabet::Mixed,
                None => alphabet_of(originals()),
            }
            .name()
            .to_owned(),
            lengths,
        }
    }

    pub(super) fn is_kept(&self, column: &str) -> bool {
        let whole = format!("{}.{column}", self.table.name);
        let plain = whole.split_once('.').map_or("", |(_, name)| name).to_owned();
        self.privacy.keep.iter().any(|kept| *kept == whole || *kept == plain)
    }
}

/// The lengths of texts of a column, as far as they are known.
fn known_lengths(facts: &ColumnFacts, statistics: &Statistics) -> Vec<usize> {
    let Statistics { common, bounds, .. } = statistics;
    if !facts.lengths.is_empty() {
        facts.lengths.clone()
    } else if bounds.len() > 1 {
        bounds.iter().map(length).collect()
    } else {
        bounds.iter().chain(common.iter().map(|(value, _)| value)).map(length).collect()
    }
}

/// The lengths of texts in the row, beside long ones elsewhere.
fn inside(wide: &Wide, statistics: &Statistics) -> Vec<usize> {
    let Statistics { common, bounds, .. } = statistics;
    if bounds.len() > 1 {
        return bounds.iter().map(length).collect();
    }
    wide.inside_lengths(common.iter().map(|(value, share)| (length(value), *share)))
}

/// One text in each document, so that documents are as long and as often equal as the original's.
pub(super) fn json(kind: &Kind, statistics: &Statistics, wide: Option<&Wide>) -> Values {
    // Header, two entries and a name; or braces, quotes and a name.
    let around = if *kind == Kind::Jsonb { 14 } else { 10 };
    let short = |length: u32| length.saturating_sub(around).max(1);
    let (alphabet, lengths) = match wide.filter(|wide| wide.outside > 0.0) {
        // Words would be compressed.
        Some(wide) => (Alphabet::Mixed, wide.lengths(wide.inside_lengths(std::iter::empty()), None)),
        None => (Alphabet::Words, vec![statistics.avg_width]),
    };
    let count = statistics.common.len().max(1) as f64;
    let place = |(at, (_, share)): (usize, &(String, f64))| ((at as f64 + 0.5) / count, round(*share));
    Values::Letters {
        distinct: if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct },
        correlation: correlation(statistics),
        common: statistics.common.iter().enumerate().map(place).collect(),
        alphabet: alphabet.name().to_owned(),
        lengths: lengths.into_iter().map(short).collect(),
    }
}

/// Least and greatest length of byte strings: of the original's where the mean lies between them,
/// else both are the mean.
pub(super) fn bytes_of(statistics: &Statistics, width: u32) -> (u32, u32) {
    let header = if width <= 127 { 1 } else { 4 };
    let mean = width.saturating_sub(header).max(1);
    // As text: `\x` and two digits a byte.
    let length = |text: &String| u32::try_from(text.len().saturating_sub(2) / 2).unwrap_or(u32::MAX);
    let lengths =
        || statistics.bounds.iter().chain(statistics.common.iter().map(|(value, _)| value)).map(length);
    let (low, high) = (lengths().min().unwrap_or(mean), lengths().max().unwrap_or(mean));
    let reach = mean.saturating_sub(low).min(high.saturating_sub(mean));
    ((mean - reach).max(1), mean + reach)
}

pub(super) fn length(text: impl AsRef<str>) -> usize {
    text.as_ref().trim_end().chars().count().max(1)
}

/// Mean bytes of texts with these quantiles of their length, times a factor. A header takes one byte
/// up to 126 characters, else four.
pub(super) fn width_of(quantiles: &[f64], factor: f64) -> f64 {
    let widths = quantiles.windows(2).flat_map(|pair| {
        (0..BETWEEN).map(move |at| {
            let length = factor * (pair[0] + (pair[1] - pair[0]) * (at as f64 + 0.5) / BETWEEN as f64);
            length + if length < 126.5 { 1.0 } else { 4.0 }
        })
    });
    widths.sum::<f64>() / (BETWEEN * (quantiles.len() - 1)) as f64
}

fn mean(lengths: &[usize]) -> f64 {
    lengths.iter().map(|length| *length as f64).sum::<f64>() / lengths.len().max(1) as f64
}

/// Quantiles of these lengths, some of which statistics do not count: values in a TOAST table.
fn unstretched(mut lengths: Vec<usize>, most: Option<u32>) -> Vec<u32> {
    lengths.sort_unstable();
    let steps = lengths.len().saturating_sub(1);
    let quantile = |index: usize| lengths.get(steps * index / (QUANTILES - 1)).copied().unwrap_or(1);
    let length = |length: usize| {
        u32::try_from(length).unwrap_or(u32::MAX).clamp(1, most.unwrap_or(LONGEST).clamp(1, LONGEST))
    };
    (0..QUANTILES).map(|index| length(quantile(index))).collect()
}

/// Quantiles of these lengths, scaled so that values take `width` bytes on average.
pub(super) fn quantiles(mut lengths: Vec<usize>, width: u32, most: Option<u32>) -> Vec<u32> {
    lengths.sort_unstable();
    let steps = lengths.len().saturating_sub(1);
    let quantile = |index: usize| lengths.get(steps * index / (QUANTILES - 1)).copied().unwrap_or(1) as f64;
    let quantiles: Vec<f64> = (0..QUANTILES).map(quantile).collect();
    let mean = quantiles.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).sum::<f64>()
        / (QUANTILES - 1) as f64;
    // PostgreSQL cuts the mean off to a whole number. Lengths of few texts differ from the quantiles by chance.
    let is_right = |factor: f64| (0.2..0.8).contains(&(width_of(&quantiles, factor) - f64::from(width)));
    let factor = if mean > 0.0 && width > 1 && !is_right(1.0) {
        let (mut low, mut high) = (0.0, f64::from(width) / mean + 1.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            let is_less = width_of(&quantiles, middle) < f64::from(width) + 0.5;
            if is_less { low = middle } else { high = middle }
        }
        high
    } else {
        1.0
    };
    let stretched = |factor: f64| -> Vec<u32> {
        let length = |length: &f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let length = (length * factor).round().clamp(1.0, 1e6) as u32;
            most.map_or(length, |most| length.min(most.max(1)))
        };
        quantiles.iter().map(length).collect()
    };
    // Whole lengths have another mean: nearby factors are tried.
    let off = |lengths: &[u32]| {
        let lengths: Vec<f64> = lengths.iter().copied().map(f64::from).collect();
        (width_of(&lengths, 1.0) - f64::from(width) - 0.5).abs()
    };
    let tried = (-TRIED..=TRIED).map(|step| stretched(factor * (1.0 + f64::from(step) * STEP)));
    let exact = stretched(factor);
    if off(&exact) < 0.3 || width <= 1 {
        return exact;
    }
    tried.min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(exact)
}

pub(crate) fn is_text(kind: &Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{made, strings};

    #[test]
    fn text_of_the_original_stays_only_where_that_is_asked_for() {
        let common = vec![("London".to_owned(), 0.5), ("Bath".to_owned(), 0.3)];
        let bounds = strings(&["Aberdeen", "Bristol", "Leeds", "York"]);
        for bounds in [Vec::new(), bounds] {
            let statistics = Statistics {
                n_distinct: 40.0,
                avg_width: 7,
                common: common.clone(),
                bounds: bounds.clone(),
                ..Statistics::default()
            };
            let originals: Vec<&str> = bounds.iter().map(String::as_str).chain(["London", "Bath"]).collect();
            let text = |keep: &[&str]| {
                format!("{:?}", made(Kind::Text, ColumnRole::Free, statistics.clone(), keep).values)
            };
            assert!(originals.iter().all(|original| !text(&[]).contains(original)), "{}", text(&[]));
            assert!(originals.iter().all(|original| text(&["t.c"]).contains(original)));
        }
    }

    #[test]
    fn lengths_follow_the_average_width() {
        let quantiles = quantiles(vec![2, 4, 6, 8, 30], 21, None);
        let mean = quantiles.windows(2).map(|pair| f64::from(pair[0] + pair[1]) / 2.0).sum::<f64>() / 10.0;
        assert!((19.0..21.0).contains(&mean), "{quantiles:?}");
    }
}
