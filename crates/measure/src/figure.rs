//! The figures of a run: one value each for the whole run, by configuration and name.
//!
//! A run is the unit that is compared: trials of one run share the state of the machine, so more trials make the value
//! steadier but do not tell how much it differs from one run to the next. The value of a run is the median over its
//! trials; `micro` has no trials but rounds, of which it is the trimmed mean.

use serde::{Deserialize, Serialize};

use crate::paired::trimmed_mean;
use crate::run::{Observation, Run, Trial, Unit};
use crate::sample::Sample;

/// Name and unit of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The configuration of the trials.
    pub config: String,
    /// The observation's name, or that of a derived figure: `tps`, `total`, `times`.
    pub name: String,
    /// Unit of the value.
    pub unit: FigureUnit,
}

/// Units of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Number per second; the only unit of which more is better.
    PerSecond,
    /// Seconds for each transaction.
    SecondsPerTransaction,
    /// Bytes for each transaction.
    BytesPerTransaction,
    /// Number per transaction.
    PerTransaction,
    /// Seconds for each row.
    SecondsPerRow,
    /// Bytes for each row.
    BytesPerRow,
    /// Ratio to the first candidate's time.
    Times,
}

/// The better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better: costs such as seconds and bytes.
    Less,
    /// More is better: transactions per second.
    More,
}

/// The figures that are judged by default, for each verb. They are few, because each further figure
/// makes a false verdict more likely, or true differences harder to detect.
const JUDGED: [(&str, &[&str]); 7] = [
    ("tps", &[TPS, "latency-p95"]),
    ("fill", &[TOTAL]),
    ("blockio", &[TOTAL, "create", "scan-first", "cluster"]),
    ("micro", &[TIMES]),
    ("testdb", &[TOTAL, TPS]),
    ("ddl", &["time"]),
    ("backup", &[SIZE, "backup", "restore"]),
];

/// Succeeded transactions by elapsed seconds.
const TPS: &str = "tps";
/// Total seconds of a trial, or the sum over its steps.
const TOTAL: &str = "total";
/// A candidate's own time divided by the first candidate's.
const TIMES: &str = "times";
const SUCCEEDED: &str = "succeeded";
const ELAPSED: &str = "elapsed";
const BLOCKIO: &str = "blockio";
/// The trial of all processes of `blockio` together.
const ALL_PROCESSES: &str = "total";
const MICRO: &str = "micro";
const DDL: &str = "ddl";
const BACKUP: &str = "backup";
/// Bytes of a backup, which are a result.
const SIZE: &str = "size";
/// Event of a statement of `ddl` that does work: others concern only the session or the transaction, or failed.
const FOUND: &str = "found";
/// Configuration of the judged trials of `micro`.
const ROUND: &str = "round";
/// Rows of a round of `micro`.
const ROWS: &str = "rows";
const EMPTY: &str = "empty";
const REPEAT: &str = "repeat";
/// Parts of names of observations in seconds that explain a result but are no result: waits within
/// a step, load of the machine, time that pgrig spent on probes, time that the parts of a fill share.
const EXPLANATIONS: [&str; 6] = ["-read-time", "-write-time", "machine-", "disk-busy", "probing", "shared"];
/// Counts and bytes of `tps` that become figures per transaction.
const PER_TRANSACTION: [&str; 6] =
    ["wal", "disk-reads", "disk-read", "disk-writes", "disk-written", "retries"];

impl Figure {
    /// The better direction.
    pub fn better(&self) -> Better {
        if self.unit == FigureUnit::PerSecond { Better::More } else { Better::Less }
    }

    /// Whether `word` names the figure: its name, with or without `latency-`.
    pub fn is_named(&self, word: &str) -> bool {
        self.name == word || self.name.strip_prefix("latency-") == Some(word)
    }

    /// The configuration and the name.
    pub fn full_name(&self) -> String {
        format!("{}: {}", self.config, self.name)
    }

    fn new(config: &str, name: &str, unit: FigureUnit) -> Self {
        Self { config: config.to_owned(), name: name.to_owned(), unit }
    }
}

/// The figures of a verb that are judged by default. A run with several configurations is judged by one figure in
/// each.
pub(crate) fn judged(verb: &str, figures: &[&Figure]) -> Vec<bool> {
    let names = names_judged(verb);
    let is_matrix = verb == TPS && figures.iter().filter(|figure| figure.name == TPS).nth(1).is_some();
    let is_judged = |figure: &&Figure| {
        let names = if is_matrix { &names[..1] } else { names };
        names.contains(&figure.name.as_str()) && (verb != BLOCKIO || figure.config == ALL_PROCESSES)
    };
    figures.iter().map(is_judged).collect()
}

fn names_judged(verb: &str) -> &'static [&'static str] {
    JUDGED.iter().find(|(judged, _)| *judged == verb).map_or(&[][..], |(_, names)| *names)
}

/// The figures of a run that are judged: those with one of the names, or the default ones if there is no name.
pub fn judged_figures(run: &Run, names: &[String]) -> Vec<(Figure, f64)> {
    judged_among(&run.verb, figures(run), names)
}

/// The judged figures among those of a document of this verb. The default ones are in the order of
/// their importance.
pub fn judged_among(verb: &str, all: Vec<(Figure, f64)>, names: &[String]) -> Vec<(Figure, f64)> {
    let by_default = judged(verb, &all.iter().map(|(figure, _)| figure).collect::<Vec<_>>());
    let is_asked = |(figure, _): &(Figure, f64), default| {
        if names.is_empty() { default } else { names.iter().any(|name| figure.is_named(name)) }
    };
    let asked = all.into_iter().zip(by_default).filter(|(one, default)| is_asked(one, *default));
    let mut asked: Vec<(Figure, f64)> = asked.map(|(one, _)| one).collect();
    if names.is_empty() {
        asked.sort_by_key(|(figure, _)| names_judged(verb).iter().position(|name| *name == figure.name));
    }
    asked
}

/// All figures of a run with their values, in the order of observation. Values are finite, but may
/// be 0 or negative.
pub fn figures(run: &Run) -> Vec<(Figure, f64)> {
    if run.verb == MICRO {
        return of_micro(run);
    }
    let mut all: Vec<(Figure, Vec<f64>)> = Vec::new();
    for trial in &run.trials {
        for (figure, value) in of_trial(&run.verb, trial) {
            match all.iter_mut().find(|(known, _)| *known == figure) {
                Some((_, values)) => values.push(value),
                None => all.push((figure, vec![value])),
            }
        }
    }
    let median = |(figure, values)| Some((figure, Sample::new(values)?.median()));
    all.into_iter().filter_map(median).collect()
}

fn of_trial(verb: &str, trial: &Trial) -> Vec<(Figure, f64)> {
    if verb == DDL && !trial.events.iter().any(|event| event.what["event"] == FOUND) {
        return Vec::new();
    }
    let transactions = trial.value(SUCCEEDED).filter(|_| trial.value(ELAPSED).is_some());
    let named =
        |(name, unit, value): (&str, FigureUnit, f64)| (Figure::new(&trial.config, name, unit), value);
    let observed = trial.observations.iter();
    if let Some(transactions) = transactions {
        return observed.filter_map(|one| of_transactions(one, transactions)).map(named).collect();
    }
    let is_size = |one: &&Observation| verb == BACKUP && one.name == SIZE;
    let size = observed.clone().filter(is_size).map(|one| named((SIZE, FigureUnit::Bytes, one.value)));
    let mut found: Vec<(Figure, f64)> = size.chain(observed.filter_map(seconds_or_wal).map(named)).collect();
    if verb == BLOCKIO {
        let steps = found.iter().filter(|(figure, _)| figure.unit == FigureUnit::Seconds);
        let total = steps.map(|(_, value)| value).sum();
        found.insert(0, named((TOTAL, FigureUnit::Seconds, total)));
    }
    found
}

/// A figure of a trial that counts transactions.
fn of_transactions(observation: &Observation, transactions: f64) -> Option<(&str, FigureUnit, f64)> {
    let Observation { name, value, unit } = observation;
    let each = |unit| (transactions > 0.0).then(|| (name.as_str(), unit, value / transactions));
    match (name.as_str(), unit) {
        // How long a run takes was asked for.
        (ELAPSED, Unit::Seconds) => Some((TPS, FigureUnit::PerSecond, transactions / value)),
        ("client-cpu", Unit::Seconds) => each(FigureUnit::SecondsPerTransaction),
        (name, Unit::Bytes) if PER_TRANSACTION.contains(&name) => each(FigureUnit::BytesPerTransaction),
        (name, _) if name.starts_with("wait-") && name != "wait-samples" => each(FigureUnit::PerTransaction),
        (name, Unit::Count) if PER_TRANSACTION.contains(&name) => each(FigureUnit::PerTransaction),
        _ => seconds_or_wal(observation),
    }
}

/// Figures from seconds that are results, and from WAL.
fn seconds_or_wal(observation: &Observation) -> Option<(&str, FigureUnit, f64)> {
    let Observation { name, value, unit } = observation;
    let explains = EXPLANATIONS.iter().any(|part| name.starts_with(part) || name.ends_with(part));
    let is_wal = name == "wal" || name.ends_with("-wal") && !name.starts_with("predicted");
    match unit {
        Unit::Seconds if !explains => Some((name, FigureUnit::Seconds, *value)),
        Unit::Bytes if is_wal => Some((name, FigureUnit::Bytes, *value)),
        _ => None,
    }
}

/// Figures per row, because pgrig chose the number of timed rows: each candidate's time, and its
/// own time as a multiple of the first candidate's. The own time does not include the empty loop. A
/// candidate that takes no longer than the empty loop has no multiple. The multiple is the one that
/// the run has reported, if it has.
fn of_micro(run: &Run) -> Vec<(Figure, f64)> {
    let rounds: Vec<&Trial> = run.trials.iter().filter(|trial| trial.config == ROUND).collect();
    let Some(first) = rounds.first() else { return Vec::new() };
    let by_row = |round: &Trial, name: &str| Some(round.value(name)? / round.value(ROWS)?);
    let typical = |value: &dyn Fn(&Trial) -> Option<f64>| {
        let values = Sample::new(rounds.iter().filter_map(|round| value(round)).collect())?;
        Some(trimmed_mean(values.values()))
    };
    // Round by round, since a slow phase of the machine slows all of a round.
    let own = |name: &str| {
        let own = typical(&|round| Some(by_row(round, name)? - by_row(round, EMPTY).unwrap_or(0.0)))?;
        (own > 0.0).then_some(own)
    };
    let unmeasurable = unmeasurable(run);
    let is_measurable = |name: &&str| !unmeasurable.contains(name);
    let candidates = names_of_candidates(run);
    let mut found = Vec::new();
    if let Some(first) = candidates.first().filter(|name| is_measurable(name))
        && let Some(baseline) = own(first)
    {
        let ratio = |name: &str| reported(run, first, name).or_else(|| Some(own(name)? / baseline));
        let figure = |name: &&str| Some((Figure::new(name, TIMES, FigureUnit::Times), ratio(name)?));
        found.extend(candidates[1..].iter().filter(|name| is_measurable(name)).filter_map(figure));
    }
    for observation in &first.observations {
        let name = observation.name.as_str();
        let unit = match observation.unit {
            Unit::Seconds if name != REPEAT => FigureUnit::SecondsPerRow,
            Unit::Bytes => FigureUnit::BytesPerRow,
            _ => continue,
        };
        let value = typical(&|round| by_row(round, name));
        found.extend(value.map(|value| (Figure::new(ROUND, name, unit), value)));
    }
    found
}

/// Candidates of a run of `micro` whose own time does not differ from that of the empty loop.
pub fn unmeasurable(run: &Run) -> Vec<&str> {
    let events = run.trials.iter().flat_map(|trial| &trial.events).map(|event| &event.what);
    let those =
        events.filter(|what| what["event"] == "own-time" && what["measurable"].as_bool() == Some(false));
    those.filter_map(|what| what["candidate"].as_str()).collect()
}

/// The multiple that the run has reported in its verdict; none if it had too few rounds for one.
fn reported(run: &Run, first: &str, name: &str) -> Option<f64> {
    let mut events = run.trials.iter().flat_map(|trial| &trial.events).map(|event| &event.what);
    let is_it = |what: &&serde_json::Value| {
        what["event"] == "verdict" && what["candidate"] == name && what["baseline"] == first
    };
    Some(1.0 + events.find(is_it)?["relative"]["value"].as_f64()?)
}

/// Names of the candidates in the order of the request (observations are in random order).
fn names_of_candidates(run: &Run) -> Vec<&str> {
    let candidates = run.request["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    candidates.iter().filter_map(|candidate| candidate["name"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(config: &str, observations: &[(&str, f64, Unit)]) -> Trial {
        let mut trial = Trial { config: config.into(), ..Trial::default() };
        for (name, value, unit) in observations {
            trial.observe(name, *value, *unit);
        }
        trial
    }

    fn named(trial: &Trial, verb: &str) -> Vec<(String, FigureUnit, f64)> {
        let figures = of_trial(verb, trial).into_iter();
        figures.map(|(figure, value)| (figure.name, figure.unit, value)).collect()
    }

    #[test]
    fn costs_of_transactions_are_by_transaction() {
        let trial = trial(
            "tps",
            &[
                ("elapsed", 2.0, Unit::Seconds),
                ("connecting", 0.5, Unit::Seconds),
                ("succeeded", 100.0, Unit::Count),
                ("late", 3.0, Unit::Count),
                ("latency-p95", 0.01, Unit::Seconds),
                ("wait-Lock:tuple", 50.0, Unit::Count),
                ("wait-samples", 70.0, Unit::Count),
                ("wal", 5000.0, Unit::Bytes),
                ("client-cpu", 1.0, Unit::Seconds),
                ("machine-busy", 3.0, Unit::Seconds),
            ],
        );
        let expected = [
            ("tps", FigureUnit::PerSecond, 50.0),
            ("connecting", FigureUnit::Seconds, 0.5),
            ("latency-p95", FigureUnit::Seconds, 0.01),
            ("wait-Lock:tuple", FigureUnit::PerTransaction, 0.5),
            ("wal", FigureUnit::BytesPerTransaction, 50.0),
            ("client-cpu", FigureUnit::SecondsPerTransaction, 0.01),
        ];
        assert_eq!(named(&trial, "tps"), expected.map(|(name, unit, value)| (name.to_owned(), unit, value)));
    }

    #[test]
    fn blockio_has_a_total_of_its_steps() {
        let steps = [
            ("create", 1.0, Unit::Seconds),
            ("create-read-time", 0.5, Unit::Seconds),
            ("create-wal", 10.0, Unit::Bytes),
            ("cluster", 2.0, Unit::Seconds),
        ];
        let found = named(&trial("total", &steps), "blockio");
        assert_eq!(found[0], ("total".to_owned(), FigureUnit::Seconds, 3.0));
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn statements_that_only_begin_or_end_a_transaction_have_no_figures() {
        let mut statement = trial("2: ALTER TABLE t ADD a int", &[("time", 0.1, Unit::Seconds)]);
        assert_eq!(named(&statement, "ddl"), []);
        let what = serde_json::json!({ "event": "found" });
        statement.events.push(crate::run::Event { at: 0.0, text: String::new(), what });
        assert_eq!(named(&statement, "ddl"), [("time".to_owned(), FigureUnit::Seconds, 0.1)]);
        let figures =
            [Figure::new("2", "time", FigureUnit::Seconds), Figure::new("2", "stall", FigureUnit::Seconds)];
        assert_eq!(judged("ddl", &figures.iter().collect::<Vec<_>>()), [true, false]);
    }

    #[test]
    fn the_size_of_a_backup_is_a_figure() {
        let observed = [
            ("backup", 1.0, Unit::Seconds),
            ("size", 7.0, Unit::Bytes),
            ("peak-disk", 9.0, Unit::Bytes),
            ("network-received", 8.0, Unit::Bytes),
        ];
        let found = named(&trial("custom:gzip", &observed), "backup");
        let expected = [("size", FigureUnit::Bytes, 7.0), ("backup", FigureUnit::Seconds, 1.0)];
        assert_eq!(found, expected.map(|(name, unit, value)| (name.to_owned(), unit, value)));
    }

    #[test]
    fn few_figures_are_judged_and_one_in_each_cell_of_a_matrix() {
        let figure = |config: &str, name: &str| Figure::new(config, name, FigureUnit::Seconds);
        let cells =
            [figure("a", "tps"), figure("a", "latency-p95"), figure("a", "connecting"), figure("b", "tps")];
        let judged_of = |verb: &str, figures: &[Figure]| judged(verb, &figures.iter().collect::<Vec<_>>());
        assert_eq!(judged_of("tps", &cells[..3]), [true, true, false]);
        assert_eq!(judged_of("tps", &cells), [true, false, false, true]);
        let steps = [figure("total", "total"), figure("total", "range"), figure("client 1", "total")];
        assert_eq!(judged_of("blockio", &steps), [true, false, false]);
        assert_eq!(judged_of("size", &steps), [false, false, false]);
    }

    #[test]
    fn a_word_names_a_latency_without_its_prefix() {
        let figure = Figure::new("tps", "latency-p99", FigureUnit::Seconds);
        assert!(figure.is_named("p99") && figure.is_named("latency-p99") && !figure.is_named("p9"));
    }
}
