//! Makes the tables of a dump unlogged.

use std::io::{Read, Write};

use crate::{DumpError, Piece, TableName};

/// Whether sequences are made unlogged too; PostgreSQL can from 15 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequences {
    /// If the dump's header says that it is of such a server.
    #[default]
    AsDumped,
    /// Always.
    Unlogged,
    /// Never.
    Left,
}

/// What is wanted of an [`Unlogger`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tables to leave as they are. What they reference is then left too.
    pub keep: Vec<TableName>,
    /// Whether sequences are made unlogged.
    pub sequences: Sequences,
}

/// What a first pass over a dump found: which tables reference which, and which must stay as they are.
#[derive(Debug, Default)]
pub struct Survey {}

impl Survey {
    /// Reads a whole dump.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(_input: impl Read) -> Result<Self, DumpError> {
        todo!()
    }
}

/// Says where `UNLOGGED ` goes into the statements of a dump.
pub struct Unlogger {}

impl Unlogger {
    /// For a dump that can be read only once: what comes too late to be known is an error then.
    pub fn in_one_pass(_options: Options) -> Self {
        todo!()
    }

    /// For a dump that was read before.
    ///
    /// # Errors
    /// If a table to keep is not in the dump.
    pub fn after(_survey: &Survey, _options: Options) -> Result<Self, DumpError> {
        todo!()
    }

    /// Where in this piece `UNLOGGED ` is to be inserted, if it is. All pieces of the dump are to be shown, in order.
    ///
    /// # Errors
    /// In one pass, if a table that has been made unlogged must not be.
    pub fn look(&mut self, _piece: Piece<'_>) -> Result<Option<usize>, DumpError> {
        todo!()
    }

    /// Writes the dump with its tables unlogged.
    ///
    /// # Errors
    /// If it cannot be read or written, or see [`Unlogger::look`].
    pub fn rewrite(self, _input: impl Read, _output: impl Write) -> Result<Summary, DumpError> {
        todo!()
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Tables made unlogged.
    pub tables: u64,
    /// Sequences made unlogged; those of identity columns follow their tables by themselves.
    pub sequences: u64,
}
