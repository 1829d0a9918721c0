//! `pgrig runs rm` and `prune`.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use measure::human::bytes;

use crate::app::failure::{Context, Failure, Usage};
use crate::app::printer::Printer;
use crate::app::runs::{Labelled, Saved, Selection, Store, figures, is_id};
use crate::cmd::runs::args::{PruneArgs, RmArgs};
use crate::cmd::runs::list;

/// Age from which a partial document is a leftover of a killed pgrig: writing one takes seconds.
const HALF_WRITTEN: Duration = Duration::from_hours(24);
/// Suffix of a document that is being written.
const PARTIAL: &str = ".partial";

/// Removes the runs that the words name.
pub(crate) fn run(arguments: &RmArgs, printer: &Printer) -> Result<(), Failure> {
    let selection = Selection::new(Labelled::All, printer)?;
    let found = selection.saved(&arguments.runs)?;
    if let Some(running) = found.iter().find(|saved| saved.is_running()) {
        let text = format!(
            "run {} is still running: wait for its end, then repeat the command. pgrig removed nothing",
            running.head.id
        );
        return Err(Usage(text).into());
    }
    for saved in found {
        let removed = if remove(saved)? { "removed" } else { "another process removed" };
        printer.result(format!("{removed} {}", saved.head.id))?;
    }
    Ok(())
}

/// Removes old runs.
pub(crate) fn prune(arguments: &PruneArgs, printer: &Printer) -> Result<(), Failure> {
    let store = Store::locate()?;
    let all = store.all(printer)?;
    let old: Vec<&Saved> =
        old(arguments, &all)?.into_iter().filter(|saved| is_whole(saved, printer)).collect();
    if arguments.explain {
        if !old.is_empty() {
            list::show(&old, &all, printer)?;
        }
        let kept = all.len() - old.len();
        printer.say(format!("pgrig would remove {} and keep {kept}", counted(&old)));
        return Ok(());
    }
    let mut removed = Vec::new();
    for saved in &old {
        if remove(saved)? {
            removed.push(*saved);
        }
    }
    let partial = remove_half_written(store.directory())?;
    let kept = all.iter().filter(|saved| saved.path.symlink_metadata().is_ok()).count();
    printer.result(format!("removed {}, kept {kept}", counted(&removed)))?;
    if partial > 0 {
        printer.say(format!(
            "removed {} of killed pgrig processes",
            measure::human::counted(partial as u64, "incomplete document")
        ));
    }
    Ok(())
}

/// Number and size of runs.
fn counted(runs: &[&Saved]) -> String {
    let size: u64 = runs.iter().map(|saved| saved.size).sum();
    format!("{} ({})", measure::human::counted(runs.len() as u64, "run"), bytes(size))
}

/// Runs that neither --keep nor --older-than keeps.
fn old<'s>(arguments: &PruneArgs, all: &'s [Saved]) -> Result<Vec<&'s Saved>, Usage> {
    let since = arguments.older_than.map(|length| Timestamp::now().checked_sub(length)).transpose();
    let since = since.map_err(|_| Usage("--older-than is too long: give a shorter time".to_owned()))?;
    let is_old = |saved: &&Saved| {
        let start = saved.head.started_at.parse::<Timestamp>();
        since.is_none_or(|since| start.is_ok_and(|start| start < since)) && !saved.is_running()
    };
    Ok(all.iter().skip(arguments.keep.unwrap_or(0)).filter(is_old).collect())
}

/// Whether the file is a complete run document; its head alone does not show that. A file that another process has removed
/// is none.
fn is_whole(saved: &Saved, printer: &Printer) -> bool {
    let found = figures(&saved.path);
    if let Err(error) = &found
        && saved.path.symlink_metadata().is_ok()
    {
        printer.warn(format!("pgrig keeps {}: {error}", saved.path.display()));
    }
    found.is_ok()
}

/// Removes the document, and the log beside it. Returns whether the document was there: it is no error if another process
/// has removed it.
fn remove(saved: &Saved) -> Result<bool, Failure> {
    remove_file(&saved.path.with_extension("log"))?;
    remove_file(&saved.path)
}

/// Removes the file. Returns whether it was there.
fn remove_file(path: &Path) -> Result<bool, Failure> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", path.display())),
    }
}

/// Removes documents whose pgrig was killed while it wrote them. Returns their number.
fn remove_half_written(directory: &Path) -> Result<usize, Failure> {
    let listing = || format!("cannot list {}", directory.display());
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.with_context(listing)?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry.with_context(listing)?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(PARTIAL)) else { continue };
        let is_ours = name.starts_with(".pgrig-") || name.strip_suffix(".json").is_some_and(is_id);
        let written =
            entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|found| found.modified().ok());
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok());
        if is_ours && age.is_some_and(|age| age > HALF_WRITTEN) && fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}
