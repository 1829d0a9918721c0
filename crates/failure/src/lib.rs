//! Class of an error. Each error type of pgrig knows its own class, from which the exit status follows.
//!
//! It knows no error type. Start reading at [`Classified`].

use std::error::Error;

/// Cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request: another one is the remedy (exit status 2).
    Request,
    /// The server or the machine (exit status 1).
    Machine,
    /// The user interrupted the work (exit status 130).
    Interrupted,
}

/// An error that knows its class.
pub trait Classified: Error + Send + Sync + 'static {
    /// The class of the error, from which the exit status follows.
    fn class(&self) -> Class;

    /// Whether another request is the remedy.
    fn is_usage(&self) -> bool {
        self.class() == Class::Request
    }

    /// Whether the user interrupted the work.
    fn is_interrupt(&self) -> bool {
        self.class() == Class::Interrupted
    }

    /// Whether the server cannot be reached: if it has ended, the reason of its end is that of the error.
    fn is_lost_server(&self) -> bool {
        false
    }

    /// Whether the server's log may say more: a statement failed that should not.
    fn is_explained_by_log(&self) -> bool {
        false
    }
}

impl Classified for std::io::Error {
    fn class(&self) -> Class {
        Class::Machine
    }
}
