//! The rules that parts of all verbs share: their numbers, the fields that have to be the same, and the environment of all.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{MergeError, MergedPart};
use crate::compare::Difference;
use crate::human::time;
use crate::run::{Environment, Note, Run, Status, Trial};

/// Parts of an environment that have to be the same. Parts may run on different machines.
const SAME: [&str; 5] = ["server version", "server build", "block size", "database", "pgrig"];

/// An error, if there are reasons.
pub(super) fn refuse(reasons: Vec<String>) -> Result<(), MergeError> {
    if reasons.is_empty() { Ok(()) } else { Err(MergeError::Refused(reasons)) }
}

/// Number of the part, and number of all parts.
pub(super) fn part(run: &Run) -> Option<(u64, u64)> {
    let part = &run.request["part"];
    Some((part["number"].as_u64()?, part["of"].as_u64()?))
}

/// Numbers of the parts that are missing.
pub(super) fn missing(runs: &[Run], of: u64) -> Vec<u64> {
    let known: BTreeSet<u64> = runs.iter().filter_map(part).map(|part| part.0).collect();
    (1..=of).filter(|number| !known.contains(number)).collect()
}

/// The reason why a run cannot be merged, whatever its verb.
pub(super) fn is_merged(run: &Run) -> Option<String> {
    let id = &run.id;
    run.plan["merged"].is_array().then(|| format!("{id} is a merged run: give the runs of its parts"))
}

/// Parts that are given twice, or have impossible numbers.
pub(super) fn numbers(runs: &[Run]) -> Vec<String> {
    let mut found = Vec::new();
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
    found
}

/// Whether the difference is one of the server or of pgrig.
pub(super) fn is_of_the_server(difference: &Difference) -> bool {
    SAME.contains(&difference.what.as_str())
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

/// Notes on the merging, and those of the parts. `those` names the results that are those of the parts that are there.
pub(super) fn notes(parts: &[MergedPart], missing: &[u64], those: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if !missing.is_empty() {
        let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let of = parts.len() + missing.len();
        let (lost, are) = if missing.len() == 1 { ("part", "is") } else { ("parts", "are") };
        let others = match parts.len() {
            1 => "the other part".to_owned(),
            given => format!("the other {given} parts"),
        };
        notes.push(format!(
            "the result is partial: {lost} {} of {of} {are} missing; {those} are only those of {others}",
            numbers.join(", ")
        ));
    }
    let error = parts.iter().map(|part| part.clock_error).fold(0.0, f64::max);
    notes.push(format!("the server's clock was read with an error of at most {}", time(error)));
    notes
}

/// Notes of the parts.
pub(super) fn notes_of_parts(runs: &[Run], parts: &[MergedPart]) -> Vec<String> {
    let of = |(run, part): (&Run, &MergedPart)| {
        let number = part.number;
        run.notes.iter().map(|note| format!("part {number}: {}", note.text)).collect::<Vec<_>>()
    };
    runs.iter().zip(parts).flat_map(of).collect()
}

/// The run of all parts, with id and start of the first.
pub(super) fn whole(
    runs: &[Run],
    missing: &[u64],
    request: Value,
    trials: Vec<Trial>,
    notes: Vec<String>,
) -> Run {
    let mut run = runs[0].clone();
    run.label = None;
    run.status = if missing.is_empty() { Status::Done } else { Status::Failed };
    run.request = request;
    run.plan["merged"] =
        runs.iter().map(|run| json!({ "part": part(run).map(|part| part.0), "id": run.id })).collect();
    run.plan["missing"] = json!(missing);
    run.environment = environment(runs);
    run.trials = trials;
    run.notes = notes.into_iter().map(|text| Note { text }).collect();
    run
}
