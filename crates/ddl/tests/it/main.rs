//! The integration tests of this crate, one program.

mod migrations;
mod statements;
mod support;
