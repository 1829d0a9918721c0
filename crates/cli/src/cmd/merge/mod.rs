//! `pgrig merge`: makes one run document of those of the parts of a run.

pub(crate) mod args;
mod text;

use std::path::Path;

use jiff::Timestamp;
use measure::Run;
use measure::merge::{Merged, merge};
use pgserver::Home;

use crate::app::command_line;
use crate::app::failure::{Broken, Context, Failure, Usage};
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::printer::Printer;
use crate::app::runs::{Labelled, RunFile, Selection, identify};
use crate::cmd::merge::args::MergeArgs;

/// Merges, saves and prints; fails if a part is missing.
pub(crate) fn run(arguments: &MergeArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(file) = arguments.output.as_ref().filter(|file| *file != "-") {
        refuse_unwritable("-o", Path::new(file), Existing::Replaced)?;
    }
    let Merged { mut run, began, parts, missing } = merge(parts(arguments, printer)?)?;
    (run.id, _) = identify(&run.verb);
    run.started_at = started_at(began)?;
    run.command = command_line::of_this_process();
    run.label.clone_from(&arguments.label);
    let home = Home::locate()?;
    let mut file = RunFile::new(home.root(), &run.id, arguments.output.as_deref())?;
    file.finish(&run)?;
    printer.result(text::result(&run, &parts))?;
    printer.say("");
    for note in &run.notes {
        printer.say(format!("note: {}", note.text));
    }
    printer.say(format!("run document: {}", file.path().display()));
    if missing.is_empty() {
        return Ok(());
    }
    Err(Broken(format!("the result is partial: {}", text::missing(&missing))).into())
}

/// The runs that the words name.
///
/// # Errors
/// If two words name the same run: a part must not count twice.
fn parts(arguments: &MergeArgs, printer: &Printer) -> Result<Vec<Run>, Failure> {
    let selection = Selection::new(Labelled::Complete, printer)?;
    let mut found: Vec<Run> = Vec::new();
    for word in &arguments.runs {
        for document in selection.documents(std::slice::from_ref(word))? {
            if found.iter().any(|known| known.id == document.run.id) {
                let text = format!("run {} is given twice: name each part once", document.run.id);
                return Err(Usage(text).into());
            }
            found.push(document.run);
        }
    }
    Ok(found)
}

/// The start of the time that counts, as documents have it.
fn started_at(seconds: f64) -> Result<String, Failure> {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
    let whole = seconds as i64;
    Ok(Timestamp::from_second(whole)
        .map_err(|error| Broken(error.to_string()))
        .context("the server's clock")?
        .to_string())
}
