//! Compares a test suite on databases that are prepared in several ways.
//!
//! [`Variant`]s are sets of [`Means`]. [`check`] finds the variants that cannot be tried on a
//! server. [`run`] makes templates, then, round by round in balanced order, a database for each
//! trial, and times the user's [`TestCommand`] (or a script of transactions) on it. A `BenchServer` is a
//! server with everything that is created and changed on it. [`judge`] tells which variants are
//! faster, and [`advise`] which one to use.

mod error;
mod outcome;
mod plan;
mod request;
mod run;
mod variant;

pub use error::BenchError;
pub use outcome::{Advice, Figures, Finding, Judged, Measured, advise, judge};
pub use plan::{BenchPlan, Cell, check};
pub use request::{BenchRequest, Site, Work};
pub use run::bench_server::{Active, Content};
pub use run::command::{Output, TestCommand};
pub use run::tmpfs::{Tmpfs, Volatile, has_room, places};
pub use run::{BenchObserver, Done, Failure, run};
pub use variant::{Choice, Means, Missing, Variant};
