//! `pgrig backup rehearse --rto` without a forecast: the ways that were restored in time.

use std::fmt::Write;
use std::time::Duration;

use backup::{Outcome, Plan, Summary};
use measure::human::time;

use crate::app::failure::{BadResult, Failure};
use crate::app::numbers::duration;

/// Trials with which a median has an interval.
const SIX: u32 = 6;

/// The ways that meet the time, and those that miss it.
pub(super) fn text(outcome: &Outcome, plan: &Plan, rto: Duration) -> String {
    let (met, missed): (Vec<Summary>, Vec<Summary>) =
        outcome.summaries(&plan.ways).into_iter().partition(|way| meets(way, rto));
    let named = |ways: &[Summary]| {
        let each = ways.iter().map(|way| format!("{} ({})", way.way, time(way.restore.interval.high)));
        each.collect::<Vec<_>>().join(", ")
    };
    let by = if plan.trials < SIX {
        "the slowest restore"
    } else if outcome.cut_short.is_empty() {
        "the upper end of the interval"
    } else {
        "the upper end of the interval, or with fewer than six trials the slowest restore"
    };
    let mut text = format!("\nrestore within {} (--rto), judged by {by}", duration(rto));
    for (verdict, ways) in [("meets", &met), ("misses", &missed)] {
        if !ways.is_empty() {
            let _ = write!(text, "\n  {verdict}: {}", named(ways));
        }
    }
    text
}

/// Fails if no way meets it.
pub(super) fn check(outcome: &Outcome, plan: &Plan, rto: Duration) -> Result<(), Failure> {
    if outcome.summaries(&plan.ways).iter().any(|way| meets(way, rto)) {
        return Ok(());
    }
    let text = format!("no way restores this database within {} (--rto)", duration(rto));
    Err(BadResult::Missed(vec![text]).into())
}

fn meets(way: &Summary, rto: Duration) -> bool {
    way.restore.interval.high <= rto.as_secs_f64()
}
