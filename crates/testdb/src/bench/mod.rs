//! A suite beside itself on databases prepared in several ways.
//!
//! [`Variant`]s are sets of [`Means`]. [`check`] says what cannot be tried on a server; [`run`] makes templates, and
//! then, round by round in balanced order, a database for each trial, on which the user's [`TestCommand`] (or a script
//! of transactions) is timed. A `Lab` is a server with all that is made and changed there. [`judge`] tells what
//! helped, and [`advise`] what to use.

mod command;
mod databases;
mod error;
mod judge;
mod lab;
mod request;
mod run;
mod tmpfs;
mod variant;

pub use command::{Output, TestCommand};
pub use error::BenchError;
pub use judge::{Advice, Figures, Finding, Judged, Measured, advise, judge};
pub use lab::{Active, Content};
pub use request::{BenchRequest, Site, Work};
pub use run::{BenchObserver, BenchPlan, Cell, Done, Failure, check, run};
pub use tmpfs::{Tmpfs, Volatile, has_room, places};
pub use variant::{Choice, Means, Missing, Variant};
