//! The space that stays free on the disks to which a rehearsal writes.

use std::path::Path;

use connect::ConnectError;
use fill::limits::{Headroom, Limits, SpaceRule, VolumeMonitor, WalFacts, WalUse};
use server::Session;
use server::volume::{Volume, Volumes};

use crate::error::BackupError;

/// Bytes of a volume that stay free, and their share of a small volume.
const RESERVE: u64 = 1 << 30;
const SHARE: u64 = 20;

/// The server that is backed up, if its files are on this machine. If the backups fill its disk, it crashes, so the space stays free that
/// `pgrig fill --brim` leaves to a server.
pub(crate) struct ServerSpace {
    data: Volume,
    wal: Option<Volume>,
    facts: WalFacts,
    wal_use: WalUse,
}

impl ServerSpace {
    /// Asks the server how far its WAL may grow. None if its volumes cannot be seen. `is_idle`: nobody writes to it.
    pub(super) async fn of(
        session: &Session,
        data: &Path,
        is_idle: bool,
    ) -> Result<Option<Self>, ConnectError> {
        let Some(volume) = Volume::of(data) else { return Ok(None) };
        let facts = match WalFacts::ask(&session.connection.client).await {
            Ok(facts) => facts,
            Err(error) => return Err(session.connection.explain(error).await),
        };
        let wal = Volume::of(&data.join("pg_wal"));
        let wal_use = if is_idle { WalUse::Little } else { WalUse::Full };
        Ok(Some(Self { data: volume, wal, facts, wal_use }))
    }

    /// The space that the server needs on this volume now; none if it writes nothing there.
    fn kept_on(&self, volume: &Volume) -> Option<Headroom> {
        // To the rule, the files of the rehearsal are those of a fill.
        let volumes = Volumes {
            data: self.data.clone(),
            wal: self.wal.clone(),
            heap: volume.clone(),
            index: volume.clone(),
            temporary: None,
        };
        let rule = SpaceRule::new(&volumes, &self.facts, self.wal_use);
        let kept = VolumeMonitor::new(&volumes, rule).kept(&Limits::default()).ok()?;
        (kept.bytes > 0).then_some(kept)
    }
}

/// The free space of a volume, and the space that stays free on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Free bytes.
    pub(crate) free: u64,
    /// Bytes that stay free in any case.
    reserve: u64,
    /// Bytes that the server which is backed up needs there, with the reason.
    server: Option<Headroom>,
}

impl Room {
    /// That of the volume of this directory; none if it cannot be seen.
    pub(super) fn of(directory: &Path, server: Option<&ServerSpace>) -> Option<Self> {
        let volume = Volume::of(directory)?;
        let space = volume.space().ok()?;
        let server = server.and_then(|server| server.kept_on(&volume));
        Some(Self { free: space.free, reserve: RESERVE.min(space.size / SHARE), server })
    }

    fn of_server(&self) -> u64 {
        self.server.as_ref().map_or(0, |kept| kept.bytes)
    }

    /// Bytes that must be free beside those that a step needs. More than those that end a step, because needs are estimates.
    fn headroom(&self) -> u64 {
        self.least().saturating_add(self.reserve / 2)
    }

    /// Bytes below which a running step is ended.
    fn least(&self) -> u64 {
        self.of_server().max(self.reserve / 2)
    }

    /// Whether a running step has to end.
    pub(super) fn is_used_up(&self) -> bool {
        self.free < self.least()
    }

    /// Why so much stays free, if the server is the reason: the end of a phrase.
    pub(super) fn because(&self) -> String {
        match self.server.as_ref().filter(|kept| kept.bytes > self.reserve / 2) {
            None => String::new(),
            Some(kept) => format!(" (the server of the database writes to this disk, too: {})", kept.because),
        }
    }
}

/// Refuses a step that needs more space than this directory has beside its headroom.
pub(super) fn check(
    step: &str,
    directory: &Path,
    needs: u64,
    server: Option<&ServerSpace>,
) -> Result<(), BackupError> {
    let Some(room) = Room::of(directory, server) else { return Ok(()) };
    let (free, headroom) = (room.free, room.headroom());
    if needs.saturating_add(headroom) <= free {
        return Ok(());
    }
    let (step, path, because) = (step.to_owned(), directory.display().to_string(), room.because());
    Err(BackupError::NoRoom { step, needs, path, free, headroom, because })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn room(free: u64, server: Option<u64>) -> Room {
        let server = server.map(|bytes| Headroom { bytes, because: "WAL may grow".to_owned() });
        Room { free, reserve: GB, server }
    }

    #[test]
    fn without_a_server_on_the_disk_a_reserve_stays_free_and_half_of_it_in_a_step() {
        let of = |free| room(free, None);
        assert_eq!((of(GB).headroom(), of(GB).because()), (GB, String::new()));
        assert!(of(GB / 2 - 1).is_used_up() && !of(GB / 2).is_used_up());
        let for_checkpoints = room(GB, Some(16_000_000));
        assert_eq!((for_checkpoints.headroom(), for_checkpoints.because()), (GB, String::new()));
    }

    #[test]
    fn the_need_of_a_server_stays_free_also_during_a_step() {
        let of = |free| room(free, Some(2 * GB));
        assert_eq!(of(GB).headroom(), 2 * GB + GB / 2);
        assert!(of(2 * GB - 1).is_used_up() && !of(2 * GB).is_used_up());
        assert!(of(GB).because().contains("writes to this disk, too: WAL may grow"), "{}", of(GB).because());
    }
}
