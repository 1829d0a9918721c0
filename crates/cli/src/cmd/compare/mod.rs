//! `pgrig compare`: makes verdicts from run documents.

pub(crate) mod args;
mod effects;
mod github;
mod markdown;
pub(crate) mod text;

use std::fs;
use std::path::Path;

use measure::Run;
use measure::compare::{Comparison, Difference, Sides};
use serde_json::{Value, json};

use crate::app::failure::{BadResult, Context, Failure, Usage};
use crate::app::json;
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::plain::plain;
use crate::app::printer::{OutputPosition, Printer};
use crate::app::runs::{Labelled, Selection};
use crate::cmd::compare::args::{CompareArgs, Format, JudgeArgs};
use crate::cmd::compare::effects::Changed;

/// Compares and prints; fails if a verdict of --fail-on occurs.
pub(crate) fn run(arguments: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(file) = arguments.judge.json.as_ref().filter(|file| *file != "-") {
        refuse_unwritable("--json", Path::new(file), Existing::Replaced)?;
    }
    let sides = sides(arguments, printer)?;
    refuse_other_verbs(&sides)?;
    let comparison = Comparison::of(&sides, &arguments.judge.options());
    let hindrances: Vec<&Difference> = comparison.hindrances().collect();
    if !hindrances.is_empty() && !arguments.anyway {
        return Err(Usage(refusal(&hindrances)).into());
    }
    refuse_nothing(&comparison, &arguments.judge)?;
    for difference in &comparison.differences {
        let text = if difference.hinders { "compared despite " } else { "" };
        printer.say(format!("note: {text}{}", github::inert(&plain(&difference.to_string()))));
    }
    if sides.is_apart() {
        printer.say(format!("note: {}", text::apart(&sides)));
    }
    let named = [sides.baseline(), sides.candidate()].map(text::origin);
    let as_text = || text::comparison(&sides, &comparison, &arguments.judge);
    let place = OutputPosition::here();
    show("pgrig compare", [&named[0], &named[1]], &sides, &comparison, &arguments.judge, as_text, printer)?;
    if matches!(arguments.judge.format, Format::Text) {
        printer.remind(place, &text::figures(&comparison))?;
    }
    if let Some(name) = &arguments.judge.json {
        save(name, &document(&sides, &comparison, &arguments.judge))?;
    }
    fail_on(&[&comparison], &effects::of(&sides), &arguments.judge)
}

/// Prints a comparison in the requested format. `title` distinguishes several comparisons; `named`
/// are the names of baseline and candidate.
pub(crate) fn show(
    title: &str,
    named: [&str; 2],
    sides: &Sides,
    comparison: &Comparison,
    judge: &JudgeArgs,
    as_text: impl FnOnce() -> String,
    printer: &Printer,
) -> Result<(), Failure> {
    let markdown = || markdown::comparison(named, sides, comparison, judge);
    match judge.format {
        Format::Text => Ok(printer.result(as_text())?),
        Format::Md => Ok(printer.result(markdown())?),
        Format::Github => {
            github::show(&github::commands(title, sides, comparison, judge), &markdown(), printer)
        }
    }
}

fn sides(arguments: &CompareArgs, printer: &Printer) -> Result<Sides, Failure> {
    let selection = Selection::new(Labelled::Complete, printer)?;
    let side = |one: &Option<String>, several: &[String]| {
        let words: Vec<String> = one.iter().chain(several).cloned().collect();
        let found = selection.documents(&words)?;
        Ok::<Vec<Run>, Failure>(found.into_iter().map(|document| document.run).collect())
    };
    let baseline = side(&arguments.baseline, &arguments.baselines)?;
    let candidate = side(&arguments.candidate, &arguments.candidates)?;
    if let Some(both) = candidate.iter().find(|run| baseline.iter().any(|other| other.id == run.id)) {
        return Err(Usage(format!(
            "run {} is on both sides: give two runs, for example latest~1 latest",
            both.id
        ))
        .into());
    }
    let sides = Sides::new(baseline, candidate).context("each side needs a run")?;
    if arguments.paired { Ok(sides.paired().map_err(|error| Usage(error.to_string()))?) } else { Ok(sides) }
}

/// Most differences that the error lists.
const MOST_HINDRANCES: usize = 10;

/// Refuses runs of different verbs: they have no figure in common.
fn refuse_other_verbs(sides: &Sides) -> Result<(), Usage> {
    let all = || sides.baseline().iter().chain(sides.candidate());
    let Some(first) = all().next() else { return Ok(()) };
    match all().find(|run| run.verb != first.verb) {
        None => Ok(()),
        Some(other) => Err(Usage(format!(
            "run {} is a run of {}, and run {} one of {}: give runs of one command",
            first.id,
            plain(&first.verb),
            other.id,
            plain(&other.verb)
        ))),
    }
}

fn refusal(hindrances: &[&Difference]) -> String {
    let shown = hindrances.iter().take(MOST_HINDRANCES);
    let mut listed: Vec<String> =
        shown.map(|difference| format!("  {}", plain(&difference.to_string()))).collect();
    if hindrances.len() > MOST_HINDRANCES {
        listed.push(format!("  and {} more (--anyway lists all)", hindrances.len() - MOST_HINDRANCES));
    }
    let listed = listed.join("\n");
    format!("these runs are not comparable:\n{listed}\ngive --anyway to compare them anyway")
}

/// Refuses a comparison without a figure to judge.
///
/// # Errors
/// The error lists the figures that the runs have.
pub(crate) fn refuse_nothing(comparison: &Comparison, judge: &JudgeArgs) -> Result<(), Usage> {
    if comparison.compared.is_empty() {
        return Err(Usage(
            "these runs have no common figure: give runs of the same verb (pgrig runs list shows the verbs)"
                .to_owned(),
        ));
    }
    let figures = comparison.compared.iter().map(|one| &one.figure).chain(&comparison.unmeasured);
    let is_known = |name: &&String| figures.clone().any(|figure| figure.is_named(name));
    let unknown = judge.figures.iter().find(|name| !is_known(name));
    let Some(unknown) = unknown else { return Ok(()) };
    let mut names: Vec<&str> = comparison.compared.iter().map(|one| one.figure.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    Err(Usage(format!("these runs have no figure \"{unknown}\"; they have {}", names.join(", "))))
}

/// The document for --json.
pub(crate) fn document(sides: &Sides, comparison: &Comparison, judge: &JudgeArgs) -> Value {
    let ids = |runs: &[Run]| runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>();
    json!({
        "baseline": ids(sides.baseline()),
        "candidate": ids(sides.candidate()),
        "paired": sides.is_paired(),
        "apart": sides.is_apart(),
        "threshold": judge.threshold,
        "differences": comparison.differences,
        "needed": comparison.needed,
        "unmeasured": comparison.unmeasured,
        "compared": comparison.compared,
        "effects": effects::of(sides),
    })
}

/// Writes --json's document.
pub(crate) fn save(name: &str, document: &Value) -> Result<(), Failure> {
    let text = json::pretty(document)?;
    if name == "-" {
        return Ok(Printer::json(&text)?);
    }
    fs::write(name, text + "\n").with_context(|| format!("cannot write --json {name}"))
}

/// Fails if a verdict is one of --fail-on's. `effects` are classes and locks that differ.
pub(crate) fn fail_on(
    comparisons: &[&Comparison],
    effects: &[Changed],
    judge: &JudgeArgs,
) -> Result<(), Failure> {
    let judged = comparisons.iter().flat_map(|comparison| comparison.judged());
    let missed: Vec<String> = judged
        .filter(|(_, verdict)| judge.fails_on(*verdict))
        .map(|(one, verdict)| text::in_words(one, verdict))
        .collect();
    let unmeasured = comparisons.iter().flat_map(|comparison| &comparison.unmeasured);
    let unmeasured = unmeasured.filter(|_| judge.fails_on(measure::Verdict::Inconclusive));
    let of_effects = effects.iter().filter(|one| judge.fails_on(one.verdict)).map(Changed::in_words);
    let missed: Vec<String> = of_effects
        .chain(missed)
        .chain(unmeasured.map(|figure| format!("{} inconclusive: not measurable", figure.full_name())))
        .collect();
    // No line begins with a name from a document: the runner of a CI job may take that for a command.
    let missed: Vec<String> =
        missed.iter().map(|text| format!("--fail-on: {}", github::inert(&plain(text)))).collect();
    if missed.is_empty() { Ok(()) } else { Err(BadResult::Missed(missed).into()) }
}
