//! `global/pg_control`: PostgreSQL's own record of the state of a data directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// `DBState` of `pg_control.h`: the same in 13 to 18.
const SHUT_DOWN: i32 = 1;
const IN_CRASH_RECOVERY: i32 = 4;

/// Whether a server is in crash recovery, or was when it ended.
pub(crate) fn is_recovering(data: &Path) -> bool {
    state(data) == Some(IN_CRASH_RECOVERY)
}

/// Whether the server was shut down with a checkpoint, and has not been started since.
pub(crate) fn is_shut_down(data: &Path) -> bool {
    state(data) == Some(SHUT_DOWN)
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
    }
}
