//! The article's table: what a row takes, and how much that scatters, by the number of rows in a sample.

use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::Serialize;

use super::Outlook;
use super::arms::Timed;
use super::bench::Bench;
use super::error::MicroError;
use super::finding::Kind;
use super::inspect::observe;
use super::plan::Plan;
use super::request::Request;

/// The article's numbers of rows.
pub const ROWS: [u64; 12] = [
    10, 100, 1_000, 10_000, 100_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000,
    10_000_000,
];

/// Rows up to which a round has more than one sample: they take next to no time.
const FEW: u64 = 100_000;
/// And how many then.
const SAMPLES_OF_FEW: usize = 10;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// What was timed.
    pub plan: Plan,
    /// By number of rows, ascending.
    pub points: Vec<Point>,
}

/// One number of rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// How many.
    pub rows: u64,
    /// Seconds of each sample, the first one left out.
    pub seconds: Vec<f64>,
    /// Blocks that a sample writes to temporary files.
    pub spilled: u64,
}

/// Samples of all numbers of rows, in rounds of shuffled order, until the budget is spent.
pub(super) async fn run(
    bench: &Bench<'_>,
    arms: &[Timed],
    plan: Plan,
    observer: &mut dyn FnMut(&Calibration, Outlook),
) -> Result<Calibration, MicroError> {
    let arm = &arms[0];
    let sizes = sizes(bench.request);
    let (mut points, mut statements) = (Vec::new(), Vec::new());
    for &rows in &sizes {
        let statement = bench.statement(0, arm, rows).await?;
        // Warms up, too.
        let kinds = observe(&bench.session, &arm.name, &bench.sql(0, arm, rows), rows).await?;
        let spilled = kinds.iter().find_map(|kind| match kind {
            Kind::Spills { blocks, .. } => Some(*blocks),
            _ => None,
        });
        points.push(Point { rows, seconds: Vec::new(), spilled: spilled.unwrap_or(0) });
        statements.push(statement);
    }
    let mut found = Calibration { plan, points };
    let mut random = Rng::with_seed(bench.request.seed);
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let budget = bench.request.budget;
    let started = Instant::now();
    let mut rounds = 0;
    let mut longest = Duration::ZERO;
    // A round that would go far beyond the budget does not begin; two there are.
    while rounds < 2 || started.elapsed() + longest / 2 < budget {
        random.shuffle(&mut order);
        let round = Instant::now();
        for &size in &order {
            let samples = if found.points[size].rows <= FEW { SAMPLES_OF_FEW } else { 1 };
            for _ in 0..samples {
                let elapsed = bench.sample(arm, &statements[size]).await?;
                found.points[size].seconds.push(elapsed.as_secs_f64());
            }
        }
        longest = longest.max(round.elapsed());
        rounds += 1;
        bench.rounds.set(rounds);
        observer(&found, Outlook { rounds, elapsed: started.elapsed(), budget });
    }
    Ok(found)
}

/// Numbers of rows to be tried.
fn sizes(request: &Request) -> Vec<u64> {
    request.rows.map_or_else(|| ROWS.to_vec(), |rows| vec![rows])
}

/// The most rows that a sample will have.
pub(super) fn most_rows(request: &Request) -> u64 {
    sizes(request).into_iter().max().unwrap_or(0)
}
