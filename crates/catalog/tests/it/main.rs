//! The integration tests of this crate, one program.

mod defaults;
mod partial;
mod refusals;
mod sampled;
mod support;
mod tables;
