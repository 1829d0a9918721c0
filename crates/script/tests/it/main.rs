//! The integration tests of this crate, one program.

mod any_text;
mod expressions;
mod refusals;
mod statements;
mod support;
mod values;
