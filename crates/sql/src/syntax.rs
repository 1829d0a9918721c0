//! Settings that decide where tokens end.

/// Meaning of a backslash in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backslash {
    /// A backslash is an ordinary character.
    Plain,
    /// A backslash escapes the next character.
    Escapes,
}

/// Lengths of characters in bytes, for encodings in which a later byte of a character can be a
/// backslash (psql's `safe_encoding`, src/fe_utils/psqlscan.l; lengths as in src/common/wchar.c). A
/// later byte is never a quote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Characters {
    /// UTF-8, Latin1, EUC: no byte of a longer character is an ASCII character.
    #[default]
    Safe,
    /// Big5, GBK, UHC: a character that begins with a non-ASCII byte has two bytes.
    Double,
    /// As [`Self::Double`], but half-width katakana have one byte.
    Sjis,
    /// As [`Self::Double`], but a character whose second byte is a digit has four bytes.
    Gb18030,
    /// As [`Self::Double`], but a character that begins with 0x8f has three bytes.
    Johab,
}

impl Characters {
    /// Bytes of the character that a text begins with.
    pub(crate) fn length(self, bytes: &[u8]) -> usize {
        match (self, bytes) {
            (Self::Safe, _) | (_, [] | [..0x80, ..]) | (Self::Sjis, [0xa1..=0xdf, ..]) => 1,
            (Self::Gb18030, [_, b'0'..=b'9', ..]) => 4,
            (Self::Johab, [0x8f, ..]) => 3,
            _ => 2,
        }
    }
}

/// Settings of a session that decide where tokens end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// Meaning of a backslash in strings without a prefix, by `standard_conforming_strings`.
    pub backslash: Backslash,
    /// Lengths of characters, by `client_encoding`.
    pub characters: Characters,
}

impl Default for Syntax {
    /// A server's defaults: standard strings (since 9.1), and a safe encoding (all encodings of
    /// servers are safe).
    fn default() -> Self {
        Self { backslash: Backslash::Plain, characters: Characters::Safe }
    }
}
