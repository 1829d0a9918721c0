//! The engine of `pgrig blockio`: how fast storage is through the database, with SQL alone.
//!
//! Start reading at `request`, `plan` and [`run()`]. This crate must not know the other engines, or how results are printed.
//!
//! `request` → `plan` (sizes in relation to memory, eviction; refusals) → `run/` (trial after trial, cancelled and cleaned
//! up after) → `outcome` → run document.
//!
//! - **Steps are data** (`step`): an action, the blocks that it cannot avoid to read and write, and whether the table is
//!   evicted before it. pgrig's steps and the published ones are two lists of the same type, and one loop runs both. A test
//!   compares the published list with the published script.
//! - `run/client` is one client's session; it times the statement alone. The leading session reads the counters
//!   (`run/counters`: pg_stat_database, pg_stat_io, WAL position) before and after a step, never during one. EXPLAIN
//!   reports the blocks that a query touched (`run/explain`), VACUUM its rates (`run/vacuum`).
//! - **Everything is journalled** (`run/scratch`): the table `pgrig_blockio`, made first, lists tables, schema and
//!   extension. The next run believes a journal that its own role owns, and drops the listed objects before it plans.
//!   Advisory locks show whether another run is still at work there.
//! - `state` decides whether data was cached, OS-warm or cold. `reference` has published machines, `baseline` puts a saved
//!   run beside this one, without a verdict.
//!
//! After article 001 ("Benchmarking PostgreSQL block I/O with SQL") and the Complete Block Check that it explains
//! (gregs1104/pgbench-tools, tests/cbc).

mod baseline;
mod error;
mod outcome;
mod plan;
mod reference;
mod request;
mod run;
mod state;
mod step;

pub use baseline::{Baseline, Compared};
pub use error::{BlockioError, Needed};
pub use outcome::{Blocks, Done, End, Outcome, Sizes, TOTAL, Timed, client_config};
pub use plan::{Names, Plan, Predicted, SCHEMA};
pub use reference::{Published, Reference, references};
pub use request::{Mode, Request};
pub use run::counters::Io;
pub use run::evict::Eviction;
pub use run::vacuum::Rates;
pub use run::{Observer, clear_leftovers, run};
pub use state::CacheState;
pub use step::{Step, steps};
