//! The correlation of rows and values, and the part of it that rows with equal values contribute.

use serde::{Deserialize, Serialize};

/// Rows with one value, or with several, in the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Share of the rows, relative to the other levels.
    pub share: f64,
    /// Number of different values, equally frequent, at least 1.
    pub values: f64,
}

/// Least width of a window that is computed with the effect of equal values: narrower ones hardly lower the correlation.
const LEAST: f64 = 1e-3;

/// The correlation of row number and rank that gives rows this correlation of row number and value, as ANALYZE computes it:
/// it sorts rows with equal values by their numbers. `rows` is the number of rows; of no levels each row has a value of its own.
///
/// Ranks are shuffled within windows of equal width. A window that takes the share s of all rows lowers the correlation by s³, less
/// the part in which its rows have equal values: if these take the shares q of its rows, it lowers it by s³ (1 − Σ q²).
#[must_use]
pub fn untied(correlation: f64, rows: u64, levels: &[Level]) -> f64 {
    let ranges = ranges(levels);
    let rows = rows.max(2) as f64;
    let (whole, narrow) = (tied(1.0, rows, &ranges), tied(LEAST, rows, &ranges));
    if ranges.is_empty() || correlation >= narrow {
        return correlation;
    }
    if correlation <= whole {
        // Values descend, and rows with equal values ascend nevertheless.
        return if whole < 1.0 { (correlation - whole) / (1.0 - whole) } else { 0.0 };
    }
    let (mut low, mut high) = (LEAST, 1.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if tied(middle, rows, &ranges) > correlation { low = middle } else { high = middle }
    }
    of_windows(high)
}

/// Mutual information of row number and value, nats, where the correlation of row number and rank is `untied`; infinite of no levels.
///
/// The windows within which ranks are shuffled tell of a row as much as its number does.
#[must_use]
pub fn information(untied: f64, levels: &[Level]) -> f64 {
    let ranges = ranges(levels);
    let share = window(untied.abs().min(1.0));
    if ranges.is_empty() {
        return f64::INFINITY;
    }
    let entropy: f64 = ranges
        .iter()
        .map(|range| (range.end - range.begin) * (range.values / (range.end - range.begin)).ln())
        .sum();
    if share < LEAST {
        return entropy;
    }
    let (mut begin, mut at, mut information) = (0.0, 0, 0.0);
    while begin < 1.0 - 1e-9 {
        let end = (begin + share).min(1.0);
        while let Some(range) = ranges.get(at) {
            let both = range.end.min(end) - range.begin.max(begin);
            if both > 0.0 {
                let all = range.end - range.begin;
                let values = (range.values * both / all).max(1.0);
                information += both * (both / values * range.values / all / (end - begin)).ln();
            }
            if range.end >= end {
                break;
            }
            at += 1;
        }
        begin = end;
    }
    information.min(entropy)
}

/// Share of the rows in a window, for a correlation of row number and rank from 0 to 1.
pub(crate) fn window(correlation: f64) -> f64 {
    if correlation >= 1.0 {
        return 0.0;
    }
    // The narrower, the more correlated.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if of_windows(middle) > correlation { low = middle } else { high = middle }
    }
    high
}

/// The value of a rank, as a number that ascends with the values. `rows` is the number of ranks.
pub(crate) fn values(levels: &[Level], rows: u64) -> impl Fn(u64) -> u64 {
    let ranges = ranges(levels);
    let mut first = Vec::with_capacity(ranges.len());
    let mut before = 0.0;
    for range in &ranges {
        first.push(before);
        before += range.values.ceil();
    }
    move |rank| {
        if ranges.is_empty() {
            return rank;
        }
        let place = (rank as f64 + 0.5) / rows.max(1) as f64;
        let at = ranges.partition_point(|range| range.end <= place).min(ranges.len() - 1);
        let Range { begin, end, values } = ranges[at];
        let within = ((place - begin) / (end - begin).max(f64::MIN_POSITIVE) * values).floor();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
        let value = (first[at] + within.clamp(0.0, values.ceil() - 1.0)) as u64;
        value
    }
}

/// A level from one place among all rows to another, 0 to 1.
struct Range {
    begin: f64,
    end: f64,
    values: f64,
}

fn ranges(levels: &[Level]) -> Vec<Range> {
    let total: f64 = levels.iter().map(|level| level.share).sum();
    let mut end = 0.0;
    let range = |level: &Level| {
        let begin = end;
        end += level.share / total;
        Range { begin, end, values: level.values.max(1.0) }
    };
    levels.iter().filter(|level| level.share > 0.0).map(range).collect()
}

/// The correlation of row number and rank, if ranks are shuffled within windows of this share of the rows; the last one has the rest.
fn of_windows(share: f64) -> f64 {
    let whole = (1.0 / share).floor();
    1.0 - whole * share.powi(3) - (1.0 - whole * share).max(0.0).powi(3)
}

/// The same of row number and value.
fn tied(share: f64, rows: f64, ranges: &[Range]) -> f64 {
    let (mut begin, mut at, mut lost) = (0.0, 0, 0.0);
    while begin < 1.0 - 1e-9 {
        let end = (begin + share).min(1.0);
        let width = end - begin;
        let mut equal = 0.0;
        while let Some(range) = ranges.get(at) {
            let both = (range.end.min(end) - range.begin.max(begin)).max(0.0);
            let values = (range.values * both / (range.end - range.begin)).max(1.0);
            equal += (both / width).powi(2) / values;
            if range.end >= end {
                break;
            }
            at += 1;
        }
        // A row is not compared with itself.
        let itself = 1.0 / (width * rows).max(2.0);
        let equal = ((equal - itself) / (1.0 - itself)).clamp(0.0, 1.0);
        lost += width.powi(3) * (1.0 - equal);
        begin = end;
    }
    1.0 - lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_tell_less_of_the_row_than_many() {
        let two = [0.94, 0.06].map(|share| Level { share, values: 1.0 });
        let many = [Level { share: 1.0, values: 1e6 }];
        let entropy = -(0.94 * 0.94_f64.ln() + 0.06 * 0.06_f64.ln());
        assert!((information(1.0, &two) - entropy).abs() < 1e-9);
        for untied in [0.9, 0.3] {
            let (few, all) = (information(untied, &two), information(untied, &many));
            assert!(few > 0.0 && few < entropy && all > 1.5 * few, "{untied}: {few} {all}");
        }
        assert!(information(0.0, &two) < 1e-9 && information(0.0, &many) < 1e-9);
        assert!(information(0.5, &[]).is_infinite());
    }
}
