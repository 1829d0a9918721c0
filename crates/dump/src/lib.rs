//! pg_dump's plain SQL, read as a stream: what is a statement, and what only looks like one.
//!
//! [`Reader`] splits a dump into [`Piece`]s as psql does; [`Unlogger`] makes the tables that it creates unlogged. No
//! database, no async, no clock: bytes in, bytes out, in memory that only the largest statement bounds.

mod error;
mod name;
mod piece;
mod reader;
mod unlogger;

pub use error::DumpError;
pub use name::TableName;
pub use piece::Piece;
pub use reader::Reader;
pub use unlogger::{Options, Sequences, Summary, Survey, Unlogger};
