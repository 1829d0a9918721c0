//! The integration tests of this crate, one program.

mod forecasts;
mod migrations;
mod statements;
mod support;
