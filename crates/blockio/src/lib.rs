//! `blockio`: how fast storage is through the database, with SQL alone. Request → plan → trials of steps →
//! outcome.
//!
//! After article 001 ("Benchmarking PostgreSQL block I/O with SQL") and the Complete Block Check that it
//! explains (gregs1104/pgbench-tools, tests/cbc).

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
pub use reference::{Reference, references};
pub use request::{Mode, Request};
pub use run::counters::Io;
pub use run::evict::Eviction;
pub use run::vacuum::Rates;
pub use run::{Observer, clear_leftovers, run};
pub use state::CacheState;
pub use step::{Step, steps};
