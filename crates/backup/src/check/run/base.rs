//! Base backups: plain files, tar files, and everything in one tar file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::check::error::CheckError;
use crate::check::format::compression::Method;
use crate::check::format::manifest::Manifest;
use crate::check::format::tar::{Member, members};
use crate::check::outcome::Outcome;
use crate::check::plan::is_tar;
use crate::check::recipe::Form;
use crate::check::run::manifest_check::ManifestCheck;
use crate::check::run::segments::Segments;
use crate::check::run::{Run, Stream, drain};
use measure::human::counted;

const MANIFEST: &str = "backup_manifest";
/// Name of the manifest until pg_basebackup has received everything.
const UNFINISHED: &str = "backup_manifest.tmp";
const WAL: &str = "pg_wal";
const TABLESPACES: &str = "pg_tblspc";
/// No manifest is longer: 10 million files.
const LONGEST: u64 = 2 << 30;

/// Plain files.
pub(super) fn plain(run: &Run<'_>, outcome: &mut Outcome) -> Result<(), CheckError> {
    "base backup as plain files".clone_into(&mut outcome.kind);
    outcome.recipe.form = Some(Form::Base);
    let root = &run.plan.path;
    let ControlFlow::Continue(manifest) = manifest(run, outcome)? else { return Ok(()) };
    let mut listed = ManifestCheck::new(manifest);
    let mut found = BTreeSet::new();
    walk(root, "", &mut found, &mut listed, outcome)?;
    for path in &found {
        if path.starts_with("pg_wal/") || path == MANIFEST {
            continue;
        }
        let mut input = run.watch.open(&root.join(path))?;
        let at = Rc::clone(&input.at);
        let read = listed.file(path, &mut input, outcome);
        if let Some(file) = run.watch.settle(outcome, path, Some(at.get()), read)? {
            run.watch.settle(outcome, path, None, file)?;
        }
    }
    listed.end(true, outcome);
    let mut segments = segments(&listed);
    let mut names: Vec<&str> = found.iter().filter_map(|path| path.strip_prefix("pg_wal/")).collect();
    names.sort_unstable();
    let directory = root.join(WAL);
    // In order of their names, so in order of a timeline; a further time if that does not suffice.
    loop {
        let mut has_advanced = false;
        for name in &names {
            has_advanced |= segment(run, &mut segments, &directory, name, outcome)?;
        }
        if !has_advanced || !segments.lacks_some() {
            break;
        }
    }
    end_wal(run, segments, &listed, outcome)
}

fn segments(listed: &ManifestCheck) -> Segments {
    let ranges = listed.manifest.as_ref().map_or(&[][..], |manifest| &manifest.wal);
    Segments::new((ranges, listed.untold_wal()), listed.first_segment(), listed.system(), listed.sought())
}

/// Looks for missing segments in the user's own directory, and judges files that WAL may change.
fn end_wal(
    run: &Run<'_>,
    mut segments: Segments,
    listed: &ManifestCheck,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    if let Some(directory) = &run.plan.wal {
        segments.find_first_in(directory);
        if segments.wanted().is_empty() {
            segments.begin_as_in(directory);
        }
        loop {
            let mut has_advanced = false;
            for name in segments.wanted() {
                if directory.join(&name).is_file() {
                    has_advanced |= segment(run, &mut segments, directory, &name, outcome)?;
                }
            }
            if !has_advanced {
                break;
            }
        }
    }
    outcome.recipe.creates_tablespaces = segments.create_tablespaces();
    outcome.recipe.unread_wal = segments.first_unread();
    listed.name_pages(&segments, outcome);
    listed.compare_maps(segments.may_write_maps(), outcome);
    segments.end(run.plan.wal.as_deref(), outcome);
    Ok(())
}

fn segment(
    run: &Run<'_>,
    segments: &mut Segments,
    directory: &Path,
    name: &str,
    outcome: &mut Outcome,
) -> Result<bool, CheckError> {
    let path = directory.join(name);
    let length = fs::metadata(&path).map(|found| found.len()).ok();
    let mut input = run.watch.open(&path)?;
    let at = Rc::clone(&input.at);
    let read = segments.file(name, length, &mut input, outcome);
    Ok(run.watch.settle(outcome, &format!("{WAL}/{name}"), Some(at.get()), read)?.unwrap_or(false))
}

/// The manifest, if there is one. A break if it is damaged, so that nothing else can be said.
fn manifest(run: &Run<'_>, outcome: &mut Outcome) -> Result<ControlFlow<(), Option<Manifest>>, CheckError> {
    let path = run.plan.path.join(MANIFEST);
    if !path.exists() {
        if run.plan.path.join(UNFINISHED).exists() {
            outcome.damage(UNFINISHED, None, "pg_basebackup did not end: make the backup again");
            return Ok(ControlFlow::Break(()));
        }
        return Ok(ControlFlow::Continue(None));
    }
    let mut bytes = Vec::new();
    let read = run.watch.open(&path)?.take(LONGEST).read_to_end(&mut bytes);
    let found = read.and_then(|_| Manifest::read(&bytes));
    let found = run.watch.settle(outcome, MANIFEST, None, found)?;
    Ok(found.map_or(ControlFlow::Break(()), |manifest| ControlFlow::Continue(Some(manifest))))
}

/// All files below, with `/`, except those that are no regular files. Symbolic links are followed where PostgreSQL makes them, and if they lead
/// to a file.
fn walk(
    root: &Path,
    below: &str,
    found: &mut BTreeSet<String>,
    listed: &mut ManifestCheck,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    let directory = root.join(below);
    let entries = fs::read_dir(&directory).map_err(|error| CheckError::read(&directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| CheckError::read(&directory, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let is_link_of_ours = below == TABLESPACES || path == WAL;
        let metadata = if is_link_of_ours { fs::metadata(entry.path()) } else { entry.metadata() };
        match metadata {
            Ok(kind) if kind.is_dir() => {
                listed.directory(&path);
                walk(root, &path, found, listed, outcome)?;
            }
            Ok(kind) if kind.is_file() || kind.is_symlink() && root.join(&path).is_file() => {
                found.insert(path);
            }
            Ok(kind) if kind.is_symlink() && listed.manifest.is_none() => {
                if root.join(&path).is_dir() {
                    listed.directory(&path);
                }
                unfollowed(path, outcome);
            }
            Ok(_) => outcome.damage(path, None, "it is neither a file nor a directory"),
            Err(error) => outcome.damage(path, None, format!("the symbolic link leads nowhere: {error}")),
        }
    }
    Ok(())
}

/// A link that pg_basebackup does not copy, but other programs do, to a directory or to a file that is not here.
fn unfollowed(path: String, outcome: &mut Outcome) {
    outcome
        .gap(format!("{path}: pgrig does not follow this link"), "check the files to which the link leads");
    outcome.recipe.link.get_or_insert(path);
}

/// Tar files in a directory.
pub(super) fn tars(run: &Run<'_>, outcome: &mut Outcome) -> Result<(), CheckError> {
    "base backup as tar files".clone_into(&mut outcome.kind);
    outcome.recipe.form = Some(Form::BaseTar);
    let root = &run.plan.path;
    let ControlFlow::Continue(manifest) = manifest(run, outcome)? else { return Ok(()) };
    let entries = fs::read_dir(root).map_err(|error| CheckError::read(root, error))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // The label, which tells of the pages of tablespaces, is in the first one.
    names.sort_by_key(|name| (!name.starts_with("base."), name.clone()));
    let (archives, others): (Vec<String>, Vec<String>) =
        names.into_iter().filter(|name| name != MANIFEST).partition(|name| is_tar(name));
    if let Some(first) = others.first() {
        outcome.gap(
            format!(
                "{} beside the backup: {first}{}",
                counted(others.len() as u64, "file"),
                if others.len() > 1 { " …" } else { "" }
            ),
            "move the additional files elsewhere: no restore reads them",
        );
    }
    let mut sources: Vec<Source> = Vec::new();
    for name in &archives {
        let stem = name.split_once(".tar").map_or(name.as_str(), |(stem, _)| stem);
        let prefix = match stem {
            "base" => String::new(),
            WAL => "pg_wal/".to_owned(),
            oid => format!("{TABLESPACES}/{oid}/"),
        };
        let method = match Method::of_name(name) {
            Method::None => None,
            method => Some(method),
        };
        sources.push(Source {
            path: root.join(name),
            name: name.clone(),
            prefix,
            strip: String::new(),
            method,
        });
    }
    if !archives.iter().any(|name| name.starts_with("base.tar")) {
        outcome.damage("base.tar", None, "it is missing");
    }
    let manifest = match manifest {
        None => manifest_inside(run, &sources, outcome)?,
        known => ControlFlow::Continue(known),
    };
    let ControlFlow::Continue(manifest) = manifest else { return Ok(()) };
    of_sources(run, &sources, &mut ManifestCheck::new(manifest), outcome)
}

/// The manifest in the tar file of the data directory, which has it if pg_basebackup wrote it to standard output.
fn manifest_inside(
    run: &Run<'_>,
    sources: &[Source],
    outcome: &mut Outcome,
) -> Result<ControlFlow<(), Option<Manifest>>, CheckError> {
    let base = sources.iter().find(|source| source.prefix.is_empty());
    // Damage of the file is found again.
    let inside = base.map(|base| base.look(run, &mut Outcome::default())).transpose()?.flatten();
    let Some(bytes) = inside.and_then(|inside| inside.manifest) else {
        return Ok(ControlFlow::Continue(None));
    };
    let found = run.watch.settle(outcome, MANIFEST, None, Manifest::read(&bytes))?;
    Ok(found.map_or(ControlFlow::Break(()), |manifest| ControlFlow::Continue(Some(manifest))))
}

/// One tar file that holds all of it.
pub(super) fn one_tar(run: &Run<'_>, name: &str, outcome: &mut Outcome) -> Result<(), CheckError> {
    let path = &run.plan.path;
    let mut source = Source {
        path: path.clone(),
        name: name.to_owned(),
        prefix: String::new(),
        strip: String::new(),
        method: None,
    };
    let Some(inside) = source.look(run, outcome)? else { return Ok(()) };
    let Some(strip) = inside.root else {
        return Err(CheckError::OtherTar { path: path.clone() });
    };
    let manifest = match inside.manifest {
        None => None,
        Some(bytes) => match run.watch.settle(outcome, MANIFEST, None, Manifest::read(&bytes))? {
            Some(manifest) => Some(manifest),
            None => return Ok(()),
        },
    };
    source.strip = strip;
    of_sources(run, &[source], &mut ManifestCheck::new(manifest), outcome)
}

/// The facts about a backup that its tar file contains.
struct Inside {
    /// The path of the data directory, empty or with `/` at its end; none without PG_VERSION.
    root: Option<String>,
    /// The manifest in this directory.
    manifest: Option<Vec<u8>>,
}

/// A tar file, and the places of its members in the backup.
struct Source {
    path: PathBuf,
    name: String,
    /// Goes before the paths.
    prefix: String,
    /// Is taken away from the paths.
    strip: String,
    /// Its compression; none if its beginning tells.
    method: Option<Method>,
}

impl Source {
    /// Reads all members. Returns whether the file was right to its end.
    fn read(
        &self,
        run: &Run<'_>,
        outcome: &mut Outcome,
        mut each: impl FnMut(Member<'_>, &mut Outcome) -> io::Result<()>,
    ) -> Result<bool, CheckError> {
        let input = run.watch.open(&self.path)?;
        let at = Rc::clone(&input.at);
        let opened = match self.method {
            Some(method) => Stream::of(input, method),
            None => Stream::new(input),
        };
        let Some(mut stream) = run.watch.settle(outcome, &self.name, Some(0), opened)? else {
            return Ok(false);
        };
        if stream.is_empty {
            outcome.damage(&self.name, Some(0), "it is empty");
            return Ok(false);
        }
        let read = members(&mut stream.content, |member| each(member, outcome));
        // The checksum of the compression comes last.
        let read = read.and_then(|()| drain(&mut stream.content));
        Ok(run.watch.settle(outcome, &self.name, Some(at.get()), read)?.is_some())
    }

    /// Looks for the data directory and the manifest. None if the file is damaged.
    fn look(&self, run: &Run<'_>, outcome: &mut Outcome) -> Result<Option<Inside>, CheckError> {
        let (mut versions, mut manifests) = (Vec::new(), Vec::new());
        let is_whole = self.read(run, outcome, |member, _| {
            if let Some(prefix) = member.path.strip_suffix("PG_VERSION") {
                versions.push(prefix.to_owned());
            } else if let Some(prefix) = member.path.strip_suffix(MANIFEST) {
                let mut bytes = Vec::new();
                Read::take(&mut *member.content, LONGEST).read_to_end(&mut bytes)?;
                manifests.push((prefix.to_owned(), bytes));
            }
            drain(member.content).map(drop)
        })?;
        if !is_whole {
            return Ok(None);
        }
        versions.sort_by_key(String::len);
        let root = versions.into_iter().next();
        let in_root = manifests.into_iter().find(|(prefix, _)| root.as_ref() == Some(prefix));
        Ok(Some(Inside { root, manifest: in_root.map(|(_, bytes)| bytes) }))
    }

    /// The place in the backup.
    fn place(&self, path: &str) -> String {
        format!("{}{}", self.prefix, path.strip_prefix(&self.strip).unwrap_or(path))
    }
}

fn of_sources(
    run: &Run<'_>,
    sources: &[Source],
    listed: &mut ManifestCheck,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    let mut is_whole = true;
    let mut with_wal = Vec::new();
    for source in sources {
        let mut has_wal = false;
        is_whole &= source.read(run, outcome, |member, outcome| {
            let path = source.place(&member.path);
            if member.is_directory {
                listed.directory(&path);
            } else if member.is_link {
                listed.link(&path);
            } else if path.starts_with("pg_wal/") {
                has_wal = true;
            } else if member.is_file
                && path != MANIFEST
                && let Err(error) = listed.file(&path, member.content, outcome)?
            {
                outcome.damage(format!("{}: {path}", source.name), None, error.to_string());
            }
            Ok(())
        })?;
        if has_wal {
            with_wal.push(source);
        }
    }
    listed.end(is_whole, outcome);
    let mut segments = segments(listed);
    if !is_whole {
        listed.name_pages(&segments, outcome);
        return Ok(());
    }
    // WAL comes in order, in a file of its own; a further time if it does not.
    loop {
        let mut has_advanced = false;
        for source in &with_wal {
            let read = source.read(run, outcome, |member, outcome| {
                let path = source.place(&member.path);
                if let Some(name) = path.strip_prefix("pg_wal/").filter(|_| member.is_file) {
                    has_advanced |= segments.file(name, None, member.content, outcome)?;
                }
                Ok(())
            })?;
            if !read {
                listed.name_pages(&segments, outcome);
                return Ok(());
            }
        }
        if !has_advanced || !segments.lacks_some() {
            break;
        }
    }
    end_wal(run, segments, listed, outcome)
}
