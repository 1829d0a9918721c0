//! Files of a server that end with their own CRC32C. All versions of such a file have the same CRC32C in a manifest, because the sum of
//! bytes and their sum is a constant. So their contents are compared with the rest of the backup.

use super::manifest::WalRange;

/// Place of the last checkpoint in `pg_control` (`src/include/catalog/pg_control.h`, the same from PostgreSQL 11 to 18).
const CHECKPOINT: usize = 32;
/// First bytes of a relation map (`src/backend/utils/cache/relmapper.c`: RELMAPPER_FILEMAGIC).
const MAP_MAGIC: u32 = 0x0059_2717;
/// Most relations of a map in PostgreSQL 13 to 18 (MAX_MAPPINGS).
const MOST_MAPPED: usize = 64;
/// Bytes of `replorigin_checkpoint` without an origin: the magic number and the sum (`src/backend/replication/logical/origin.c`).
pub(in crate::check) const NO_ORIGINS: u64 = 8;

/// The damage of a `pg_control` that does not belong to this label and this WAL.
pub(in crate::check) fn control(bytes: &[u8], label: &str, wal: &[WalRange]) -> Option<String> {
    let checkpoint = u64::from_le_bytes(bytes.get(CHECKPOINT..CHECKPOINT + 8)?.try_into().ok()?);
    let location = label.lines().find_map(|line| line.strip_prefix("CHECKPOINT LOCATION: "))?;
    let (high, low) = location.trim().split_once('/')?;
    let began = u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?;
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
