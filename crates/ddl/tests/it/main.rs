//! The integration tests of this crate, one program.

mod better;
mod forecasts;
mod frameworks;
mod migrations;
mod space;
mod stalls;
mod statements;
mod support;
mod tablespaces;
