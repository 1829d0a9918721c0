//! The exit status that follows from a result: 0 done; 1 the server or the machine failed; 2 the
//! request was wrong; 3 a threshold was missed; 130 interrupted.

use std::io::Write;
use std::process::ExitCode;

use crate::app::failure::{BadResult, Failure};
use crate::app::printer::Printer;
use crate::app::{fault, interrupt};

const FAILED: u8 = 1;
const WRONG_REQUEST: u8 = 2;
const MISSED: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Prints clap's own message: help and version are results, all else is a wrong request.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // If the terminal is gone there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { WRONG_REQUEST } else { 0 })
}

/// Prints the text for a command line without a verb.
pub(crate) fn printed(text: &str) -> ExitCode {
    // A reader that has seen enough closes the pipe.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// The exit status if the user stopped pgrig before it began.
pub(crate) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Prints the error, and turns it into an exit status.
pub(crate) fn status(result: Result<(), Failure>, printer: &Printer) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if fault::first().is_some() {
        // The error that ended the run is printed instead of this.
        return ExitCode::from(FAILED);
    }
    if failure.is_broken_pipe() {
        return ExitCode::SUCCESS;
    }
    match &failure {
        // That is how it ends.
        Failure::BadResult(BadResult::Ended) => printer.say(&failure),
        Failure::BadResult(BadResult::Missed(texts)) => {
            for text in texts {
                printer.error(text);
            }
        }
        _ => printer.error(&failure),
    }
    ExitCode::from(code(&failure))
}

fn code(failure: &Failure) -> u8 {
    // Whatever failed then, failed because of that.
    if interrupt::was_asked() || failure.is_interrupt() {
        return INTERRUPTED;
    }
    match failure {
        Failure::BadResult(BadResult::Missed(_)) => MISSED,
        failure if failure.is_usage() => WRONG_REQUEST,
        _ => FAILED,
    }
}
