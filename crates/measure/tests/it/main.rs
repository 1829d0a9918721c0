//! The integration tests of this crate, one program.

mod compare;
mod merge;
mod merge_fill;
mod noise;
mod paired;
mod rate;
mod schema;
mod support;
