//! Where the strata of numbers, times and keys begin.

use rowgen::Kind;

/// Strata of a column, before the first and the last one are halved.
const STRATA: usize = 16;
/// A bucket is a gap between two groups of values if it is so many times as wide as the narrower one beside it.
const GAP: f64 = 8.0;
/// Rows of a stratum relative to k, at least: they are an estimate.
const MORE: f64 = 1.25;

/// Where strata with about equally many rows begin, after the first one. `bounds` are those of a histogram, with so many rows in `each` bucket;
/// a stratum has at least k rows, about. None if that leaves one stratum.
pub(super) fn begins(kind: &Kind, bounds: &[String], each: f64, k: u32) -> Option<Vec<String>> {
    let buckets = bounds.len().checked_sub(1).filter(|buckets| *buckets >= STRATA)?;
    let mut ends = ends(buckets);
    if let Some(places) = bounds.iter().map(|bound| place(kind, bound)).collect::<Option<Vec<f64>>>() {
        move_to_gaps(&mut ends, &places);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of buckets")]
    let least = (MORE * f64::from(k) / each).ceil().max(1.0) as usize;
    let mut begins: Vec<String> =
        apart(&ends, buckets, least).into_iter().map(|at| bounds[at].clone()).collect();
    begins.dedup();
    (!begins.is_empty()).then_some(begins)
}

/// Where strata end among so many buckets. The first and the last one are halves: their values are often far apart, and so matter most for sums and
/// correlations.
fn ends(buckets: usize) -> Vec<usize> {
    let even = (1..STRATA).map(|at| at * buckets / STRATA);
    let first = buckets / STRATA / 2;
    let last = usize::midpoint((STRATA - 1) * buckets / STRATA, buckets);
    let mut ends: Vec<usize> = [first].into_iter().chain(even).chain([last]).collect();
    ends.retain(|at| (1..buckets).contains(at));
    ends.dedup();
    ends
}

/// The value as a number on its type's scale.
fn place(kind: &Kind, bound: &str) -> Option<f64> {
    match kind {
        Kind::Float4 | Kind::Float8 => bound.parse().ok().filter(|place: &f64| place.is_finite()),
        kind => kind.read_units(bound).map(|units| units as f64),
    }
}

/// Moves ends to gaps between groups of values, so that a stratum has values of one group: the widest gaps first, each with the nearest end, if
/// that is at most half a stratum away. `places` are those of the bounds.
fn move_to_gaps(ends: &mut Vec<usize>, places: &[f64]) {
    let widths: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let gap = |(before, widths): (usize, &[f64])| {
        let (left, own, right) = (widths[0], widths[1], widths[2]);
        let narrower = left.min(right);
        // The values in the gap itself are more likely near the denser group.
        let end = if left < right { before + 2 } else { before + 1 };
        (narrower > 0.0 && own >= GAP * narrower).then_some((own / narrower, end))
    };
    let mut gaps: Vec<(f64, usize)> = widths.windows(3).enumerate().filter_map(gap).collect();
    gaps.sort_by(|one, other| other.0.total_cmp(&one.0));
    let reach = (widths.len() / STRATA / 2).max(1);
    let mut moved: Vec<usize> = Vec::new();
    for (_, gap) in gaps {
        let is_near = |at: &usize| ends[*at].abs_diff(gap) <= reach && !moved.contains(at);
        if let Some(at) = (0..ends.len()).filter(is_near).min_by_key(|at| ends[*at].abs_diff(gap)) {
            ends[at] = gap;
            moved.push(at);
        }
    }
    ends.sort_unstable();
    ends.dedup();
}

/// The ends of strata that have so many of the buckets at least.
fn apart(ends: &[usize], buckets: usize, least: usize) -> Vec<usize> {
    let mut kept = Vec::with_capacity(ends.len());
    let mut before = 0;
    for end in ends {
        if end - before >= least && buckets - end >= least {
            kept.push(*end);
            before = *end;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_stratum_are_halves() {
        let found = ends(100);
        assert_eq!((found[0], found[1], found[2], found.len()), (3, 6, 12, 17));
        assert_eq!(found[14..], [87, 93, 96]);
        // Of too few buckets no bucket is halved.
        assert_eq!(ends(16), (1..16).collect::<Vec<usize>>());
    }

    /// Of 3,500 rows, the last 6 % are far away from the others, and less dense.
    #[test]
    fn a_stratum_ends_at_a_gap() {
        let of = |place: &dyn Fn(u32) -> u32| {
            let bounds: Vec<String> = (0..=100).map(|at| place(at).to_string()).collect();
            begins(&Kind::Int4, &bounds, 35.0, 20).unwrap()
        };
        let after = of(&|at| if at < 94 { at * 1_000 } else { 10_000_000 + at * 50_000 });
        assert_eq!(after[14..], ["87000", "14700000", "14800000"]);
        let before = of(&|at| if at < 7 { at * 50_000 } else { 10_000_000 + at * 1_000 });
        assert_eq!(before[..3], ["150000", "300000", "10012000"]);
        // Without gaps, also where buckets become wider and wider.
        let growing = of(&|at| (at + 1).pow(3));
        assert_eq!((growing[14].as_str(), growing.len()), ("681472", 17));
    }

    #[test]
    fn strata_have_k_rows() {
        let bounds: Vec<String> =
            (0..=100).map(|at| format!("2024-01-01 00:{:02}:{:02}", at / 60, at % 60)).collect();
        let of = |each: f64, k: u32| begins(&Kind::Timestamp, &bounds, each, k);
        // Of 412 rows, 25 are in seven buckets.
        let few: Vec<usize> = of(4.12, 20)
            .unwrap()
            .iter()
            .map(|begin| bounds.iter().position(|bound| bound == begin).unwrap())
            .collect();
        assert_eq!(few, [12, 25, 37, 50, 62, 75, 87]);
        assert_eq!(of(4_000.0, 20).unwrap().len(), 17);
        assert_eq!(of(0.5, 20).unwrap(), [bounds[50].clone()]);
        assert_eq!((of(0.4, 20), of(0.0, 20)), (None, None));
        assert_eq!(begins(&Kind::Timestamp, &bounds[..16], 4_000.0, 20), None);
    }
}
