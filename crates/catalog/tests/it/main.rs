//! The integration tests of this crate, one program.

mod defaults;
mod keys;
mod left_to_server;
mod many;
mod partial;
mod partition_checks;
mod partition_keys;
mod refusals;
mod sampled;
mod spread;
mod support;
mod tables;
