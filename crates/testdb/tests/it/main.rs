//! The integration tests of this crate, one program.

mod clone;
mod live;
mod load;
mod support;
