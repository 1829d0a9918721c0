//! `tps`: transactions per second and latency of pgbench scripts.

mod document;
mod error;
pub mod matrix;
mod observer;
mod outcome;
mod plan;
mod request;
mod run;
pub mod watch;

pub use document::TPS;
pub use error::TpsError;
pub use observer::{Debugged, Observer};
pub use outcome::{
    Counts, End, Failed, KeptSecond, LostClient, Measured, MeasuredCommand, MeasuredScript, Outcome, Phase,
    Second,
};
pub use plan::{Parsed, Plan};
pub use request::{Connecting, Length, Protocol, Request};
pub use run::{run, wire};
