//! The integration tests of this crate, one program.

mod composite_keys;
mod foreign_keys;
mod limits;
mod looks;
mod partitions;
mod probe;
mod schema_sizes;
mod schema_triggers;
mod support;
mod toast;
mod triggers;
mod types;
