//! Limits that cannot be kept, and fills that ran out of space when they should not.

use failure::{Class, Classified};
use measure::human::bytes;
use serde::Serialize;
use thiserror::Error;

use super::Shortage;

/// Why limits are refused before anything is touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// Needs a volume that cannot be seen.
    #[error(
        "{flag} needs the server's volume, and that cannot be seen from here (another machine, or a data \
         directory that this user may not read): run pgrig on the server's machine as its user or root, \
         or give {instead}"
    )]
    Unseen {
        /// The flag.
        flag: &'static str,
        /// What works without seeing.
        instead: &'static str,
    },
    /// Not even one chunk.
    #[error(
        "no room for a single chunk ({}): {} are free on {volume}, {} of which stay free ({because}). \
         Free some, or see to it that less has to stay free: --reserve, --until-free, max_wal_size, --unlogged", bytes(*needed), bytes(*free), bytes(*kept)
    )]
    NoRoom {
        /// Whose volume.
        volume: VolumeRole,
        /// One chunk, bytes.
        needed: u64,
        /// On that volume, bytes.
        free: u64,
        /// Of those, bytes that stay free.
        kept: u64,
        /// What for.
        because: String,
    },
    /// The volume was seen and is no more.
    #[error("cannot tell what is free on the server's volume: {0}")]
    Unreadable(#[from] std::io::Error),
}

impl Classified for LimitsError {
    fn class(&self) -> Class {
        match self {
            Self::Unseen { .. } | Self::NoRoom { .. } => Class::Request,
            Self::Unreadable(_) => Class::Machine,
        }
    }
}

/// Which of the volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeRole {
    /// The tables', whatever else is there.
    Heap,
    /// That of WAL, if it is another.
    Wal,
    /// That of keys, if it is another.
    Keys,
    /// That of the data directory, if it is another.
    Data,
    /// That of temporary files, if it is another.
    Temporary,
}

impl std::fmt::Display for VolumeRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Heap => "the tables' volume",
            Self::Wal => "the WAL's volume",
            Self::Keys => "the keys' volume",
            Self::Data => "the data directory's volume",
            Self::Temporary => "the temporary files' volume",
        })
    }
}

/// Why a fill failed that was not to stop for want of space.
#[derive(Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OutOfSpace {
    /// Seen before the server did.
    #[error(
        "no room for the next chunk ({}): {} are free on {volume}, {} of which stay free ({because}). Free some, \
         ask for less, let --wait-for-space wait, or give --brim to stop there", bytes(*needed), bytes(*free), bytes(*kept)
    )]
    NoRoom {
        /// Whose volume.
        volume: VolumeRole,
        /// The chunk, bytes.
        needed: u64,
        /// On that volume, bytes.
        free: u64,
        /// Of those, bytes that stay free.
        kept: u64,
        /// What for.
        because: String,
    },
    /// The server said so.
    #[error("{0}. Free some, ask for less, let --wait-for-space wait, or give --brim to stop there")]
    Reported(Shortage),
    /// The volume was seen and is no more: going on might crash the server.
    #[error("cannot tell any more what is free on the server's volume: {0}")]
    Unreadable(String),
}
