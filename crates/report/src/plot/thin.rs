//! Reduces the number of points to draw: keeps the lowest and the highest in each column of pixels.

/// The points to draw, in order: of those in the same column of pixels the lowest and the highest,
/// so that no peak is lost. `column` gives the column of an x.
pub(crate) fn thinned(points: &[(f64, f64)], column: impl Fn(f64) -> i64) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for group in points.chunk_by(|one, next| column(one.0) == column(next.0)) {
        let by_height = |one: &&(usize, f64), other: &&(usize, f64)| one.1.total_cmp(&other.1);
        let heights: Vec<(usize, f64)> = group.iter().enumerate().map(|(at, point)| (at, point.1)).collect();
        let (Some(low), Some(high)) = (heights.iter().min_by(by_height), heights.iter().max_by(by_height))
        else {
            continue;
        };
        let (first, second) = (low.0.min(high.0), low.0.max(high.0));
        kept.push(group[first]);
        if second != first {
            kept.push(group[second]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_column_keeps_its_lowest_and_highest(
            heights in prop::collection::vec(-1e6..1e6f64, 0..500),
            columns in 1..60_i32,
        ) {
            let points: Vec<(f64, f64)> = heights.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
            #[expect(clippy::cast_possible_truncation)]
            let column = |x: f64| (x * f64::from(columns) / 500.0).floor() as i64;
            let extremes = |points: &[(f64, f64)]| {
                let mut found: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
                for (x, y) in points {
                    let entry = found.entry(column(*x)).or_insert((*y, *y));
                    *entry = (entry.0.min(*y), entry.1.max(*y));
                }
                found
            };
            let kept = thinned(&points, column);
            prop_assert_eq!(extremes(&kept), extremes(&points));
            prop_assert!(kept.len() <= 2 * usize::try_from(columns).unwrap());
            prop_assert!(kept.iter().all(|point| points.contains(point)));
            prop_assert!(kept.is_sorted_by(|one, next| one.0 < next.0));
        }
    }
}
