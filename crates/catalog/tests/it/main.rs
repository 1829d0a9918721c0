//! The integration tests of this crate, one program.

mod refusals;
mod support;
mod tables;
