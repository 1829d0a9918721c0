//! One table of all parts, and all tables together.

use std::ops::Range;

use super::super::clock::Clock;
use super::ALL;
use super::load::{self, Load};
use super::refusal::PART;
use crate::run::{Event, Observation, Trial, Unit};

/// Step in which rows are loaded.
const GENERATE: &str = "generate";
/// Sum of all steps.
const TOTAL: &str = "total";
/// Amounts of each part that are added.
const ADDED: [&str; 3] = ["rows", "client-cpu", "probing"];
/// WAL of the server.
const WAL: &str = "wal";
/// Time in which all parts loaded rows, and the rows of this time.
const SHARED: &str = "shared";
const SHARED_ROWS: &str = "shared-rows";

/// One part's trial.
pub(super) struct PartTrial<'a> {
    trial: &'a Trial,
    clock: Clock,
    pub(super) load: Load,
    /// Whether the part ran the steps after the rows.
    is_last: bool,
}

/// The times in which parts loaded rows, by the server's clock.
pub(super) struct Times {
    /// From the first row to the last; none if there are no rows.
    pub(super) whole: Option<Range<f64>>,
    /// When all did.
    pub(super) shared: Option<Range<f64>>,
}

impl Times {
    pub(super) fn of(loads: &[&Load]) -> Self {
        Self { whole: load::whole(loads), shared: load::shared(loads) }
    }
}

impl<'a> PartTrial<'a> {
    /// None if the server's clock was not read.
    pub(super) fn of(trial: &'a Trial, is_last: bool) -> Option<Self> {
        let clock = Clock::of(trial)?;
        let load = Load::of(trial, &clock);
        Some(Self { trial, clock, load, is_last })
    }

    /// Positions in the server's WAL between which it worked on the table.
    fn wal(&self) -> Vec<[f64; 2]> {
        let event = self.trial.events.iter().find(|event| event.what["event"] == PART);
        let positions = event.and_then(|event| event.what["wal"].as_array());
        let pair = |pair: &serde_json::Value| Some([pair[0].as_f64()?, pair[1].as_f64()?]);
        positions.map_or(Vec::new(), |all| all.iter().filter_map(pair).collect())
    }
}

/// The trial of a table, from those of its parts.
pub(super) fn of_table(config: &str, parts: &[PartTrial<'_>]) -> Trial {
    let loads: Vec<&Load> = parts.iter().map(|part| &part.load).collect();
    let times = Times::of(&loads);
    let mut trial = Trial { config: config.to_owned(), ..Trial::default() };
    let mut total = 0.0;
    for Observation { name, unit, .. } in named(parts) {
        let values = || parts.iter().filter_map(|part| part.trial.value(name));
        let value = match name.as_str() {
            TOTAL => continue,
            GENERATE => times.whole.as_ref().map_or(0.0, |whole| whole.end - whole.start),
            WAL => union(parts.iter().flat_map(PartTrial::wal).collect()),
            name if ADDED.contains(&name) || *unit == Unit::Seconds => values().sum(),
            // The size of the tables, and what the last part found.
            name => of_the_last(parts, name),
        };
        if *unit == Unit::Seconds && !ADDED.contains(&name.as_str()) {
            total += value;
        }
        trial.observe(name, value, *unit);
    }
    let at = trial.observations.iter().position(|one| ADDED.contains(&one.name.as_str()));
    let sum = Observation { name: TOTAL.to_owned(), value: total, unit: Unit::Seconds };
    trial.observations.insert(at.unwrap_or(trial.observations.len()), sum);
    with_rate(&mut trial, &times, &loads);
    if let Some(whole) = &times.whole {
        trial.events = parts.iter().flat_map(|part| events(part, whole.start)).collect();
        trial.events.sort_by(|one, other| one.at.total_cmp(&other.at));
    }
    trial
}

/// All tables. `tables` are their merged trials.
pub(super) fn of_all(parts: &[PartTrial<'_>], tables: &[Trial], times: &Times, loads: &[&Load]) -> Trial {
    let mut trial = Trial { config: ALL.to_owned(), ..Trial::default() };
    for Observation { name, unit, .. } in named(parts) {
        let values = || parts.iter().filter_map(|part| part.trial.value(name));
        let of_tables = || tables.iter().filter_map(|table| table.value(name));
        let value = match name.as_str() {
            TOTAL => {
                let began = parts.iter().map(|part| part.clock.time(0.0)).reduce(f64::min);
                let end = |part: &PartTrial<'_>| part.clock.time(part.trial.value(TOTAL).unwrap_or_default());
                let ended = parts.iter().map(end).reduce(f64::max);
                began.zip(ended).map_or(0.0, |(began, ended)| ended - began)
            }
            _ if *unit == Unit::Seconds => values().sum(),
            _ => of_tables().sum(),
        };
        trial.observe(name, value, *unit);
    }
    with_rate(&mut trial, times, loads);
    trial
}

/// The names of all observations, in the order of the parts.
fn named<'p>(parts: &'p [PartTrial<'_>]) -> Vec<&'p Observation> {
    let mut found: Vec<&Observation> = Vec::new();
    for observation in parts.iter().flat_map(|part| &part.trial.observations) {
        if !found.iter().any(|known| known.name == observation.name) {
            found.push(observation);
        }
    }
    found
}

/// The value of the part that ran the steps after the rows; else the greatest.
fn of_the_last(parts: &[PartTrial<'_>], name: &str) -> f64 {
    let last = parts.iter().find(|part| part.is_last).and_then(|part| part.trial.value(name));
    let greatest = || parts.iter().filter_map(|part| part.trial.value(name)).fold(0.0, f64::max);
    last.unwrap_or_else(greatest)
}

/// The length of all these, which may overlap.
fn union(mut all: Vec<[f64; 2]>) -> f64 {
    all.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let (mut sum, mut reached) = (0.0, f64::MIN);
    for [from, until] in all {
        sum += (until - from.max(reached)).max(0.0);
        reached = reached.max(until);
    }
    sum
}

/// Adds the rows of each second, and those of the time that all share.
fn with_rate(trial: &mut Trial, times: &Times, loads: &[&Load]) {
    if let Some(shared) = &times.shared {
        trial.observe(SHARED, shared.end - shared.start, Unit::Seconds);
        trial.observe(SHARED_ROWS, loads.iter().map(|load| load.rows_in(shared)).sum(), Unit::Rows);
    }
    if let Some(whole) = &times.whole {
        trial.series.push(load::series(loads, whole));
    }
}

/// The events of a part's fill.
fn events(part: &PartTrial<'_>, began: f64) -> Vec<Event> {
    let is_of_the_fill = |event: &&Event| event.what["event"] != PART && !Clock::is_reading(event);
    let shifted = |event: &Event| Event { at: part.clock.time(event.at) - began, ..event.clone() };
    part.trial.events.iter().filter(is_of_the_fill).map(shifted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_of_the_same_time_counts_once() {
        assert!((union(vec![[5.0, 9.0], [0.0, 4.0], [2.0, 6.0], [3.0, 4.0]]) - 9.0).abs() < 1e-9);
        assert!(union(Vec::new()).abs() < 1e-9);
    }
}
