//! `pgrig testdb`'s arguments.

mod bench;
mod lend;
mod unlog;

use clap::{Args, Subcommand};

pub(crate) use bench::BenchArgs;
pub(crate) use lend::{DropArgs, KeepArgs, KeeperArgs, ListArgs, LoanFormat, NewArgs, ServeArgs};
pub(crate) use unlog::{Compress, UnlogArgs};

/// Databases for integration tests: make them fast, prove it, and have a fresh one in milliseconds.
#[derive(Debug, Args)]
pub(crate) struct TestdbArgs {
    #[command(subcommand)]
    pub(crate) action: TestdbAction,
}

impl TestdbArgs {
    /// Whether standard output is for a program alone: for JSON, a dump, or the shell's eval.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match &self.action {
            TestdbAction::Bench(bench) => bench.json.as_deref() == Some("-"),
            TestdbAction::Unlog(unlog) => !unlog.is_live(),
            TestdbAction::New(_) | TestdbAction::Serve(_) => true,
            TestdbAction::List(list) => list.json,
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TestdbAction {
    /// Make tables unlogged: in a live database, or in a dump on its way
    Unlog(Box<UnlogArgs>),
    /// Which way of preparing the database makes your test command faster, measured
    Bench(Box<BenchArgs>),
    /// A fresh database in milliseconds, for eval in a shell
    New(Box<NewArgs>),
    /// The databases that are lent out or kept, and the templates
    List(Box<ListArgs>),
    /// Keep databases beyond their owners, of failed tests for example
    Keep(Box<KeepArgs>),
    /// Drop databases, templates, or all that is left
    Drop(Box<DropArgs>),
    /// Lend databases over HTTP, for suites that run in parallel
    Serve(Box<ServeArgs>),
}
