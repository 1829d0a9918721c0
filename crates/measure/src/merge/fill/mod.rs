//! Runs of `fill`: the parts of one fill, whenever each of them ran.
//!
//! `load` (the rows of a part, by the server's clock) → `trial` (a table, or all of them: rows added, steps kept) →
//! `refusal` (runs that are no parts of one fill).

mod load;
mod refusal;
mod trial;

use std::ops::Range;

use serde_json::Value;

use self::load::Load;
use self::refusal::Fill;
use self::trial::{PartTrial, Times};
use super::parts::{missing, notes, notes_of_parts, part, refuse, whole};
use super::{MergeError, Merged, MergedPart};
use crate::human::grouped;
use crate::run::{Run, Trial};

/// The trial that sums up the tables of a schema.
const ALL: &str = "all tables";
/// Change of the difference between both clocks by which the server's was set, seconds.
const SET: f64 = 0.5;

/// Merges the parts of a fill, in any order.
///
/// # Errors
/// If they are not parts of one fill.
pub(super) fn merge(mut runs: Vec<Run>) -> Result<Merged, MergeError> {
    refuse(runs.iter().filter_map(refusal::unfit).collect())?;
    runs.sort_by_key(|run| part(run).map(|part| part.0));
    refuse(refusal::disagreements(&runs))?;
    let of = part(&runs[0]).map_or(0, |part| part.1);
    let missing = missing(&runs, of);
    let is_last = |run: &Run| Fill::of(run).is_some_and(|fill| fill.is_last);

    let mut loads = vec![Load::default(); runs.len()];
    let mut trials: Vec<Trial> = Vec::new();
    for config in configs(&runs).iter().filter(|config| *config != ALL) {
        let mut of_table = Vec::new();
        for (run, all) in runs.iter().zip(&mut loads) {
            let found = run.trials.iter().find(|trial| trial.config == *config);
            let Some(found) = found.and_then(|trial| PartTrial::of(trial, is_last(run))) else { continue };
            all.extend(&found.load);
            of_table.push(found);
        }
        trials.push(trial::of_table(config, &of_table));
    }
    let all: Vec<&Load> = loads.iter().collect();
    let times = Times::of(&all);
    if runs.iter().any(|run| run.trials.iter().any(|trial| trial.config == ALL)) {
        let sums: Vec<PartTrial<'_>> = runs
            .iter()
            .filter_map(|run| {
                PartTrial::of(run.trials.iter().find(|trial| trial.config == ALL)?, is_last(run))
            })
            .collect();
        trials.push(trial::of_all(&sums, &trials, &times, &all));
    }
    let parts: Vec<MergedPart> =
        runs.iter().zip(&loads).map(|(run, load)| merged_part(run, load, times.shared.as_ref())).collect();
    let mut texts = notes(&parts, &missing, "rows and times");
    texts.extend(findings(&runs, &parts, &loads, &times));
    texts.extend(notes_of_parts(&runs, &parts));
    let began = times.whole.as_ref().map_or_else(|| first_reading(&runs), |whole| whole.start);
    let mut request = runs[0].request.clone();
    request["part"] = Value::Null;
    let run = whole(&runs, &missing, request, trials, texts);
    Ok(Merged { run, began, parts, missing })
}

/// The configurations of all trials, in order.
fn configs(runs: &[Run]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for trial in runs.iter().flat_map(|run| &run.trials) {
        if !found.contains(&trial.config) {
            found.push(trial.config.clone());
        }
    }
    found
}

fn merged_part(run: &Run, load: &Load, shared: Option<&Range<f64>>) -> MergedPart {
    let mut part = MergedPart::of(run);
    if let (Some(span), Some(shared)) = (load.span(), shared) {
        part.cut = (shared.start - span.start, span.end - shared.end);
    }
    part.clock_error = refusal::clocks(run).iter().map(|clock| clock.error).fold(0.0, f64::max);
    let of_tables = run.trials.iter().filter(|trial| trial.config != ALL);
    part.rows = Some(of_tables.filter_map(|trial| trial.value("rows")).sum());
    part
}

/// The server's time of the first reading of any part.
fn first_reading(runs: &[Run]) -> f64 {
    runs.iter().flat_map(refusal::clocks).map(|clock| clock.time(0.0)).reduce(f64::min).unwrap_or_default()
}

/// Limits of the result.
fn findings(runs: &[Run], parts: &[MergedPart], loads: &[Load], times: &Times) -> Vec<String> {
    let mut found = Vec::new();
    let numbers = |is_one: &dyn Fn(usize) -> bool| {
        let numbers = (0..parts.len()).filter(|at| is_one(*at)).map(|at| parts[at].number.to_string());
        numbers.collect::<Vec<String>>()
    };
    let empty = numbers(&|at| loads[at].span().is_none());
    if !empty.is_empty() {
        let word = if empty.len() == 1 { "part" } else { "parts" };
        found.push(format!("{word} {} loaded no rows", empty.join(", ")));
    }
    if let (Some(whole), None) = (&times.whole, &times.shared) {
        let spans = parts.iter().zip(loads).filter_map(|(part, load)| {
            let span = load.span()?;
            let [from, until] = [span.start, span.end].map(|at| at - whole.start);
            Some(format!("part {} {from:.1} to {until:.1} s", part.number))
        });
        let spans: Vec<String> = spans.collect();
        found.push(format!(
            "there is no rate: the parts did not load rows at the same time for a second ({})",
            spans.join(", ")
        ));
    }
    let set = numbers(&|at| refusal::clocks(&runs[at]).iter().any(|clock| clock.change() > SET));
    if !set.is_empty() {
        let word = if set.len() == 1 { "part" } else { "parts" };
        found.push(format!(
            "the server's clock was set while {word} {} ran: times and rates are not exact",
            set.join(", ")
        ));
    }
    let loaded: f64 = parts.iter().filter_map(|part| part.rows).sum();
    let wanted = rows_of_plan(&runs[0]);
    if let Some(wanted) = wanted.filter(|wanted| (wanted - loaded).abs() > 0.5) {
        let [loaded_text, wanted_text] = [loaded, wanted].map(count);
        found.push(if loaded > wanted {
            format!(
                "the parts loaded {loaded_text} rows, more than the fill has ({wanted_text}): some rows were lost, and a part loaded them again"
            )
        } else {
            format!(
                "the parts loaded {loaded_text} of {wanted_text} rows: other runs loaded the rest, or the fill is not complete; a run that was \
                 killed or interrupted records no rows"
            )
        });
    }
    if !runs.iter().any(|run| Fill::of(run).is_some_and(|fill| fill.is_last)) {
        found.push(
            "none of these runs carried out the steps after the rows: another run did, or the fill is not complete"
                .to_owned(),
        );
    }
    let settings = refusal::settings(runs);
    if !settings.is_empty() {
        found.push(format!("the server's settings were changed between the parts: {}", settings.join(", ")));
    }
    found
}

/// Rows of the whole fill, if its plan has their number.
fn rows_of_plan(run: &Run) -> Option<f64> {
    match run.plan["tables"].as_array() {
        Some(tables) => tables.iter().map(|table| table["rows"].as_f64()).sum(),
        None => run.plan["chunking"]["rows"].as_f64(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
fn count(rows: f64) -> String {
    grouped(rows.round() as u64)
}
