//! Finds a place for a server whose data are in memory, and checks that there is room.

use std::path::{Path, PathBuf};

use measure::human::bytes;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use connect::Target;
use server::machine::volume_of;

/// Usual mount points of a tmpfs.
const PLACES: [&str; 3] = ["/dev/shm", "/run/shm", "/tmp"];
/// Size of initdb's files and the log.
const CLUSTER: u64 = 64 << 20;
/// Space for templates and copies, as a multiple of the first template's size.
const COPIES: u64 = 6;
/// Least space for the data that a suite writes, bytes.
const SUITE: u64 = 256 << 20;
/// The available memory is divided by this: half of it stays free.
const SHARE: u64 = 2;

/// Starts a server in memory. The caller that started it destroys it.
pub trait Tmpfs: Sync {
    /// Starts a server for databases of that many bytes. Blocks.
    ///
    /// # Errors
    /// Why that is not possible, as a clause.
    fn start(&self, template_size: u64) -> Result<Volatile, String>;
}

/// A server in memory.
pub struct Volatile {
    /// Target of the running server.
    pub target: Target,
    /// Directory of its journals, which is deleted with the server.
    pub journals: PathBuf,
}

/// Directories that may hold a server in memory.
pub fn places() -> impl Iterator<Item = PathBuf> {
    PLACES
        .into_iter()
        .map(PathBuf::from)
        .filter(|place| volume_of(place).is_some_and(|volume| volume.file_system == "tmpfs"))
}

/// Whether a server fits there that writes up to `max_wal_size` bytes of WAL and has databases of `template_size`.
///
/// # Errors
/// If the memory or the volume is too small; the text is a clause.
pub fn has_room(place: &Path, template_size: u64, max_wal_size: u64) -> Result<(), String> {
    let needed = needed(template_size, max_wal_size);
    let free = volume_of(place).map_or(0, |volume| volume.free);
    fits(needed, free, available_memory()).map_err(|why| format!("{}: {why}", place.display()))
}

/// Available memory, bytes: that of the machine, or of the control group if that is limited.
fn available_memory() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let Ok(system) = System::new_with_specifics(what) else { return 0 };
    let limits =
        system.cgroup_limits().filter(|limits| (1..system.total_memory()).contains(&limits.total_memory));
    let machine = system.available_memory();
    limits.map_or(machine, |limits| limits.free_memory.min(machine))
}

fn needed(template_size: u64, max_wal_size: u64) -> u64 {
    CLUSTER + SUITE + max_wal_size + COPIES * template_size
}

fn fits(needed: u64, free: u64, memory: u64) -> Result<(), String> {
    if needed > free {
        return Err(format!(
            "pgrig may need {} there, and {} are free: make this file system larger (containers: --shm-size)",
            bytes(needed),
            bytes(free)
        ));
    }
    if needed > memory / SHARE {
        return Err(format!(
            "pgrig may need {}, and takes at most half of the {} of available memory: free some memory, or give a smaller database",
            bytes(needed),
            bytes(memory)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_must_be_room_and_memory_to_spare() {
        let needed = needed(100 << 20, 1 << 30);
        assert!(needed > (1 << 30) + (600 << 20), "{needed}");
        fits(needed, needed, 2 * needed).unwrap();
        assert!(fits(needed, needed - 1, 1 << 50).unwrap_err().contains(" are free: "));
        assert!(fits(needed, 1 << 50, 2 * needed - 1).unwrap_err().contains("half of the"));
    }
}
