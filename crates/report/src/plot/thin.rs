//! Reduces the number of points to draw: keeps the lowest and the highest in each column of pixels.

/// The points to draw, in order: of those in the same column of pixels the lowest and the highest,
/// so that no peak is lost. `column` gives the column of an x.
pub(crate) fn thinned(points: &[(f64, f64)], column: impl Fn(f64) -> i64) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for group in points.chunk_by(|one, next| column(one.0) == column(next.0)) {
        let (low, high) = ends(group);
        let (first, second) = (low.min(high), low.max(high));
        kept.push(group[first]);
        if second != first {
            kept.push(group[second]);
        }
    }
    kept
}

/// An x of each column of pixels with the lowest and the highest value in it.
pub(crate) fn extremes(points: &[(f64, f64)], column: impl Fn(f64) -> i64) -> Vec<(f64, f64, f64)> {
    let of = |group: &[(f64, f64)]| {
        let (low, high) = ends(group);
        (group[high].0, group[low].1, group[high].1)
    };
    points.chunk_by(|one, next| column(one.0) == column(next.0)).map(of).collect()
}

/// Places of the lowest and of the highest value.
fn ends(group: &[(f64, f64)]) -> (usize, usize) {
    let by_height = |one: &usize, other: &usize| group[*one].1.total_cmp(&group[*other].1);
    let low = (0..group.len()).min_by(by_height).unwrap_or_default();
    (low, (0..group.len()).max_by(by_height).unwrap_or_default())
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
            let of_columns = |points: &[(f64, f64)]| {
                let mut found: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
                for (x, y) in points {
                    let entry = found.entry(column(*x)).or_insert((*y, *y));
                    *entry = (entry.0.min(*y), entry.1.max(*y));
                }
                found
            };
            let kept = thinned(&points, column);
            prop_assert_eq!(of_columns(&kept), of_columns(&points));
            let found: Vec<(f64, f64)> = extremes(&points, column).into_iter().map(|(_, low, high)| (low, high)).collect();
            prop_assert_eq!(found, of_columns(&points).into_values().collect::<Vec<_>>());
            prop_assert!(kept.len() <= 2 * usize::try_from(columns).unwrap());
            prop_assert!(kept.iter().all(|point| points.contains(point)));
            prop_assert!(kept.is_sorted_by(|one, next| one.0 < next.0));
        }
    }
}
