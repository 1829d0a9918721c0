//! Cuts a dump into pieces.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use sql::{Syntax, Text};

use crate::cut::{self, Cut, Uncut};
use crate::error::Within;
use crate::syntax;
use crate::{DumpError, Piece};

/// Size of one read, and the most memory that COPY data take.
const BUFFER: usize = 1 << 20;
/// No statement can be longer: PostgreSQL's MaxAllocSize (src/include/utils/memutils.h).
const LONGEST_STATEMENT: usize = 1 << 30;
/// UTF-8's byte order mark, which some editors put first; psql passes over it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a dump piece by piece, in memory that the largest statement bounds.
///
/// It sees statements where psql sees them: not in strings, dollar quotes, comments, names, COPY data and functions'
/// bodies. `standard_conforming_strings` is followed; elsewhere psql's variables and conditions are not: pg_dump
/// writes none.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that has not been returned.
    unread: Range<usize>,
    /// Whether the end of the input has been reached.
    has_ended: bool,
    section: Section,
    syntax: Syntax,
    /// Range in the buffer of the piece that was returned last.
    returned: Range<usize>,
    line: u64,
}

/// Place of the unread bytes in the dump.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Sql,
    CopyData {
        is_at_line_start: bool,
        /// Line of the COPY statement.
        line: u64,
    },
}

impl Section {
    /// Line to report: the line of the COPY statement while its data are read, else `next`.
    fn line(self, next: u64) -> u64 {
        match self {
            Self::CopyData { line, .. } => line,
            Self::Start | Self::Sql => next,
        }
    }
}

impl<R: Read> Reader<R> {
    /// A reader that stands at the dump's first byte.
    pub fn new(input: R) -> Self {
        Self::with_buffer(input, BUFFER)
    }

    /// With a buffer of so many bytes at first.
    pub(crate) fn with_buffer(input: R, bytes: usize) -> Self {
        Self {
            input,
            buffer: vec![0; bytes],
            unread: 0..0,
            has_ended: false,
            section: Section::Start,
            syntax: Syntax::default(),
            returned: 0..0,
            line: 1,
        }
    }

    /// The line on which the piece that was returned last begins, from 1; after an error, about where that is.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// If reading fails, if the dump ends within something, or if it is not as pg_dump writes it.
    #[expect(clippy::should_implement_trait, reason = "the returned piece borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Piece<'_>>, DumpError> {
        self.count_lines();
        let cut = loop {
            match self.cut() {
                Ok(None) => return Ok(None),
                Ok(Some(cut)) => break cut,
                Err(Uncut::Within(_)) if !self.has_ended => self.fill()?,
                Err(uncut) => return Err(self.error(uncut)),
            }
        };
        Ok(Some(self.take(cut)))
    }

    /// The whole INSERT statements that come next in the buffer, with the blanks before each. They
    /// are not returned as pieces: a caller that needs no facts from them reads several times as
    /// fast. Often none are found before [`Reader::next`] is called.
    pub(crate) fn rows(&mut self) -> &[u8] {
        self.count_lines();
        if self.section == Section::Sql {
            let bytes = &self.buffer[self.unread.clone()];
            let text = Text { bytes, is_all: self.has_ended, syntax: self.syntax };
            self.returned = self.unread.start..self.unread.start + cut::rows(text);
            self.unread.start = self.returned.end;
        }
        &self.buffer[self.returned.clone()]
    }

    /// The bytes that come next, at most `most`; none at the end. The caller must know that pieces
    /// end before and after the bytes that it takes in total, and that these set no string
    /// settings.
    ///
    /// # Errors
    /// If reading fails.
    pub(crate) fn uncut(&mut self, most: usize) -> Result<&[u8], DumpError> {
        self.count_lines();
        if self.unread.is_empty() {
            self.fill()?;
        }
        self.section = Section::Sql;
        self.returned = self.unread.start..self.unread.end.min(self.unread.start.saturating_add(most));
        self.unread.start = self.returned.end;
        Ok(&self.buffer[self.returned.clone()])
    }

    /// Counts the lines of the piece that was returned last.
    fn count_lines(&mut self) {
        self.line += newlines(&self.buffer[self.returned.clone()]);
        self.returned = 0..0;
    }

    /// The piece that the unread bytes begin with.
    fn cut(&self) -> Result<Option<Cut>, Uncut> {
        let bytes = &self.buffer[self.unread.clone()];
        let text = Text { bytes, is_all: self.has_ended, syntax: self.syntax };
        match self.section {
            Section::Start if bytes.len() < BYTE_ORDER_MARK.len() && !self.has_ended => {
                Err(Uncut::Within(Within::Token))
            }
            Section::Start if bytes.starts_with(BYTE_ORDER_MARK) => {
                Ok(Some(Cut::Between(BYTE_ORDER_MARK.len())))
            }
            Section::Start | Section::Sql => cut::sql(text),
            Section::CopyData { is_at_line_start, .. } => match cut::copy_data(text, is_at_line_start)? {
                // A row may be a gigabyte: it is not waited for.
                None if bytes.len() == self.buffer.len() => Ok(Some(Cut::CopyData(bytes.len()))),
                None => Err(Uncut::Within(Within::CopyData)),
                some => Ok(some),
            },
        }
    }

    /// Returns a piece, and continues behind it.
    fn take(&mut self, cut: Cut) -> Piece<'_> {
        let (Cut::Between(length)
        | Cut::Statement { length, .. }
        | Cut::Meta(length)
        | Cut::CopyData(length)
        | Cut::CopyEnd(length)) = cut;
        let end = self.unread.start + length;
        self.returned = self.unread.start..end;
        self.unread.start = end;
        let bytes = &self.buffer[self.returned.clone()];
        self.section = match cut {
            Cut::Statement { is_before_data: true, .. } => {
                Section::CopyData { is_at_line_start: true, line: self.line }
            }
            Cut::CopyData(_) => Section::CopyData {
                is_at_line_start: bytes.ends_with(b"\n"),
                line: self.section.line(self.line),
            },
            Cut::Between(_) | Cut::Statement { .. } | Cut::Meta(_) | Cut::CopyEnd(_) => Section::Sql,
        };
        let piece = match cut {
            Cut::Between(_) => Piece::Between(bytes),
            Cut::Statement { .. } => Piece::Statement(bytes),
            Cut::Meta(_) => Piece::Meta(bytes),
            Cut::CopyData(_) => Piece::CopyData(bytes),
            Cut::CopyEnd(_) => Piece::CopyEnd(bytes),
        };
        syntax::follow(&mut self.syntax, piece);
        piece
    }

    /// Reads on until the buffer is full, which is made larger if all of it is unread.
    fn fill(&mut self) -> Result<(), DumpError> {
        if self.unread.start > 0 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        } else if self.unread.end == self.buffer.len() {
            if self.buffer.len() >= LONGEST_STATEMENT {
                return Err(DumpError::TooLong { line: self.line });
            }
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        while self.unread.end < self.buffer.len() && !self.has_ended {
            match self.input.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => self.has_ended = true,
                Ok(bytes) => self.unread.end += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(DumpError::Read(error)),
            }
        }
        Ok(())
    }

    fn error(&self, uncut: Uncut) -> DumpError {
        let line_after =
            |bytes: usize| self.line + newlines(&self.buffer[self.unread.start..self.unread.start + bytes]);
        match uncut {
            Uncut::Within(within) => DumpError::EndsWithin { within, line: self.section.line(self.line) },
            Uncut::MetaWithinStatement(at) => DumpError::MetaWithinStatement { line: line_after(at) },
            Uncut::DataOfCommand => DumpError::DataOfCommand { line: self.line },
            Uncut::AfterCopy(at) => DumpError::AfterCopy { line: line_after(at) },
        }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
