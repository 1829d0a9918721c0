//! `tps`: transactions per second and latency of pgbench scripts.

mod document;
mod error;
pub mod matrix;
mod outcome;
mod plan;
mod request;
pub mod watch;
pub mod wire;

pub use document::TPS;
pub use error::TpsError;
pub use outcome::{
    Counts, End, Failed, KeptSecond, LostClient, Measured, MeasuredCommand, MeasuredScript, Outcome, Phase,
    Second,
};
pub use plan::{Parsed, Plan};
pub use request::{Connecting, Length, Protocol, Request};

/// Told of a run's progress, from one thread.
pub trait Observer: Sync {
    /// A second is over.
    fn second(&self, second: &Second);
}

/// STUB
pub async fn run(
    _: &crate::connect::Target,
    _: &Plan,
    _: &dyn Observer,
    _: impl Future<Output = ()>,
) -> Result<Outcome, TpsError> {
    Err(TpsError::Interrupted)
}
