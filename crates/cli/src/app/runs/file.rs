//! The document of a running run: `PGRIG_HOME/runs/<id>.json`, and the copy for --json.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use measure::Run;

use crate::app::failure::{Broken, Context, Failure, Usage};
use crate::app::printer::Printer;

/// The file of one run; saved as a whole each time, so that a reader never sees half a document.
pub(crate) struct RunFile {
    path: PathBuf,
    copy: Option<Copy>,
}

/// Destination of --json.
enum Copy {
    Stdout,
    /// A file. It is opened before the work begins, so that a wrong name is noticed in time.
    File(File, String),
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
            Broken(format!(
                "cannot create {} for run documents: {error}; set PGRIG_HOME to a path that you can write to",
                directory.display()
            ))
        })?;
        let copy = match copy {
            None => None,
            Some("-") => Some(Copy::Stdout),
            Some(name) => {
                let file = File::create(name)
                    .map_err(|error| Usage(format!("cannot write --json {name}: {error}")))?;
                Some(Copy::File(file, name.to_owned()))
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
            Some(Copy::File(file, name)) => file
                .write_all(document(run)?.as_bytes())
                .with_context(|| format!("cannot write --json {name}")),
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
    let whole = || format!("cannot save the run document as {}", path.display());
    let partial = path.with_extension("json.partial");
    fs::write(&partial, text).with_context(whole)?;
    fs::rename(&partial, path).with_context(whole)
}
