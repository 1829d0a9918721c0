//! The article's table: time per row and its scatter, by the number of rows in a sample.

use std::time::{Duration, Instant};

use fastrand::Rng;
use measure::Sample;
use serde::Serialize;
use tokio_postgres::Statement;

use crate::error::MicroError;
use crate::plan::Plan;
use crate::plan::arms::Timed;
use crate::plan::finding::Kind;
use crate::plan::inspect::observe;
use crate::request::Request;
use crate::run::RunProgress;
use crate::run::bench::Bench;

/// The article's numbers of rows.
pub const ROWS: [u64; 12] = [
    10, 100, 1_000, 10_000, 100_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000,
    10_000_000,
];

/// Up to this number of rows a round has several samples, because they take little time.
const FEW: u64 = 100_000;
/// Samples of a round for up to [`FEW`] rows.
const SAMPLES_OF_FEW: usize = 10;

/// Least number of samples that remain after the cut, before their standard deviation is compared
/// with another one's. The standard deviation of n normal values has a standard error of 1 / sqrt(2
/// (n - 1)): 16 % with 20 values. (Of 3 samples the cut leaves one, whose deviation is 0.)
const LEAST_CUT: usize = 20;
/// Number of samples from which the cut leaves so many: of 26 it removes 3 at either end.
const LEAST_SAMPLES: usize = 26;
/// Standard deviations whose ratio is smaller than this cannot be told apart: with 20 values each,
/// the F test at 5 % requires variances that differ by 2.53 times, which is 1.59 squared.
const TOLD_APART: f64 = 1.59;
/// Warming up may take the budget divided by this.
const WARMING_UP: u32 = 2;
/// Factor of a suggested budget over the estimate.
const SPARE: f64 = 1.3;
/// Step of suggested budgets, seconds.
const BUDGET_STEP: f64 = 5.0;

/// Result of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The plan that was timed.
    pub plan: Plan,
    /// By number of rows, ascending.
    pub points: Vec<Point>,
    /// Numbers of rows for which the budget has no room.
    pub left_out: Vec<u64>,
}

/// Samples with one number of rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Rows of a sample.
    pub rows: u64,
    /// Seconds of each sample, the first one left out.
    pub seconds: Vec<f64>,
    /// Number of blocks that a sample writes to temporary files.
    pub spilled: u64,
    /// Time of the warm-up, seconds.
    pub warm_up: f64,
}

/// Result: the best number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The samples with `rows` rows scatter least. Those with `alike` rows do not scatter
    /// significantly more.
    Steadiest {
        /// The number of rows with the least standard deviation after the cut.
        rows: u64,
        /// Others of which it is about the same.
        alike: Vec<u64>,
    },
    /// There are too few samples.
    TooFew {
        /// The numbers of rows with too few samples, including those that were left out.
        rows: Vec<u64>,
        /// A budget that is likely to be enough, seconds.
        budget: u64,
    },
}

impl Point {
    /// Seconds per row of each sample: of all samples, and of those that the cut leaves. None if
    /// there is no sample.
    pub fn per_row(&self) -> Option<(Sample, Sample)> {
        let all = Sample::new(self.seconds.iter().map(|seconds| seconds / self.rows as f64).collect())?;
        let cut = all.truncated().unwrap_or_else(|| all.clone());
        Some((all, cut))
    }

    /// The standard deviation after the cut, seconds per row; none if there are too few samples.
    fn deviation(&self) -> Option<f64> {
        let (_, cut) = self.per_row()?;
        cut.deviation().filter(|_| cut.count() >= LEAST_CUT)
    }

    /// Expected time of a sample, seconds: of the longest so far, or of the warm-up if that was
    /// longer.
    fn sample(&self) -> f64 {
        self.seconds.iter().copied().reduce(f64::max).unwrap_or(self.warm_up)
    }

    /// Samples of a round.
    fn samples(&self) -> usize {
        if self.rows <= FEW { SAMPLES_OF_FEW } else { 1 }
    }

    /// Seconds of a round's samples.
    fn round(&self) -> f64 {
        self.sample() * self.samples() as f64
    }
}

impl Calibration {
    /// The best number of rows; none if only one was requested.
    pub fn conclusion(&self) -> Option<Conclusion> {
        if self.points.len() + self.left_out.len() < 2 {
            return None;
        }
        let deviations: Vec<Option<f64>> = self.points.iter().map(Point::deviation).collect();
        let few = self.points.iter().zip(&deviations).filter(|(_, deviation)| deviation.is_none());
        let few: Vec<u64> = few.map(|(point, _)| point.rows).chain(self.left_out.iter().copied()).collect();
        if !few.is_empty() {
            return Some(Conclusion::TooFew { rows: few, budget: self.sufficient_budget() });
        }
        let sizes = self.points.iter().map(|point| point.rows).zip(deviations.into_iter().flatten());
        let (rows, least) = sizes.clone().min_by(|one, other| one.1.total_cmp(&other.1))?;
        let alike = sizes.filter(|(other, deviation)| *other != rows && *deviation < TOLD_APART * least);
        Some(Conclusion::Steadiest { rows, alike: alike.map(|(rows, _)| rows).collect() })
    }

    /// Time in which each number of rows would get enough samples, seconds, estimated from the
    /// samples so far. For numbers of rows that were left out, the time per row of the largest
    /// measured number is used.
    fn sufficient_budget(&self) -> u64 {
        let rounds = |point: &Point| LEAST_SAMPLES.div_ceil(point.samples()).max(2) as f64;
        let known = self.points.iter().map(|point| point.warm_up + rounds(point) * point.round());
        let largest = self.points.last();
        let by_row = largest
            .map_or(0.0, |point| (point.warm_up + LEAST_SAMPLES as f64 * point.sample()) / point.rows as f64);
        let left_out = self.left_out.iter().map(|rows| *rows as f64 * by_row);
        // Every round has samples of all numbers of rows.
        let few = self.points.iter().filter(|point| point.rows <= FEW);
        let few: f64 = few.map(|point| (LEAST_SAMPLES as f64 - rounds(point)) * point.round()).sum();
        let needed = known.chain(left_out).sum::<f64>() + few;
        // Warming up is to fit its share.
        let steps = (SPARE * needed / BUDGET_STEP).ceil().max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates")]
        let budget = (steps * BUDGET_STEP) as u64;
        budget
    }

    /// Seconds of the next round.
    fn round(&self) -> f64 {
        self.points.iter().map(Point::round).sum()
    }
}

/// The time that may be spent, warming up included.
struct Budget {
    started: Instant,
    length: Duration,
}

impl Budget {
    fn is_enough_for(&self, seconds: f64) -> bool {
        self.started.elapsed().as_secs_f64() + seconds <= self.length.as_secs_f64()
    }
}

/// Takes samples with all numbers of rows, in rounds of shuffled order. Begins no sample that would
/// probably end after the budget. If the budget is too small, the largest numbers of rows are left
/// out.
pub(crate) async fn run(
    bench: &Bench<'_>,
    arms: &[Timed],
    plan: Plan,
    observer: &mut dyn FnMut(&Calibration, RunProgress),
) -> Result<Calibration, MicroError> {
    let arm = &arms[0];
    let budget = Budget { started: Instant::now(), length: bench.request.budget };
    let (points, mut statements) = warm_up(bench, arm, &budget).await?;
    let left_out = sizes(bench.request).split_off(points.len());
    let mut found = Calibration { plan, points, left_out };
    while found.points.len() > 1 && !budget.is_enough_for(found.round()) {
        found.left_out.splice(0..0, found.points.pop().map(|point| point.rows));
        statements.pop();
    }
    let mut random = Rng::with_seed(bench.request.seed);
    let mut order: Vec<usize> = (0..found.points.len()).collect();
    let mut rounds = 0;
    'rounds: while rounds == 0 || budget.is_enough_for(found.round()) {
        random.shuffle(&mut order);
        for &size in &order {
            for _ in 0..found.points[size].samples() {
                if rounds > 0 && !budget.is_enough_for(found.points[size].sample()) {
                    break 'rounds;
                }
                let elapsed = bench.sample(arm, &statements[size]).await?;
                found.points[size].seconds.push(elapsed.as_secs_f64());
            }
        }
        rounds += 1;
        bench.rounds.set(rounds);
        let progress = RunProgress { rounds, elapsed: budget.started.elapsed(), budget: budget.length };
        observer(&found, progress);
    }
    Ok(found)
}

/// Executes each number of rows once, the smallest first, as long as there is time; records which
/// of them write temporary files.
async fn warm_up(
    bench: &Bench<'_>,
    arm: &Timed,
    budget: &Budget,
) -> Result<(Vec<Point>, Vec<Statement>), MicroError> {
    let (mut points, mut statements) = (Vec::<Point>::new(), Vec::new());
    for rows in sizes(bench.request) {
        let likely = points.last().map(|last| last.warm_up * rows as f64 / last.rows as f64);
        // All warm-ups must end in the first part of the budget; the rest is for samples.
        let spent = budget.started.elapsed().as_secs_f64();
        if likely.is_some_and(|likely| spent + likely > budget.length.as_secs_f64() / f64::from(WARMING_UP)) {
            break;
        }
        let started = Instant::now();
        let statement = bench.statement(0, arm, rows).await?;
        let sql = bench.sql(0, arm, rows);
        let observing = observe(&bench.session, &arm.name, &sql, rows);
        let kinds = bench.in_time(&arm.name, observing).await??;
        let spilled = kinds.iter().find_map(|kind| match kind {
            Kind::Spills { blocks, .. } => Some(*blocks),
            _ => None,
        });
        let warm_up = started.elapsed().as_secs_f64();
        points.push(Point { rows, seconds: Vec::new(), spilled: spilled.unwrap_or(0), warm_up });
        statements.push(statement);
    }
    Ok((points, statements))
}

/// Numbers of rows to be tried.
fn sizes(request: &Request) -> Vec<u64> {
    request.rows.map_or_else(|| ROWS.to_vec(), |rows| vec![rows])
}

/// The most rows that a sample will have.
pub(crate) fn most_rows(request: &Request) -> u64 {
    sizes(request).into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point of so many samples around 100 ns a row, which scatter by so many ns.
    fn point(rows: u64, samples: i32, deviation: f64) -> Point {
        let seconds = (0..samples).map(|number| {
            let off = f64::from(number % 5 - 2) * deviation;
            (100.0 + off) * 1e-9 * rows as f64
        });
        Point { rows, seconds: seconds.collect(), spilled: 0, warm_up: 200e-9 * rows as f64 }
    }

    fn conclusion(points: Vec<Point>, left_out: Vec<u64>) -> Option<Conclusion> {
        let plan = Plan {
            arms: Vec::new(),
            left_out: Vec::new(),
            settings: Vec::new(),
            rows: 1,
            fixed: None,
            schema: None,
            findings: Vec::new(),
            notes: Vec::new(),
        };
        Calibration { plan, points, left_out }.conclusion()
    }

    #[test]
    fn few_samples_tell_nothing_however_little_they_scatter() {
        let few = |samples| vec![point(1000, 200, 5.0), point(1_000_000, samples, 0.0)];
        for samples in [1, 2, 3, 25] {
            let found = conclusion(few(samples), Vec::new());
            assert!(
                matches!(&found, Some(Conclusion::TooFew { rows, .. }) if *rows == [1_000_000]),
                "{samples}: {found:?}"
            );
        }
        let found = conclusion(few(26), Vec::new());
        assert_eq!(found, Some(Conclusion::Steadiest { rows: 1_000_000, alike: Vec::new() }));
        let found = conclusion(few(26), vec![10_000_000]);
        // 26 samples of 1 s, and 2 s for warming up; those of fewer rows are a tenth of that.
        let Some(Conclusion::TooFew { rows, budget }) = found else { panic!("{found:?}") };
        assert_eq!(rows, [10_000_000]);
        assert!((30..60).contains(&budget), "{budget}");
        assert_eq!(conclusion(few(3).split_off(1), Vec::new()), None);
    }

    #[test]
    fn those_that_scatter_alike_are_named() {
        let points = vec![point(1000, 200, 5.0), point(10_000, 40, 1.0), point(100_000, 40, 1.5)];
        let alike = Conclusion::Steadiest { rows: 10_000, alike: vec![100_000] };
        assert_eq!(conclusion(points, Vec::new()), Some(alike));
    }
}
