//! Files of a server that end with their own CRC32C: it proves them if no manifest does. All versions of such a file have the same CRC32C in a
//! manifest, because the sum of bytes and their sum is a constant. So their contents are compared with the rest of the backup, too.

use std::ops::Range;

use super::manifest::{WalRange, lsn_of};

/// Place of the last checkpoint in `pg_control` (`src/include/catalog/pg_control.h`, the same from PostgreSQL 11 to 18).
const CHECKPOINT: usize = 32;
/// Place of the least end of recovery in it (`minRecoveryPoint`, the same).
const LEAST_END: usize = 136;
/// Place of the state in `pg_control`, and the states after a shutdown, also of a standby.
const STATE: usize = 16;
const SHUT_DOWN: [u32; 2] = [1, 2];
/// First bytes of a relation map (`src/backend/utils/cache/relmapper.c`: RELMAPPER_FILEMAGIC).
const MAP_MAGIC: u32 = 0x0059_2717;
/// Most relations of a map in PostgreSQL 13 to 18 (MAX_MAPPINGS).
const MOST_MAPPED: usize = 64;
/// Bytes of `replorigin_checkpoint` without an origin: the magic number and the sum (`src/backend/replication/logical/origin.c`).
pub(in crate::check) const NO_ORIGINS: u64 = 8;

/// Bytes of a sum.
const SUM: usize = 4;
/// Places of the sum in `pg_control`, the last field of a structure that grows (byte 288 in PostgreSQL 13, byte 292 in 18).
const IN_CONTROL: Range<usize> = 200..512;
/// Places of the sum in a relation map, until PostgreSQL 14 and from 15 on.
const IN_MAP: [usize; 2] = [504, 520];

/// A kind of files with a sum of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) enum Summed {
    /// `pg_control`.
    Control,
    /// A relation map.
    Map,
    /// A prepared transaction, or the replication origins: the sum is at the end.
    Whole,
}

/// The damage of a file whose own sum is not that of its bytes. `bytes` is its beginning, `length` the length of the file.
pub(in crate::check) fn sum(kind: Summed, bytes: &[u8], length: u64) -> Option<String> {
    let is_right = |place: usize| {
        let found = bytes.get(place..place + SUM).and_then(|found| found.try_into().ok());
        let covered = bytes.get(..place).map(crc32c::crc32c);
        found.map(u32::from_le_bytes).is_some_and(|found| Some(found) == covered)
    };
    let agrees = match kind {
        Summed::Control => IN_CONTROL.step_by(SUM).any(is_right),
        Summed::Map => IN_MAP.into_iter().any(is_right),
        // The rest of a long one was not kept.
        Summed::Whole if bytes.len() as u64 != length => return None,
        Summed::Whole => bytes.len().checked_sub(SUM).is_some_and(is_right),
    };
    (!agrees).then(|| "the checksum in it is not that of its bytes".to_owned())
}

/// Whether `pg_control` is that of a server which was shut down; none if it is too short. Only such a server needs no `backup_label`.
pub(in crate::check) fn is_shut_down(control: &[u8]) -> Option<bool> {
    let state = u32::from_le_bytes(control.get(STATE..STATE + 4)?.try_into().ok()?);
    Some(SHUT_DOWN.contains(&state))
}

/// The place in the WAL up to which a restore needs it at least, by `pg_control`: that of a standby tells the end of a backup.
pub(in crate::check) fn least_end(control: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(control.get(LEAST_END..LEAST_END + 8)?.try_into().ok()?))
}

/// The damage of a `pg_control` that does not belong to this label and this WAL.
pub(in crate::check) fn control(bytes: &[u8], label: &str, wal: &[WalRange]) -> Option<String> {
    let checkpoint = u64::from_le_bytes(bytes.get(CHECKPOINT..CHECKPOINT + 8)?.try_into().ok()?);
    let location = label.lines().find_map(|line| line.strip_prefix("CHECKPOINT LOCATION: "))?;
    let began = lsn_of(location.trim())?;
    if checkpoint < began {
        return Some("it is older than backup_label: it belongs to an earlier backup".to_owned());
    }
    let end = wal.iter().map(|range| range.end).max()?;
    (checkpoint > end)
        .then(|| "it is newer than the WAL of the backup: it belongs to a later backup".to_owned())
}

/// The damage of a `pg_filenode.map` that names files which are not in its directory.
pub(in crate::check) fn map(bytes: &[u8], has_file: impl Fn(u32) -> bool) -> Option<String> {
    let number = |place: usize| Some(u32::from_le_bytes(bytes.get(place..place + 4)?.try_into().ok()?));
    let mapped = usize::try_from(number(4)?).ok()?;
    if number(0)? != MAP_MAGIC || mapped > MOST_MAPPED {
        return Some("it is not a map of relations to files".to_owned());
    }
    let files = (0..mapped).filter_map(|at| number(8 + 8 * at + 4));
    let missing = files.into_iter().find(|file| !has_file(*file))?;
    Some(format!(
        "it names the file {missing}, which is not in its directory: it belongs to another directory or backup"
    ))
}

/// The damage of a file of a prepared transaction that belongs to another one (`src/backend/access/transam/twophase.c`).
pub(in crate::check) fn prepared(name: &str, bytes: &[u8]) -> Option<String> {
    let named = u64::from_str_radix(name, 16).ok()? & u64::from(u32::MAX);
    let own = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
    (u64::from(own) != named).then(|| format!("it is of the prepared transaction {own}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_file_lies_between_the_label_and_the_end_of_wal() {
        let of = |checkpoint: u64| {
            let mut bytes = vec![0; 296];
            bytes[CHECKPOINT..CHECKPOINT + 8].copy_from_slice(&checkpoint.to_le_bytes());
            bytes
        };
        let wal = [WalRange { timeline: 1, start: 0x1_0000_0028, end: 0x1_0000_0200 }];
        let label = "START WAL LOCATION: 1/28 (file 000000010000000100000000)\nCHECKPOINT LOCATION: 1/60\n";
        assert_eq!(control(&of(0x1_0000_0060), label, &wal), None);
        assert_eq!(control(&of(0x1_0000_0200), label, &wal), None);
        assert!(control(&of(0x1_0000_0059), label, &wal).unwrap().contains("earlier backup"));
        assert!(control(&of(0x1_0000_0201), label, &wal).unwrap().contains("later backup"));
    }

    #[test]
    fn a_file_proves_itself_by_its_sum() {
        let with_sum = |bytes: &mut Vec<u8>, place: usize| {
            let sum = crc32c::crc32c(&bytes[..place]);
            bytes[place..place + SUM].copy_from_slice(&sum.to_le_bytes());
        };
        for (kind, place, length) in [
            (Summed::Control, 284, 4096),
            (Summed::Control, 292, 4096),
            (Summed::Map, 504, 512),
            (Summed::Map, 520, 524),
            (Summed::Whole, 60, 64),
        ] {
            let mut bytes = vec![7; length];
            assert!(sum(kind, &bytes, length as u64).is_some(), "{kind:?}");
            with_sum(&mut bytes, place);
            assert_eq!(sum(kind, &bytes, length as u64), None, "{kind:?}");
            bytes[20] ^= 1;
            assert!(sum(kind, &bytes, length as u64).is_some(), "{kind:?}");
            assert!(sum(kind, &bytes[..3], 3).is_some(), "{kind:?}");
        }
        assert_eq!(sum(Summed::Whole, &[7; 4096], 5000), None);
    }

    #[test]
    fn a_map_names_files_of_its_directory() {
        let mut bytes = vec![0; 512];
        for (at, number) in [MAP_MAGIC, 2, 1259, 1259, 1249, 16400].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&number.to_le_bytes());
        }
        assert_eq!(map(&bytes, |file| [1259, 16400].contains(&file)), None);
        assert!(map(&bytes, |file| file == 1259).unwrap().contains("16400"));
        bytes[0] = 0;
        assert!(map(&bytes, |_| true).is_some());
    }

    #[test]
    fn a_prepared_transaction_is_in_the_file_of_its_name() {
        let mut bytes = vec![0; 64];
        bytes[8..12].copy_from_slice(&742_u32.to_le_bytes());
        assert_eq!(prepared("000002E6", &bytes), None);
        assert_eq!(prepared("00000000000002E6", &bytes), None);
        assert!(prepared("000002E7", &bytes).is_some());
    }
}
