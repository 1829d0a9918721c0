//! Synchronises the parts of a run: they agree through the server on the second at which they begin.

use std::time::{Duration, Instant};

use connect::Target;
use serde_json::Value;
use server::ClockReading;
use tokio_postgres::{Error, Statement};

use crate::error::TpsError;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::request::Part;
use crate::run::part_monitor::PartMonitor;
use crate::run::server_clock::instant_of;
use crate::signals::{START, Sign, Signals};

/// Time between two looks at the other parts before the run.
const LOOKS: Duration = Duration::from_millis(50);
/// Time from the choice of the start to the start: all parts learn of it meanwhile.
const LEAD: Duration = Duration::from_secs(1);
/// The same for a part that learns of it too late.
const LATE_LEAD: Duration = Duration::from_millis(50);
/// Time before the start at which the threads are made: they wait for it themselves.
const THREADS: Duration = Duration::from_millis(20);
/// Time for which a part waits without a word.
const SILENCE: Duration = Duration::from_secs(2);

/// The session of a part that waits for the others.
pub(super) struct StartBarrier {
    pub(super) part: Part,
    pub(super) signals: Signals,
    clock: Statement,
}

impl StartBarrier {
    /// Connects, and registers the part.
    ///
    /// # Errors
    /// If the server cannot be asked, a pooler moves sessions, another process is this part, or another part has other
    /// options.
    pub(super) async fn arrive(target: &Target, plan: &Plan, part: &Part) -> Result<Self, TpsError> {
        let signals = Signals::connect(target, part.lock_name()).await?;
        let clock = signals.said(ClockReading::prepare(&signals.connection)).await?;
        if !signals.said(signals.take(Sign::Present(part.number))).await? {
            return Err(TpsError::PartTaken { number: part.number, of: part.of });
        }
        signals.said(signals.share_options(&shared_options(plan))).await?;
        if signals.said(signals.signs()).await?.digests() > 1 {
            return Err(TpsError::PartsDiffer);
        }
        Ok(Self { part: part.clone(), signals, clock })
    }

    /// Waits for all parts, and agrees with them on a second of the server's clock. Returns when it begins.
    ///
    /// # Errors
    /// If parts are missing after the time limit, or the session is lost.
    pub(super) async fn begin(self, observer: &dyn Observer) -> Result<(PartMonitor, Instant), TpsError> {
        let Part { number, of, patience, .. } = self.part;
        let signals = &self.signals;
        signals.said(signals.take(Sign::Ready(number))).await?;
        let (since, mut told) = (Instant::now(), Vec::new());
        loop {
            let signs = signals.said(signals.signs()).await?;
            if let Some(second) = signs.of_start() {
                return self.begin_at(second).await;
            }
            let missing = signs.without(of, Sign::Ready);
            if missing.is_empty() && number == 1 {
                self.choose_start().await?;
                continue;
            }
            let waited = since.elapsed();
            if waited > patience {
                let missing = if missing.is_empty() { vec![1] } else { missing };
                return Err(TpsError::PartsMissing { missing, of, patience });
            }
            if waited > SILENCE && !missing.is_empty() && told != missing {
                observer.waiting(&missing);
                told = missing;
            }
            tokio::time::sleep(LOOKS).await;
        }
    }

    async fn choose_start(&self) -> Result<(), TpsError> {
        let reading = self.signals.said(self.read_clock()).await?;
        let earliest = reading.time_at(Instant::now() + LEAD);
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
        let second = earliest.ceil() as i64;
        self.signals.said(self.signals.take(Sign::Start(second))).await?;
        Ok(())
    }

    async fn begin_at(self, second: i64) -> Result<(PartMonitor, Instant), TpsError> {
        let reading = self.signals.said(self.read_clock()).await?;
        let agreed = nearest(second, reading.time);
        let begin = instant_of(&reading, agreed, LATE_LEAD);
        tokio::time::sleep_until(begin.checked_sub(THREADS).unwrap_or(begin).into()).await;
        // The next barrier with this name must not take the part as ready.
        self.signals.said(self.signals.give_up(Sign::Ready(self.part.number))).await?;
        Ok((PartMonitor::watch(self, reading, agreed), begin))
    }

    /// Reads the server's clock.
    pub(super) async fn read_clock(&self) -> Result<ClockReading, Error> {
        ClockReading::take(&self.signals.connection, &self.clock).await
    }
}

/// The second nearest to `time` that is `second` modulo [`START`].
fn nearest(second: i64, time: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
    let now = time.round() as i64;
    let ahead = (second - now).rem_euclid(START);
    now + if ahead > START / 2 { ahead - START } else { ahead }
}

/// The options that all parts have alike. Seeds, and the names of the files that hold the scripts, may differ.
fn shared_options(plan: &Plan) -> String {
    let mut options = plan.request.document();
    for own in ["part", "seed"] {
        options[own] = Value::Null;
    }
    if let Some(scripts) = options["scripts"].as_array_mut() {
        for script in scripts {
            script["name"] = Value::Null;
        }
    }
    options.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_near() {
        for start in [1_790_000_000, START, 2 * START - 1, 2 * START] {
            for shift in [-3, 0, 2] {
                assert_eq!(nearest(start % START, (start + shift) as f64), start);
            }
        }
    }
}
