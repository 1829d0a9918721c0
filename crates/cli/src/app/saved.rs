//! Saved runs, found by file, id or label.

use std::fs;
use std::path::{Path, PathBuf};

use glob::Pattern;
use measure::{Run, Status};
use pgserver::Home;
use serde::Deserialize;

use crate::app::failure::{Context, Failure, Usage};
use crate::app::input;
use crate::app::printer::Printer;

/// All that tells a run from others.
#[derive(Deserialize)]
struct Name {
    id: String,
    label: Option<String>,
    status: Status,
}

/// The runs that the words name: each a file, an id, or a label with * and ? for any characters. A label stands for all
/// runs with it that were completed.
///
/// # Errors
/// If a word names no run, or a run is not readable.
pub(crate) fn find(words: &[String], printer: &Printer) -> Result<Vec<Run>, Failure> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut known = None;
    for word in words {
        let found = if Path::new(word).exists() {
            vec![PathBuf::from(word)]
        } else {
            let known = match &mut known {
                Some(known) => known,
                none => none.insert(names(printer)?),
            };
            named(word, known, printer)?
        };
        files.extend(found);
    }
    let mut runs: Vec<Run> = Vec::new();
    for file in files {
        let run = read(&file)?;
        // Two words may name the same run.
        if runs.iter().all(|known| known.id != run.id) {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// The run document in a file.
///
/// # Errors
/// If there is none.
pub(crate) fn read(file: &Path) -> Result<Run, Failure> {
    let name = file.display();
    let text = input::file(file).map_err(|error| Usage(format!("cannot read {name}: {error}")))?;
    Ok(Run::read(&text).map_err(|error| Usage(format!("{name}: {error}")))?)
}

/// The files of the runs with that id or label.
fn named(word: &str, known: &[(Name, PathBuf)], printer: &Printer) -> Result<Vec<PathBuf>, Usage> {
    if word.is_empty() {
        return Err(Usage("a run has an empty name: give a file, an id, or a label".to_owned()));
    }
    let none = || {
        Usage(format!(
            "no run {word}: it is not a file, and no saved run has this id or label (--label names runs)"
        ))
    };
    if let Some((_, file)) = known.iter().find(|(name, _)| name.id == word) {
        return Ok(vec![file.clone()]);
    }
    let pattern = Pattern::new(word).map_err(|error| Usage(format!("{word} is not a pattern: {error}")))?;
    let labelled =
        known.iter().filter(|(name, _)| name.label.as_deref().is_some_and(|label| pattern.matches(label)));
    let (complete, others): (Vec<_>, Vec<_>) = labelled.partition(|(name, _)| name.status == Status::Done);
    if complete.is_empty() {
        return Err(none());
    }
    if !others.is_empty() {
        let count = others.len();
        printer.say(format!("note: {count} of the runs {word} are not complete and are left out"));
    }
    Ok(complete.into_iter().map(|(_, file)| file.clone()).collect())
}

/// Whether a saved run has this label.
///
/// # Errors
/// If the saved runs cannot be listed.
pub(crate) fn has_label(label: &str, printer: &Printer) -> Result<bool, Failure> {
    Ok(names(printer)?.iter().any(|(name, _)| name.label.as_deref() == Some(label)))
}

/// Of all saved runs. Warns of files that are no run documents.
fn names(printer: &Printer) -> Result<Vec<(Name, PathBuf)>, Failure> {
    let directory = Home::locate()?.root().join("runs");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let listing = || format!("cannot list {}", directory.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&directory).with_context(listing)? {
        let path = entry.with_context(listing)?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str::<Name>(&text).ok());
        match name {
            Some(name) => found.push((name, path)),
            None => printer.warn(format!("{} is not a run document and is left out", path.display())),
        }
    }
    found.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
    Ok(found)
}
