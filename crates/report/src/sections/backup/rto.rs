//! The time in which a restore has to end (`--rto`).

use measure::Run;
use serde_json::Value;

use crate::plot::Dot;
use crate::quantity::Quantity;
use crate::sections::FEWEST;

/// Its seconds; none if no time was given.
pub(super) fn seconds(run: &Run) -> Option<f64> {
    run.request["rto"].as_f64()
}

/// The title of a column with verdicts.
pub(super) fn title(seconds: f64) -> String {
    format!("RTO {}", Quantity::Elapsed.text(seconds))
}

/// The verdict on measured restores: by the upper end of the interval, or, with fewer trials, by the slowest restore.
pub(super) fn measured(restore: &Dot, seconds: f64) -> String {
    let slowest = || restore.observed.iter().copied().fold(restore.value, f64::max);
    let high = restore.interval.map_or_else(slowest, |(_, high)| high);
    let verdict = if high <= seconds { "meets" } else { "misses" };
    verdict.to_owned()
}

/// The meaning of these verdicts.
pub(super) fn meaning(restores: &[Dot], seconds: f64) -> String {
    let is_by_interval = restores.iter().any(|restore| restore.observed.len() >= FEWEST);
    let by = if is_by_interval { "the upper end of the interval" } else { "the slowest restore" };
    format!("A way meets the RTO if it restores within {}, judged by {by}.", Quantity::Elapsed.text(seconds))
}

/// The verdict of a forecast.
pub(super) fn forecast(forecast: &Value) -> String {
    match forecast["rto"].as_str() {
        Some("keeps") => "meets",
        Some("does-not-keep") => "misses",
        _ => "not known",
    }
    .to_owned()
}
