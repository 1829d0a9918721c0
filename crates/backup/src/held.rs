//! The row versions that VACUUM cannot remove because of the snapshot of a dump, under a load.

use measure::Unit;
use serde::Serialize;

/// Seconds of an hour.
pub(crate) const HOUR: f64 = 3600.0;
/// Config of measurements in the run document.
const CONFIG: &str = "snapshot";

/// The row versions that VACUUM could not remove while the snapshot of a dump was open, and could remove after its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Bytes of all tables with their indexes, before the load.
    pub data: u64,
    /// Seconds of the load.
    pub seconds: f64,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Bytes of these versions in tables and TOAST tables, by pgstattuple: with their headers, without alignment and entries of indexes.
    pub dead: u64,
    /// Number of these versions; each part of a value in a TOAST table is one.
    pub rows: u64,
    /// Number of dead versions by the server's statistics (n_dead_tup) while the snapshot was open; none if they did not show the VACUUM.
    pub reported: Option<u64>,
    /// Bytes by which all tables with their indexes had grown when the snapshot ended. New rows of the load are part of it.
    pub growth: u64,
}

impl Held {
    /// Bytes of these versions in an hour of the same load.
    pub fn per_hour(&self) -> f64 {
        self.dead as f64 / self.seconds.max(f64::MIN_POSITIVE) * HOUR
    }

    /// Transactions that succeeded, each second.
    pub fn tps(&self) -> f64 {
        self.transactions as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// A trial of the run document: transactions, bytes and number of the versions, bytes of an hour, growth.
    pub fn document(&self) -> measure::Trial {
        let mut trial = measure::Trial { config: CONFIG.to_owned(), ..measure::Trial::default() };
        trial.observe("transactions", self.transactions as f64, Unit::Count);
        trial.observe("dead", self.dead as f64, Unit::Bytes);
        trial.observe("dead-per-hour", self.per_hour(), Unit::Bytes);
        trial.observe("dead-rows", self.rows as f64, Unit::Rows);
        trial.observe("growth", self.growth as f64, Unit::Bytes);
        trial.observe("data", self.data as f64, Unit::Bytes);
        let what = serde_json::json!({ "event": "snapshot", "snapshot": self });
        trial.events.push(measure::Event { at: self.seconds, text: "snapshot".to_owned(), what });
        trial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_dead_versions_follows_from_the_time_of_the_load() {
        let held = Held {
            data: 1_000_000,
            seconds: 2.0,
            transactions: 10,
            dead: 1200,
            rows: 10,
            reported: Some(11),
            growth: 8192,
        };
        assert!((held.per_hour() - 2.16e6).abs() < 1e-3, "{}", held.per_hour());
        assert!((held.tps() - 5.0).abs() < 1e-9, "{}", held.tps());
        let trial = held.document();
        assert_eq!(trial.config, "snapshot");
        assert_eq!(trial.value("dead-per-hour"), Some(held.per_hour()));
        let expected = [
            ("transactions", 10.0),
            ("dead", 1200.0),
            ("dead-rows", 10.0),
            ("growth", 8192.0),
            ("data", 1e6),
        ];
        for (name, value) in expected {
            assert_eq!(trial.value(name), Some(value), "{name}");
        }
        let event = &trial.events[0];
        assert_eq!(event.what["event"], "snapshot");
        assert_eq!(event.what["snapshot"]["reported"], 11);
        let none = Held { seconds: 0.0, dead: 0, ..held };
        assert!(none.per_hour().abs() < 1e-9, "{}", none.per_hour());
    }
}
