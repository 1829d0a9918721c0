//! The integration tests of this crate, one program.

mod forecasts;
mod migrations;
mod stalls;
mod statements;
mod support;
