//! Databases that are lent: fresh ones, in milliseconds, dropped when their owner exits or their time is over.
//!
//! ```text
//!  client ─── HTTP ──▶ http ─▶ routes ─▶ keeper (loop) ─▶ state: facts in, actions out
//!  curl, tests ────────▲                    │  ▲
//!                                           ▼  │ results
//!                                          executor ─▶ PostgreSQL: templates, spares, leases
//! ```
//!
//! A **keeper** has the templates of one server, makes spare copies of those that are in use, lends them, and drops them
//! when their lease ends. `state` is its state machine, without clock and database; `executor` runs the SQL. There is
//! one keeper process for each PGRIG_HOME and server: flock(2) in `PGRIG_HOME/testdb/<id>/`, beside its socket and log.
//! Its id is made of machine-id, host name, pid namespace, PGRIG_HOME and the server's name; an advisory lock on the
//! server decides between two keepers of the same id. `new`, `list`, `keep` and `drop` are its clients and start it if
//! it does not run. `serve` is the same keeper in the foreground; one in the background retires for it. pgrig's own
//! server belongs to the keeper that starts it.
//!
//! **The server holds all state.** The comment of each database (`tag`) has its purpose, keeper, template, owner (pid,
//! start time, boot id, pid namespace) and end. A database that is being made has another name (`name`) and a mark that
//! CREATE DATABASE can set, its connection limit; comment and final name come in one transaction. So a killed keeper
//! loses nothing: the next one reads the comments, drops databases that are unfinished or have no owner any more, and adopts the rest.
//! It first ends the statements that the server still runs for the killed keeper. A database is marked as lent before
//! the client gets it. Marks do not wait for the disk, and a crash of the server empties unlogged tables: spares and
//! unlogged templates from before a crash (`pg_stat_bgwriter.stats_reset` shows one) are dropped.
//!
//! A pidfd tells when an owner exits. If a shell's command substitution runs pgrig, the shell is
//! the owner: the substitution runs the same command as its parent, and its output goes to a pipe
//! that its parent's does not. Similarly, a program that only runs pgrig is not the owner, but the
//! process that started that program.

mod api;
mod client;
mod error;
mod executor;
mod fingerprint;
mod http;
mod keeper;
mod name;
mod owner;
mod routes;
mod socket;
mod state;
mod tag;
mod time;

pub use api::{
    Dropped, Format, Lease, LendRequest, List, Listed, ListedOwner, ListedState, OwnerName, Refusal, Status,
    Which,
};
pub use client::{CallError, Client};
pub use error::LendError;
pub use http::Endpoint;
pub use keeper::{Ended, Keeper, KeeperConfig, Offer};
pub use name::KeeperId;
pub use owner::{Owner, caller};
pub use socket::listen;
pub use state::Rules;
