//! `pgrig report`: makes a page with plots from run documents.

pub(crate) mod args;

use std::fs;
use std::path::Path;

use measure::human::bytes;
use report::Document;

use crate::app::failure::{Failure, Usage};
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::printer::Printer;
use crate::app::report::save;
use crate::app::runs::{Labelled, Selection};
use crate::cmd::report::args::{Format, ReportArgs};

/// Name of the file if -o is not given.
const DEFAULT: &str = "report.html";
const STDOUT: &str = "-";

/// Finds the runs, and writes their report.
pub(crate) fn run(arguments: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    let output = arguments.output.as_deref();
    let format = arguments.format()?;
    if format == Format::Svg && output.is_none_or(|name| name == STDOUT) {
        return Err(
            Usage("--format svg writes a file for each plot: give a directory with -o".to_owned()).into()
        );
    }
    match output.filter(|name| *name != STDOUT) {
        Some(directory) if format == Format::Svg => refuse_files(Path::new(directory))?,
        Some(name) => refuse_unwritable("-o", Path::new(name), Existing::Replaced)?,
        None => {}
    }
    let words = if arguments.runs.is_empty() { &["latest".to_owned()] } else { arguments.runs.as_slice() };
    let found = Selection::new(Labelled::All, printer)?.documents(words)?;
    let documents: Vec<Document> =
        found.into_iter().map(|one| Document { text: one.text, run: one.run }).collect();
    let documents = if arguments.redact {
        report::redacted(&documents).map_err(|error| Usage(format!("cannot redact these runs: {error}")))?
    } else {
        documents
    };
    match (format, output) {
        (Format::Svg, directory) => svgs(Path::new(directory.unwrap_or_default()), &documents, printer),
        (Format::Html, None) => page(DEFAULT, &report::html(&documents), Existing::Kept, printer),
        (Format::Html, output) => text(output, &report::html(&documents), printer),
        (Format::Md, output) => text(output, &report::markdown(&documents), printer),
        (Format::Csv, output) => text(output, &report::csv(&documents), printer),
    }
}

/// Refuses a name that is not that of a directory.
fn refuse_files(directory: &Path) -> Result<(), Usage> {
    let why = if directory.as_os_str().is_empty() {
        "-o is empty".to_owned()
    } else if directory.exists() && !directory.is_dir() {
        format!("-o {} is a file", directory.display())
    } else {
        return Ok(());
    };
    Err(Usage(format!("{why}: give the name of a directory, for example --format svg -o plots")))
}

fn text(output: Option<&str>, text: &str, printer: &Printer) -> Result<(), Failure> {
    match output {
        None | Some(STDOUT) => Ok(Printer::json(text.trim_end_matches('\n'))?),
        Some(name) => page(name, text, Existing::Replaced, printer),
    }
}

fn page(name: &str, text: &str, existing: Existing, printer: &Printer) -> Result<(), Failure> {
    save(Path::new(name), text, existing)?;
    printer.say(format!("report: {name} ({})", bytes(text.len() as u64)));
    Ok(())
}

fn svgs(directory: &Path, documents: &[Document], printer: &Printer) -> Result<(), Failure> {
    let name = directory.display();
    fs::create_dir_all(directory)
        .map_err(|error| Usage(format!("cannot create the directory {name}: {error}")))?;
    let drawn = report::svgs(documents);
    for (file, svg) in &drawn {
        save(&directory.join(file), svg, Existing::Replaced)?;
    }
    printer.say(format!("plots: {} in {name}", drawn.len()));
    Ok(())
}
