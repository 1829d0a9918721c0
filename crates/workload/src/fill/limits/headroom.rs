//! What has to stay free so that the server can go on.
//!
//! Seen on PostgreSQL 15 and 18, ext4 and tmpfs, data directory on the full volume: a COPY that cannot
//! extend its table fails with 53100 and no more. But a WAL segment that cannot be created is a PANIC in
//! whichever session needs it (`XLogFileInitInternal`), and so is a checkpoint that cannot write
//! `pg_logical/replorigin_checkpoint.tmp` (`CheckPointReplicationOrigin`), even if nothing at all is
//! logged. Crash recovery then empties every unlogged table of the cluster, and where recovery itself
//! needs a segment, the server stays down.

use measure::human::bytes;
use serde::Serialize;
use tokio_postgres::{Client, Error};

use super::ledger::Reading;
use crate::volume::Volumes;

/// For what is no WAL: a checkpoint's files, commit status, catalogs.
const DATA_MARGIN: u64 = 16_000_000;

/// WAL segments for all that is logged even while an unlogged table is filled: commits, checkpoints,
/// catalogs, other sessions.
const SEGMENTS: u64 = 4;

/// `max_wal_size` is a soft limit; WAL goes on while the checkpoint that it caused is at work.
/// In percent; 118 were seen.
const SOFT_LIMIT_PERCENT: u64 = 130;

/// What decides how far `pg_wal` may grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalFacts {
    /// `wal_segment_size`, bytes.
    pub segment_size: u64,
    /// `max_wal_size`, bytes.
    pub max_wal_size: u64,
    /// `wal_keep_size`, bytes.
    pub wal_keep_size: u64,
    /// `max_slot_wal_keep_size`, bytes; none: no limit.
    pub max_slot_wal_keep_size: Option<u64>,
    /// Replication slots that hold WAL for someone who is not connected.
    pub idle_slots: Vec<String>,
    /// Whether the last attempt to archive a segment failed.
    pub archiving_fails: bool,
}

impl WalFacts {
    /// Asks the server.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn ask(client: &Client) -> Result<Self, Error> {
        let row = client.query_one(include_str!("../../sql/wal.sql"), &[]).await?;
        let limit = |column: &str| u64::try_from(row.get::<_, i64>(column)).ok();
        let size = |column: &str| limit(column).unwrap_or_default();
        Ok(Self {
            segment_size: size("segment_size"),
            max_wal_size: size("max_wal_size"),
            wal_keep_size: size("wal_keep_size"),
            max_slot_wal_keep_size: limit("max_slot_wal_keep_size"),
            idle_slots: row.get("idle_slots"),
            archiving_fails: row.get("archiving_fails"),
        })
    }
}

/// How much of a fill is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalUse {
    /// Unlogged tables, or permanent ones whose WAL is skipped (`wal_level = minimal`).
    Little,
    /// Every row, so many bytes in all.
    Total(u64),
    /// Every row of a fill without a known end.
    Full,
}

/// How far `pg_wal` may grow while a fill runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Growth {
    /// By next to nothing.
    Little,
    /// Until it takes so many bytes.
    UpTo { ceiling: u64, because: String },
    /// By all that is written: nothing is removed.
    Unbounded { because: String },
}

/// Bytes that stay free, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headroom {
    /// Bytes.
    pub bytes: u64,
    /// A phrase for people.
    pub because: String,
}

/// Rule of how far WAL may grow, after the documentation's "WAL Configuration" and
/// `CalculateCheckpointSegments`, `KeepLogSeg` in `xlog.c`:
///
/// - checkpoints are timed so that WAL stays near `max_wal_size`, a soft limit;
/// - the newest `wal_keep_size` are kept besides;
/// - what a replication slot still needs is kept, up to `max_slot_wal_keep_size`;
/// - what is not archived is kept, without any limit.
fn growth(facts: &WalFacts, wal: WalUse, place: WalPlace) -> Growth {
    match (wal, removed_late(facts, place)) {
        (WalUse::Little, _) => Growth::Little,
        // All of it fits before any has to go: then chunk by chunk is counted.
        (WalUse::Total(total), Growth::UpTo { ceiling, .. }) if total <= ceiling => Growth::Little,
        (_, growth) => growth,
    }
}

/// How far WAL may grow if all is logged.
fn removed_late(facts: &WalFacts, place: WalPlace) -> Growth {
    if facts.archiving_fails {
        return Growth::Unbounded {
            because: "archiving fails, so no WAL is removed (see pg_stat_archiver)".to_owned(),
        };
    }
    let most = match place {
        WalPlace::Same => facts.max_wal_size / 100 * SOFT_LIMIT_PERCENT,
        // Nothing else takes from that volume: whether it suits max_wal_size was its owner's choice.
        WalPlace::Other | WalPlace::Unseen => facts.max_wal_size,
    };
    let kept = facts.max_wal_size + facts.wal_keep_size;
    let (ceiling, because) = if kept > most {
        (kept, format!("wal_keep_size ({}) and max_wal_size", bytes(facts.wal_keep_size)))
    } else {
        (most, format!("max_wal_size is {}, a soft limit", bytes(facts.max_wal_size)))
    };
    if facts.idle_slots.is_empty() {
        return Growth::UpTo { ceiling, because };
    }
    let slots = facts.idle_slots.join(", ");
    match facts.max_slot_wal_keep_size {
        Some(limit) if facts.max_wal_size + limit > ceiling => Growth::UpTo {
            ceiling: facts.max_wal_size + limit,
            because: format!("max_slot_wal_keep_size ({}) for idle slot {slots}", bytes(limit)),
        },
        Some(_) => Growth::UpTo { ceiling, because },
        None => Growth::Unbounded {
            because: format!("replication slot {slots} is idle and keeps all WAL (pg_drop_replication_slot)"),
        },
    }
}

/// Where WAL is, as seen from the tables' volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalPlace {
    Same,
    Other,
    Unseen,
}

/// What has to stay free on the volumes of a fill.
#[derive(Clone, Debug)]
pub struct SpaceRule {
    data_here: bool,
    place: WalPlace,
    growth: Growth,
    floor: u64,
}

impl SpaceRule {
    /// For these volumes and this use of WAL.
    pub fn new(volumes: &Volumes, facts: &WalFacts, wal: WalUse) -> Self {
        let place = match &volumes.wal {
            Some(volume) if volume.is_same_as(&volumes.heap) => WalPlace::Same,
            Some(_) => WalPlace::Other,
            None => WalPlace::Unseen,
        };
        Self::on(volumes.data.is_same_as(&volumes.heap), place, facts, wal)
    }

    pub(super) fn on(data_here: bool, place: WalPlace, facts: &WalFacts, wal: WalUse) -> Self {
        Self { data_here, place, growth: growth(facts, wal, place), floor: facts.segment_size * SEGMENTS }
    }

    /// What stays free on the tables' volume.
    pub fn on_heap_volume(&self, reading: &Reading) -> Headroom {
        let data = if self.data_here { DATA_MARGIN } else { 0 };
        match (self.place == WalPlace::Same).then(|| self.for_wal(reading.wal_held)) {
            Some(wal) => Headroom { bytes: wal.bytes + data, because: wal.because },
            None if self.data_here => {
                Headroom { bytes: data, because: "for the checkpoints' own files".to_owned() }
            }
            None => Headroom { bytes: 0, because: "neither WAL nor data directory is there".to_owned() },
        }
    }

    /// What stays free on a volume that holds WAL and no tables.
    pub fn on_wal_volume(&self, reading: &Reading) -> Headroom {
        self.for_wal(reading.wal_held)
    }

    /// Whether a chunk's WAL is free space that is gone afterwards, rather than part of what stays free
    /// for WAL anyway.
    pub(super) fn wal_adds_up(&self) -> bool {
        !matches!(self.growth, Growth::UpTo { .. })
    }

    /// Whether WAL takes from the tables' volume.
    pub(super) fn wal_is_here(&self) -> bool {
        self.place == WalPlace::Same
    }

    /// What people must know before the fill begins, if anything.
    pub(super) fn warning(&self) -> Option<String> {
        if self.place == WalPlace::Unseen {
            return Some(unseen_warning("pg_wal"));
        }
        match &self.growth {
            Growth::Unbounded { because } => Some(format!("WAL of this fill will stay: {because}")),
            Growth::Little | Growth::UpTo { .. } => None,
        }
    }

    fn for_wal(&self, held: u64) -> Headroom {
        let few = || format!("for {SEGMENTS} WAL segments, without which the server would crash");
        match &self.growth {
            Growth::Little => Headroom { bytes: self.floor, because: few() },
            Growth::Unbounded { because } => {
                Headroom { bytes: self.floor, because: format!("{}; {because}", few()) }
            }
            Growth::UpTo { ceiling, because } => {
                let left = ceiling.saturating_sub(held);
                if left <= self.floor {
                    return Headroom { bytes: self.floor, because: few() };
                }
                let because =
                    format!("WAL takes {} now and may grow to {}: {because}", bytes(held), bytes(*ceiling));
                Headroom { bytes: left, because }
            }
        }
    }
}

/// What may happen where `what` (pg_wal, the server's volumes) cannot be seen, and what to do.
pub(super) fn unseen_warning(what: &str) -> String {
    format!(
        "{what} cannot be seen from here, so nothing is kept free for WAL and checkpoints: if their volume \
         fills up, the server crashes (PANIC), and its recovery empties every unlogged table of the cluster. \
         Watch its disk, and give an amount or --for instead of --brim if that must not happen"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Space;

    const MB: u64 = 1_000_000;

    fn facts() -> WalFacts {
        WalFacts { segment_size: 16 * MB, max_wal_size: 1000 * MB, ..WalFacts::default() }
    }

    fn reading(wal_held: u64) -> Reading {
        Reading { heap: Space { size: 0, used: 0, free: 0 }, wal_held, wal_free: None }
    }

    fn here(facts: &WalFacts, wal: WalUse, held: u64) -> Headroom {
        SpaceRule::on(true, WalPlace::Same, facts, wal).on_heap_volume(&reading(held))
    }

    #[test]
    fn unlogged_keeps_a_few_segments_whatever_wal_holds() {
        for held in [0, 5000 * MB] {
            assert_eq!(here(&facts(), WalUse::Little, held).bytes, 4 * 16 * MB + DATA_MARGIN);
        }
        let held_back = WalFacts { archiving_fails: true, ..facts() };
        assert_eq!(here(&held_back, WalUse::Little, 0).bytes, 4 * 16 * MB + DATA_MARGIN);
    }

    #[test]
    fn logged_keeps_what_wal_may_still_grow_by() {
        let at = |held| here(&facts(), WalUse::Full, held);
        assert_eq!(at(100 * MB).bytes, 1200 * MB + DATA_MARGIN);
        assert!(at(100 * MB).because.contains("may grow to 1.30 GB"), "{}", at(100 * MB).because);
        assert_eq!(at(1290 * MB).bytes, 64 * MB + DATA_MARGIN, "never less than the few segments");
    }

    #[test]
    fn a_known_amount_of_wal_that_fits_is_counted_chunk_by_chunk() {
        let rule = |total| SpaceRule::on(true, WalPlace::Same, &facts(), WalUse::Total(total));
        assert_eq!(rule(900 * MB).on_heap_volume(&reading(0)).bytes, 64 * MB + DATA_MARGIN);
        assert!(rule(900 * MB).wal_adds_up());
        assert_eq!(rule(2000 * MB).on_heap_volume(&reading(0)).bytes, 1300 * MB + DATA_MARGIN);
        assert!(!rule(2000 * MB).wal_adds_up());
    }

    #[test]
    fn what_is_kept_besides_raises_the_ceiling() {
        let keep = WalFacts { wal_keep_size: 2000 * MB, ..facts() };
        assert_eq!(here(&keep, WalUse::Full, 0).bytes, 3000 * MB + DATA_MARGIN);
        let slot = WalFacts {
            idle_slots: vec!["standby".to_owned()],
            max_slot_wal_keep_size: Some(4000 * MB),
            ..facts()
        };
        let headroom = here(&slot, WalUse::Full, 0);
        assert_eq!(headroom.bytes, 5000 * MB + DATA_MARGIN);
        assert!(headroom.because.contains("standby"), "{}", headroom.because);
        let small = WalFacts { max_slot_wal_keep_size: Some(10 * MB), ..slot };
        assert_eq!(here(&small, WalUse::Full, 0).bytes, 1300 * MB + DATA_MARGIN);
    }

    #[test]
    fn wal_may_have_all_of_its_own_volume() {
        let rule = SpaceRule::on(true, WalPlace::Other, &facts(), WalUse::Full);
        assert_eq!(rule.on_wal_volume(&reading(300 * MB)).bytes, 700 * MB);
        assert_eq!(rule.on_wal_volume(&reading(1000 * MB)).bytes, 64 * MB, "it recycles its segments now");
        assert_eq!(rule.on_heap_volume(&reading(300 * MB)).bytes, DATA_MARGIN);
    }

    #[test]
    fn wal_that_is_never_removed_is_warned_about_and_adds_up() {
        for facts in [
            WalFacts { idle_slots: vec!["standby".to_owned()], ..facts() },
            WalFacts { archiving_fails: true, ..facts() },
        ] {
            let rule = SpaceRule::on(true, WalPlace::Same, &facts, WalUse::Full);
            assert!(rule.wal_adds_up());
            assert!(rule.warning().is_some_and(|text| text.contains("will stay")));
        }
        let bounded = SpaceRule::on(true, WalPlace::Same, &facts(), WalUse::Full);
        assert!(!bounded.wal_adds_up());
        assert_eq!(bounded.warning(), None);
    }

    #[test]
    fn only_what_is_on_the_tables_volume_needs_room_there() {
        let on = |data_here, place| {
            SpaceRule::on(data_here, place, &facts(), WalUse::Little).on_heap_volume(&reading(0)).bytes
        };
        assert_eq!(on(false, WalPlace::Other), 0);
        assert_eq!(on(true, WalPlace::Other), DATA_MARGIN);
        assert_eq!(on(false, WalPlace::Same), 64 * MB);
        let unseen = SpaceRule::on(true, WalPlace::Unseen, &facts(), WalUse::Little);
        assert!(unseen.warning().is_some_and(|text| text.contains("PANIC") && text.contains("unlogged")));
    }
}
