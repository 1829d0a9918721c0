//! The integration tests of this crate, one program.

mod better;
mod forecasts;
mod frameworks;
mod migrations;
mod originals;
mod outside;
mod own_tables;
mod refusals;
mod space;
mod stalls;
mod statements;
mod suited;
mod support;
mod tablespaces;
mod workers;
