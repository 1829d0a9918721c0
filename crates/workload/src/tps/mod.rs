//! `tps`: transactions per second and latency of pgbench scripts.

mod outcome;
mod request;
pub mod watch;

pub use outcome::{
    Counts, End, Failed, LostClient, Measured, MeasuredCommand, MeasuredScript, Outcome, Phase, Second,
};
pub use request::{Connecting, Length, Protocol, Request};

/// Told of a run's progress, from one thread.
pub trait Observer: Sync {
    /// A second is over.
    fn second(&self, second: &Second);
}
