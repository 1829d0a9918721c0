//! Limits that cannot be kept, and fills that ran out of space when they should not.

use failure::{Class, Classified};
use measure::human::bytes;
use serde::Serialize;
use server::quote::shown;
use thiserror::Error;

use super::Shortage;

/// Why limits are refused before anything is touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The limit needs a view of the server's volume, and pgrig has none.
    #[error(
        "{flag} needs the server's volume, and pgrig cannot see it {}, or {instead}",
        unseen(restricted_role.as_deref())
    )]
    Unseen {
        /// The option that needs the volume.
        flag: &'static str,
        /// The role, if it may not read `data_directory` and pgrig knows no other cause.
        restricted_role: Option<String>,
        /// Alternatives that need no view of the volume.
        instead: &'static str,
    },
    /// There is no room even for one chunk.
    #[error(
        "no room for the first chunk ({}): {volume} has {} free{}{}. {}. Nothing was changed", bytes(*needed),
        bytes(*free), with_dropped(*freed), reserved(*kept, because), room(because)
    )]
    NoRoom {
        /// The role of the volume.
        volume: VolumeRole,
        /// One chunk, bytes.
        needed: u64,
        /// On that volume once the old tables are dropped, bytes.
        free: u64,
        /// Of those, bytes that the old tables take.
        freed: u64,
        /// Of those, bytes that stay free.
        kept: u64,
        /// The reason for the reserve.
        because: String,
    },
    /// The volume can no longer be read.
    #[error(
        "cannot read the free space of the server's volume: {0}. Check the permissions of its data directory"
    )]
    Unreadable(#[from] std::io::Error),
}

/// Why pgrig cannot see the volume, and the remedy.
fn unseen(restricted_role: Option<&str>) -> String {
    match restricted_role {
        Some(role) => format!(
            "(role {role} may not read data_directory): run GRANT pg_read_all_settings TO {}",
            shown(role)
        ),
        None => "(the server is on another machine, or this operating system user may not read its data directory): run \
                 pgrig on the server's machine as the server's user or root, and as a superuser or a member of \
                 pg_read_all_settings"
            .to_owned(),
    }
}

impl LimitsError {
    /// The lack of room, without a remedy; none for other errors.
    pub(crate) fn lack(&self) -> Option<String> {
        match self {
            Self::NoRoom { volume, needed, free, kept, because, .. } => {
                Some(for_chunk("first", *volume, [*needed, *free, *kept], because))
            }
            Self::Unseen { .. } | Self::Unreadable(_) => None,
        }
    }
}

/// The lack of room for a chunk, without a remedy.
fn for_chunk(which: &str, volume: VolumeRole, [needed, free, kept]: [u64; 3], because: &str) -> String {
    format!(
        "no room for the {which} chunk ({}): {volume} has {} free{}",
        bytes(needed),
        bytes(free),
        reserved(kept, because)
    )
}

impl Classified for LimitsError {
    fn class(&self) -> Class {
        match self {
            Self::Unseen { .. } | Self::NoRoom { .. } => Class::Request,
            Self::Unreadable(_) => Class::Machine,
        }
    }
}

/// The space that must stay free, as the end of a clause; nothing if there is none.
pub(super) fn reserved(kept: u64, because: &str) -> String {
    if kept == 0 { String::new() } else { format!(", and {} must stay free ({because})", bytes(kept)) }
}

/// The part of the free space that tables take which are to be dropped; nothing if there are none.
fn with_dropped(freed: u64) -> String {
    if freed == 0 {
        String::new()
    } else {
        format!(" ({} of it once the old tables are dropped)", bytes(freed))
    }
}

/// The remedy where the reserve leaves no room for a chunk.
fn room(because: &str) -> &'static str {
    if because == AS_ASKED {
        "Give a smaller --reserve or --until-free"
    } else {
        "Free some space, lower max_wal_size, or give --unlogged"
    }
}

/// The reason for a reserve that the user asks for.
pub(super) const AS_ASKED: &str = "as asked";

/// The role of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeRole {
    /// The volume of the tables.
    Heap,
    /// The volume of WAL, if it is another.
    Wal,
    /// The volume of keys, if it is another.
    Keys,
    /// The volume of the data directory, if it is another.
    Data,
    /// The volume of temporary files, if it is another.
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
    /// pgrig saw the lack of space before the server did.
    #[error(
        "{}. Free some space, or give a smaller SIZE, --wait-for-space (to wait), or --brim (to stop here)",
        for_chunk("next", *volume, [*needed, *free, *kept], because)
    )]
    NoRoom {
        /// The role of the volume.
        volume: VolumeRole,
        /// The chunk, bytes.
        needed: u64,
        /// On that volume, bytes.
        free: u64,
        /// Of those, bytes that stay free.
        kept: u64,
        /// The reason for the reserve.
        because: String,
    },
    /// The server reported the lack of space.
    #[error(
        "{0}. Free some space, or give a smaller SIZE, --wait-for-space (to wait), or --brim (to stop here)"
    )]
    Reported(Shortage),
    /// The volume can no longer be read: going on might crash the server.
    #[error(
        "cannot read the free space of the server's volume any more: {0}. Check the permissions of its data directory"
    )]
    Unreadable(String),
}

impl OutOfSpace {
    /// The lack of room, without a remedy; none if it is not known.
    pub(crate) fn lack(&self) -> Option<String> {
        match self {
            Self::NoRoom { volume, needed, free, kept, because } => {
                Some(for_chunk("next", *volume, [*needed, *free, *kept], because))
            }
            Self::Reported(shortage) => Some(shortage.to_string()),
            Self::Unreadable(_) => None,
        }
    }
}
