//! Files of reports: those of `pgrig report`, and --report of the measuring verbs.

use std::io;
use std::path::Path;

use report::Document;

use crate::app::failure::{Context, Failure, Usage};
use crate::app::output::{Existing, refuse_lost_directory, whole};

/// Saves a report, or a part of it.
///
/// # Errors
/// If the file cannot be written, or exists and is kept.
pub(crate) fn save(file: &Path, text: &str, existing: Existing) -> Result<(), Failure> {
    refuse_lost_directory(file)?;
    let name = file.display();
    match whole(file, text.as_bytes(), existing) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(Usage(format!("{name} exists: to replace it, give -o {name}")).into())
        }
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(Usage(format!("cannot write the report to {name}: {error}")).into())
        }
        result => result.with_context(|| format!("cannot write the report to {name}")),
    }
}

/// Writes the report of a run that has just ended: --report of the measuring verbs.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn of_run(name: &str, run: &measure::Run) -> Result<(), Failure> {
    let text = run.document().map_err(io::Error::from)?;
    let page = report::html(&[Document { text, run: run.clone() }]);
    save(Path::new(name), &page, Existing::Replaced)
}
