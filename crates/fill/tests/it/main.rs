//! The integration tests of this crate, one program.

mod foreign_keys;
mod limits;
mod probe;
mod support;
