//! `micro`: which of some SQL expressions is cheaper, and by how many nanoseconds a row. Request → session →
//! plans inspected → rows of a sample → rounds → judged by the crate measure.
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
pub use plan::arms::{EMPTY, REPEAT};
pub use plan::finding::{Finding, Kind};
pub use plan::{ArmPlan, LeftOut, Plan, Role};
pub use request::{MOST_ROWS, Request};
pub use run::calibrate::{Calibration, Conclusion, Point, ROWS as CALIBRATED_ROWS};
pub use run::rounds::Round;
pub use run::scratch::SCHEMA;
pub use run::session::Given;
pub use run::{Ended, Observer, Outlook, calibrate, explain, run};
pub use save::{Saved, check as check_saving, save};
pub use suite::{Suite, shipped};
