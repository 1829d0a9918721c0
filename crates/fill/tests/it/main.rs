//! The integration tests of this crate, one program.

mod limits;
mod probe;
