//! The integration tests of this crate, one program.

mod better;
mod directions;
mod enums;
mod forecasts;
mod frameworks;
mod idle;
mod kept;
mod look;
mod migrations;
mod nobody_waits;
mod originals;
mod outside;
mod own_tables;
mod refusals;
mod rowless;
mod rows;
mod sessions;
mod space;
mod stalls;
mod statements;
mod suited;
mod support;
mod tablespaces;
mod ways;
mod workers;
mod zones;
