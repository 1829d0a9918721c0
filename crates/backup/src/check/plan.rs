//! The plan: kind of the backup, and the files to read.

use std::fs::{self, Metadata};
use std::io::IsTerminal;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::CheckError;
use super::request::Request;

/// The kind of a backup, as far as its name and its files tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One file: a dump, or a base backup as one tar file; its beginning tells.
    File,
    /// Standard input.
    Stream,
    /// A dump of the directory format.
    DumpDirectory,
    /// A base backup as plain files.
    Base,
    /// A base backup as tar files.
    BaseTar,
}

/// The plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The backup.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Bytes in its files; none for standard input.
    pub bytes: Option<u64>,
    /// A directory with WAL that the backup itself does not have.
    pub wal: Option<PathBuf>,
}

impl Plan {
    pub(super) fn new(request: &Request) -> Result<Self, CheckError> {
        let path = request.path.clone();
        let wal = request.wal.clone();
        if request.is_stdin() {
            if std::io::stdin().is_terminal() {
                return Err(CheckError::Terminal);
            }
            return Ok(Self { path, kind: Kind::Stream, bytes: None, wal });
        }
        let found = fs::metadata(&path).map_err(|error| CheckError::read(&path, error))?;
        let kind = if found.is_dir() { directory(&path)? } else { file(&path, &found)? };
        if let Some(wal) = &wal {
            fs::read_dir(wal).map_err(|error| CheckError::read(wal, error))?;
            if kind == Kind::DumpDirectory {
                return Err(CheckError::NeedsNoWal { path });
            }
        }
        let bytes = if found.is_dir() { bytes(&path) } else { found.len() };
        Ok(Self { path, kind, bytes: Some(bytes), wal })
    }
}

fn file(path: &Path, found: &Metadata) -> Result<Kind, CheckError> {
    let kind = found.file_type();
    let what = if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_file() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = path.with_file_name("backup_manifest");
        return if is_tar(&name) && beside.is_file() || name == "backup_manifest" || name == "toc.dat" {
            Err(CheckError::Part { path: path.to_owned() })
        } else {
            Ok(Kind::File)
        };
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(CheckError::Special { path: path.to_owned(), what })
}

fn directory(path: &Path) -> Result<Kind, CheckError> {
    let entries = fs::read_dir(path).map_err(|error| CheckError::read(path, error))?;
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let has = |name: &str| names.iter().any(|found| found == name);
    if let Some(name) = unknown_tar(&names).filter(|_| !has("PG_VERSION")) {
        return Err(CheckError::Packed { path: path.join(name) });
    }
    if names.iter().any(|name| is_tar(name)) && !has("PG_VERSION") {
        Ok(Kind::BaseTar)
    } else if has("backup_manifest") || has("PG_VERSION") || has("backup_manifest.tmp") {
        if has("postmaster.pid") {
            return Err(CheckError::DataDirectory { path: path.to_owned() });
        }
        Ok(Kind::Base)
    } else if has("toc.dat") || names.iter().any(|name| is_of_dump(name)) {
        Ok(Kind::DumpDirectory)
    } else {
        Err(CheckError::OtherDirectory { path: path.to_owned() })
    }
}

/// Whether it is the name of a tar file of a base backup.
pub(super) fn is_tar(name: &str) -> bool {
    tar(name).is_some_and(|(_, ending)| matches!(ending, "" | ".gz" | ".lz4" | ".zst"))
}

/// The stem of a tar file of a base backup, and what follows its `.tar`.
fn tar(name: &str) -> Option<(&str, &str)> {
    let (stem, ending) = name.split_once(".tar")?;
    let is_known = matches!(stem, "base" | "pg_wal")
        || !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
    is_known.then_some((stem, ending))
}

/// A tar file that only exists in a form that another program has made of it: `base.tar.xz`.
fn unknown_tar(names: &[String]) -> Option<&String> {
    names.iter().find(|name| {
        let Some((stem, ending)) = tar(name).filter(|_| !is_tar(name)) else { return false };
        let is_of_stem = |other: &String| is_tar(other) && tar(other).is_some_and(|(known, _)| known == stem);
        ending.starts_with('.') && !names.iter().any(is_of_stem)
    })
}

/// Whether it is a data file of a dump: a directory may have lost its table of contents.
fn is_of_dump(name: &str) -> bool {
    let stem = name.split_once(".dat").map(|(stem, _)| stem);
    stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Bytes in the files, without those behind symbolic links. For progress only.
fn bytes(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes(&entry.path()),
        Ok(found) if found.is_file() => found.len(),
        _ => 0,
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_file_in_an_unknown_form_is_found_unless_the_file_itself_is_there() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            unknown_tar(&names).cloned()
        };
        assert_eq!(of(&["backup_manifest", "base.tar.xz"]).as_deref(), Some("base.tar.xz"));
        assert_eq!(of(&["base.tar.gz", "16384.tar.gz.gpg"]).as_deref(), Some("16384.tar.gz.gpg"));
        assert_eq!(of(&["base.tar.gz", "base.tar.gz.sha256", "pg_wal.tar", "other.tar.xz", "base"]), None);
    }
}
