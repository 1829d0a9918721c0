//! The request of a bench.

use std::path::Path;

use crate::bench::run::bench_server::Content;
use crate::bench::run::command::{Output, TestCommand};
use crate::bench::run::tmpfs::Tmpfs;
use crate::bench::variant::Variant;
use connect::Target;
use server::quote::shell_word;
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

/// The command that dumps a database of the server without its publications, and the option for the dump. An instance of pgrig's own may
/// be stopped after the bench.
pub(crate) fn dump(place: &ServerRef, database: &str) -> String {
    let (start, server) = match place {
        ServerRef::Named(recipe) => (String::new(), shell_word(recipe)),
        ServerRef::Own(instance) => {
            let url = format!("\"$(pgrig server url --instance {instance} {})\"", shell_word(database));
            (format!("pgrig server start --instance {instance} && "), url)
        }
    };
    format!("{start}pg_dump --no-owner --no-publications -d {server} -f FILE, and give --from FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_of_the_database_that_the_user_named() {
        let named = ServerRef::Named("user=me dbname=shop host=/tmp".to_owned());
        assert_eq!(
            dump(&named, "shop"),
            "pg_dump --no-owner --no-publications -d 'user=me dbname=shop host=/tmp' -f FILE, and give --from FILE"
        );
        assert_eq!(
            dump(&ServerRef::Own("old".to_owned()), "my shop"),
            "pgrig server start --instance old && pg_dump --no-owner --no-publications \
             -d \"$(pgrig server url --instance old 'my shop')\" -f FILE, and give --from FILE"
        );
    }
}
