//! Tokens of SQL as psql and the server find them: strings, quoted names, dollar quotes, comments, words.
//!
//! Everything that pgrig reads of SQL starts from these tokens: dumps, `CHECK` conditions, the files of `fill --ddl`
//! and the functions that candidates of `micro` call. The language of pgbench's scripts has a lexer of its own, in the
//! crate `script`.
//!
//! This crate knows no grammar: it knows neither the end of a statement nor the meaning of a word. It reads bytes, in any
//! encoding that a client can have, whole or as far as they have arrived. No database, no async, no clock, no files.
//!
//! Start reading at [`Text::token`]. [`Syntax`] has the settings that decide where tokens end, and [`name()`] gives the
//! name that a token stands for.

mod name;
mod syntax;
mod token;
#[cfg(test)]
mod token_tests;

pub use name::name;
pub use syntax::{Backslash, Characters, Syntax};
pub use token::{Kind, Text, Unterminated, is_blank};
