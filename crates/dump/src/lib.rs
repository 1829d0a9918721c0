//! pg_dump's plain SQL, read as a stream: its statements, COPY data and comments.
//!
//! [`Reader`] cuts a dump into [`Piece`]s where psql would; [`Unlogger`] makes the tables that it creates unlogged, and
//! a [`Survey`] finds beforehand which of them must stay logged. No database, no async, no clock: bytes in, bytes out. Memory
//! is bounded by the largest statement and the number of tables.
//!
//! Start reading at [`Reader`]. This crate must not know a server, or where a dump comes from. The crate `sql` finds tokens; `syntax` follows the settings that decide where tokens end,
//! and `cut` finds the end of a piece. All pieces in turn are the input. INSERT statements, which hold only rows, can be had
//! many at a time.
//!
//! `parse` understands only a part of a statement: `fact` (creates, references, publishes) and `remarks` (pg_dump's
//! comments). `survey` collects facts in a first pass, decides which tables must stay logged, and notes the places of
//! statements that matter. `unlogger` decides which text to insert where, and `rewrite` writes: it looks only at the
//! noted places, or at everything if there is only one pass.

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
