//! What a result means to whoever called pgrig: 0 done; 1 the server or the machine failed; 2 the
//! request was wrong; 3 a threshold was missed; 130 interrupted.

use std::io;
use std::process::ExitCode;

use blockio::BlockioError;
use connect::ConnectError;
use dump::DumpError;
use failure::Classified;
use fill::FillError;
use micro::MicroError;
use server::SurveyError;
use testdb::bench::BenchError;
use testdb::lend::{CallError, LendError};
use testdb::sink::SinkError;
use testdb::source::SourceError;
use testdb::unlog::UnlogError;
use tps::TpsError;
use tps::matrix::MatrixError;

use crate::app::printer::Printer;
use crate::app::{fault, interrupt};

const FAILED: u8 = 1;
const WRONG_REQUEST: u8 = 2;
const MISSED: u8 = 3;
const INTERRUPTED: u8 = 130;

/// A request that is wrong in a way that only the command line can tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// What was asked for was done, and yet did not end well. What was found has been printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unhappy {
    /// Thresholds of --fail-if were missed, or --fail-on came true: what was found.
    #[error("{}", .0.join("\n"))]
    Missed(Vec<String>),
    /// Clients or the server were lost: why.
    #[error("{0}")]
    Lost(String),
    /// The user ended it.
    #[error("interrupted: what was measured until then is above")]
    Interrupted,
    /// The user ended it before there was anything to tell.
    #[error("interrupted")]
    Stopped,
    /// The user ended what runs until it is ended.
    #[error("interrupted: what was lent is dropped; templates and kept databases stay")]
    Ended,
}

/// Prints clap's own message: help and version are results, all else is a wrong request.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // If the terminal is gone there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { WRONG_REQUEST } else { 0 })
}

/// The user stopped it before it began.
pub(crate) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Says what went wrong, and turns it into a status.
pub(crate) fn status(result: anyhow::Result<()>, printer: &Printer) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if fault::first().is_some() {
        // The error that ended the run is printed instead of this.
        return ExitCode::from(FAILED);
    }
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref() {
        // That is how it ends.
        Some(Unhappy::Ended) => printer.say(told(&error)),
        _ => printer.error(told(&error)),
    }
    ExitCode::from(code(&error))
}

/// The error with its causes; those that its text already holds are not said twice.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text {
        text if text.is_empty() => cause,
        text if text.contains(&cause) => text,
        text => format!("{text}: {cause}"),
    })
}

fn code(error: &anyhow::Error) -> u8 {
    // Whatever failed then, failed because of that.
    if interrupt::was_asked() {
        return INTERRUPTED;
    }
    if let Some(FillError::Interrupted { .. }) = error.downcast_ref() {
        return INTERRUPTED;
    }
    if let Some(BlockioError::Interrupted { .. }) = error.downcast_ref() {
        return INTERRUPTED;
    }
    if let Some(MicroError::Interrupted { .. }) = error.downcast_ref() {
        return INTERRUPTED;
    }
    if let Some(UnlogError::Interrupted) = error.downcast_ref() {
        return INTERRUPTED;
    }
    match error.downcast_ref() {
        Some(Unhappy::Missed(_)) => return MISSED,
        Some(Unhappy::Lost(_)) => return FAILED,
        Some(Unhappy::Interrupted | Unhappy::Ended | Unhappy::Stopped) => return INTERRUPTED,
        None => {}
    }
    if let Some(TpsError::Interrupted) = error.downcast_ref() {
        return INTERRUPTED;
    }
    if error.downcast_ref::<MatrixError>().is_some_and(Classified::is_interrupt)
        || error.downcast_ref::<BenchError>().is_some_and(Classified::is_interrupt)
    {
        return INTERRUPTED;
    }
    let wrong = error.is::<Usage>()
        || error.downcast_ref::<FillError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<SurveyError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<BlockioError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<MicroError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<TpsError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<MatrixError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<UnlogError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<BenchError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<DumpError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<SourceError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<SinkError>().is_some_and(|error| matches!(error, SinkError::Terminal))
        || error.downcast_ref::<ConnectError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<LendError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<CallError>().is_some_and(Classified::is_usage)
        || error.downcast_ref::<pgserver::Error>().is_some_and(Classified::is_usage);
    if wrong { WRONG_REQUEST } else { FAILED }
}

/// Whoever read our output has enough: `pgrig server logs | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
