//! The integration tests of this crate, one program.

mod compare;
mod merge;
mod noise;
mod paired;
mod rate;
mod schema;
