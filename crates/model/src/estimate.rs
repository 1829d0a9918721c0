//! From the number of different values that ANALYZE estimates to the number that a table has.

/// Numbers of rows of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCounts {
    pub(crate) all: u64,
    /// Rows that ANALYZE samples.
    pub(crate) sampled: u64,
}

impl RowCounts {
    /// Rows that ANALYZE reads.
    pub(crate) fn read(self) -> f64 {
        self.all.min(self.sampled) as f64
    }
}

/// The number of different values among `rows` rows, `nulls` of which are NULL, of which ANALYZE estimates `distinct` (as in
/// `pg_stats`, but if negative, relative to the rows that are not NULL); in the same form. `common` has the shares of the frequent
/// values among the latter.
///
/// ANALYZE estimates `n d / (n - f + f n / N)` from n of N rows with d different values, of which f occur once (Haas and
/// Stokes, IBM Research Report RJ 10025). Where values occur a few times each, it misses some of them. This finds the number of equally
/// frequent values from which rows drawn by chance give this estimate. The other rows lie in buckets of equal shares: `rooms` has
/// the number of different values for which each bucket has room. Of no rooms there is no limit.
pub(crate) fn different(distinct: f64, rows: RowCounts, nulls: f64, common: &[f64], rooms: &[f64]) -> f64 {
    let (all, drawn) = (rows.all as f64 * (1.0 - nulls), rows.sampled as f64 * (1.0 - nulls));
    let estimate = if distinct < 0.0 { -distinct * all } else { distinct };
    let frequent = common.len() as f64;
    let rest = (1.0 - common.iter().sum::<f64>()).clamp(0.0, 1.0);
    let (sampled, others) = (drawn * rest, all * rest);
    // The whole table is sampled, each row has a value of its own, or there are frequent values only.
    if all <= drawn || distinct <= -0.999 || estimate - frequent < 1.0 || sampled < 1.0 {
        return distinct;
    }
    let buckets = rooms.len().max(1) as f64;
    // Of so many rows, for so many values in each bucket that has the room.
    let sum = |most: f64, rows: f64, of: fn(f64, f64) -> f64| -> f64 {
        let of_bucket = |room: &f64| of(room.clamp(1.0, most.max(1.0)), rows / buckets);
        if rooms.is_empty() { of(most, rows) } else { rooms.iter().map(of_bucket).sum() }
    };
    let seen = |values: f64, draws: f64| -values * (-draws / values).exp_m1();
    let estimated = |most: f64| {
        let once = sum(most, sampled, |values, draws| draws * (-draws / values).exp());
        drawn * (frequent + sum(most, sampled, seen)) / (drawn - once + once * drawn / all)
    };
    let (mut low, mut high) = (1.0, 1e4 * all);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if estimated(middle) < estimate { low = middle } else { high = middle }
    }
    let count = (frequent + sum(high, others, seen)).max(estimate).min(all);
    if distinct < 0.0 { -count / all } else { count }
}

/// The number of different values, relative to all rows, of which `distinct` (relative to the rows that
/// are not NULL) are left if NULLs replace a share of the rows at random. Numbers above 0 stay.
pub(crate) fn hidden(distinct: f64, nulls: f64) -> f64 {
    if distinct >= 0.0 || nulls <= 0.0 || nulls >= 1.0 {
        return distinct;
    }
    let wanted = -distinct * (1.0 - nulls);
    // A value of 1/d rows stays unless all of them become NULL.
    let left = |values: f64| values * (1.0 - nulls.powf(1.0 / values));
    let (mut low, mut high) = (wanted.min(1.0), 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if left(middle) < wanted { low = middle } else { high = middle }
    }
    -high
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::collections::HashMap;

    #[test]
    fn rows_drawn_by_chance_give_the_estimate() {
        let mut rng = Rng::with_seed(1);
        // As at statistics targets of 100 and of 200.
        for (values, rows, sampled) in [
            (1_100_000, 150_000_u32, 30_000_u32),
            (99_901, 800_000, 30_000),
            (99_901, 800_000, 60_000),
            (40_000, 60_000, 30_000),
            (20, 100_000, 30_000),
        ] {
            let table: Vec<u32> = (0..rows).map(|_| rng.u32(0..values)).collect();
            let mut places: Vec<usize> = (0..table.len()).collect();
            rng.shuffle(&mut places);
            let mut counts: HashMap<u32, u32> = HashMap::new();
            for place in &places[..usize::try_from(sampled).unwrap()] {
                *counts.entry(table[*place]).or_default() += 1;
            }
            let once = counts.values().filter(|count| **count == 1).count() as f64;
            let drawn = f64::from(sampled);
            let estimate = drawn * counts.len() as f64 / (drawn - once + once * drawn / f64::from(rows));
            let mut all = table.clone();
            all.sort_unstable();
            all.dedup();
            let rows = RowCounts { all: rows.into(), sampled: sampled.into() };
            let found = different(estimate, rows, 0.0, &[], &[]);
            let off = found / all.len() as f64;
            assert!(
                (0.98..1.02).contains(&off),
                "{values} of {rows:?}: {estimate} to {found}, not {}",
                all.len()
            );
            let relative = different(-estimate / rows.all as f64, rows, 0.0, &[], &[]);
            assert!((relative * rows.all as f64 + found).abs() < 1.0);
        }
    }

    #[test]
    fn buckets_with_little_room_have_fewer_values() {
        // A quarter of the rows has 200 values, and each other quarter 40,000.
        let (rooms, rows) = ([200.0, 40_000.0, 50_000.0, 60_000.0], 400_000_u32);
        let mut rng = Rng::with_seed(3);
        let table: Vec<u64> = (0..rows)
            .map(|_| match rng.u64(0..4) {
                0 => rng.u64(0..200),
                bucket => bucket * 1_000_000 + rng.u64(0..40_000),
            })
            .collect();
        let mut sample = table.clone();
        rng.shuffle(&mut sample);
        sample.truncate(30_000);
        sample.sort_unstable();
        let once = sample.chunk_by(|one, other| one == other).filter(|rows| rows.len() == 1).count() as f64;
        sample.dedup();
        let estimate = 30_000.0 * sample.len() as f64 / (30_000.0 - once + once * 30_000.0 / f64::from(rows));
        let mut all = table;
        all.sort_unstable();
        all.dedup();
        let counts = RowCounts { all: rows.into(), sampled: 30_000 };
        let found = different(estimate, counts, 0.0, &[], &rooms) / all.len() as f64;
        assert!((0.95..1.05).contains(&found), "{found} of {}, estimated {estimate}", all.len());
        let without = different(estimate, counts, 0.0, &[], &[]) / all.len() as f64;
        assert!(without < 0.9, "{without}");
    }

    #[test]
    fn nulls_hide_values() {
        let mut rng = Rng::with_seed(2);
        for (distinct, nulls) in [(-0.34, 0.28), (-1.0, 0.8), (-0.7, 0.5), (-0.01, 0.9)] {
            let rows = 20_000_u32;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
            let values = (-hidden(distinct, nulls) * f64::from(rows)).round() as u32;
            let mut left: Vec<u32> = (0..rows)
                .filter(|_| rng.f64() >= nulls)
                .map(|row| u32::try_from(u64::from(row) * u64::from(values) / u64::from(rows)).unwrap())
                .collect();
            let there = left.len() as f64;
            left.dedup();
            let found = left.len() as f64 / there;
            assert!((found + distinct).abs() < 0.015, "{distinct}, {nulls}: {found}");
        }
        assert!((hidden(7.0, 0.5) - 7.0).abs() < 1e-12);
    }

    #[test]
    fn small_tables_and_keys_stay() {
        for (distinct, rows) in [(-0.4, 30_000), (-1.0, 1_000_000), (7.0, 100)] {
            let rows = RowCounts { all: rows, sampled: 30_000 };
            assert!((different(distinct, rows, 0.0, &[], &[]) - distinct).abs() < 1e-12);
        }
        let rows = RowCounts { all: 1_000_000, sampled: 30_000 };
        assert!((different(3.0, rows, 0.1, &[0.5, 0.3, 0.2], &[]) - 3.0).abs() < 1e-12);
        // ANALYZE reads the table whole.
        let rows = RowCounts { all: 1_000_000, sampled: 3_000_000 };
        assert!((different(500_000.0, rows, 0.0, &[], &[]) - 500_000.0).abs() < 1e-12);
    }
}
