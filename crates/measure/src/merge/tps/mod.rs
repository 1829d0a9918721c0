//! Runs of `tps`: counts and histograms of the increments in the time that all parts share.

mod trial;
mod window;

use std::ops::Range;

use serde_json::{Value, json};

use self::trial::PartTrial;
use self::window::Timeline;
use super::clock::Clock;
use super::parts::{
    is_merged, is_of_the_server, missing, notes, notes_of_parts, numbers, part, refuse, whole,
};
use super::{MergeError, Merged, MergedPart};
use crate::compare::{Difference, differences};
use crate::run::{Run, Status, Trial};

/// Differences of requests that parts may have.
const MAY_DIFFER: [&str; 4] =
    ["request.part.number", "request.seed", "request.seed_chosen", "request.fail_if"];
/// Parts of the request that are added up.
const ADDED: [&str; 3] = ["clients", "jobs", "rate"];
/// Starts of the names of differences that may not be.
const SAME_KINDS: [&str; 3] = ["request.", "plan.", "setting "];
/// Difference of the server's start that is no other server, seconds: the readings are the same number.
const SAME_START: f64 = 0.001;

/// Merges the parts of a run, in any order.
///
/// # Errors
/// If they are not parts of one run, or measured no whole second at the same time.
pub(super) fn merge(mut runs: Vec<Run>) -> Result<Merged, MergeError> {
    let unfit: Vec<String> = runs.iter().filter_map(unfit).collect();
    refuse(unfit)?;
    runs.sort_by_key(|run| part(run).map(|part| part.0));
    let Some(of) = runs.first().and_then(part).map(|part| part.1) else {
        return Err(MergeError::Refused(vec!["there is no run: give the runs of all parts".to_owned()]));
    };
    refuse(disagreements(&runs))?;
    let missing = missing(&runs, of);

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
    let mut all = notes(&parts, &missing, "counts and tps");
    all.extend(notes_of_parts(&runs, &parts));
    let run = whole(&runs, &missing, request(&runs), trials, all);
    Ok(Merged { run, began: began.unwrap_or_default(), parts, missing })
}

/// The reason why a run cannot be merged with any other.
fn unfit(run: &Run) -> Option<String> {
    let id = &run.id;
    if let Some(why) = is_merged(run) {
        return Some(why);
    }
    if part(run).is_none() {
        let why = "its document has the latencies of the whole run, and merge needs those of each second";
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
    let mut found = numbers(runs);
    let (first, others) = (&runs[0], &runs[1..]);
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
    is_of_the_server(difference) || is_kind && !is_harmless && !MAY_DIFFER.contains(&what)
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
