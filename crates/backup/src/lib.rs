//! The engine of `pgrig backup`: the cost of backups and restores of a database, each one restored and verified.
//!
//! ```text
//! Request (Ways) ─▶ Plan (ways that are possible here) ─▶ run: in rounds, each way: back up ─▶ restore ─▶ verify ─▶ Outcome
//! ```
//!
//! - [`Way`] is one way to make a backup: format, compression, jobs. [`Programs`] are the client programs that make it.
//! - `run/`: `source` holds the snapshot of the database and its content's hashes; `step` runs programs and measures them; `scratch`
//!   owns the servers into which backups are restored; `dump` and `base` restore one; `verify` compares.
//! - [`Outcome`]: trials, ways that failed, and the front of ways that no other one beats.
//!
//! - [`check`] reads a backup that is there, and says whether it is whole.
//!
//! Start reading at [`rehearse()`] and [`check::check()`]. A composition: it may use `pgserver`. It must not know the command line or how a run document is saved.

pub mod check;
mod error;
mod outcome;
mod plan;
mod programs;
mod request;
mod run;
mod way;

pub use error::BackupError;
pub use outcome::{Outcome, Summary, Trial, Verified, Witness};
pub use plan::{LeftOut, Plan};
pub use programs::Programs;
pub use request::Request;
pub use run::{Observer, Readiness, Site, plan, rehearse};
pub use way::{Compression, Format, Method, Place, Way};
