//! The volumes of a fill's files.

use server::volume::{Volume, Volumes};

/// The volumes of a fill by number: 0 is the tables', the others are counted as they are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVolumes {
    /// Number of the volume of the data directory.
    pub data: usize,
    /// Number of the volume of `pg_wal`; none if pgrig cannot see it.
    pub wal: Option<usize>,
    /// Number of the volume of indexes.
    pub keys: usize,
    /// Number of the volume of temporary files; none if pgrig cannot see it.
    pub sort: Option<usize>,
}

impl FileVolumes {
    /// The tables' volume.
    pub(super) const TABLES: usize = 0;

    /// All on one volume.
    #[cfg(test)]
    pub(super) const TOGETHER: Self = Self { data: 0, wal: Some(0), keys: 0, sort: Some(0) };

    /// The files, and the volumes in the order of their numbers.
    pub(super) fn of(volumes: &Volumes) -> (Self, Vec<Volume>) {
        let mut found = vec![volumes.heap.clone()];
        let mut number = |volume: &Volume| {
            found.iter().position(|other| other.is_same_as(volume)).unwrap_or_else(|| {
                found.push(volume.clone());
                found.len() - 1
            })
        };
        let files = Self {
            data: number(&volumes.data),
            wal: volumes.wal.as_ref().map(&mut number),
            keys: number(&volumes.index),
            sort: volumes.temporary.as_ref().map(&mut number),
        };
        (files, found)
    }
}
