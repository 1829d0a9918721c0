//! The engine of `pgrig micro`: which of some SQL expressions is cheaper, and by how many nanoseconds a row.
//!
//! Start reading at `request`, `candidate` and [`run()`]. This crate must not know the other engines, or statistics: the
//! crate `measure` judges the rounds.
//!
//! `request` (of `candidate`s, from arguments or a `suite`) → `plan/` (arms, EXPLAIN read, findings) → `run/` (one session
//! with its settings, rows of a sample, rounds) → `outcome`.
//!
//! - **A candidate is a statement.** Only `candidate` composes SQL: an expression, a statement, and a statement on a table
//!   of its own differ nowhere else. `plan/arms` adds the empty loop and the first candidate again.
//! - **The plan is read before anything is timed.** `plan/plan_tree` is EXPLAIN's JSON. `plan/calls` finds the functions
//!   that the user's text calls, and `plan/inspect` looks for them, by count, in the plan. `plan/literal` recognises
//!   constants. The results are findings (`plan/finding`): data; their kind decides whether one is refused. Each candidate
//!   is executed once, in a transaction that is rolled back, to find costs, spills, triggers and compilation.
//! - **A sample** is one prepared statement, from the moment at which it is sent until the server is ready again, on a
//!   runtime of one thread. A round begins with work that is not timed: new tables, a checkpoint, parsing.
//! - **Everything made has pgrig's mark in its comment** (`run/scratch`), and is dropped at the end or by the next run.
//!   `server::marked` drops no table without the mark. The user's --teardown comes first, however the run ends.
//! - `run/calibrate` is the article's table, `save` the article's schema.
//!
//! After article 004 ("PostgreSQL: Accurately Benchmarking Features Which Take Very Little Time").

mod candidate;
mod error;
mod outcome;
mod plan;
mod request;
mod run;
mod save;
mod suite;

pub use candidate::{Body, Candidate, FILL, ROWS, TABLE};
pub use error::MicroError;
pub use outcome::{Outcome, ROUND};
pub use plan::arms::EMPTY;
pub use plan::finding::{Finding, Kind};
pub use plan::{ArmPlan, LeftOut, Plan, Role};
pub use request::{MOST_ROWS, Request};
pub use run::calibrate::{Calibration, Conclusion, Point, ROWS as CALIBRATED_ROWS};
pub use run::rounds::Round;
pub use run::scratch::SCHEMA;
pub use run::session::Given;
pub use run::{Ended, Observer, RunProgress, calibrate, explain, run};
pub use save::{Saved, check as check_saving, save};
pub use suite::{Suite, shipped};
