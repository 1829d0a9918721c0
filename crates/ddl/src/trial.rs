//! A measurement as trials of a run document.

use measure::{Event, Trial, Unit};

use crate::outcome::{Outcome, Stall, StatementOutcome};

impl Outcome {
    /// A trial of the run document for each statement that ran.
    pub fn trials(&self) -> Vec<Trial> {
        let ran = self.statements.iter().filter(|one| !one.measured.is_empty() || one.failed.is_some());
        ran.map(|one| {
            let mut trial = one.trial(self.advised(one));
            for alternative in self.alternatives.iter().filter(|other| other.number == one.number) {
                let what = serde_json::json!({
                    "event": "alternative",
                    "needs_own_migration": alternative.needs_own_migration,
                    "statements": alternative.statements,
                });
                trial.events.push(Event { at: 0.0, text: "a better way".to_owned(), what });
            }
            for (event, probed) in [("probes", &self.probed), ("probes-blocked", &self.probed_blocked)] {
                if let Some(probed) = probed {
                    let what = serde_json::json!({ "event": event, "probes": probed });
                    trial.events.push(Event { at: 0.0, text: "readers and writers".to_owned(), what });
                }
            }
            trial
        })
        .collect()
    }
}

impl StatementOutcome {
    /// `advised` is the `--up-to` that gives figures which its forecast lacks.
    fn trial(&self, advised: Option<u64>) -> Trial {
        let config = format!("{}: {}", self.number, self.statement.in_one_line());
        let mut trial = Trial { config, ..Trial::default() };
        if let Some(largest) = self.largest() {
            let spreads = [
                ("time", largest.seconds(), Unit::Seconds),
                ("locks-held", largest.held(), Unit::Seconds),
                ("wal", largest.wal(), Unit::Bytes),
            ];
            for (name, spread, unit) in spreads {
                if let Some(spread) = spread {
                    trial.observe(name, spread.median, unit);
                }
            }
        }
        if let Some(space) = self.found.as_ref().map(|found| found.space) {
            #[expect(clippy::cast_precision_loss, reason = "documents have floating numbers")]
            let mut tell = |name: &str, bytes: u64| trial.observe(name, bytes as f64, Unit::Bytes);
            tell("space-files", space.files);
            if let Some(temporary) = space.temporary {
                tell("space-temporary", temporary);
            }
        }
        for (name, stall) in [("stall", &self.stall), ("stall-blocked", &self.blocked)] {
            if let Some(wait) = stall.as_ref().and_then(Stall::longest) {
                trial.observe(name, wait.seconds, Unit::Seconds);
            }
        }
        let mut tell =
            |text: String, what: serde_json::Value| trial.events.push(Event { at: 0.0, text, what });
        if let Some(found) = &self.found {
            tell(found.class.to_string(), serde_json::json!({ "event": "found", "found": found }));
        }
        if let Some(failed) = &self.failed {
            let text = format!("not measurable: {}", failed.message);
            tell(text, serde_json::json!({ "event": "failed", "failed": failed }));
        }
        if !self.measured.is_empty() {
            let text = match self.measured.len() {
                1 => "measured at one size".to_owned(),
                sizes => format!("measured at {sizes} sizes"),
            };
            tell(text, serde_json::json!({ "event": "measured", "sizes": self.measured }));
        }
        for (event, stall) in [("stall", &self.stall), ("stall-blocked", &self.blocked)] {
            if let Some(stall) = stall {
                tell(event.to_owned(), serde_json::json!({ "event": event, "stall": stall }));
            }
        }
        if !self.rowless.is_empty() {
            let what = serde_json::json!({ "event": "rowless", "partitions": self.rowless });
            tell("partitions without generated rows".to_owned(), what);
        }
        if let Some(zone) = &self.zone {
            tell("unknown time zone".to_owned(), serde_json::json!({ "event": "zone", "zone": zone }));
        }
        if !self.thinned.is_empty() {
            let what = serde_json::json!({ "event": "thinned", "tables": self.thinned });
            tell("tables with few rows left".to_owned(), what);
        }
        if let Some(forecast) = &self.forecast {
            let what = serde_json::json!({ "event": "forecast", "forecast": forecast, "up_to": advised });
            tell("forecast".to_owned(), what);
        }
        trial
    }
}
