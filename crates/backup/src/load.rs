//! A load of transactions, and the WAL that it writes.

use std::time::Duration;

use measure::{Sample, Unit};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tps::Length;

use crate::way::Method;

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Config of measurements in the run document.
const CONFIG: &str = "wal";

/// Transactions at a rate, for some time.
#[derive(Clone, Debug)]
pub struct Load {
    /// Scripts, clients, rate and time.
    pub request: tps::Request,
}

impl Load {
    /// Names of its scripts, with commas between them.
    pub fn script(&self) -> String {
        let mut names = Vec::new();
        for source in &self.request.sources {
            names.push(source.name());
        }
        names.join(", ")
    }

    /// Transactions that are scheduled each second; 0 without a rate.
    pub fn rate(&self) -> f64 {
        self.request.rate.unwrap_or_default()
    }

    /// Its duration; zero if its length is a number of transactions.
    pub fn time(&self) -> Duration {
        match self.request.length {
            Length::Time(time) => time,
            Length::Transactions(_) => Duration::ZERO,
        }
    }

    /// One transaction of each of the scripts, without a rate.
    pub(crate) fn once(&self) -> Vec<tps::Request> {
        let mut all = Vec::new();
        for source in &self.request.sources {
            all.push(tps::Request {
                sources: vec![source.clone()],
                clients: 1,
                jobs: 1,
                length: Length::Transactions(1),
                rate: None,
                latency_limit: None,
                ..self.request.clone()
            });
        }
        all
    }

    /// The same transactions with other random numbers, after so many loads.
    pub(crate) fn after(&self, loads: u64) -> Self {
        let seed = self.request.seed.wrapping_add(loads);
        Self { request: tps::Request { seed, ..self.request.clone() } }
    }

    /// The same transactions for another time.
    pub(crate) fn lasting(&self, time: Duration) -> tps::Request {
        tps::Request { length: Length::Time(time), ..self.request.clone() }
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut load = serializer.serialize_struct("Load", 5)?;
        load.serialize_field("script", &self.script())?;
        load.serialize_field("rate", &self.rate())?;
        load.serialize_field("clients", &self.request.clients)?;
        load.serialize_field("seconds", &self.time().as_secs_f64())?;
        load.serialize_field("seed", &self.request.seed)?;
        load.end()
    }
}

/// The WAL that a load wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WalOfLoad {
    /// Bytes of all tables with their indexes, before it.
    pub data: u64,
    /// Seconds of the load.
    pub seconds: f64,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Bytes of WAL.
    pub bytes: u64,
    /// Bytes of WAL in the segments that were compressed.
    pub sample: u64,
    /// These segments, compressed by each program that is installed.
    pub compressed: Vec<Compressed>,
}

/// Segments of WAL, each compressed alone, as an archive does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressed {
    /// The program, with its default level.
    pub method: Method,
    /// Bytes of all files.
    pub bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Serialize for Compressed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut compressed = serializer.serialize_struct("Compressed", 3)?;
        compressed.serialize_field("method", self.method.name())?;
        compressed.serialize_field("bytes", &self.bytes)?;
        compressed.serialize_field("seconds", &self.seconds)?;
        compressed.end()
    }
}

impl WalOfLoad {
    /// Bytes of WAL in a day of the same load.
    pub fn per_day(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(f64::MIN_POSITIVE) * DAY
    }

    /// The part of its size that is left by this program.
    pub fn ratio(&self, method: Method) -> Option<f64> {
        let found = self.compressed.iter().find(|one| one.method == method)?;
        Some(found.bytes as f64 / self.sample.max(1) as f64)
    }

    /// Transactions that succeeded, each second.
    pub fn tps(&self) -> f64 {
        self.transactions as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// A trial of the run document: transactions, bytes of WAL, bytes of WAL in a day.
    pub fn document(&self) -> measure::Trial {
        let mut trial = measure::Trial { config: CONFIG.to_owned(), ..measure::Trial::default() };
        trial.observe("transactions", self.transactions as f64, Unit::Count);
        trial.observe("wal", self.bytes as f64, Unit::Bytes);
        trial.observe("wal-per-day", self.per_day(), Unit::Bytes);
        for one in &self.compressed {
            let ratio = self.ratio(one.method).unwrap_or_default();
            let name = one.method.name();
            trial.observe(&format!("wal-per-day-{name}"), self.per_day() * ratio, Unit::Bytes);
        }
        trial.observe("data", self.data as f64, Unit::Bytes);
        let what = serde_json::json!({ "event": "wal", "wal": self });
        trial.events.push(measure::Event { at: self.seconds, text: "wal".to_owned(), what });
        trial
    }
}

/// Median, least and greatest value; none without values.
pub(crate) fn spread(values: Vec<f64>) -> Option<(f64, f64, f64)> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let median = measure::Median::of(&Sample::new(values)?).median;
    Some((median, least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_is_tried_once_without_a_rate() {
        let [one, other] = ["a.sql", "b.sql"].map(|name| script::Source::file(name, "SELECT 1", 1));
        let request = tps::Request {
            clients: 8,
            jobs: 2,
            rate: Some(0.01),
            ..tps::Request::of(one, Length::Time(Duration::from_mins(1)))
        };
        let mut load = Load { request };
        load.request.sources.push(other);
        let tried = load.once();
        let names: Vec<&str> = tried.iter().map(|request| request.sources[0].name()).collect();
        assert_eq!(names, ["a.sql", "b.sql"]);
        assert!(tried.iter().all(|request| request.sources.len() == 1 && request.rate.is_none()));
    }

    #[test]
    fn each_load_has_a_seed_of_its_own() {
        let source = script::Source::file("a.sql", "SELECT 1", 1);
        let request =
            tps::Request { seed: u64::MAX, ..tps::Request::of(source, Length::Time(Duration::from_mins(1))) };
        let load = Load { request };
        let seeds = [0, 1, 2].map(|loads| load.after(loads).request.seed);
        assert_eq!(seeds, [u64::MAX, 0, 1]);
    }

    #[test]
    fn a_day_of_wal_follows_from_its_time() {
        let compressed = vec![Compressed { method: Method::Gzip, bytes: 250, seconds: 0.1 }];
        let wal =
            WalOfLoad { data: 1, seconds: 2.0, transactions: 10, bytes: 2000, sample: 1000, compressed };
        assert!((wal.per_day() - 86.4e6).abs() < 1e-3, "{}", wal.per_day());
        assert_eq!((wal.ratio(Method::Gzip), wal.ratio(Method::Zstd)), (Some(0.25), None));
        let trial = wal.document();
        assert_eq!(trial.value("wal-per-day-gzip"), Some(wal.per_day() / 4.0));
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0)));
        assert_eq!(spread(Vec::new()), None);
    }
}
