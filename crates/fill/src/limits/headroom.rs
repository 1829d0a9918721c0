//! The space that must stay free so that the server can continue.
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

use super::budget::Reading;
use super::file_volumes::FileVolumes;
use super::{ChunkSpace, Owed, VolumeRole};
use server::quote::literal;
use server::volume::Volumes;

/// Bytes that stay free for other files than WAL: a checkpoint's files, commit status, catalogs.
const DATA_MARGIN: u64 = 16_000_000;

/// WAL segments for all that is logged even while an unlogged table is filled: commits, checkpoints,
/// catalogs, other sessions.
const SEGMENTS: u64 = 4;

/// `max_wal_size` is a soft limit; WAL grows further during the checkpoint that it caused.
/// In percent; 118 were seen.
const SOFT_LIMIT_PERCENT: u64 = 130;

/// Facts that decide how far `pg_wal` may grow.
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
    /// Replication slots that hold WAL without a connected receiver.
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
        let row = client.query_one(include_str!("../sql/wal.sql"), &[]).await?;
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

/// Share of a fill that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalUse {
    /// Unlogged tables, or permanent ones whose WAL is skipped (`wal_level = minimal`).
    Little,
    /// Every row is logged: so many bytes in all.
    Total(u64),
    /// Every row of a fill without a known end is logged.
    Full,
}

/// Growth of `pg_wal` while a fill runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Growth {
    /// It does not grow noticeably.
    Little,
    /// Until it takes so many bytes.
    UpTo { ceiling: u64, because: String },
    /// It grows by all that is written: nothing is removed.
    Unbounded { because: String },
}

/// Bytes that stay free, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headroom {
    /// Bytes that stay free.
    pub bytes: u64,
    /// A phrase for people.
    pub because: String,
}

/// Rule of how far WAL may grow, after the documentation's "WAL Configuration" and
/// `CalculateCheckpointSegments`, `KeepLogSeg` in `xlog.c`:
///
/// - checkpoints are timed so that WAL stays near `max_wal_size`, a soft limit;
/// - the newest `wal_keep_size` are kept besides;
/// - WAL that a replication slot still needs is kept, up to `max_slot_wal_keep_size`;
/// - WAL that is not archived is kept, without any limit.
fn growth(facts: &WalFacts, wal: WalUse, place: WalVolume) -> Growth {
    match (wal, removed_late(facts, place)) {
        (WalUse::Little, _) => Growth::Little,
        // All of it fits before any has to go: then chunk by chunk is counted.
        (WalUse::Total(total), Growth::UpTo { ceiling, .. }) if total <= ceiling => Growth::Little,
        (_, growth) => growth,
    }
}

/// Growth of WAL if all is logged.
fn removed_late(facts: &WalFacts, place: WalVolume) -> Growth {
    if facts.archiving_fails {
        return Growth::Unbounded {
            because: "archiving fails, so no WAL is removed (see pg_stat_archiver)".to_owned(),
        };
    }
    let most = match place {
        WalVolume::Shared => facts.max_wal_size / 100 * SOFT_LIMIT_PERCENT,
        // Nothing else takes from that volume: whether it suits max_wal_size was its owner's choice.
        WalVolume::Alone | WalVolume::Unseen => facts.max_wal_size,
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
    let is_one = facts.idle_slots.len() == 1;
    let noun = if is_one { "slot" } else { "slots" };
    let drop = |name: &String| format!("SELECT pg_drop_replication_slot({})", literal(name));
    let drops = facts.idle_slots.iter().map(drop).collect::<Vec<_>>().join("; ");
    match facts.max_slot_wal_keep_size {
        Some(limit) if facts.max_wal_size + limit > ceiling => Growth::UpTo {
            ceiling: facts.max_wal_size + limit,
            because: format!("max_slot_wal_keep_size ({}) for idle {noun} {slots}", bytes(limit)),
        },
        Some(_) => Growth::UpTo { ceiling, because },
        None => Growth::Unbounded {
            because: format!(
                "replication {noun} {slots} {} all WAL (if nothing needs {}, run {drops}; otherwise set \
                 max_slot_wal_keep_size)",
                if is_one { "is idle and keeps" } else { "are idle and keep" },
                if is_one { "it" } else { "them" }
            ),
        },
    }
}

/// The use of the WAL volume by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalVolume {
    /// The fill writes other files than WAL to it, too.
    Shared,
    /// The fill writes nothing but WAL to it.
    Alone,
    Unseen,
}

/// The space that must stay free on the volumes of a fill.
#[derive(Clone, Debug)]
pub struct SpaceRule {
    files: FileVolumes,
    growth: Growth,
    floor: u64,
    ballast: u64,
    unfrozen: u64,
    shares_wal_volume: bool,
}

impl SpaceRule {
    /// The rule for these volumes and this use of WAL.
    pub fn new(volumes: &Volumes, facts: &WalFacts, wal: WalUse) -> Self {
        Self::at(FileVolumes::of(volumes).0, facts, wal)
    }

    pub(super) fn at(files: FileVolumes, facts: &WalFacts, wal: WalUse) -> Self {
        let place = match files.wal {
            None => WalVolume::Unseen,
            wal if [Some(FileVolumes::TABLES), Some(files.keys), files.sort].contains(&wal) => {
                WalVolume::Shared
            }
            Some(_) => WalVolume::Alone,
        };
        Self {
            files,
            growth: growth(facts, wal, place),
            floor: facts.segment_size * SEGMENTS,
            ballast: 0,
            unfrozen: 0,
            shares_wal_volume: place == WalVolume::Shared,
        }
    }

    /// Counts so many bytes beside the tables as free for the checkpoints' own files.
    pub(super) fn hold_ballast(&mut self, bytes: u64) {
        self.ballast = bytes;
    }

    /// Counts so many bytes of heap that will be frozen. If a checkpoint begins before, WAL gets an image of each of
    /// their pages.
    pub(super) fn hold_unfrozen(&mut self, bytes: u64) {
        self.unfrozen = bytes;
    }

    /// The space that stays free on the volume of this number.
    pub(super) fn on_volume(&self, number: usize, reading: &Reading) -> Headroom {
        let ballast = if number == FileVolumes::TABLES { self.ballast } else { 0 };
        let data = if self.files.data == number { DATA_MARGIN.saturating_sub(ballast) } else { 0 };
        if self.files.wal == Some(number) {
            let wal = self.for_wal(reading.wal_held);
            let because = match data {
                0 => wal.because,
                data => format!("{}; and {} for checkpoints", wal.because, bytes(data)),
            };
            return Headroom { bytes: wal.bytes + data, because };
        }
        let because = if self.files.data == number {
            "for checkpoints"
        } else {
            "it holds neither WAL nor the data directory"
        };
        Headroom { bytes: data, because: because.to_owned() }
    }

    /// The space that `wanted` needs on the volume of this number; `owed` is the space that finished chunks still
    /// need.
    pub(super) fn needed(&self, number: usize, wanted: ChunkSpace, owed: Owed, reading: &Reading) -> u64 {
        let files = &self.files;
        let on = |place: usize, bytes: u64| if place == number { bytes } else { 0 };
        let later = owed.and(wanted.later);
        // Where WAL is removed in time, what stays free for it is enough. A slow checkpoint does not remove it in time.
        let adds_up = match self.growth {
            Growth::UpTo { ceiling, .. } => self.shares_wal_volume && reading.wal_held > ceiling,
            Growth::Little | Growth::Unbounded { .. } => true,
        };
        let wal = files.wal.filter(|_| adds_up).map_or(0, |wal| on(wal, wanted.wal + later.wal));
        on(FileVolumes::TABLES, wanted.heap + later.maps)
            + on(files.keys, wanted.keys + later.keys)
            + files.sort.map_or(0, |sort| on(sort, later.sort_on_disk()))
            + wal
    }

    /// The role of the volume of this number.
    pub(super) fn role(&self, number: usize) -> VolumeRole {
        match number {
            FileVolumes::TABLES => VolumeRole::Heap,
            _ if self.files.wal == Some(number) => VolumeRole::Wal,
            _ if self.files.keys == number => VolumeRole::Keys,
            _ if self.files.data == number => VolumeRole::Data,
            _ => VolumeRole::Temporary,
        }
    }

    /// A warning for the user before the fill begins, if any.
    pub(super) fn warning(&self) -> Option<String> {
        if self.files.wal.is_none() {
            return Some(unseen_warning("pg_wal"));
        }
        match &self.growth {
            Growth::Unbounded { because } => {
                Some(format!("the server will not remove the WAL of this fill, because {because}"))
            }
            Growth::Little | Growth::UpTo { .. } => None,
        }
    }

    fn for_wal(&self, held: u64) -> Headroom {
        let few =
            || format!("for {SEGMENTS} WAL segments, because the server crashes without space for them");
        let unfrozen = if self.shares_wal_volume { self.unfrozen } else { 0 };
        let floor = self.floor + unfrozen;
        let few_and_images = || match unfrozen {
            0 => few(),
            unfrozen => {
                format!("{}, and images of {}, which freezing may write to WAL", few(), bytes(unfrozen))
            }
        };
        match &self.growth {
            Growth::Little => Headroom { bytes: self.floor, because: few() },
            Growth::Unbounded { because } => {
                Headroom { bytes: floor, because: format!("{}; {because}", few_and_images()) }
            }
            Growth::UpTo { ceiling, because } => {
                let left = ceiling.saturating_sub(held);
                if left <= floor {
                    return Headroom { bytes: floor, because: few_and_images() };
                }
                let because =
                    format!("WAL takes {} now and may grow to {}: {because}", bytes(held), bytes(*ceiling));
                Headroom { bytes: left, because }
            }
        }
    }
}

/// The risk where pgrig cannot see `what` (pg_wal, the server's volumes), and the remedy.
pub(super) fn unseen_warning(what: &str) -> String {
    format!(
        "pgrig cannot see {what}, so it keeps no space free for WAL and checkpoints: if their volume fills up, \
         the server crashes (PANIC), and its recovery empties every unlogged table of the cluster. Watch the \
         server's disk. To rule out the crash, give an amount or --for instead of --brim"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::volume::Space;

    const MB: u64 = 1_000_000;

    const WAL: ChunkSpace = ChunkSpace { wal: MB, ..ChunkSpace::NONE };

    fn facts() -> WalFacts {
        WalFacts { segment_size: 16 * MB, max_wal_size: 1000 * MB, ..WalFacts::default() }
    }

    fn reading(wal_held: u64) -> Reading {
        Reading { heap: Space { size: 0, used: 0, free: 0 }, others: Vec::new(), wal_held }
    }

    fn here(facts: &WalFacts, wal: WalUse, held: u64) -> Headroom {
        SpaceRule::at(FileVolumes::TOGETHER, facts, wal).on_volume(0, &reading(held))
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
        let rule = |total| SpaceRule::at(FileVolumes::TOGETHER, &facts(), WalUse::Total(total));
        assert_eq!(rule(900 * MB).on_volume(0, &reading(0)).bytes, 64 * MB + DATA_MARGIN);
        assert_eq!(rule(900 * MB).needed(0, WAL, Owed::default(), &reading(0)), MB);
        assert_eq!(rule(2000 * MB).on_volume(0, &reading(0)).bytes, 1300 * MB + DATA_MARGIN);
        assert_eq!(rule(2000 * MB).needed(0, WAL, Owed::default(), &reading(0)), 0);
    }

    #[test]
    fn what_a_slow_checkpoint_keeps_adds_up() {
        let mut rule = SpaceRule::at(FileVolumes::TOGETHER, &facts(), WalUse::Full);
        let needed = |held| rule.needed(0, WAL, Owed::default(), &reading(held));
        assert_eq!([1300, 1301].map(|held| needed(held * MB)), [0, MB]);
        rule.hold_unfrozen(50 * MB);
        let slow = rule.on_volume(0, &reading(1400 * MB));
        assert_eq!(slow.bytes, (4 * 16 + 50) * MB + DATA_MARGIN);
        assert!(
            slow.because.contains("images of 50.0 MB, which freezing may write to WAL"),
            "{}",
            slow.because
        );
        assert_eq!(rule.on_volume(0, &reading(0)).bytes, 1300 * MB + DATA_MARGIN, "images are a part of it");
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
        let rule =
            SpaceRule::at(FileVolumes { wal: Some(1), ..FileVolumes::TOGETHER }, &facts(), WalUse::Full);
        assert_eq!(rule.on_volume(1, &reading(300 * MB)).bytes, 700 * MB);
        assert_eq!(rule.on_volume(1, &reading(1000 * MB)).bytes, 64 * MB, "it recycles its segments now");
        assert_eq!(rule.on_volume(0, &reading(300 * MB)).bytes, DATA_MARGIN);
        let shared = FileVolumes { data: 1, wal: Some(1), keys: 1, sort: Some(1) };
        let rule = SpaceRule::at(shared, &facts(), WalUse::Full);
        assert_eq!(rule.on_volume(1, &reading(300 * MB)).bytes, 1000 * MB + DATA_MARGIN);
    }

    #[test]
    fn each_volume_needs_what_goes_there() {
        let later = Owed { keys: 10, sort: 100, sort_memory: 99, wal: 1000, maps: 0 };
        let chunk = ChunkSpace { heap: 1, keys: 2, wal: 3, later };
        let files = FileVolumes { data: 0, wal: Some(1), keys: 2, sort: Some(3) };
        let rule = SpaceRule::at(files, &facts(), WalUse::Little);
        let needed = |number| rule.needed(number, chunk, Owed::default(), &reading(0));
        assert_eq!([0, 1, 2, 3].map(needed), [1, 1003, 12, 100]);
        let together = SpaceRule::at(FileVolumes::TOGETHER, &facts(), WalUse::Full);
        assert_eq!(
            together.needed(0, chunk, later, &reading(0)),
            1 + 2 + 2 * 10 + 2 * 100,
            "WAL has its share already"
        );
        let in_memory = Owed { sort_memory: 100, ..later };
        let chunk = ChunkSpace { later: in_memory, ..chunk };
        assert_eq!(rule.needed(3, chunk, Owed::default(), &reading(0)), 0);
        assert_eq!(rule.needed(3, chunk, in_memory, &reading(0)), 200);
    }

    #[test]
    fn wal_that_is_never_removed_is_warned_about_and_adds_up() {
        for facts in [
            WalFacts { idle_slots: vec!["standby".to_owned()], ..facts() },
            WalFacts { archiving_fails: true, ..facts() },
        ] {
            let rule = SpaceRule::at(FileVolumes::TOGETHER, &facts, WalUse::Full);
            assert_eq!(rule.needed(0, WAL, Owed::default(), &reading(0)), MB);
            assert!(rule.warning().is_some_and(|text| text.contains("will not remove the WAL")));
        }
        let bounded = SpaceRule::at(FileVolumes::TOGETHER, &facts(), WalUse::Full);
        assert_eq!(bounded.needed(0, WAL, Owed::default(), &reading(0)), 0);
        assert_eq!(bounded.warning(), None);
    }

    #[test]
    fn only_what_is_on_the_tables_volume_needs_room_there() {
        let on = |data, wal| {
            let files = FileVolumes { data, wal: Some(wal), ..FileVolumes::TOGETHER };
            SpaceRule::at(files, &facts(), WalUse::Little).on_volume(0, &reading(0)).bytes
        };
        assert_eq!(on(1, 1), 0);
        assert_eq!(on(0, 1), DATA_MARGIN);
        assert_eq!(on(1, 0), 64 * MB);
        let files = FileVolumes { wal: None, ..FileVolumes::TOGETHER };
        let unseen = SpaceRule::at(files, &facts(), WalUse::Little);
        assert!(unseen.warning().is_some_and(|text| text.contains("PANIC") && text.contains("unlogged")));
    }
}
