//! Chooses the number of rows of a sample: so large that neither the fixed time of a statement nor
//! the clock's resolution matters.

use std::time::{Duration, Instant};

use crate::error::MicroError;
use crate::plan::arms::Timed;
use crate::request::MOST_ROWS;
use crate::run::bench::Bench;
use crate::run::session::UNSPILLED_ROWS;

/// Greatest share of a candidate's sample that may be fixed time, which stays in the result.
const FIXED_SHARE: f64 = 0.004;
/// Least length of a sample, seconds, so that interruptions by the kernel are a small part of it.
/// Samples are not much longer: a machine's speed changes within milliseconds, and samples that are
/// close together in time have the same speed.
const SHORTEST: f64 = 2e-3;
/// Least length of a sample, seconds, if tables are created again for each round, which takes
/// longer than the sample.
const SHORTEST_OF_TABLES: f64 = 50e-3;
/// Rounds that the budget must have room for.
const ROUNDS: f64 = 40.0;
/// A statement is tried with more and more rows until these take this long, seconds.
const TELLING: f64 = 1e-3;
/// Executions with one number of rows, of which the fastest counts: the others may have waited for a processor.
const EXECUTIONS: u32 = 5;
/// Most trials of one statement to find its fixed cost.
const TRIES: u32 = 30;
/// Most time for these trials.
const TRYING: Duration = Duration::from_millis(300);

/// Number of rows of a sample, with the trials that chose it.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) rows: u64,
    /// Fixed time of a statement, seconds.
    pub(crate) fixed: f64,
    /// Expected time of a sample of each arm, seconds.
    pub(crate) samples: Vec<f64>,
}

/// Finds the number of rows, unless it is given.
pub(crate) async fn choose(
    bench: &Bench<'_>,
    arms: &[Timed],
    budget: Duration,
) -> Result<Choice, MicroError> {
    let most = if bench.request.has_rows() { bench.request.rows } else { Some(1) };
    // The loop without a candidate, if there is one, comes before A′.
    let light = arms.iter().rposition(|arm| arm.arm == measure::paired::Arm::Empty).unwrap_or(0);
    let fixed = fixed(bench, light, &arms[light]).await?;
    // The empty loop has the fixed cost too, so that only its uncertainty stays.
    let has_empty = arms.iter().any(|arm| arm.arm == measure::paired::Arm::Empty);
    let stays = if has_empty { fixed.scatter } else { fixed.middle };
    let mut per_row = Vec::new();
    for (number, arm) in arms.iter().enumerate() {
        per_row.push(row_time(bench, number, arm, most.unwrap_or(UNSPILLED_ROWS), fixed.least).await?);
    }
    let rows = most.unwrap_or_else(|| {
        let is_candidate = |arm: &&Timed| matches!(arm.arm, measure::paired::Arm::Candidate(_));
        let candidates = arms.iter().filter(is_candidate).count();
        let has_tables = arms.iter().any(|arm| arm.body.ddl("").is_some());
        let least = if has_tables { SHORTEST_OF_TABLES } else { SHORTEST };
        let shortest = (stays / FIXED_SHARE).max(least);
        wanted(shortest, &per_row[..candidates], &per_row, budget)
    });
    let samples = per_row.iter().map(|seconds| fixed.middle + seconds * rows as f64).collect();
    Ok(Choice { rows, fixed: fixed.middle, samples })
}

/// Number of rows with which the cheapest candidate's sample takes `shortest` seconds, or fewer if
/// the budget would not allow enough rounds.
fn wanted(shortest: f64, candidates: &[f64], all: &[f64], budget: Duration) -> u64 {
    let cheapest = candidates.iter().copied().fold(f64::INFINITY, f64::min);
    let for_precision = shortest / cheapest.max(1e-12);
    let round: f64 = all.iter().sum::<f64>().max(1e-12);
    let for_budget = budget.as_secs_f64() / ROUNDS / round;
    rounded(for_precision.min(for_budget).clamp(1.0, UNSPILLED_ROWS.min(MOST_ROWS) as f64))
}

/// The number rounded to two digits.
fn rounded(rows: f64) -> u64 {
    let step = 10f64.powf((rows.log10().floor() - 1.0).max(0.0));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped by the caller")]
    let rows = ((rows / step).round() * step) as u64;
    rows.max(1)
}

/// Time of a statement on one row, seconds.
struct Fixed {
    /// Of the fastest trial.
    least: f64,
    /// Median of the trials.
    middle: f64,
    /// Half of the range between the quartiles.
    scatter: f64,
}

async fn fixed(bench: &Bench<'_>, number: usize, arm: &Timed) -> Result<Fixed, MicroError> {
    let statement = bench.statement(number, arm, 1).await?;
    let started = Instant::now();
    let mut seconds = Vec::new();
    while seconds.len() < 3 || (seconds.len() < TRIES as usize && started.elapsed() < TRYING) {
        seconds.push(bench.sample(arm, &statement).await?.as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let at = |share: usize| seconds[seconds.len() * share / 4];
    Ok(Fixed { least: at(0), middle: at(2), scatter: (at(3) - at(1)) / 2.0 })
}

/// Time of one further row, seconds: from the difference between one row, which takes `fixed` seconds, and as many as
/// take a measurable time.
async fn row_time(
    bench: &Bench<'_>,
    number: usize,
    arm: &Timed,
    most: u64,
    fixed: f64,
) -> Result<f64, MicroError> {
    let mut rows = most.min(100);
    loop {
        let statement = bench.statement(number, arm, rows).await?;
        let mut best = f64::INFINITY;
        for _ in 0..EXECUTIONS {
            best = best.min(bench.sample(arm, &statement).await?.as_secs_f64());
            // A long one is good enough, and a short one needs more rows.
            if best > 100.0 * TELLING || (best - fixed < TELLING && rows < most) {
                break;
            }
        }
        if best - fixed >= TELLING || rows >= most {
            return Ok((best - fixed).max(0.0) / rows as f64);
        }
        rows = (rows * 5).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_sample_is_long_enough() {
        let budget = Duration::from_secs(10);
        assert_eq!(wanted(10e-3, &[1e-7, 2e-7], &[1e-7, 2e-7, 5e-8, 1e-7], budget), 100_000);
        // A dear rival takes the budget.
        assert_eq!(wanted(10e-3, &[1e-7, 1e-5], &[1e-7, 1e-5, 5e-8, 1e-7], budget), 24_000);
        assert_eq!(wanted(10e-3, &[3.0], &[3.0, 3.0], budget), 1);
        assert_eq!(wanted(10.0, &[1e-9], &[1e-9], Duration::from_hours(99)), 1_000_000);
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!([1.0, 9.4, 104.0, 123_456.0].map(rounded), [1, 9, 100, 120_000]);
    }
}
