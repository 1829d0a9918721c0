//! The integration tests of this crate, one program.

mod compare;
mod noise;
mod paired;
mod rate;
mod schema;
