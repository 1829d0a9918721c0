//! Cuts a dump into pieces.

use std::io::Read;

use crate::{DumpError, Piece};

/// Reads a dump piece by piece.
pub struct Reader<R> {
    input: R,
}

impl<R: Read> Reader<R> {
    /// At the dump's first byte.
    pub fn new(input: R) -> Self {
        Self { input }
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// If reading fails, the dump ends within something, or it is not what pg_dump writes.
    pub fn next(&mut self) -> Result<Option<Piece<'_>>, DumpError> {
        todo!()
    }

    /// The line on which the piece that was returned last begins, from 1.
    pub fn line(&self) -> u64 {
        todo!()
    }
}
