//! The integration tests of this crate, one program.

mod accidents;
mod plan;
mod runs;
mod scripts;
mod support;
mod watch;
mod wire;
