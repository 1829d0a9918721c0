//! The integration tests of this crate, one program.

mod defaults;
mod keys;
mod many;
mod partial;
mod partition_checks;
mod refusals;
mod sampled;
mod spread;
mod support;
mod tables;
