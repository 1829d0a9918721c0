//! Why a verb fails: an error with its class, or work that was done with a bad result.

use std::error::Error;
use std::fmt;
use std::io;

use failure::{Class, Classified};
use measure::Status;

/// Why a verb fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The verb failed with an error.
    Error(Box<Classed>),
    /// The work is done with a bad result, which has been printed.
    BadResult(BadResult),
}

/// An error with its class.
#[derive(Debug)]
pub(crate) struct Classed {
    class: Class,
    /// Steps that failed, each in a few words; the outermost step is last.
    context: Vec<String>,
    is_explained_by_log: bool,
    is_lost_server: bool,
    error: Box<dyn Error + Send + Sync>,
}

/// A request that is wrong in a way that only the command line can tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl Classified for Usage {
    fn class(&self) -> Class {
        Class::Request
    }
}

/// A failure of the machine or the server for which there is no error type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MachineFailure(pub(crate) String);

impl Classified for MachineFailure {
    fn class(&self) -> Class {
        Class::Machine
    }
}

/// The work was done with a bad result, which has been printed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadResult {
    /// Thresholds of --fail-if were missed, or verdicts of --fail-on occurred: the texts.
    #[error("{}", .0.join("\n"))]
    Missed(Vec<String>),
    /// Clients or the server were lost: the reasons, and whether the clients' own scripts are the cause.
    #[error("{}", .0.join("\n"))]
    Lost(Vec<String>, Class),
    /// The user interrupted the work.
    #[error("interrupted: the results so far are above")]
    Interrupted,
    /// The user interrupted the work before there were any results.
    #[error("interrupted")]
    Stopped,
    /// The user ended a server that runs until then.
    #[error("interrupted: pgrig dropped the lent databases; templates and kept databases remain")]
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "only a keeper ends so"))]
    Ended,
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(Box::new(Classed {
            class: error.class(),
            context: Vec::new(),
            is_explained_by_log: error.is_explained_by_log(),
            is_lost_server: error.is_lost_server(),
            error: Box::new(error),
        }))
    }
}

impl From<BadResult> for Failure {
    fn from(result: BadResult) -> Self {
        Self::BadResult(result)
    }
}

impl Failure {
    /// Whether the user interrupted the work.
    pub(crate) fn is_interrupt(&self) -> bool {
        match self {
            Self::Error(classed) => classed.class == Class::Interrupted,
            Self::BadResult(BadResult::Interrupted | BadResult::Stopped | BadResult::Ended) => true,
            Self::BadResult(BadResult::Missed(_) | BadResult::Lost(..)) => false,
        }
    }

    /// Whether the user has to change the request.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            Self::Error(classed) => classed.class == Class::Request,
            Self::BadResult(BadResult::Lost(_, class)) => *class == Class::Request,
            Self::BadResult(_) => false,
        }
    }

    /// Whether the server's log may contain details.
    pub(crate) fn is_explained_by_log(&self) -> bool {
        matches!(self, Self::Error(classed) if classed.is_explained_by_log)
    }

    /// Whether the server could not be reached.
    pub(crate) fn is_lost_server(&self) -> bool {
        matches!(self, Self::Error(classed) if classed.is_lost_server)
    }

    /// Whether the reader of standard output has closed it, as in `pgrig server logs | head`.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error, if it is of this type.
    pub(crate) fn error<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Error(classed) => classed.error.downcast_ref(),
            Self::BadResult(_) => None,
        }
    }

    /// Status of a run that ends with this failure.
    pub(crate) fn run_status(&self) -> Status {
        match self {
            Self::BadResult(BadResult::Missed(_)) => Status::Done,
            failure if failure.is_interrupt() => Status::Interrupted,
            _ => Status::Failed,
        }
    }

    /// Notes of a run that ends with this failure.
    pub(crate) fn run_notes(&self) -> Vec<String> {
        match self {
            Self::Error(classed) => vec![classed.error.to_string()],
            Self::BadResult(BadResult::Lost(texts, _) | BadResult::Missed(texts)) => texts.clone(),
            Self::BadResult(BadResult::Stopped) => vec![BadResult::Stopped.to_string()],
            Self::BadResult(BadResult::Interrupted | BadResult::Ended) => Vec::new(),
        }
    }
}

/// The text with its causes; those that the text already holds are not repeated.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classed = match self {
            Self::Error(classed) => classed,
            Self::BadResult(result) => return result.fmt(f),
        };
        let mut text = String::new();
        let mut add = |cause: String| match &mut text {
            text if text.is_empty() => *text = cause,
            text if text.contains(&cause) => {}
            text => {
                text.push_str(": ");
                text.push_str(&cause);
            }
        };
        classed.context.iter().rev().cloned().for_each(&mut add);
        let mut next: Option<&(dyn Error + 'static)> = Some(&*classed.error);
        while let Some(error) = next {
            add(error.to_string());
            next = error.source();
        }
        f.write_str(&text)?;
        // EMFILE, as Rust shows errors of the operating system.
        let is_of_limit = text.ends_with("(os error 24)");
        f.write_str(if is_of_limit {
            ": raise the limit (ulimit -n 4096), or give fewer clients"
        } else {
            ""
        })
    }
}

/// Adds to an error the step in which it occurred.
pub(crate) trait Context<T> {
    /// In a few words.
    fn context(self, doing: impl Into<String>) -> Result<T, Failure>;

    /// The same, put together only if it failed.
    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Context<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T, Failure> {
        self.map_err(|error| {
            let mut failure = error.into();
            if let Failure::Error(classed) = &mut failure {
                classed.context.push(doing().into());
            }
            failure
        })
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, doing: impl Into<String>) -> Result<T, Failure> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, missing: impl FnOnce() -> S) -> Result<T, Failure> {
        self.ok_or_else(|| MachineFailure(missing().into()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once_and_context_keeps_the_class() {
        let wrong: Result<(), Usage> = Err(Usage("no such file".to_owned()));
        let failure = wrong.context("cannot read --json x: no such file").context("outer").unwrap_err();
        assert!(failure.is_usage() && !failure.is_interrupt());
        assert_eq!(failure.to_string(), "outer: cannot read --json x: no such file");
    }

    #[test]
    fn missed_thresholds_do_not_spoil_the_run() {
        assert_eq!(Failure::from(BadResult::Missed(Vec::new())).run_status(), Status::Done);
        assert_eq!(Failure::from(BadResult::Stopped).run_status(), Status::Interrupted);
        assert_eq!(Failure::from(MachineFailure(String::new())).run_status(), Status::Failed);
    }
}
