//! `pgrig compare`: two run documents in, verdicts out.

use std::fs;
use std::path::Path;

use anyhow::Context;
use measure::Run;
use measure::compare::{Comparison, Difference};
use serde_json::json;

use super::compare_text;
use crate::args::CompareArgs;
use crate::exit::{Unhappy, Usage};
use crate::input;
use crate::printer::Printer;

/// Compares, prints, and fails if that was asked for.
pub(crate) fn run(arguments: &CompareArgs, printer: &Printer) -> anyhow::Result<()> {
    let [baseline, candidate] = [read(&arguments.baseline)?, read(&arguments.candidate)?];
    let comparison = Comparison::of(&baseline, &candidate, arguments.threshold);
    let hindrances: Vec<&Difference> = comparison.hindrances().collect();
    if !hindrances.is_empty() && !arguments.anyway {
        return Err(Usage(refusal(&hindrances)).into());
    }
    if comparison.compared.is_empty() {
        return Err(Usage("these runs have no figure in common".to_owned()).into());
    }
    printer.result(compare_text::comparison(&baseline, &candidate, &comparison))?;
    for difference in &comparison.differences {
        let text = if difference.hinders { "the runs do not compare: " } else { "" };
        printer.say(format!("note: {text}{difference}"));
    }
    if let Some(name) = &arguments.json {
        save(name, &baseline, &candidate, arguments.threshold, &comparison)?;
    }
    let judged_so = |compared: &&measure::compare::Compared| {
        arguments.fail_on.iter().any(|verdict| verdict.verdict() == compared.change.verdict)
    };
    let missed: Vec<String> =
        comparison.compared.iter().filter(judged_so).map(compare_text::in_words).collect();
    if missed.is_empty() { Ok(()) } else { Err(Unhappy::Missed(missed).into()) }
}

fn read(file: &Path) -> anyhow::Result<Run> {
    let name = file.display();
    let text = input::file(file).map_err(|error| Usage(format!("cannot read {name}: {error}")))?;
    Ok(Run::read(&text).map_err(|error| Usage(format!("{name}: {error}")))?)
}

fn refusal(hindrances: &[&Difference]) -> String {
    let listed: Vec<String> = hindrances.iter().map(|difference| format!("  {difference}")).collect();
    let listed = listed.join("\n");
    format!("these runs do not compare:\n{listed}\ngive --anyway to compare them all the same")
}

fn save(
    name: &str,
    baseline: &Run,
    candidate: &Run,
    threshold: f64,
    comparison: &Comparison,
) -> anyhow::Result<()> {
    let document = json!({
        "baseline": baseline.id,
        "candidate": candidate.id,
        "threshold": threshold,
        "differences": comparison.differences,
        "compared": comparison.compared,
    });
    let text = serde_json::to_string_pretty(&document)?;
    if name == "-" {
        return Ok(Printer::json(&text)?);
    }
    fs::write(name, text + "\n").with_context(|| format!("cannot write --json {name}"))
}
