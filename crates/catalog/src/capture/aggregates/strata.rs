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
    let ends = apart(&ends, buckets as f64, MORE * f64::from(k) / each);
    let mut begins: Vec<String> = ends.into_iter().filter_map(|end| end.text(kind, bounds)).collect();
    begins.dedup();
    (!begins.is_empty()).then_some(begins)
}

/// The end of a stratum.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// A bound of the histogram.
    Bound(usize),
    /// In the middle of the bucket that begins with this bound.
    Within(usize),
}

impl End {
    /// Its distance from the first bound, in buckets.
    fn place(self) -> f64 {
        match self {
            Self::Bound(at) => at as f64,
            Self::Within(at) => at as f64 + 0.5,
        }
    }

    /// The value at which the next stratum begins.
    fn text(self, kind: &Kind, bounds: &[String]) -> Option<String> {
        match self {
            Self::Bound(at) => bounds.get(at).cloned(),
            Self::Within(at) => middle(kind, bounds.get(at)?, bounds.get(at + 1)?),
        }
    }
}

/// Where strata end among so many buckets. The first and the last one are halves: their values are often far apart, and so matter most for sums and
/// correlations.
fn ends(buckets: usize) -> Vec<End> {
    let even = (1..STRATA).map(|at| at * buckets / STRATA);
    let first = buckets / STRATA / 2;
    let last = usize::midpoint((STRATA - 1) * buckets / STRATA, buckets);
    let mut ends: Vec<usize> = [first].into_iter().chain(even).chain([last]).collect();
    ends.retain(|at| (1..buckets).contains(at));
    ends.dedup();
    ends.into_iter().map(End::Bound).collect()
}

/// The value as a number on its type's scale.
fn place(kind: &Kind, bound: &str) -> Option<f64> {
    match kind {
        Kind::Float4 | Kind::Float8 => bound.parse().ok().filter(|place: &f64| place.is_finite()),
        kind => kind.read_units(bound).map(|units| units as f64),
    }
}

/// The value in the middle between two others; none if it is beyond the type's range.
fn middle(kind: &Kind, low: &str, high: &str) -> Option<String> {
    match kind {
        Kind::Float4 | Kind::Float8 => {
            let middle = f64::midpoint(low.parse().ok()?, high.parse().ok()?);
            middle.is_finite().then(|| format!("{middle:?}"))
        }
        kind => {
            let middle = i64::midpoint(kind.read_units(low)?, kind.read_units(high)?);
            let all = kind.extent()?;
            (all.low..=all.high).contains(&middle).then(|| kind.write_units(middle))
        }
    }
}

/// Moves ends into gaps between groups of values, so that a stratum has values of one group: the widest gaps first, each with the nearest end, if
/// that is at most half a stratum away. `places` are those of the bounds.
fn move_to_gaps(ends: &mut [End], places: &[f64]) {
    let widths: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let gap = |(before, widths): (usize, &[f64])| {
        let narrower = widths[0].min(widths[2]);
        (narrower > 0.0 && widths[1] >= GAP * narrower).then_some((widths[1] / narrower, before + 1))
    };
    let mut gaps: Vec<(f64, usize)> = widths.windows(3).enumerate().filter_map(gap).collect();
    gaps.sort_by(|one, other| other.0.total_cmp(&one.0));
    let reach = (widths.len() / STRATA / 2).max(1) as f64;
    for (_, gap) in gaps {
        let gap = End::Within(gap);
        let distance = |at: &usize| (ends[*at].place() - gap.place()).abs();
        let is_near = |at: &usize| matches!(ends[*at], End::Bound(_)) && distance(at) <= reach;
        let nearest =
            (0..ends.len()).filter(is_near).min_by(|one, other| distance(one).total_cmp(&distance(other)));
        if let Some(at) = nearest {
            ends[at] = gap;
        }
    }
    ends.sort_by(|one, other| one.place().total_cmp(&other.place()));
}

/// The ends of strata that have so many of the buckets at least.
fn apart(ends: &[End], buckets: f64, least: f64) -> Vec<End> {
    let mut kept = Vec::with_capacity(ends.len());
    let mut before = 0.0;
    for end in ends {
        if end.place() - before >= least && buckets - end.place() >= least {
            kept.push(*end);
            before = end.place();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(bound: impl Fn(u32) -> String) -> Vec<String> {
        (0..=100).map(bound).collect()
    }

    #[test]
    fn the_first_and_the_last_stratum_are_halves() {
        let found = ends(100);
        assert_eq!((&found[..3], found.len()), (&[3, 6, 12].map(End::Bound)[..], 17));
        assert_eq!(found[14..], [87, 93, 96].map(End::Bound));
        // Of too few buckets no bucket is halved.
        assert_eq!(ends(16), (1..16).map(End::Bound).collect::<Vec<End>>());
    }

    /// Of 3,500 rows, about 6 % are far away from the others.
    #[test]
    fn a_stratum_ends_in_a_gap() {
        let of = |kind: Kind, bound: &dyn Fn(u32) -> String| begins(&kind, &bounds(bound), 35.0, 20).unwrap();
        let last = |at: u32| if at < 94 { at * 1_000 } else { 10_000_000 + at * 50_000 };
        let found = of(Kind::Int4, &|at| last(at).to_string());
        assert_eq!((found[14..].join(" "), found.len()), ("87000 7396500 14800000".to_owned(), 17));
        let found = of(Kind::Float8, &|at| format!("{}.5", last(at)));
        assert_eq!(found[14..], ["87000.5", "7396500.5", "14800000.5"]);
        let first = |at: u32| if at < 7 { at * 50_000 } else { 10_000_000 + at * 1_000 };
        let found = of(Kind::Int8, &|at| first(at).to_string());
        assert_eq!(found[..3], ["150000", "5153500", "10012000"]);
        // Without gaps, also where buckets become wider and wider.
        let found = of(Kind::Int4, &|at| (at + 1).pow(3).to_string());
        assert_eq!((found[14].as_str(), found.len()), ("681472", 17));
    }

    #[test]
    fn strata_have_k_rows() {
        let bounds = bounds(|at| format!("2024-01-01 00:{:02}:{:02}", at / 60, at % 60));
        let of = |each: f64, k: u32| begins(&Kind::Timestamp, &bounds, each, k);
        // Of 412 rows, 28 are in seven buckets.
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
