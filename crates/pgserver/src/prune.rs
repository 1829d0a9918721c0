//! Downloaded versions that no instance uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::error::OnPath;
use crate::files::name_of;
use crate::lock_file::LockFile;
use crate::record::{Config, InstanceRecord, ServerRecord, Source};
use crate::{Error, Home, Major, Result};

/// Deletes the downloaded versions of PostgreSQL that no instance of this home uses. Returns each with the bytes that
/// it took.
///
/// # Errors
/// If several homes may share the versions, another process downloads one, or files cannot be deleted.
pub fn prune(home: &Home) -> Result<Vec<(String, u64)>> {
    let parent = home.postgresql_dir();
    if home.shares_postgresql() {
        return Err(Error::SharedCache { path: parent });
    }
    if !parent.is_dir() {
        return Ok(Vec::new());
    }
    let path = parent.join(".lock");
    let lock = LockFile::open(&path).on("open", &path)?;
    if !lock.try_lock().on("lock", &path)? {
        return Err(Error::Downloading { holder: lock.holder_text() });
    }
    let used = used(home)?;
    let mut pruned = Vec::new();
    for entry in fs::read_dir(&parent).on("read", &parent)?.flatten() {
        let (path, name) = (entry.path(), name_of(&entry.path()));
        if !path.is_dir() || name.starts_with('.') || used.contains(&name) {
            continue;
        }
        let size = size(&path);
        fs::remove_dir_all(&path).on("delete", &path)?;
        pruned.push((name, size));
    }
    pruned.sort();
    Ok(pruned)
}

/// The versions that instances run with, or are going to run with.
fn used(home: &Home) -> Result<BTreeSet<String>> {
    let instances = home.instances_dir();
    let mut used = BTreeSet::new();
    if !instances.is_dir() {
        return Ok(used);
    }
    for entry in fs::read_dir(&instances).on("read", &instances)?.flatten() {
        let record = InstanceRecord::read(&entry.path())?.map(|record| record.config);
        let running = ServerRecord::read(&entry.path()).map(|record| record.config);
        for Config { version, binaries, .. } in record.into_iter().chain(running) {
            used.insert(version.as_str().to_owned());
            if let Source::Fetched(major) = binaries
                && let Some(major) = Major::from_number(major)
            {
                used.insert(name_of(&home.version_dir(major)));
            }
        }
    }
    Ok(used)
}

/// Bytes of all files in a directory. Files that cannot be read count as nothing.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
