//! Limits of space and time: stops, waits and warnings of a fill.
//!
//! [`Limits`] are the request, [`Headroom`] is the space that the server needs to continue, a `budget`
//! decides with both, chunk by chunk, and knows neither clock nor volume; an [`AdmissionControl`] gives it those
//! and serves the streams.

mod admission;
mod budget;
mod event;
mod file_volumes;
mod headroom;
mod refusal;
mod shortage;

use std::time::Duration;

pub(crate) use admission::refuse_without_volumes;
pub use admission::{Admission, AdmissionControl, OnEvent, RemainingSpace, VolumeMonitor};
pub use budget::{Reading, Ticket};
pub use event::{Event, EventKind, StopReason};
pub use headroom::{Headroom, SpaceRule, WalFacts, WalUse};
pub use refusal::{LimitsError, OutOfSpace, VolumeRole};
use serde::{Serialize, Serializer};
pub use shortage::Shortage;

/// The conditions that end an open-ended fill, and the marks that are announced on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// The meaning of a lack of space.
    pub space: SpaceLimit,
    /// No chunk begins when this much time has passed (`--for`).
    #[serde(serialize_with = "seconds")]
    pub duration: Option<Duration>,
    /// Marks that are announced once each, when they are crossed (`--mark`).
    pub marks: Vec<Mark>,
    /// Time to wait each time that there is too little space (`--wait-for-space`); none: do not wait.
    #[serde(serialize_with = "seconds")]
    pub wait_for_space: Option<Duration>,
}

/// The meaning of a lack of space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpaceLimit {
    /// The amount asked for does not fit: the fill failed.
    #[default]
    MustFit,
    /// The fill is done (`--brim`); so many bytes stay free, or more where the server needs more.
    Brim {
        /// `--reserve`, bytes.
        reserve: u64,
    },
    /// The fill is done when only so many bytes are free (`--until-free`).
    UntilFree(u64),
}

impl Limits {
    /// Whether the fill ends by these limits rather than by an amount.
    pub fn is_open_ended(&self) -> bool {
        self.space != SpaceLimit::MustFit || self.duration.is_some()
    }

    /// Whether the fill may continue, or end successfully, after the server has reported a full
    /// disk.
    pub(crate) fn may_meet_full_disk(&self) -> bool {
        matches!(self.space, SpaceLimit::Brim { .. }) || self.wait_for_space.is_some()
    }

    /// A warning for the user before a fill with these limits begins, if there is reason for one.
    /// `volume_monitor` as for [`AdmissionControl::new`].
    pub fn warning(&self, volume_monitor: Option<&VolumeMonitor>) -> Option<String> {
        match volume_monitor {
            Some(volume_monitor) => volume_monitor.warning(),
            None if self.is_open_ended() => Some(headroom::unseen_warning("the server's volumes")),
            None => None,
        }
    }

    /// Bytes that the user wants free on the tables' volume.
    pub(crate) fn asked_free(&self) -> u64 {
        match self.space {
            SpaceLimit::MustFit => 0,
            SpaceLimit::Brim { reserve } => reserve,
            SpaceLimit::UntilFree(bytes) => bytes,
        }
    }
}

/// A threshold of the tables' volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Used space, as `df` counts it.
    Used(Percent),
    /// No more than so many bytes are free.
    Free(u64),
}

/// A whole percentage from 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Percent(u8);

impl Percent {
    /// None if the number is not a useful threshold: 0 % is always crossed, 100 % only when it is
    /// too late.
    pub fn new(percent: u8) -> Option<Self> {
        (1..=99).contains(&percent).then_some(Self(percent))
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Used(Percent(percent)) => write!(f, "{percent} % used"),
            Self::Free(bytes) => write!(f, "{} free", measure::human::bytes(*bytes)),
        }
    }
}

/// Chunks that belong together: the fill should not end between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Number of chunks that must fit.
    pub chunks: u64,
    /// Whether earlier ones of them have begun.
    pub begun: bool,
}

impl Group {
    /// A chunk that stands for itself.
    pub(crate) const ALONE: Self = Self { chunks: 1, begun: false };
}

/// The space that a chunk takes, bytes; known before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSpace {
    /// Blocks that its rows add to the heap.
    pub heap: u64,
    /// Bytes by which existing keys grow.
    pub keys: u64,
    /// WAL that it writes.
    pub wal: u64,
    /// Space that later steps take for its rows.
    pub later: Owed,
}

impl ChunkSpace {
    const NONE: Self = Self { heap: 0, keys: 0, wal: 0, later: Owed::NONE };

    /// The space of so many chunks.
    #[must_use]
    pub fn times(self, chunks: u64) -> Self {
        Self {
            heap: self.heap * chunks,
            keys: self.keys * chunks,
            wal: self.wal * chunks,
            later: self.later.times(chunks),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            heap: self.heap + other.heap,
            keys: self.keys + other.keys,
            wal: self.wal + other.wal,
            later: self.later.and(other.later),
        }
    }
}

/// Space that steps after the load take for the loaded rows, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Bytes of indexes that are built.
    pub keys: u64,
    /// Bytes of the data that are sorted to build the keys.
    pub sort: u64,
    /// Up to this size the data is sorted in memory, else in temporary files.
    pub(crate) sort_memory: u64,
    /// Bytes of WAL that these steps write.
    pub wal: u64,
    /// Maps of the heap, which a vacuum writes: pgrig's, or autovacuum's.
    pub maps: u64,
}

impl Owed {
    const NONE: Self = Self { keys: 0, sort: 0, sort_memory: 0, wal: 0, maps: 0 };

    /// The space of so many chunks.
    #[must_use]
    pub fn times(self, chunks: u64) -> Self {
        Self {
            keys: self.keys * chunks,
            sort: self.sort * chunks,
            sort_memory: self.sort_memory,
            wal: self.wal * chunks,
            maps: self.maps * chunks,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            sort: self.sort + other.sort,
            sort_memory: self.sort_memory.max(other.sort_memory),
            wal: self.wal + other.wal,
            maps: self.maps + other.maps,
        }
    }

    fn sort_on_disk(self) -> u64 {
        if self.sort <= self.sort_memory { 0 } else { self.sort }
    }
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}
