//! `pgrig runs export` and `import`: copy documents unchanged from one home to another.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::app::failure::{Context, Failure, MachineFailure, Usage};
use crate::app::output::{Existing, refuse_unwritable, whole};
use crate::app::plain::plain;
use crate::app::printer::Printer;
use crate::app::runs::{Document, Labelled, Selection, Store, in_file, is_id};
use crate::cmd::runs::args::{ExportArgs, ImportArgs};

/// Writes the documents one after the other.
pub(crate) fn export(arguments: &ExportArgs, printer: &Printer) -> Result<(), Failure> {
    let file = &arguments.output;
    let is_to_stdout = file == Path::new("-");
    let existing = if arguments.force { Existing::Replaced } else { Existing::Kept };
    if !is_to_stdout {
        refuse_unwritable("--output", file, existing)?;
    }
    let selection = Selection::new(Labelled::All, printer)?;
    let found = selection.documents(&arguments.runs)?;
    let unlabelled = selection.unlabelled()?;
    if unlabelled > 0 && arguments.runs.iter().any(|word| word == "*") {
        printer.warn(format!(
            "* matches only labels, so pgrig did not export {} without a label: to export them, too, give their ids",
            runs(unlabelled)
        ));
    }
    let line_end = |text: &str| if text.ends_with('\n') { "" } else { "\n" };
    let text: String =
        found.iter().flat_map(|document| [document.text.as_str(), line_end(&document.text)]).collect();
    if is_to_stdout {
        io::stdout().write_all(text.as_bytes())?;
        return Ok(io::stdout().flush()?);
    }
    whole(file, text.as_bytes(), existing).with_context(|| format!("cannot write {}", file.display()))?;
    printer.say(format!("exported {} to {}", runs(found.len()), file.display()));
    Ok(())
}

/// Saves all documents of the files, or none if one of them cannot be saved.
pub(crate) fn import(arguments: &ImportArgs, printer: &Printer) -> Result<(), Failure> {
    let store = Store::locate()?;
    let mut new: Vec<Document> = Vec::new();
    let mut known = 0;
    for file in &arguments.files {
        for document in in_file(file)? {
            let id = &document.run.id;
            let refused = |why: &str| Usage(format!("{}: {why}; nothing is imported", file.display()));
            if !is_id(id) {
                return Err(refused(&format!(
                    "{} is not a run id: give a file that pgrig runs export wrote",
                    plain(id)
                ))
                .into());
            }
            if let Some(same) = new.iter().find(|other| other.run.id == *id) {
                if same.text.trim() != document.text.trim() {
                    return Err(refused(&format!("there are two different documents of run {id}")).into());
                }
            } else if is_saved(&store, &document).map_err(|error| refused(&error))? {
                known += 1;
            } else {
                new.push(document);
            }
        }
    }
    let directory = store.directory();
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {} for run documents", directory.display()))?;
    for document in &new {
        let path = store.path(&document.run.id);
        let written = whole(&path, document.text.as_bytes(), Existing::Kept);
        // Another pgrig imports the same.
        let is_there = || is_saved(&store, document).is_ok_and(|is_saved| is_saved);
        if let Err(error) = written
            && !(error.kind() == io::ErrorKind::AlreadyExists && is_there())
        {
            return Err(MachineFailure(format!("cannot save {}: {error}", path.display())).into());
        }
    }
    let already = if known > 0 { format!("; {} saved already", are(known)) } else { String::new() };
    printer.result(format!("imported {}{already}", runs(new.len())))?;
    Ok(())
}

/// Whether exactly this document is saved already.
///
/// # Errors
/// If the run is saved with another document.
fn is_saved(store: &Store, document: &Document) -> Result<bool, String> {
    let id = &document.run.id;
    let path = store.path(id);
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            Ok(false)
        }
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        Ok(saved) if saved.trim_ascii() == document.text.trim().as_bytes() => Ok(true),
        Ok(_) => Err(format!(
            "a saved run has the id {id} and a different document (to replace it, run pgrig runs rm {id} first)"
        )),
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

fn are(count: usize) -> String {
    if count == 1 { "1 run was".to_owned() } else { format!("{count} runs were") }
}
