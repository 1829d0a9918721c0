//! Tables without a reader or writer, readers and writers that failed, and statements that failed beside them: there, short waits prove nothing.

use measure::Run;
use serde_json::Value;

use super::Statement;
use crate::sections::tps::text;

/// The runs with readers and writers: the event with those, and its remark.
const RUNS: [(&str, &str); 2] = [("probes", ""), ("probes-blocked", " in the run with --blocker")];

/// A sentence for each of these.
pub(super) fn sentences(run: &Run, statements: &[Statement]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (event, behind) in RUNS {
        let mut events = run.trials.iter().flat_map(|trial| &trial.events);
        // Each trial has the same.
        let Some(probes) = events.find(|one| one.what["event"] == event) else { continue };
        let all = |name: &str| probes.what["probes"][name].as_array().into_iter().flatten();
        let unprobed = all("unprobed").map(|table| format!("Not probed: {}.", text(table)));
        found.extend(unprobed.chain(all("stopped").map(|one| stopped(one, behind))));
    }
    for (behind, of) in [("", false), (" with --blocker", true)] {
        for one in statements {
            let stall = if of { one.blocked } else { one.stall };
            let Some(failed) = stall.and_then(|stall| stall["failed"].as_str()) else { continue };
            found.push(format!(
                "In the run beside readers and writers{behind}, {} failed: {failed}. Its waits are those before the failure.",
                one.short()
            ));
        }
    }
    // Both runs have the same tables.
    let mut told: Vec<String> = Vec::new();
    for sentence in found {
        if !told.contains(&sentence) {
            told.push(sentence);
        }
    }
    told
}

/// A sentence on a reader or writer that failed.
fn stopped(one: &Value, behind: &str) -> String {
    let who = if one["kind"] == "write" { "writer" } else { "reader" };
    let at = one["number"].as_u64().map_or_else(String::new, |number| format!(" at statement {number}"));
    format!("The {who} of {} failed{at}{behind}: {}.", text(&one["name"]), text(&one["message"]))
}

/// The remark beside a wait in the table of statements; empty if there is none.
pub(super) fn remark(stall: Option<&Value>) -> String {
    let Some(stall) = stall else { return String::new() };
    let kept = stall["counts_for"].as_u64();
    let kept =
        kept.map(|number| format!("waits for a lock that statement {number} holds count for that statement"));
    let failed = stall["failed"].is_string().then(|| "the statement failed".to_owned());
    let has_deadlock = stall["deadlocks"].as_array().is_some_and(|lost| !lost.is_empty());
    let deadlock = has_deadlock.then(|| "readers or writers failed because of a deadlock".to_owned());
    let parts: Vec<String> = kept.into_iter().chain(deadlock).chain(failed).collect();
    if parts.is_empty() { String::new() } else { format!("({})", parts.join("; ")) }
}
