//! `global/pg_control`: PostgreSQL's own record of the state of a data directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// `DBState` of `pg_control.h`: the same in 13 to 18.
const SHUT_DOWN: i32 = 1;
const IN_CRASH_RECOVERY: i32 = 4;
/// `FLOATFORMAT_VALUE`: the only number of this kind in the file, after which the sizes are.
const FLOAT_FORMAT: f64 = 1_234_567.0;
/// The size of WAL segments follows that number (8 bytes) and three other sizes (4 bytes each): the same in 13 to 18.
const TO_SEGMENT_SIZE: usize = 8 + 3 * 4;

/// Whether a server is in crash recovery, or was when it ended.
pub(crate) fn is_recovering(data: &Path) -> bool {
    state(data) == Some(IN_CRASH_RECOVERY)
}

/// Whether the server was shut down with a checkpoint, and has not been started since.
pub(crate) fn is_shut_down(data: &Path) -> bool {
    state(data) == Some(SHUT_DOWN)
}

/// Bytes of a WAL segment.
pub(crate) fn segment_size(data: &Path) -> Option<u32> {
    let bytes = std::fs::read(data.join("global/pg_control")).ok()?;
    let mark = FLOAT_FORMAT.to_ne_bytes();
    // It is aligned.
    let at = bytes.chunks_exact(mark.len()).position(|word| word == mark.as_slice())? * mark.len();
    let size = u32::from_ne_bytes(*bytes.get(at + TO_SEGMENT_SIZE..)?.first_chunk()?);
    size.is_power_of_two().then_some(size)
}

/// The system identifier of the server whose data directory this is: its first 8 bytes. None if it cannot be read.
pub fn system_identifier(data: &Path) -> Option<i64> {
    let mut head = [0; 8];
    File::open(data.join("global/pg_control")).ok()?.read_exact(&mut head).ok()?;
    Some(i64::from_ne_bytes(head))
}

/// Reads the state, which follows the system identifier (8 bytes) and two version numbers (4 bytes
/// each).
fn state(data: &Path) -> Option<i32> {
    let mut head = [0; 20];
    File::open(data.join("global/pg_control")).ok()?.read_exact(&mut head).ok()?;
    Some(i32::from_ne_bytes(*head.last_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        assert!(!is_recovering(data) && !is_shut_down(data));
        std::fs::create_dir(data.join("global")).unwrap();
        let write = |state: i32| {
            let words = [[7; 4], [8; 4], [9; 4], [10; 4], state.to_ne_bytes(), [1; 4]].concat();
            std::fs::write(data.join("global/pg_control"), words).unwrap();
        };
        write(4);
        assert!(is_recovering(data) && !is_shut_down(data));
        write(1);
        assert!(!is_recovering(data) && is_shut_down(data));
        assert_eq!(system_identifier(data), Some(i64::from_ne_bytes([7, 7, 7, 7, 8, 8, 8, 8])));
        assert_eq!(system_identifier(&data.join("global")), None);
    }

    #[test]
    fn size_of_segments() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        assert_eq!(segment_size(data), None);
        std::fs::create_dir(data.join("global")).unwrap();
        let write = |segment: u32| {
            let sizes = [8192_u32, 131_072, 8192, segment, 64, 32].map(u32::to_ne_bytes).concat();
            let words = [vec![7; 240], FLOAT_FORMAT.to_ne_bytes().to_vec(), sizes, vec![0; 100]].concat();
            std::fs::write(data.join("global/pg_control"), words).unwrap();
        };
        write(64 << 20);
        assert_eq!(segment_size(data), Some(64 << 20));
        write(0);
        assert_eq!(segment_size(data), None);
        std::fs::write(data.join("global/pg_control"), FLOAT_FORMAT.to_ne_bytes()).unwrap();
        assert_eq!(segment_size(data), None);
    }
}
