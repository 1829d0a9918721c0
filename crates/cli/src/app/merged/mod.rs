//! A run made of those of its parts: merged, saved and printed.

mod text;

use jiff::Timestamp;
use measure::Run;
use measure::merge::{Merged, merge};
use pgserver::Home;

use crate::app::command_line;
use crate::app::failure::{Context, Failure, MachineFailure};
use crate::app::printer::Printer;
use crate::app::runs::{RunFile, identify};

/// Merges the runs, saves the merged run, also as `output`, and prints the result.
///
/// # Errors
/// If they are not parts of one run, the document cannot be saved, or a part is missing.
pub(crate) fn merge_parts(
    parts: Vec<Run>,
    output: Option<&str>,
    label: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    let Merged { mut run, began, parts, missing } = merge(parts)?;
    (run.id, _) = identify(&run.verb);
    run.started_at = started_at(began)?;
    run.command = command_line::of_this_process();
    run.label = label.map(str::to_owned);
    let home = Home::locate()?;
    let mut file = RunFile::new(home.root(), &run.id, output)?;
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
    Err(MachineFailure(format!("the result is partial: {}", text::missing(&missing))).into())
}

/// The start of the time that counts, as documents have it.
fn started_at(seconds: f64) -> Result<String, Failure> {
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
    let whole = seconds as i64;
    Ok(Timestamp::from_second(whole)
        .map_err(|error| MachineFailure(error.to_string()))
        .context("the server's clock")?
        .to_string())
}
