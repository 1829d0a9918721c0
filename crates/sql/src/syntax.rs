//! Settings that decide where tokens end.

/// Meaning of a backslash in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backslash {
    /// A character like any other.
    Plain,
    /// It escapes the next character.
    Escapes,
}

/// Lengths of characters in bytes, in the encodings in which a later byte of one can be a backslash (psql's
/// `safe_encoding`, src/fe_utils/psqlscan.l; lengths as in src/common/wchar.c). Quotes it can never be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Characters {
    /// No byte of ASCII is part of a longer character: UTF-8, Latin1, EUC.
    #[default]
    Safe,
    /// Big5, GBK, UHC: two, from the first that is not ASCII.
    Double,
    /// As those, but katakana of half width are one.
    Sjis,
    /// As those, but four if the second is a digit.
    Gb18030,
    /// As those, but three after 0x8f.
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
    /// In strings without a prefix, by `standard_conforming_strings`.
    pub backslash: Backslash,
    /// By `client_encoding`.
    pub characters: Characters,
}

impl Default for Syntax {
    /// A server's defaults: standard strings since 9.1, and all encodings that a server can have itself are safe.
    fn default() -> Self {
        Self { backslash: Backslash::Plain, characters: Characters::Safe }
    }
}
