//! Dumps in directory format: a file for each table.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use crate::check::error::CheckError;
use crate::check::format::archive::{Archive, Contents, DataLocation, Entry};
use crate::check::format::compression::Method;
use crate::check::outcome::Outcome;
use crate::check::recipe::Form;
use crate::check::run::tar_dump::large_objects;
use crate::check::run::{DUMP_REMEDY, Run, Stream, custom, drain, table};
use measure::human::counted;

const TOC: &str = "toc.dat";
/// Endings of compressed files.
const ENDINGS: [(&str, Method); 4] =
    [("", Method::None), (".gz", Method::Gzip), (".lz4", Method::Lz4), (".zst", Method::Zstd)];

pub(super) fn check(run: &Run<'_>, outcome: &mut Outcome) -> Result<(), CheckError> {
    "dump in directory format".clone_into(&mut outcome.kind);
    outcome.recipe.form = Some(Form::Archive);
    outcome.tables = Some(0);
    outcome.rows = Some(0);
    let Some(contents) = contents(run, outcome)? else { return Ok(()) };
    outcome.server = Some(contents.server.clone());
    custom::gaps(outcome, &contents);
    let mut named = BTreeSet::from([TOC.to_owned()]);
    for entry in &contents.entries {
        let DataLocation::File(file) = &entry.place else { continue };
        if entry.is_large_objects() {
            outcome.gap("the lists of large objects", DUMP_REMEDY);
            list(run, file, &mut named, outcome)?;
        } else {
            data(run, file, &entry.label(), Some((entry, &contents)), &mut named, outcome)?;
        }
    }
    outcome.gap("the names of the files: they tell which table the rows belong to", DUMP_REMEDY);
    unnamed(&run.plan.path, &named, outcome)
}

fn contents(run: &Run<'_>, outcome: &mut Outcome) -> Result<Option<Contents>, CheckError> {
    let path = run.plan.path.join(TOC);
    if !is_file(&path, TOC, outcome)? {
        return Ok(None);
    }
    let input = run.watch.open(&path)?;
    let at = std::rc::Rc::clone(&input.at);
    let mut archive = Archive::new(input);
    let read = archive.contents().and_then(|contents| {
        if archive.is_at_end()? {
            Ok(contents)
        } else {
            Err(super::super::format::wrong("bytes follow its end"))
        }
    });
    run.watch.settle(outcome, TOC, Some(at.get()), read)
}

/// Whether a regular file is there; if not, that is damage.
fn is_file(path: &Path, name: &str, outcome: &mut Outcome) -> Result<bool, CheckError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => return Ok(true),
        Ok(_) => outcome.damage(name, None, "it is not a regular file"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            outcome.damage(name, None, "it is missing");
        }
        Err(error) => return Err(CheckError::read(path, error)),
    }
    Ok(false)
}

/// A list of large objects, and the files that it names.
fn list(
    run: &Run<'_>,
    file: &str,
    named: &mut BTreeSet<String>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    named.insert(file.to_owned());
    let path = run.plan.path.join(file);
    if !is_file(&path, file, outcome)? {
        return Ok(());
    }
    let mut text = String::new();
    let read = run.watch.open(&path)?.read_to_string(&mut text);
    let files = read.and_then(|_| large_objects(&text));
    for object in run.watch.settle(outcome, file, None, files)?.unwrap_or_default() {
        outcome.large_objects += 1;
        data(run, &object, "a large object", None, named, outcome)?;
    }
    Ok(())
}

/// A data file, which may be compressed.
fn data(
    run: &Run<'_>,
    file: &str,
    label: &str,
    table: Option<(&Entry, &Contents)>,
    named: &mut BTreeSet<String>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    let found = ENDINGS.iter().find_map(|(ending, method)| {
        let name = format!("{file}{ending}");
        fs::symlink_metadata(run.plan.path.join(&name)).is_ok().then_some((name, *method))
    });
    let Some((name, method)) = found else {
        outcome.damage(file, None, format!("it is missing, with {label}"));
        return Ok(());
    };
    named.insert(name.clone());
    let path = run.plan.path.join(&name);
    if !is_file(&path, &name, outcome)? {
        return Ok(());
    }
    let opened = Stream::of(run.watch.open(&path)?, method);
    let Some(mut stream) = run.watch.settle(outcome, &name, Some(0), opened)? else { return Ok(()) };
    // pg_dump creates the file of an empty large object, and by some methods writes nothing.
    if stream.is_empty && (table.is_some() || method == Method::Gzip) {
        outcome.damage(&name, Some(0), format!("it is empty, and should hold the data of {label}"));
        return Ok(());
    }
    let read = match table {
        Some((entry, contents)) => table::read(&mut stream.content, entry, contents, outcome),
        None => drain(&mut stream.content).map(|_| Ok(())),
    };
    let at = Some(stream.at.get());
    if let Some(rows) = run.watch.settle(outcome, &name, at, read)? {
        let rows = rows.map_err(|error| super::super::format::wrong(format!("{label}: {error}")));
        run.watch.settle(outcome, &name, at, rows)?;
    }
    Ok(())
}

/// Files that the table of contents does not name: a dump into a directory that was not empty, or renamed ones.
fn unnamed(path: &Path, named: &BTreeSet<String>, outcome: &mut Outcome) -> Result<(), CheckError> {
    let entries = fs::read_dir(path).map_err(|error| CheckError::read(path, error))?;
    let mut others: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !named.contains(name))
        .collect();
    others.sort();
    let (lost, others): (Vec<String>, Vec<String>) = others.into_iter().partition(|name| is_data(name));
    for name in lost {
        outcome.damage(name, None, "neither the table of contents nor a list of large objects names it");
    }
    if let Some(first) = others.first() {
        let part = format!(
            "{} beside those of the table of contents: {first}{}",
            counted(others.len() as u64, "file"),
            if others.len() > 1 { " …" } else { "" }
        );
        outcome.gap(part, "move the additional files elsewhere: no restore reads them");
    }
    Ok(())
}

/// Whether it is the name of a data file. pg_dump writes only into empty directories.
fn is_data(name: &str) -> bool {
    let stem = name.split_once(".dat").map(|(stem, _)| stem.strip_prefix("blob_").unwrap_or(stem));
    stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
}
