//! The pieces of a dump.

/// A part of a dump. All pieces of a dump, one after the other, are the dump, byte for byte.
///
/// How [`Between`](Piece::Between) and [`CopyData`](Piece::CopyData) are cut depends on how the bytes arrive; the
/// others are always whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Blanks and whole comments before a statement.
    Between(&'a [u8]),
    /// One whole statement with its `;`; of COPY … FROM stdin up to and with the end of the line. The last one of a
    /// dump may lack its `;`.
    Statement(&'a [u8]),
    /// Lines of COPY data, many at a time; only a line longer than the buffer comes in parts.
    CopyData(&'a [u8]),
    /// The line `\.` that ends COPY data. It comes after every COPY … FROM stdin.
    CopyEnd(&'a [u8]),
    /// A line with a command of psql's: `\restrict`, `\unrestrict`, `\connect`.
    Meta(&'a [u8]),
}

impl<'a> Piece<'a> {
    /// Its text, as it stands in the dump.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Between(bytes)
            | Self::Statement(bytes)
            | Self::CopyData(bytes)
            | Self::CopyEnd(bytes)
            | Self::Meta(bytes) => bytes,
        }
    }
}
