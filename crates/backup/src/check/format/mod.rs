//! Formats: bytes in, findings out. A damage is an [`std::io::Error`] without a number of the system.

pub(super) mod archive;
pub(super) mod blocks;
pub(super) mod compression;
pub(super) mod manifest;
pub(super) mod own_sums;
pub(super) mod pages;
pub(super) mod rows;
pub(super) mod tar;
pub(crate) mod wal;

use std::io;

/// Damage.
pub(super) fn wrong(text: impl Into<String>) -> io::Error {
    let text: String = text.into();
    io::Error::new(io::ErrorKind::InvalidData, text)
}
