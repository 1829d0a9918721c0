//! The document of a running run: `PGRIG_HOME/runs/<id>.json`, and the copy for --json.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use measure::Run;

use crate::app::failure::{Context, Failure, MachineFailure, Usage};
use crate::app::printer::Printer;

/// The file of one run; saved as a whole each time, so that a reader never sees half a document.
pub(crate) struct RunFile {
    path: PathBuf,
    copy: Option<Copy>,
}

/// Destination of --json.
enum Copy {
    Stdout,
    File(Opened),
}

/// A file that is opened before the work begins, so that a wrong name is noticed in time. Until the run ends, it is as it was: a
/// request that is refused leaves no empty file, and keeps the document that was in it.
struct Opened {
    file: File,
    name: String,
    /// Whether it did not exist.
    is_new: bool,
    is_written: bool,
}

impl Opened {
    fn open(name: &str) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true);
        let opened = match options.clone().create_new(true).open(name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.create(true).truncate(false).open(name)?, false)
            }
            created => (created?, true),
        };
        let (file, is_new) = opened;
        Ok(Self { file, name: name.to_owned(), is_new, is_written: false })
    }

    /// Replaces the content.
    fn write(&mut self, text: &str) -> io::Result<()> {
        self.is_written = true;
        // A pipe or a device has no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.is_new && !self.is_written {
            // It is empty.
            let _ = fs::remove_file(&self.name);
        }
    }
}

/// The reason why a file cannot be opened, with the remedy.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => "this user may not write it; check its permissions".to_owned(),
        ErrorKind::NotFound => "give the name of a file".to_owned(),
        _ => error.to_string(),
    }
}

/// The id and the start time of a run of this verb that starts now.
pub(crate) fn identify(verb: &str) -> (String, String) {
    let now = Timestamp::now();
    // Two runs may begin in the same second, even in the same process.
    let unique = format!("{:x}{:08x}", std::process::id(), now.subsec_nanosecond());
    (format!("{}-{verb}-{unique}", now.strftime("%Y%m%dT%H%M%SZ")), now.to_string())
}

impl RunFile {
    /// The file of the run `id`; `copy` is --json's argument.
    pub(crate) fn new(home: &Path, id: &str, copy: Option<&str>) -> Result<Self, Failure> {
        let directory = home.join("runs");
        fs::create_dir_all(&directory).map_err(|error| {
            MachineFailure(format!(
                "cannot create {} for run documents: {error}; set PGRIG_HOME to a path that you can write to",
                directory.display()
            ))
        })?;
        let copy = match copy {
            None => None,
            Some("-") => Some(Copy::Stdout),
            Some(name) => {
                let opened = Opened::open(name)
                    .map_err(|error| Usage(format!("cannot write --json {name}: {}", reason(&error))))?;
                Some(Copy::File(opened))
            }
        };
        Ok(Self { path: directory.join(format!("{id}.json")), copy })
    }

    /// Saves the run as it is so far.
    pub(crate) fn save(&self, run: &Run) -> Result<(), Failure> {
        write(&self.path, &document(run)?)
    }

    /// Saves the run for the last time, and writes the copy for --json.
    pub(crate) fn finish(&mut self, run: &Run) -> Result<(), Failure> {
        self.save(run)?;
        match &mut self.copy {
            None => Ok(()),
            Some(Copy::Stdout) => Ok(Printer::json(document(run)?.trim_end())?),
            Some(Copy::File(opened)) => {
                opened.write(&document(run)?).with_context(|| format!("cannot write --json {}", opened.name))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn document(run: &Run) -> Result<String, Failure> {
    Ok(run.document().map_err(io::Error::from)?)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = path.with_extension("json.partial");
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // On a full disk, an empty file may be left.
        let _ = fs::remove_file(&partial);
    }
    written.map_err(|error| {
        let remedy = remedy(error.kind());
        let text = format!("cannot save the run document as {}: {error}{remedy}", path.display());
        MachineFailure(text).into()
    })
}

/// The way to a place where the document can be saved; empty if the error does not tell.
fn remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space on that disk, or set PGRIG_HOME to a directory on another one"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; set PGRIG_HOME to a path that you can write to"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Mount, Need, assert_says, fill_up, require};

    use super::*;

    #[test]
    fn a_full_disk_is_an_error_with_the_remedy() {
        if !require(Need::Mounts) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let disk = Mount::tmpfs(directory.path(), 1);
        fill_up(&disk.path().join("filler"));
        let failed = write(&disk.path().join("run.json"), "{}").unwrap_err();
        assert_says(
            &failed.to_string(),
            &["cannot save the run document as", "free some space on that disk"],
        );
        assert!(!disk.path().join("run.json.partial").exists());
    }
}
