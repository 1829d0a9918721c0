//! Writes the dump with its tables made unlogged.

use std::io::{Read, Write};

use crate::survey::{Note, Notes};
use crate::{DumpError, Piece, Reader, Summary, UNLOGGED, Unlogger};

impl Unlogger {
    /// Writes the dump with its tables unlogged. After a [`Survey`](crate::Survey), pieces that do
    /// not matter are copied without being parsed.
    ///
    /// # Errors
    /// If it cannot be read or written, or is not the dump that was surveyed; see [`Unlogger::look`] and
    /// [`Unlogger::finish`] too.
    pub fn rewrite(self, input: impl Read, output: impl Write) -> Result<Summary, DumpError> {
        self.rewrite_reader(Reader::new(input), output)
    }

    pub(crate) fn rewrite_reader(
        mut self,
        mut input: Reader<impl Read>,
        mut output: impl Write,
    ) -> Result<Summary, DumpError> {
        match self.notes.take() {
            Some(notes) => self.follow(&notes, &mut input, &mut output)?,
            None => self.search(&mut input, &mut output)?,
        }
        output.flush().map_err(DumpError::Write)?;
        self.finish()
    }

    fn search(&mut self, input: &mut Reader<impl Read>, output: &mut impl Write) -> Result<(), DumpError> {
        loop {
            output.write_all(input.rows()).map_err(DumpError::Write)?;
            let Some(piece) = input.next()? else { return Ok(()) };
            self.write(piece, output)?;
        }
    }

    fn follow(
        &mut self,
        notes: &Notes,
        input: &mut Reader<impl Read>,
        output: &mut impl Write,
    ) -> Result<(), DumpError> {
        let mut at = 0;
        for note in &notes.all {
            match note {
                Note::Remarks(remarks) => self.remember(*remarks),
                Note::Piece(place) => {
                    copy(input, output, place.start - at)?;
                    let is_it = |piece: &Piece<'_>| piece.bytes().len() as u64 == place.end - place.start;
                    let piece = input.next()?.filter(is_it);
                    self.write(piece.ok_or(DumpError::Changed)?, output)?;
                    at = place.end;
                }
            }
        }
        copy(input, output, notes.length - at)?;
        if input.uncut(1)?.is_empty() { Ok(()) } else { Err(DumpError::Changed) }
    }

    fn write(&mut self, piece: Piece<'_>, output: &mut impl Write) -> Result<(), DumpError> {
        let bytes = piece.bytes();
        match self.look(piece)? {
            Some(at) => {
                [&bytes[..at], UNLOGGED, &bytes[at..]].iter().try_for_each(|part| output.write_all(part))
            }
            None => output.write_all(bytes),
        }
        .map_err(DumpError::Write)
    }
}

/// Copies the next `length` bytes, which end between two pieces.
fn copy(input: &mut Reader<impl Read>, output: &mut impl Write, length: u64) -> Result<(), DumpError> {
    let mut left = length;
    while left > 0 {
        let bytes = input.uncut(usize::try_from(left).unwrap_or(usize::MAX))?;
        if bytes.is_empty() {
            return Err(DumpError::Changed);
        }
        left -= bytes.len() as u64;
        output.write_all(bytes).map_err(DumpError::Write)?;
    }
    Ok(())
}
