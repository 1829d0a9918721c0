//! A suite beside itself on databases prepared in several ways.
//!
//! [`Variant`]s are sets of [`Means`]. [`check`] says what cannot be tried on a server; [`run`] makes templates, and
//! then, round by round in balanced order, a database for each trial, on which the user's [`TestCommand`] (or a script
//! of transactions) is timed. A `Lab` is a server with all that is made and changed there. [`judge`] tells what
//! helped, and [`advise`] what to use.

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
pub use run::command::{Output, TestCommand};
pub use run::lab::{Active, Content};
pub use run::tmpfs::{Tmpfs, Volatile, has_room, places};
pub use run::{BenchObserver, Done, Failure, run};
pub use variant::{Choice, Means, Missing, Variant};
