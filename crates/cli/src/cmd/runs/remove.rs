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
        remove(saved)?;
        printer.result(format!("removed {}", saved.head.id))?;
    }
    Ok(())
}

/// Removes old runs.
pub(crate) fn prune(arguments: &PruneArgs, printer: &Printer) -> Result<(), Failure> {
    let store = Store::locate()?;
    let all = store.all(printer)?;
    let old: Vec<&Saved> =
        old(arguments, &all)?.into_iter().filter(|saved| is_whole(saved, printer)).collect();
    let size: u64 = old.iter().map(|saved| saved.size).sum();
    let runs = if old.len() == 1 { "1 run".to_owned() } else { format!("{} runs", old.len()) };
    let kept = all.len() - old.len();
    if arguments.explain {
        if !old.is_empty() {
            list::show(&old, &all, printer)?;
        }
        printer.say(format!("pgrig would remove {runs} ({}) and keep {kept}", bytes(size)));
        return Ok(());
    }
    for saved in &old {
        remove(saved)?;
    }
    let partial = remove_half_written(store.directory())?;
    printer.result(format!("removed {runs} ({}), kept {kept}", bytes(size)))?;
    if partial > 0 {
        printer.say(format!("removed {partial} incomplete documents of killed pgrig processes"));
    }
    Ok(())
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

/// Whether the file is a complete run document; its head alone does not show that.
fn is_whole(saved: &Saved, printer: &Printer) -> bool {
    let found = figures(&saved.path);
    if let Err(error) = &found {
        printer.warn(format!("pgrig keeps {}: {error}", saved.path.display()));
    }
    found.is_ok()
}

/// Removes the document, and the log beside it. It is no error if another pgrig has removed them.
fn remove(saved: &Saved) -> Result<(), Failure> {
    for path in [saved.path.with_extension("log"), saved.path.clone()] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.with_context(|| format!("cannot remove {}", path.display()))?,
        }
    }
    Ok(())
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
