//! Dumps in tar format.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use crate::check::error::CheckError;
use crate::check::format::archive::{Archive, Contents, DataLocation};
use crate::check::format::tar::{Member, members};
use crate::check::format::wrong;
use crate::check::outcome::Outcome;
use crate::check::run::{Run, custom, drain, table};

/// The members of the tar file that were read so far.
#[derive(Default)]
struct TarMembers {
    contents: Option<Contents>,
    /// Members.
    names: BTreeSet<String>,
    /// Files of large objects that a list names.
    large_objects: BTreeMap<String, String>,
}

pub(super) fn check(
    run: &Run<'_>,
    content: &mut dyn Read,
    name: &str,
    at: &Cell<u64>,
    outcome: &mut Outcome,
) -> Result<(), CheckError> {
    outcome.tables.get_or_insert_default();
    outcome.rows.get_or_insert_default();
    let mut found = TarMembers::default();
    let read = members(content, |member| found.member(member, name, at, outcome));
    if run.watch.settle(outcome, name, Some(at.get()), read)?.is_none() {
        return Ok(());
    }
    let Some(contents) = &found.contents else {
        outcome.damage(name, None, "toc.dat is missing");
        return Ok(());
    };
    outcome.server = Some(contents.server.clone());
    custom::gaps(outcome, contents);
    for entry in &contents.entries {
        // pg_restore finds large objects by their names.
        if let DataLocation::File(file) = &entry.place
            && !entry.is_large_objects()
            && !found.names.contains(file)
        {
            outcome.damage(name, None, format!("{file}, with the data of {}, is missing", entry.label()));
        }
    }
    for object in found.names.iter().filter(|name| name.starts_with("blob_")) {
        if !found.large_objects.contains_key(object) {
            outcome.damage(name, None, format!("no list of large objects names {object}"));
        }
    }
    for (file, list) in &found.large_objects {
        if !found.names.contains(file) {
            outcome.damage(name, None, format!("{file}, which {list} names, is missing"));
        }
    }
    Ok(())
}

impl TarMembers {
    fn member(
        &mut self,
        member: Member<'_>,
        name: &str,
        at: &Cell<u64>,
        outcome: &mut Outcome,
    ) -> io::Result<()> {
        let Member { path, content, .. } = member;
        if path == "toc.dat" {
            let mut archive = Archive::new(content);
            self.contents = Some(archive.contents()?);
            if !archive.is_at_end()? {
                return Err(wrong("bytes follow the end of toc.dat"));
            }
        } else if path.starts_with("blobs") && path.split('.').next_back() == Some("toc") {
            let mut text = String::new();
            content.read_to_string(&mut text)?;
            for file in large_objects(&text)? {
                self.large_objects.insert(file, path.clone());
            }
        } else if path.starts_with("blob_") {
            drain(content)?;
            outcome.large_objects += 1;
        } else if let Some(contents) = &self.contents
            && let Some(entry) =
                contents.entries.iter().find(|entry| entry.place == DataLocation::File(path.clone()))
        {
            let rows = table::read(content, entry, contents, outcome)?;
            if let Err(error) = rows {
                outcome.damage(name, Some(at.get()), format!("{path}, {}: {error}", entry.label()));
            }
        } else if path != "restore.sql" {
            return Err(wrong(format!("{path}, which the table of contents does not name")));
        }
        self.names.insert(path);
        Ok(())
    }
}

/// The files that a list of large objects names.
pub(super) fn large_objects(text: &str) -> io::Result<Vec<String>> {
    let file = |line: &str| {
        let (oid, file) = line.split_once(' ')?;
        let is_right = !oid.is_empty() && oid.bytes().all(|byte| byte.is_ascii_digit());
        (is_right && file == format!("blob_{oid}.dat")).then(|| file.to_owned())
    };
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(wrong("the list of large objects is cut off"));
    }
    text.lines()
        .map(|line| file(line).ok_or_else(|| wrong("the list of large objects has a wrong line")))
        .collect()
}
