//! pg_dump's plain SQL, read as a stream: what is a statement, and what only looks like one.
//!
//! [`Reader`] cuts a dump into [`Piece`]s where psql would; [`Unlogger`] makes the tables that it creates unlogged, and
//! a [`Survey`] tells beforehand which of them cannot be. No database, no async, no clock: bytes in, bytes out, in
//! memory that only the largest statement and the number of tables bound.

mod cut;
mod error;
mod fact;
mod name;
mod parse;
mod piece;
mod reader;
#[cfg(test)]
mod reader_tests;
mod remarks;
mod rewrite;
mod summary;
mod survey;
mod syntax;
mod unlogger;
#[cfg(test)]
mod unlogger_tests;

pub use error::{DumpError, Within};
pub use name::TableName;
pub use piece::Piece;
pub use reader::Reader;
pub use summary::{Left, Summary, Why};
pub use survey::Survey;
pub use unlogger::{Options, Sequences, UNLOGGED, Unlogger};
