//! Why a dump cannot be read or changed.

use std::io;

/// Why a dump cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The input failed.
    #[error("cannot read the dump: {0}")]
    Read(#[source] io::Error),
    /// The output failed.
    #[error("cannot write the dump: {0}")]
    Write(#[source] io::Error),
}
