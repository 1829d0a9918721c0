//! `tps`: transactions per second and latency of pgbench scripts.

mod alarm;
mod answer;
mod carry_out;
mod client;
mod clock;
mod document;
mod error;
mod job;
pub mod matrix;
mod observer;
mod outcome;
mod pace;
mod plan;
mod request;
mod run;
mod session;
mod shell;
mod tally;
mod waiter;
pub mod watch;
pub mod wire;

pub use document::TPS;
pub use error::TpsError;
pub use observer::{Debugged, Observer};
pub use outcome::{
    Counts, End, Failed, KeptSecond, LostClient, Measured, MeasuredCommand, MeasuredScript, Outcome, Phase,
    Second,
};
pub use plan::{Parsed, Plan};
pub use request::{Connecting, Length, Protocol, Request};
pub use run::run;
