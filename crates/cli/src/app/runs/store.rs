//! All saved runs: the documents in `PGRIG_HOME/runs`, each in a file that is named by its id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use measure::Status;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use pgserver::Home;

use crate::app::failure::{Context, Failure};
use crate::app::printer::Printer;
use crate::app::runs::head::{Head, process};

/// Most files that are named because they are no run documents; further ones are only counted.
const MOST_NAMED: usize = 3;
/// Time by which clocks of machines may differ without being considered wrong.
const SAME_TIME: SignedDuration = SignedDuration::from_mins(1);

/// The directory of saved runs.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

/// A saved run.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) head: Head,
    pub(crate) path: PathBuf,
    /// Size of the document, bytes.
    pub(crate) size: u64,
}

impl Saved {
    /// Whether the process that writes it is still running, as far as this machine can tell.
    pub(crate) fn is_running(&self) -> bool {
        let is_pgrig = |number: i32| {
            let name = fs::read_to_string(format!("/proc/{number}/comm"));
            name.map_or_else(|_| kill(Pid::from_raw(number), None).is_ok(), |name| name.starts_with("pgrig"))
        };
        self.head.status == Status::Unfinished && process(&self.head.id).is_some_and(is_pgrig)
    }

    /// Whether its start is in the future.
    pub(crate) fn is_in_the_future(&self) -> bool {
        let start = self.head.started_at.parse::<Timestamp>();
        start.is_ok_and(|start| start.duration_since(Timestamp::now()) > SAME_TIME)
    }
}

impl Store {
    /// The directory of the home.
    ///
    /// # Errors
    /// If there is no home.
    pub(crate) fn locate() -> Result<Self, Failure> {
        Ok(Self { directory: Home::locate()?.root().join("runs") })
    }

    /// The directory; it need not exist.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a run with this id.
    pub(crate) fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    /// All saved runs, the newest first: by their start. Warns of files that are no run documents.
    ///
    /// # Errors
    /// If the directory cannot be listed. A directory that does not exist holds no run.
    pub(crate) fn all(&self, printer: &Printer) -> Result<Vec<Saved>, Failure> {
        let listing = || format!("cannot list {}", self.directory.display());
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(listing)?,
        };
        let (mut found, mut left_out) = (Vec::new(), 0);
        for entry in entries {
            let path = entry.with_context(listing)?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match Head::read(&path) {
                Ok((head, size)) => found.push(Saved { head, path, size }),
                // Removed since it was listed; a link to nothing is still there.
                Err(_) if path.symlink_metadata().is_err() => {}
                Err(error) => {
                    left_out += 1;
                    if left_out <= MOST_NAMED {
                        printer.warn(format!("{} is left out: {error}", path.display()));
                    }
                }
            }
        }
        if left_out > MOST_NAMED {
            let directory = self.directory.display();
            printer.warn(match left_out - MOST_NAMED {
                1 => format!("1 more file in {directory} is left out"),
                more => format!("{more} more files in {directory} are left out"),
            });
        }
        found.sort_by(|one, other| {
            (other.head.start(), &other.head.id).cmp(&(one.head.start(), &one.head.id))
        });
        Ok(found)
    }
}
