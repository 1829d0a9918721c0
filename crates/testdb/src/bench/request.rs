//! The request of a bench.

use std::path::Path;

use crate::bench::run::bench_server::Content;
use crate::bench::run::command::{Output, TestCommand};
use crate::bench::run::tmpfs::Tmpfs;
use crate::bench::variant::Variant;
use connect::Target;
use server::settings::ServerRef;
use tps::Request;

/// The work that is measured on each database.
pub enum Work {
    /// The user's command, once.
    Command(TestCommand, Output),
    /// A script of transactions, with each of these numbers of clients.
    Tps(Box<Request>, Vec<usize>),
}

/// The request: variants, content, work.
pub struct BenchRequest {
    /// The content of the databases.
    pub content: Content,
    /// The test command, or transactions.
    pub work: Work,
    /// The variants; none: the defaults, as far as they are possible.
    pub variants: Option<Vec<Variant>>,
    /// Rounds that are judged.
    pub trials: usize,
    /// Whether a round that is not judged comes first.
    pub warm_up: bool,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Whether a crash may destroy data of other databases on a server that is not pgrig's own.
    pub allow_dangerous: bool,
}

/// Server, journals and log of a bench.
pub struct Site<'a> {
    /// The server, and a database that the bench does not change.
    pub target: &'a Target,
    /// The server's name in the journal.
    pub place: ServerRef,
    /// Directory of the journals.
    pub journals: &'a Path,
    /// `Ok` if the server is pgrig's own; otherwise how to use pgrig's own.
    pub own: Result<(), String>,
    /// The starter of a server in memory, or the reason why there cannot be one.
    pub tmpfs: Result<&'a dyn Tmpfs, String>,
}
