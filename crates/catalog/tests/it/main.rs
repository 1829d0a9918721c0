//! The integration tests of this crate, one program.

mod refusals;
mod sampled;
mod support;
mod tables;
