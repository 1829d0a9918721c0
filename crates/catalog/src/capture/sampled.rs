//! How many rows ANALYZE has read, from its statistics alone.

use model::Statistics;

/// A lower bound of the rows that ANALYZE has read for the statistics of a table: all shares are multiples of one row's, and the bounds
/// of a histogram are of different rows. ANALYZE reads `most` rows at most.
pub(super) fn least<'a>(statistics: impl Iterator<Item = &'a Statistics>, most: u64) -> u64 {
    let (mut shares, mut bounds) = (Vec::new(), 0);
    for of_column in statistics {
        shares.push(of_column.null_frac);
        shares.extend(of_column.common.iter().map(|(_, share)| *share));
        bounds = bounds.max(of_column.bounds.len() as u64);
    }
    shares.retain(|share| *share > 0.0 && *share < 1.0);
    if shares.is_empty() {
        return bounds;
    }
    let is_multiple = |rows: u64| shares.iter().all(|share| is_whole(share * rows as f64));
    (1..most).find(|rows| is_multiple(*rows)).unwrap_or(most).max(bounds)
}

/// Whether the number of rows is whole, as precisely as `float4` has its share.
fn is_whole(rows: f64) -> bool {
    (rows - rows.round()).abs() <= f64::from(f32::EPSILON) / 2.0 * rows + 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nulls: f32, shares: &[f32], bounds: usize) -> Statistics {
        Statistics {
            null_frac: f64::from(nulls),
            common: shares.iter().map(|share| (String::new(), f64::from(*share))).collect(),
            bounds: vec![String::new(); bounds],
            ..Statistics::default()
        }
    }

    #[test]
    fn shares_are_multiples_of_one_row() {
        let found = |statistics: &[Statistics]| least(statistics.iter(), 30_000);
        assert_eq!(found(&[of(0.5, &[0.1, 0.1], 0)]), 10);
        // Of 30 rows: 15 NULLs, 5 and 4 with a value.
        assert_eq!(found(&[of(0.5, &[5.0 / 30.0, 4.0 / 30.0], 0)]), 30);
        assert_eq!(found(&[of(0.0, &[0.2], 0), of(0.0, &[], 101)]), 101);
        let (one, other) = (7.0 / 30_000.0, 11.0 / 30_000.0);
        assert_eq!(found(&[of(0.0, &[one], 0), of(0.0, &[other], 0)]), 30_000);
        assert_eq!(found(&[]), 0);
    }

    #[test]
    fn a_table_of_which_a_part_was_read_has_at_least_so_many_rows() {
        // Of 300,000 rows, as with another target.
        assert_eq!(least([of(0.0, &[100_003.0 / 300_000.0], 0)].iter(), 3_000), 3_000);
    }
}
