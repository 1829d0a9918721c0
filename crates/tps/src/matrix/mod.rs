//! `--matrix`: durability, clients, protocol and settings crossed, in one run whose trials are interleaved.
//!
//! [`Axis`] → [`Cell`]s (their product) → [`rounds`] of trials → [`run`]: sets the cell's settings,
//! checks them, brings the server into the same state before each trial, and measures with
//! [`crate::run`]. After the article "Speeding Up Integration Tests with PostgreSQL" and its
//! follow-up.

mod axis;
mod cell;
mod error;
mod order;
mod plan;
mod run;

pub use axis::{Axis, Durability};
pub use cell::Cell;
pub use error::MatrixError;
pub use order::rounds;
pub use plan::{Matrix, MatrixPlan, ServerFacts};
pub use run::{MatrixObserver, ReadyTrial, Site, run};
