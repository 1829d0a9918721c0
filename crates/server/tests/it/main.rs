//! The integration tests of this crate, one program.

mod settings;
mod volume;
