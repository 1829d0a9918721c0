//! Rounds: every arm once, in an order that is left to chance but balanced, until the intervals are narrow
//! enough or the budget is spent.

use std::time::{Duration, Instant};

use measure::paired::{Arm, FEWEST_ROUNDS, Judged, Orders, Rounds, judge};

use crate::error::MicroError;
use crate::plan::arms::Timed;
use crate::plan::{Plan, Role};
use crate::request::Request;
use crate::run::bench::Bench;
use crate::run::{Observer, RunProgress};
use server::fault;

/// An interval is narrow enough if it extends no farther than this to either side, as a share of
/// the threshold or of the value; for pairs as well.
const NARROW: f64 = 0.5;

/// Factor by which the budget may be exceeded at most, to get the fewest rounds that allow a
/// verdict.
pub(crate) const EXCEEDED: u32 = 3;

/// Result of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Whether it is the first one, which warms up and is not judged.
    pub cold: bool,
    /// The arms' places in [`Plan::arms`], as they ran.
    pub order: Vec<usize>,
    /// Seconds of each arm's sample, in the plan's order.
    pub seconds: Vec<f64>,
    /// Bytes of WAL that each arm's sample wrote; none if it was not asked for or the server does
    /// not tell it.
    pub wal: Vec<Option<f64>>,
}

/// Times rounds and tells the observer of each.
pub(crate) async fn run(
    bench: &Bench<'_>,
    arms: &[Timed],
    plan: &Plan,
    observer: &mut dyn Observer,
) -> Result<(), MicroError> {
    let request = bench.request;
    let mut orders = Orders::new(arms.len(), request.seed);
    let order = orders.next().unwrap_or_default();
    let cold = round(bench, arms, plan, order, true).await?;
    observer.round(&cold, RunProgress { rounds: 0, elapsed: Duration::ZERO, budget: request.budget });
    let mut rounds = empty_rounds(plan);
    let mut next_look = FEWEST_ROUNDS;
    let started = Instant::now();
    let most =
        |rounds: usize| if rounds < FEWEST_ROUNDS { EXCEEDED * request.budget } else { request.budget };
    while started.elapsed() < most(rounds.count()) {
        let order = orders.next().unwrap_or_default();
        let done = round(bench, arms, plan, order, false).await?;
        add(&mut rounds, plan, &done);
        bench.rounds.set(rounds.count());
        observer.round(
            &done,
            RunProgress { rounds: rounds.count(), elapsed: started.elapsed(), budget: request.budget },
        );
        if rounds.count() >= next_look {
            // Looking takes time too, more with every round.
            next_look = rounds.count() + rounds.count().div_ceil(4);
            if judged(&rounds, request).is_some_and(|judged| is_narrow_enough(&judged, request.threshold)) {
                break;
            }
        }
    }
    Ok(())
}

/// Whether more rounds would hardly change the result.
fn is_narrow_enough(judged: &Judged, threshold: f64) -> bool {
    if !judged.pairs.is_empty() {
        return judged.is_narrow_enough();
    }
    judged.own.iter().all(|own| own.half_width() <= NARROW * threshold * own.value.abs())
}

/// An empty set of rounds for the plan's arms.
pub(crate) fn empty_rounds(plan: &Plan) -> Rounds {
    Rounds::new(plan.candidates().count(), plan.has_empty())
}

/// Adds a round to the judged ones.
pub(crate) fn add(rounds: &mut Rounds, plan: &Plan, round: &Round) {
    let per_row: Vec<f64> = round.seconds.iter().map(|seconds| seconds / plan.rows as f64).collect();
    rounds.push(&per_row);
}

/// The judgement of the other candidates against the first one.
pub(crate) fn judged(rounds: &Rounds, request: &Request) -> Option<Judged> {
    let pairs: Vec<(usize, usize)> = (1..rounds.candidates()).map(|other| (0, other)).collect();
    judge(rounds, &pairs, request.threshold, request.seed)
}

async fn round(
    bench: &Bench<'_>,
    arms: &[Timed],
    plan: &Plan,
    order: Vec<usize>,
    cold: bool,
) -> Result<Round, MicroError> {
    let has_tables = arms.iter().any(|arm| arm.body.ddl("").is_some());
    if has_tables {
        bench.create_tables(arms).await?;
        bench.checkpoint().await?;
    }
    let mut statements = Vec::new();
    for (number, arm) in arms.iter().enumerate() {
        statements.push(bench.statement(number, arm, plan.rows).await?);
    }
    fault::point("micro");
    let mut seconds = vec![0.0; arms.len()];
    let mut wal = vec![None; arms.len()];
    for &number in &order {
        let before = if has_tables { bench.wal().await? } else { None };
        seconds[number] = bench.sample(&arms[number], &statements[number]).await?.as_secs_f64();
        if has_tables {
            wal[number] = bench.wal().await?.zip(before).map(|(after, before)| (after - before).max(0.0));
        }
    }
    Ok(Round { cold, order, seconds, wal })
}

/// Purpose of an arm.
pub(crate) fn role(arm: Arm) -> Role {
    match arm {
        Arm::Candidate(_) => Role::Candidate,
        Arm::Empty => Role::Empty,
        Arm::Repeat => Role::Repeat,
    }
}
