//! Input and output of the state machine: requests and facts in, actions and answers out.

use std::path::PathBuf;
use std::time::Duration;

use crate::clone::Strategy;
use crate::lend::api::{Dropped, Refusal};
use crate::lend::owner::Owner;
use crate::lend::tag::Tag;
use crate::lend::time::Time;

/// Number of a request until it is answered; later requests have greater numbers.
pub(in crate::lend) type Ticket = u64;

/// The source of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lend) struct Recipe {
    pub(in crate::lend) from: Origin,
    pub(in crate::lend) unlogged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lend) enum Origin {
    /// A script or an archive.
    File(PathBuf),
    /// A database of the server.
    Database(String),
    /// Nothing: an empty database, as template0.
    Nothing,
}

impl Recipe {
    /// The source as text for people.
    pub(in crate::lend) fn source(&self) -> String {
        let unlogged = if self.unlogged { ", unlogged" } else { "" };
        match &self.from {
            Origin::File(path) => format!("{}{unlogged}", path.display()),
            Origin::Database(name) => format!("database {name}"),
            Origin::Nothing => "empty".to_owned(),
        }
    }
}

/// The terms on which a client wants a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lend) struct Wanted {
    pub(in crate::lend) owner: Option<Owner>,
    /// Length of the lease, from the moment at which the database is lent.
    pub(in crate::lend) length: Option<Duration>,
    pub(in crate::lend) keep: bool,
}

/// A request, or an event that the keeper saw.
#[derive(Debug)]
pub(in crate::lend) enum Fact {
    /// A database of this template is wanted.
    Lend { ticket: Ticket, template: String, recipe: Recipe, wanted: Wanted },
    /// The template is made, or cannot be; whether it holds unlogged tables.
    Made { template: String, made: Result<bool, Refusal> },
    /// A copy is made, or cannot be.
    Copied { template: String, name: String, strategy: Strategy, copied: Result<Duration, Failed> },
    /// A comment is written, or cannot be.
    Marked { name: String, change: Change, marked: Result<(), Failed> },
    /// The client of this request is gone.
    Forgotten { ticket: Ticket },
    /// The client was gone before it received this database.
    Unclaimed { name: String },
    /// A database is no longer needed; the answer comes at once, or when it is gone.
    Return { ticket: Ticket, name: String, wait: bool },
    /// The database is to stay until it is dropped by name.
    Keep { ticket: Ticket, name: String },
    /// The lease is to last this long from now.
    Renew { ticket: Ticket, name: String, length: Duration },
    /// A database is dropped, or cannot be.
    Dropped { name: String, dropped: Result<(), Refusal> },
    /// Drop the templates that are not in use.
    DropTemplates { ticket: Ticket },
    /// Drop these databases, which other keepers made.
    DropForeign { ticket: Ticket, names: Vec<String> },
    /// Drop all databases, also these of other keepers, and end the keeper.
    DropAll { ticket: Ticket, foreign: Vec<String> },
    /// A process exited.
    OwnerGone(Owner),
    /// Time has passed.
    TimePassed,
    /// End the keeper.
    Shutdown,
}

/// Why a statement about a database failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lend) enum Failed {
    /// The database, or the one to copy, is not there: somebody else dropped it.
    Missing,
    /// A failure with any other cause.
    Other(Refusal),
}

impl Failed {
    pub(super) fn told(self) -> Refusal {
        match self {
            Self::Missing => Refusal::new(409, "the database was dropped", "request another one"),
            Self::Other(refusal) => refusal,
        }
    }
}

/// Purpose of a mark.
#[derive(Clone, Debug)]
pub(in crate::lend) enum Change {
    /// The database is lent.
    Lend(Ticket, Wanted),
    /// The terms of its lease change.
    Terms(Ticket),
}

/// An order to the executor. It reports the result as a [`Fact`].
#[derive(Debug)]
pub(in crate::lend) enum Action {
    /// Make a template.
    Make { template: String, recipe: Recipe, tag: Tag },
    /// Stop making it: nobody waits for it any more.
    Stop { template: String },
    /// Copy it, and give the copy this tag and then this name.
    Copy { template: String, name: String, strategy: Strategy, tag: Tag },
    /// Write the tag of a database, then answer.
    Mark { name: String, tag: Tag, change: Change },
    /// Write the tag of a template; it is not urgent.
    Touch { name: String, tag: Tag },
    /// Drop a database.
    Drop { name: String },
    /// Tell when this process exits.
    Watch(Owner),
    /// Answer a request.
    Answer { ticket: Ticket, answer: Result<Answer, Refusal> },
    /// The keeper's work is done.
    Finish,
}

/// Answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::lend) enum Answer {
    /// A database is lent, until then.
    Lent { name: String, until: Option<Time> },
    /// The terms of its lease have changed.
    Changed { name: String, until: Option<Time> },
    /// Its lease has ended.
    Returned,
    /// These databases were dropped, or could not be.
    Dropped(Dropped),
}

/// Number of databases in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lend) struct Counts {
    pub(in crate::lend) lent: usize,
    pub(in crate::lend) kept: usize,
    pub(in crate::lend) spare: usize,
    pub(in crate::lend) templates: usize,
    pub(in crate::lend) waiting: usize,
}
