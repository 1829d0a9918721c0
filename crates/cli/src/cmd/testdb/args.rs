//! `pgrig testdb`'s arguments.

use clap::{Args, Subcommand};

use crate::app::args::{SaveArgs, ServerChoice};
use crate::app::overlap::Files;

pub(crate) use crate::cmd::testdb::bench::args::BenchArgs;
#[cfg(feature = "serve")]
use crate::cmd::testdb::lend::args::LendAction;
pub(crate) use crate::cmd::testdb::unlog::args::{Compress, UnlogArgs};

#[cfg(feature = "serve")]
const EXAMPLES: &str = "Examples:\n  \
    pgrig testdb bench --from schema.sql -- sh suite.sh\n  \
    eval \"$(pgrig testdb new --from schema.sql)\"\n  \
    pgrig testdb unlog schema.sql -o unlogged.sql";
#[cfg(not(feature = "serve"))]
const EXAMPLES: &str = "Examples:\n  \
    pgrig testdb bench --from schema.sql -- sh suite.sh\n  \
    pgrig testdb unlog schema.sql -o unlogged.sql";

/// Databases for tests: find the settings that make tests faster, lend a fresh database to each test, make tables unlogged
///
/// new, serve, list, keep and drop manage databases for tests. A database is lent (in use by a test), kept (stays
/// until you drop it), spare (made in advance) or a template (the source of copies). A process in the background, the keeper, makes spares, and drops each
/// lent database when its owning process exits or its lease ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestdbArgs {
    #[command(subcommand)]
    pub(crate) action: TestdbAction,
}

impl TestdbArgs {
    /// The server that the subcommand works on; none if it uses no server.
    pub(crate) fn server(&self) -> Option<ServerChoice> {
        Some(match &self.action {
            TestdbAction::Unlog(unlog) if !unlog.is_live() => return None,
            TestdbAction::Unlog(unlog) => unlog.server.clone(),
            TestdbAction::Bench(bench) => bench.server(),
            #[cfg(feature = "serve")]
            TestdbAction::Lend(lend) => lend.server().clone(),
        })
    }

    /// Options of the run document, if the subcommand measures.
    pub(crate) fn save(&self) -> Option<&SaveArgs> {
        match &self.action {
            TestdbAction::Bench(bench) => Some(&bench.save),
            TestdbAction::Unlog(_) => None,
            #[cfg(feature = "serve")]
            TestdbAction::Lend(_) => None,
        }
    }

    /// Adds the files that the subcommand names. `unlog` may replace its input: it writes a whole dump beside it first.
    pub(crate) fn files(&self, files: Files) -> Files {
        #[cfg(feature = "serve")]
        if let TestdbAction::Lend(LendAction::Serve(serve)) = &self.action {
            return files.reads("--from", &serve.from).writes("--ready-file", &serve.ready_file);
        }
        let TestdbAction::Bench(bench) = &self.action else { return files };
        files.reads("--from", &bench.from).reads("--tps", &bench.tps)
    }

    /// Whether this is the background process that lends databases.
    pub(crate) fn is_background(&self) -> bool {
        match &self.action {
            #[cfg(feature = "serve")]
            TestdbAction::Lend(lend) => lend.is_background(),
            _ => false,
        }
    }

    /// Whether standard output is only for a program: for JSON, a dump, or a shell's eval.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match &self.action {
            TestdbAction::Bench(bench) => bench.save.is_to_stdout(),
            TestdbAction::Unlog(unlog) => !unlog.is_live(),
            #[cfg(feature = "serve")]
            TestdbAction::Lend(lend) => lend.json_to_stdout(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TestdbAction {
    Unlog(Box<UnlogArgs>),
    Bench(Box<BenchArgs>),
    #[cfg(feature = "serve")]
    #[command(flatten)]
    Lend(LendAction),
}
