//! The engine of `pgrig backup`: the cost of backups and restores of a database, each one restored and verified.
//!
//! ```text
//! Request (Ways) ─▶ Plan (ways that are possible here) ─▶ run: in rounds, each way: back up ─▶ restore ─▶ verify ─▶ Outcome
//! ```
//!
//! - [`Way`] is one way to make a backup: format, compression, jobs. [`Programs`] are the client programs that make it.
//! - [`Tool`] is another tool as a way: two commands with placeholders, which `run/tool.rs` runs.
//! - `run/`: `source` holds the snapshot of the database and its content's hashes; `step` runs programs and measures them; `scratch`
//!   owns the servers into which backups are restored (`instances` starts and deletes them, `memberships` are those of their roles); `dump` and `base` restore one; `verify` compares, with `sequences` and `large` objects;
//!   `others` reads the other databases of a base backup; `logins` keeps event triggers at login from writing rows; `probe` looks up rows meanwhile; `tablespaces` are moved into a restored data directory; `postmaster` finds the process of the original's server, `room` the space that it needs; `locked` names the sessions that lock tables, `lost` says which ways keep their trials if the original ends, `extensions` which ones a scratch server cannot restore; `network` makes one more backup through a `relay` that counts bytes. `load` runs transactions on a database that pgrig has made, `receiver` receives their WAL, `wal`
//!   measures it, `held` measures the row versions that the snapshot of a dump keeps meanwhile, and `pitr` replays WAL up to a `point` in
//!   time (`recovery`).
//! - [`rehearse_sizes()`] does so at three sizes of data that pgrig makes by a [`Shape`]; `forecast` finds the cost at the user's size.
//! - [`Outcome`]: trials, ways that failed, and the front of ways that no other one beats.
//!
//! - [`check`] reads a backup that is there, and says whether it is whole.
//!
//! Start reading at [`rehearse()`] and [`check::check()`]. A composition: it may use `pgserver`, `fill` and `tps`. It must not know the command line or how a run document is saved.

mod beside;
pub mod check;
mod error;
mod forecast;
mod front;
mod held;
mod load;
mod network;
mod outcome;
mod plan;
mod programs;
mod request;
mod run;
mod shape;
mod tool;
mod verified;
mod way;

pub use beside::{Beside, Lookups};
pub use error::{BackupError, Instead};
pub use forecast::{Day, Forecast, Rto};
pub use held::Held;
pub use load::{Compressed, Load, WalOfLoad};
pub use measure::forecast::{Boundary, Cause, Figure};
pub use network::Network;
pub use outcome::{Cpu, DataSize, Increment, Outcome, Recovery, Summary, Trial};
pub use plan::{BACKUP_RATE, LeftOut, Plan, RESTORE_RATE, Sizes};
pub use programs::Programs;
pub use request::{Request, SizesRequest};
pub use run::{Observer, Readiness, Site, SizesSite, plan, plan_sizes, rehearse, rehearse_sizes};
pub use shape::Shape;
pub use tool::{Tool, ToolError};
pub use verified::{Verified, Witness};
pub use way::{CompressedBy, Compression, Format, Method, Way};
