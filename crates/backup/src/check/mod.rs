//! `pgrig backup check`: whether a backup is whole.
//!
//! ```text
//! Request ─▶ Plan (kind of the backup, its files) ─▶ run: reads every byte once ─▶ Outcome (verdict, damages, and bytes without a checksum)
//! ```
//!
//! - `format/` reads formats: compression, PostgreSQL's archives, rows of COPY, manifests, WAL, data pages. It knows bytes only.
//! - `run/` reads a backup of each kind.
//! - [`restore`] restores one that is not damaged into a scratch server, and reads that.
//!
//! Reading needs no client programs and no server. Memory is bounded by the longest row, and each loop reads on in the backup, so a damaged
//! one cannot hold it up. Start reading at [`check()`].

mod error;
pub(crate) mod format;
mod outcome;
mod plan;
mod recipe;
mod request;
pub mod restore;
mod run;

use std::sync::atomic::AtomicU64;

pub use error::CheckError;
pub use outcome::{Damage, Gap, Outcome, Verdict};
pub use plan::{Kind, Plan};
pub use request::Request;

use run::Watch;

/// Finds the kind of the backup. Reads only its beginning.
///
/// # Errors
/// If it cannot be read, or is not a backup.
pub fn plan(request: &Request) -> Result<Plan, CheckError> {
    Plan::new(request)
}

/// Reads the backup to its end, and counts the bytes of its files in `read`. Writes nothing, so it may be left at any time.
///
/// # Errors
/// If it cannot be read; damage is no error.
pub fn check(plan: &Plan, read: &AtomicU64) -> Result<Outcome, CheckError> {
    run::check(plan, &Watch::new(read))
}
