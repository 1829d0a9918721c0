//! `pgrig merge`: makes one run document of those of the parts of a run.

pub(crate) mod args;
use std::path::Path;

use measure::Run;

use crate::app::failure::{Failure, Usage};
use crate::app::merged::merge_parts;
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::printer::Printer;
use crate::app::runs::{Labelled, Selection};
use crate::cmd::merge::args::MergeArgs;

/// Merges, saves and prints; fails if a part is missing.
pub(crate) fn run(arguments: &MergeArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(file) = arguments.output.as_ref().filter(|file| *file != "-") {
        refuse_unwritable("-o", Path::new(file), Existing::Replaced)?;
    }
    merge_parts(parts(arguments, printer)?, arguments.output.as_deref(), arguments.label.as_deref(), printer)
}

/// The runs that the words name.
///
/// # Errors
/// If two words name the same run: a part must not count twice.
fn parts(arguments: &MergeArgs, printer: &Printer) -> Result<Vec<Run>, Failure> {
    let selection = Selection::new(Labelled::Complete, printer)?;
    let mut found: Vec<Run> = Vec::new();
    for word in &arguments.runs {
        for document in selection.documents(std::slice::from_ref(word))? {
            if found.iter().any(|known| known.id == document.run.id) {
                let text = format!("run {} is given twice: name each part once", document.run.id);
                return Err(Usage(text).into());
            }
            found.push(document.run);
        }
    }
    Ok(found)
}
