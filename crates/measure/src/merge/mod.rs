//! One document from those of the parts of a run: several processes that put load on one server at the same time.
//!
//! `clock` (the server's time of each moment of a part) → `window` (whole seconds of the server's clock that all parts
//! share) → `trial` (counts and histograms of the increments in it, added). Percentiles are those of one histogram that
//! saw all latencies, not means of percentiles.

mod clock;
mod trial;
mod window;

use std::collections::BTreeSet;
use std::ops::Range;

use failure::{Class, Classified};
use serde_json::{Value, json};

use self::clock::Clock;
use self::trial::PartTrial;
use self::window::Timeline;
use crate::compare::{Difference, differences};
use crate::human::time;
use crate::latencies::LatenciesError;
use crate::run::{Environment, Note, Run, Status, Trial};

/// The verb whose runs can be merged.
const TPS: &str = "tps";
/// Differences of requests that parts may have.
const MAY_DIFFER: [&str; 4] =
    ["request.part.number", "request.seed", "request.seed_chosen", "request.fail_if"];
/// Parts of the request that are added up.
const ADDED: [&str; 3] = ["clients", "jobs", "rate"];
/// Parts of a plan, and of an environment, that have to be the same. Parts may run on different machines.
const SAME: [&str; 5] = ["server version", "server build", "block size", "database", "pgrig"];
/// Starts of the names of differences that may not be.
const SAME_KINDS: [&str; 3] = ["request.", "plan.", "setting "];
/// Difference of the server's start that is no other server, seconds: the readings are the same number.
const SAME_START: f64 = 0.001;

/// One part of a merged run.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedPart {
    /// Its number, from 1.
    pub number: u64,
    /// The id of its run.
    pub id: String,
    /// Measured seconds before and after the time that all parts share, all trials together. They do not count.
    pub cut: (f64, f64),
    /// The greatest error of its readings of the server's clock, seconds.
    pub clock_error: f64,
}

/// A merged run.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The run, with id and start of the first part.
    pub run: Run,
    /// Beginning of the time that counts, by the server's clock, seconds since 1970.
    pub began: f64,
    /// The parts, by number.
    pub parts: Vec<MergedPart>,
    /// Numbers of the parts that are missing.
    pub missing: Vec<u64>,
}

/// Why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// They are not parts of one run: the reasons.
    #[error("these runs cannot be merged:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    /// Latencies cannot be read.
    #[error("run {id}: {source}")]
    Latencies {
        /// The id of the run.
        id: String,
        /// The reason.
        source: LatenciesError,
    },
}

impl Classified for MergeError {
    fn class(&self) -> Class {
        Class::Request
    }
}

/// Merges the parts of a run, in any order.
///
/// # Errors
/// If they are not parts of one run, or measured no whole second at the same time.
pub fn merge(mut runs: Vec<Run>) -> Result<Merged, MergeError> {
    let unfit: Vec<String> = runs.iter().filter_map(unfit).collect();
    refuse(unfit)?;
    runs.sort_by_key(|run| part(run).map(|part| part.0));
    let Some(of) = runs.first().and_then(part).map(|part| part.1) else {
        return Err(MergeError::Refused(vec!["there is no run: give the runs of all parts".to_owned()]));
    };
    refuse(disagreements(&runs))?;
    let known: BTreeSet<u64> = runs.iter().filter_map(part).map(|part| part.0).collect();
    let missing: Vec<u64> = (1..=of).filter(|number| !known.contains(number)).collect();

    let mut parts: Vec<MergedPart> = runs.iter().map(MergedPart::of).collect();
    let (mut trials, mut began) = (Vec::new(), None);
    for number in 0..runs[0].trials.len() {
        let of_parts = runs.iter().map(|run| part_trial(&run.trials[number]));
        let of_parts: Vec<PartTrial<'_>> = of_parts.collect::<Option<_>>().unwrap_or_default();
        let timelines: Vec<&Timeline<'_>> = of_parts.iter().map(|part| &part.timeline).collect();
        let Some(shared) = window::shared(&timelines) else {
            return Err(MergeError::Refused(vec![apart(&runs, &of_parts, number)]));
        };
        for (part, of_part) in parts.iter_mut().zip(&of_parts) {
            part.add(of_part, &shared);
        }
        let latencies = |source| MergeError::Latencies { id: runs[0].id.clone(), source };
        trials.push(trial::merged(&of_parts, &shared).map_err(latencies)?);
        began.get_or_insert(shared.start);
    }
    let notes = notes(&runs, &parts, &missing, of);
    let mut run = runs[0].clone();
    run.label = None;
    run.status = if missing.is_empty() { Status::Done } else { Status::Failed };
    run.request = request(&runs);
    run.plan["merged"] =
        runs.iter().map(|run| json!({ "part": part(run).map(|part| part.0), "id": run.id })).collect();
    run.plan["missing"] = json!(missing);
    run.environment = environment(&runs);
    run.trials = trials;
    run.notes = notes.into_iter().map(|text| Note { text }).collect();
    Ok(Merged { run, began: began.unwrap_or_default(), parts, missing })
}

fn refuse(reasons: Vec<String>) -> Result<(), MergeError> {
    if reasons.is_empty() { Ok(()) } else { Err(MergeError::Refused(reasons)) }
}

/// Number of the part, and number of all parts.
fn part(run: &Run) -> Option<(u64, u64)> {
    let part = &run.request["part"];
    Some((part["number"].as_u64()?, part["of"].as_u64()?))
}

/// The reason why a run cannot be merged with any other.
fn unfit(run: &Run) -> Option<String> {
    let id = &run.id;
    if run.verb != TPS {
        return Some(format!("{id} is a run of {}: merge takes runs of pgrig tps --part only", run.verb));
    }
    if run.plan["merged"].is_array() {
        return Some(format!("{id} is a merged run: give the runs of its parts"));
    }
    if part(run).is_none() {
        let why = "its latencies are recorded for its whole time only, so they cannot be cut to the time that all parts share";
        return Some(format!("{id} was measured without --part: {why}; repeat it with pgrig tps --part I/N"));
    }
    if run.status != Status::Done {
        let status = run.status.name();
        return Some(format!(
            "{id} is {status}: leave it out (the result is then partial), or repeat all parts"
        ));
    }
    let is_whole = !run.trials.is_empty() && run.trials.iter().all(|trial| part_trial(trial).is_some());
    (!is_whole).then(|| {
        format!("{id} has no readings of the server's clock, or no measured second: its notes may give the reason; repeat all parts")
    })
}

fn part_trial(trial: &Trial) -> Option<PartTrial<'_>> {
    let clock = Clock::of(trial).filter(|_| !trial.increments.is_empty())?;
    let timeline = Timeline::new(&trial.increments, &clock);
    Some(PartTrial { trial, clock, timeline })
}

/// Everything in which runs differ, and may not: each compared with the first.
fn disagreements(runs: &[Run]) -> Vec<String> {
    let mut found = Vec::new();
    let (first, others) = (&runs[0], &runs[1..]);
    for (index, run) in runs.iter().enumerate() {
        if let Some(other) =
            runs[..index].iter().find(|other| part(other).map(|part| part.0) == part(run).map(|part| part.0))
        {
            let number = part(run).map_or(0, |part| part.0);
            found.push(if other.id == run.id {
                format!("{} is given twice", run.id)
            } else {
                format!("{} and {} are both part {number}: give one run of each part", other.id, run.id)
            });
        }
        if let Some((number, of)) = part(run).filter(|(number, of)| number > of || *number == 0) {
            found.push(format!("{} is part {number} of {of}", run.id));
        }
    }
    for run in others {
        let all = differences(first, run).into_iter().filter(may_not_be);
        found.extend(all.map(|difference| format!("{} and {} differ in {difference}", first.id, run.id)));
        if first.trials.len() != run.trials.len() {
            let (one, other) = (first.trials.len(), run.trials.len());
            found
                .push(format!("{} and {} differ in the number of trials: {one} → {other}", first.id, run.id));
        }
        let server =
            |run: &Run| run.trials.iter().filter_map(Clock::of).map(|clock| clock.server).collect::<Vec<_>>();
        let (one, other) = (server(first), server(run));
        let is_same = |(one, other): (&(f64, u64), &(f64, u64))| {
            (one.0 - other.0).abs() < SAME_START && one.1 == other.1
        };
        if begun(first).iter().zip(begun(run)).any(|(one, other)| *one != other) {
            let differ =
                "did not begin together, so they are parts of different runs: give the parts of one run";
            found.push(format!("{} and {} {differ}", first.id, run.id));
        }
        if !one.iter().zip(&other).all(is_same) {
            found.push(format!(
                "{} and {} were measured on different servers or databases, or the server was restarted between them",
                first.id, run.id
            ));
        }
    }
    found
}

/// The seconds at which the parts agreed to begin each trial.
fn begun(run: &Run) -> Vec<i64> {
    let events = run.trials.iter().flat_map(|trial| &trial.events);
    events
        .filter(|event| event.what["event"] == "begin")
        .filter_map(|event| event.what["time"].as_i64())
        .collect()
}

fn may_not_be(difference: &Difference) -> bool {
    let what = difference.what.as_str();
    let is_kind = SAME_KINDS.iter().any(|kind| what.starts_with(kind));
    let is_harmless = what.starts_with("setting ") && !difference.hinders;
    SAME.contains(&what) || is_kind && !is_harmless && !MAY_DIFFER.contains(&what)
}

/// The reason why parts share no second.
fn apart(runs: &[Run], parts: &[PartTrial<'_>], trial: usize) -> String {
    let begun = parts.iter().map(|part| part.timeline.span().0).fold(f64::MAX, f64::min);
    let spans = runs.iter().zip(parts).map(|(run, part)| {
        let (from, until) = part.timeline.span();
        format!("{} {:.1} to {:.1} s", run.id, from - begun, until - begun)
    });
    let spans: Vec<String> = spans.collect();
    let trial = if runs[0].trials.len() > 1 { format!("in trial {} ", trial + 1) } else { String::new() };
    format!(
        "{trial}they measured no whole second at the same time ({}): start the parts together, or give a longer -T",
        spans.join(", ")
    )
}

impl MergedPart {
    fn of(run: &Run) -> Self {
        Self {
            number: part(run).map_or(0, |part| part.0),
            id: run.id.clone(),
            cut: (0.0, 0.0),
            clock_error: 0.0,
        }
    }

    fn add(&mut self, part: &PartTrial<'_>, shared: &Range<f64>) {
        let (from, until) = part.timeline.span();
        self.cut.0 += (shared.start - from).max(0.0);
        self.cut.1 += (until - shared.end).max(0.0);
        self.clock_error = self.clock_error.max(part.clock.error);
    }
}

/// The request of all parts together.
fn request(runs: &[Run]) -> Value {
    let mut request = runs[0].request.clone();
    for name in ADDED {
        if runs.iter().all(|run| run.request[name].is_u64()) {
            request[name] = runs.iter().filter_map(|run| run.request[name].as_u64()).sum::<u64>().into();
        } else if runs.iter().all(|run| run.request[name].is_number()) {
            request[name] = runs.iter().filter_map(|run| run.request[name].as_f64()).sum::<f64>().into();
        }
    }
    request["part"] = Value::Null;
    request["fail_if"] = json!([]);
    request
}

/// The environment of all parts: the server is the same, machines are added up.
fn environment(runs: &[Run]) -> Environment {
    let all = || runs.iter().map(|run| &run.environment);
    let mut environment = runs[0].environment.clone();
    let distinct = |of: fn(&Environment) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        all().map(of).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names.join(", ")
    };
    environment.client.system = distinct(|one| &one.client.system);
    environment.client.cpu = distinct(|one| &one.client.cpu);
    environment.client.cores = all().map(|one| one.client.cores).sum();
    environment.client.memory = all().map(|one| one.client.memory).sum();
    environment.server_is_local = environment
        .server_is_local
        .filter(|_| all().all(|one| one.server_is_local == environment.server_is_local));
    environment.data_volume = all().find_map(|one| one.data_volume.clone());
    environment
}

/// Notes on the merging, and those of the parts.
fn notes(runs: &[Run], parts: &[MergedPart], missing: &[u64], of: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if !missing.is_empty() {
        let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let (count, given) = (numbers.len(), parts.len());
        let parts = if count == 1 { "part" } else { "parts" };
        notes.push(format!(
            "the result is partial: {parts} {} of {of} missing; counts and tps are those of the other {given}",
            numbers.join(", ")
        ));
    }
    let error = parts.iter().map(|part| part.clock_error).fold(0.0, f64::max);
    notes.push(format!("the server's clock was read with an error of at most {}", time(error)));
    for (run, part) in runs.iter().zip(parts) {
        notes.extend(run.notes.iter().map(|note| format!("part {}: {}", part.number, note.text)));
    }
    notes
}
