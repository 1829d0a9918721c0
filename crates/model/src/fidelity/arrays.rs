//! Compares statistics that are arrays: frequencies by their ranks, histograms by their deciles.

use rowgen::Kind;

use super::{Fidelity, Field, Scale, Sides};
use crate::facts::Statistics;
use crate::make::bounds_of;

/// Ranks that are compared at most: as many as ANALYZE lists at the default statistics target.
const RANKS: usize = 100;
/// Most that deciles of a histogram may differ from the original's, as a share of the rows.
const DECILE: f64 = 0.02;
/// Bounds of a histogram whose deciles are compared, at least.
const BOUNDS: usize = 11;

impl Fidelity {
    /// Compares the frequencies of the most common values at each rank, and their sum.
    pub(super) fn frequencies(&mut self, sides: &Sides<'_>) {
        let of = |all: &[Statistics]| ranked(all, |of| of.common.as_slice());
        let (ours, theirs) = (of(sides.before), of(sides.after));
        if self.are_nulls(sides, length(&ours) == 0, length(&theirs) == 0) {
            return;
        }
        self.ranks(sides, "most common", (&ours, &theirs), unlisted_value);
        // The sum of no numbers is -0.
        let sum = |list: &Vec<f64>| list.iter().sum::<f64>() + 0.0;
        let sums = |lists: &[Vec<f64>]| lists.iter().map(sum).collect::<Vec<f64>>();
        self.fields.push(sides.field("all common", None, (&sums(&ours), sums(&theirs)), Scale::Share));
    }

    /// Compares the frequencies of the most common elements of arrays, and their numbers of elements.
    pub(super) fn elements(&mut self, sides: &Sides<'_>) {
        let of = |all: &[Statistics]| ranked(all, |of| of.elements.as_slice());
        let (ours, theirs) = (of(sides.before), of(sides.after));
        let (first, middle) = sides.one_each();
        if !self.are_nulls(sides, length(&ours) == 0, length(&theirs) == 0) {
            // Shares are those of the arrays that are not NULL.
            let of_arrays = Sides { sampled: sides.sampled * (1.0 - first.null_frac), ..*sides };
            self.ranks(&of_arrays, "common elements", (&ours, &theirs), unlisted_element);
        }
        let (ours, theirs) = (&first.element_counts, &middle.element_counts);
        if !self.are_nulls(sides, ours.is_empty(), theirs.is_empty()) {
            let described = (1.0 - first.null_frac, 1.0 - middle.null_frac);
            self.push_off(sides, "elem_count_histogram", off(ours, theirs, described));
        }
    }

    /// Compares the deciles of the histogram, whose bounds are numbers of this kind; of none, only whether there is one.
    pub(super) fn histogram(&mut self, sides: &Sides<'_>, kind: Option<&Kind>) {
        let (first, middle) = sides.one_each();
        if self.are_nulls(sides, first.bounds.is_empty(), middle.bounds.is_empty()) {
            return;
        }
        let Some(kind) = kind else { return };
        let numbers = |of: &Statistics| -> Vec<f64> {
            of.bounds.iter().filter_map(|bound| number(kind, bound)).collect()
        };
        let described = |of: &Statistics| {
            (1.0 - of.null_frac - of.common.iter().map(|(_, share)| share).sum::<f64>()).max(0.0)
        };
        let off = off(&numbers(first), &numbers(middle), (described(first), described(middle)));
        self.push_off(sides, "histogram", off);
    }

    /// Compares the deciles of lengths and of bounds of ranges.
    pub(super) fn ranges(&mut self, sides: &Sides<'_>, kind: Option<&Kind>) {
        let (first, middle) = sides.one_each();
        let described = (1.0 - first.null_frac, 1.0 - middle.null_frac);
        let lengths = |of: &Statistics| of.ranges.as_ref().map(|of| of.lengths.clone()).unwrap_or_default();
        let (ours, theirs) = (lengths(first), lengths(middle));
        if !self.are_nulls(sides, ours.is_empty(), theirs.is_empty()) {
            self.push_off(sides, "range_length_histogram", off(&ours, &theirs, described));
        }
        let bounds = |of: &Statistics| of.ranges.as_ref().map(|of| of.bounds.clone()).unwrap_or_default();
        let (ours, theirs) = (bounds(first), bounds(middle));
        if self.are_nulls(sides, ours.is_empty(), theirs.is_empty()) {
            return;
        }
        let Some(Kind::Range { element, .. }) = kind else { return };
        let offs = [false, true].map(|is_upper| {
            off(&ends(element, &ours, is_upper), &ends(element, &theirs, is_upper), described)
        });
        let worst = offs.into_iter().flatten().reduce(f64::max);
        self.push_off(sides, "range_bounds_histogram", worst);
    }

    /// Whether there is nothing to compare, because an array is NULL: in both, which is counted, or in a model.
    fn are_nulls(&mut self, sides: &Sides<'_>, is_ours: bool, is_theirs: bool) -> bool {
        self.nulls += usize::from(is_ours && is_theirs);
        is_ours && (is_theirs || sides.is_of_model)
    }

    /// Compares frequencies in descending order. One that a list lacks is that of an unlisted value, in a table with so many
    /// rows.
    fn ranks(
        &mut self,
        sides: &Sides<'_>,
        name: &'static str,
        (ours, theirs): (&[Vec<f64>], &[Vec<f64>]),
        unlisted: fn(&Statistics, u64) -> f64,
    ) {
        let at = |rank: usize, lists: &[Vec<f64>], all: &[Statistics], rows: u64| -> Vec<f64> {
            let frequency = |(list, of): (&Vec<f64>, &Statistics)| {
                list.get(rank).copied().unwrap_or_else(|| unlisted(of, rows))
            };
            lists.iter().zip(all).map(frequency).collect()
        };
        for rank in 0..length(ours).clamp(1, RANKS) {
            let before = at(rank, ours, sides.before, sides.rows.0);
            let after = at(rank, theirs, sides.after, sides.rows.1);
            self.fields.push(sides.field(name, Some(rank + 1), (&before, after), Scale::Share));
        }
    }

    /// A field whose value is the share of the rows by which the worst decile is off.
    fn push_off(&mut self, sides: &Sides<'_>, name: &'static str, off: Option<f64>) {
        self.fields.extend(off.map(|off| Field {
            column: sides.column.to_owned(),
            name,
            rank: None,
            original: 0.0,
            copy: off,
            tolerance: DECILE,
            is_fixed: false,
            is_promised: sides.is_promised,
        }));
    }
}

impl<'a> Sides<'a> {
    /// The statistics after one ANALYZE of each database.
    fn one_each(&self) -> (&'a Statistics, &'a Statistics) {
        (&self.before[0], &self.after[self.after.len() / 2])
    }
}

/// The frequencies in each list, in descending order.
fn ranked(all: &[Statistics], list: fn(&Statistics) -> &[(String, f64)]) -> Vec<Vec<f64>> {
    let frequencies = |of: &Statistics| {
        let mut frequencies: Vec<f64> = list(of).iter().map(|(_, share)| *share).collect();
        frequencies.sort_by(|one, other| other.total_cmp(one));
        frequencies
    };
    all.iter().map(frequencies).collect()
}

/// The median length of the lists.
fn length(lists: &[Vec<f64>]) -> usize {
    let mut lengths: Vec<usize> = lists.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or_default()
}

/// The frequency of a value outside of the list, as the planner estimates it: the mean, and at most that of the last listed
/// value.
fn unlisted_value(of: &Statistics, rows: u64) -> f64 {
    let listed: f64 = of.common.iter().map(|(_, share)| share).sum();
    let different = if of.n_distinct < 0.0 { -of.n_distinct * rows as f64 } else { of.n_distinct };
    let left = different - of.common.len() as f64;
    if left < 1.0 {
        return 0.0;
    }
    let mean = (1.0 - of.null_frac - listed).max(0.0) / left;
    of.common.iter().map(|(_, share)| *share).fold(mean, f64::min)
}

/// The same of an element: half of the least listed frequency.
fn unlisted_element(of: &Statistics, _: u64) -> f64 {
    of.elements.iter().map(|(_, share)| *share).reduce(f64::min).unwrap_or_default() / 2.0
}

/// The greatest share of the original's rows between a decile of the original and that of the copy. If only one of them has a
/// histogram: the share of the rows that it describes. None if there are too few bounds.
fn off(ours: &[f64], theirs: &[f64], described: (f64, f64)) -> Option<f64> {
    match (ours.len() >= BOUNDS, theirs.len() >= BOUNDS) {
        (true, true) => {}
        (true, false) if theirs.is_empty() => return Some(described.0),
        (false, true) if ours.is_empty() => return Some(described.1),
        _ => return None,
    }
    let last = (ours.len() - 1) as f64;
    let offs = (1..10).map(|decile| {
        let at = theirs[decile * (theirs.len() - 1) / 10];
        let below = ours.partition_point(|bound| *bound < at) as f64;
        let upto = ours.partition_point(|bound| *bound <= at) as f64;
        let wanted = decile as f64 * last / 10.0;
        let off = if wanted < below - 1.0 { below - 1.0 - wanted } else { (wanted - upto).max(0.0) };
        off / last
    });
    Some(offs.fold(0.0, f64::max))
}

fn number(kind: &Kind, text: &str) -> Option<f64> {
    match kind {
        Kind::Float4 | Kind::Float8 => text.parse().ok(),
        kind => kind.read_units(text).map(|units| units as f64),
    }
}

/// The lower or the upper bounds of ranges; infinite where they are left out.
fn ends(element: &Kind, ranges: &[String], is_upper: bool) -> Vec<f64> {
    let end = |text: &String| {
        let (low, high) = bounds_of(text)?;
        let text = if is_upper { high } else { low };
        match text {
            "" if is_upper => Some(f64::INFINITY),
            "" => Some(f64::NEG_INFINITY),
            text => number(element, text),
        }
    };
    ranges.iter().filter_map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ColumnRole, Facts, RangeStatistics};
    use crate::testing;

    /// Facts of a column in 1,000,000 rows.
    fn facts(kind: &Kind, statistics: Statistics) -> Facts {
        testing::facts(1_000_000, vec![testing::column("c", kind.clone(), ColumnRole::Free, statistics)])
    }

    fn listed(shares: &[f64]) -> Vec<(String, f64)> {
        shares.iter().enumerate().map(|(at, share)| (at.to_string(), *share)).collect()
    }

    /// Whether each field of this name is within its tolerance, if one ANALYZE gives these statistics of both databases.
    fn within(kind: &Kind, original: &Statistics, copy: &Statistics, name: &str) -> Vec<bool> {
        let of = |statistics: &Statistics| [facts(kind, statistics.clone())];
        let found = Fidelity::of(&of(original), &of(copy), 20);
        found.fields.iter().filter(|field| field.name == name).map(Field::is_within).collect()
    }

    fn of_common(shares: &[f64], n_distinct: f64) -> Statistics {
        Statistics { n_distinct, avg_width: 4, common: listed(shares), ..Statistics::default() }
    }

    #[test]
    fn frequencies_compare_by_rank() {
        let original = of_common(&[0.3, 0.1, 0.05, 0.02], 1_000.0);
        let copy = of_common(&[0.02, 0.1, 0.2, 0.05], 1_000.0);
        // In descending order, as the original's are.
        assert_eq!(within(&Kind::Int4, &original, &copy, "most common"), [false, true, true, true]);
        let found = Fidelity::of(&[facts(&Kind::Int4, original)], &[facts(&Kind::Int4, copy)], 20);
        // Three of four ranks, n_distinct and null_frac, not the sum; there are no other arrays, and no correlation.
        assert_eq!((found.counts(), found.nulls), ((2.75, 4), 7));
    }

    #[test]
    fn a_rank_that_a_list_lacks_is_that_of_an_unlisted_value() {
        // Each of the 500 values outside of the list has a share of 0.0018.
        let original = of_common(&[0.1, 0.002, 0.0019], 503.0);
        assert_eq!(within(&Kind::Int4, &original, &of_common(&[0.1], 501.0), "most common"), [true; 3]);
        let many = of_common(&[0.1], -0.5);
        assert_eq!(within(&Kind::Int4, &original, &many, "most common"), [true, false, false]);
        let none = of_common(&[], 500.0);
        assert_eq!(within(&Kind::Int4, &original, &none, "most common"), [false, true, true]);
        assert_eq!(within(&Kind::Int4, &none, &original, "most common"), [false]);
        assert_eq!(within(&Kind::Int4, &none, &original, "all common"), [false]);
    }

    #[test]
    fn statistics_that_a_model_lacks_are_not_compared() {
        let mut model = facts(&Kind::Int4, of_common(&[], 500.0));
        model.tables[0].sql_name.clear();
        let found = Fidelity::of(&[model], &[facts(&Kind::Int4, of_common(&[0.1], 500.0))], 20);
        let names: Vec<&str> = found.fields.iter().map(|field| field.name).collect();
        assert_eq!(names, ["null_frac", "n_distinct", "avg_width"]);
    }

    #[test]
    fn deciles_in_the_wrong_place_are_seen() {
        let of = |bound: fn(i64) -> i64| Statistics {
            bounds: (0..=100).map(|at| bound(at).to_string()).collect(),
            ..of_common(&[0.2], -0.5)
        };
        let (even, squares) = (of(|at| at * 10), of(|at| at * at / 10));
        assert_eq!(within(&Kind::Int4, &even, &squares, "histogram"), [false]);
        assert_eq!(within(&Kind::Int4, &even, &even, "histogram"), [true]);
        // A histogram of 80 % of the rows, or of 1 %, that the copy lacks.
        assert_eq!(within(&Kind::Int4, &even, &of_common(&[0.2], -0.5), "histogram"), [false]);
        let nearly_all = Statistics { common: listed(&[0.99]), ..even };
        assert_eq!(within(&Kind::Int4, &nearly_all, &of_common(&[0.99], -0.5), "histogram"), [true]);
    }

    #[test]
    fn elements_compare_by_rank_and_their_numbers_by_deciles() {
        let of = |shares: &[f64], more: f64| Statistics {
            elements: listed(shares),
            element_counts: (0..=20).map(|at| f64::from(at / 4) + more).collect(),
            ..of_common(&[], -1.0)
        };
        let kind = Kind::Array(Box::new(Kind::Text));
        let (original, copy) = (of(&[0.2, 0.5], 0.0), of(&[0.5, 0.3], 3.0));
        assert_eq!(within(&kind, &original, &copy, "common elements"), [true, false]);
        assert_eq!(within(&kind, &original, &copy, "elem_count_histogram"), [false]);
        assert_eq!(within(&kind, &original, &original, "elem_count_histogram"), [true]);
    }

    #[test]
    fn ranges_compare_by_bounds_and_lengths() {
        let of = |lengths: f64, end: fn(i32) -> String| {
            let bounds = (0..=20).map(|at| format!("[{},{})", at * 10, end(at))).collect();
            let lengths = (0..=20).map(|at| f64::from(at) * lengths).collect();
            let ranges = Some(RangeStatistics { empty: 0.1, bounds, lengths });
            Statistics { ranges, ..of_common(&[], -1.0) }
        };
        let kind = Kind::Range { name: "int4range".to_owned(), oid: 3904, element: Box::new(Kind::Int4) };
        let even = of(1.0, |at| (at * 10 + 5).to_string());
        let longer = of(7.0, |at| (at * at * 90).to_string());
        for name in ["range_bounds_histogram", "range_length_histogram"] {
            assert_eq!(within(&kind, &even, &even, name), [true], "{name}");
            assert_eq!(within(&kind, &even, &longer, name), [false], "{name}");
        }
        let open = of(1.0, |_| String::new());
        assert_eq!(within(&kind, &open, &open, "range_bounds_histogram"), [true]);
        assert_eq!(within(&kind, &even, &open, "range_empty_frac"), [true]);
    }
}
