//! The engine of `pgrig testdb`: databases for integration tests, made fast, lent, and measured with the tests that use
//! them.
//!
//! Start reading at the module of a subcommand: [`lend`] (databases for tests, from templates), [`mod@bench`] (a test command
//! on databases prepared in several ways), [`unlog`] (tables of a live database), [`load`] (a dump or script), [`clone`]
//! (ways to copy a database). This crate may use engines (`bench` runs `tps`); no engine may use it. It must not know the
//! command line, how a run document is saved, or how a server is started: the caller starts one in memory for it.
//!
//! - [`source`] opens a file of any format (plain, gzip, zstd, pg_restore's archives) and hashes it; [`load`] runs it in a
//!   database. A thread reads, at most eight parts ahead, and the session executes. Memory is bounded by the reader's
//!   buffer and the largest statement. [`sink`] writes a dump.
//! - [`unlog`]: `request` → `plan` (steps, each one statement, printed by `--explain`) → `run` (one transaction).
//! - [`clone`] knows the ways to copy a database, and finds the fastest.
//! - [`mod@bench`]: `request` and `variant`s (sets of means) → `plan` → `run/` (a `bench_server` is a server with templates, settings and
//!   the `databases` of a trial; `command` is the user's) → `outcome` (verdicts and advice, without a server). Everything
//!   that a run makes is named after a database of its own, which says so in its comment and to which the run is
//!   connected: the next bench drops whatever has no connected run.
//! - [`lend`]: leases of databases. A keeper process manages the databases of one server; `lend`'s page explains it.
//!   It has no `request` → `plan` → `run` → `outcome`: a keeper serves many requests at the same time until it ends, and each result
//!   changes its next decisions. A loop (`keeper`) takes the place of that sequence. `api` has the requests and the responses,
//!   `state` decides as a plan does (without database, clock and I/O), and `executor` acts as a run does.
//!
//! After the articles "Speeding Up Integration Tests with PostgreSQL" and its follow-up.

mod archive;
pub mod bench;
pub mod clone;
#[cfg(feature = "serve")]
pub mod lend;
pub mod load;
pub mod sink;
pub mod source;
pub mod unlog;

pub use server::Session;
