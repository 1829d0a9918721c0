//! Events of space and time during a fill, for the user and the run document.

use std::fmt;

use measure::human::bytes;
use serde::Serialize;

use super::refusal::reserved;
use super::{Mark, Shortage, VolumeRole};
use server::volume::Space;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Seconds since the fill began.
    pub at: f64,
    /// The kind of event.
    #[serde(flatten)]
    pub what: EventKind,
}

impl From<&Event> for measure::Event {
    fn from(event: &Event) -> Self {
        let what = serde_json::to_value(&event.what).unwrap_or_default();
        Self { at: event.at, text: event.what.to_string(), what }
    }
}

/// Kinds of events. Volume and sizes are those of the tables; `loaded` counts the heap bytes of this fill's finished
/// chunks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// A mark had been passed before anything was loaded.
    MarkPassedBefore {
        /// The mark that was passed.
        mark: Mark,
        /// The volume then.
        space: Space,
    },
    /// A mark is reached.
    MarkCrossed {
        /// The mark that was passed.
        mark: Mark,
        /// The volume then.
        space: Space,
        /// Heap bytes loaded until then.
        loaded: u64,
    },
    /// The volume has become larger.
    VolumeGrew {
        /// Size before, bytes.
        from: u64,
        /// Size now, bytes.
        to: u64,
    },
    /// The volume has become smaller.
    VolumeShrank {
        /// Size before, bytes.
        from: u64,
        /// Size now, bytes.
        to: u64,
    },
    /// There is no room for the next chunk.
    WaitingForSpace {
        /// The server's error; none if pgrig saw the lack of space before the server did.
        shortage: Option<Shortage>,
        /// Bytes free, where they can be seen.
        free: Option<u64>,
        /// Seconds that pgrig waits at most.
        up_to: f64,
        /// Heap bytes loaded until then.
        loaded: u64,
    },
    /// The first chunk after a wait is loaded.
    SpaceCameBack {
        /// Bytes free more than when the wait began, where they can be seen.
        gained: Option<u64>,
        /// Seconds from the wait's begin until that chunk could begin.
        after: f64,
    },
    /// No chunk begins any more.
    Stopped {
        /// Why the load stopped.
        reason: StopReason,
        /// Heap bytes loaded until then.
        loaded: u64,
    },
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MarkPassedBefore { mark, space } => {
                write!(f, "{mark}: passed before the fill began ({})", standing(space))
            }
            Self::MarkCrossed { mark, space, loaded } => {
                write!(f, "{mark}: crossed after {} of heap ({})", bytes(*loaded), standing(space))
            }
            Self::VolumeGrew { from, to } => {
                write!(f, "the volume grew from {} to {}", bytes(*from), bytes(*to))
            }
            Self::VolumeShrank { from, to } => {
                write!(f, "the volume shrank from {} to {}", bytes(*from), bytes(*to))
            }
            Self::WaitingForSpace { shortage, free, up_to, loaded } => {
                write!(f, "waiting up to {up_to:.0} s for space after {} of heap", bytes(*loaded))?;
                if let Some(shortage) = shortage {
                    write!(f, ": {shortage}")?;
                }
                free.map_or(Ok(()), |free| write!(f, "; {} free", bytes(free)))
            }
            Self::SpaceCameBack { gained, after } => {
                write!(f, "space is free again after {after:.1} s")?;
                gained.map_or(Ok(()), |gained| write!(f, ": {} more", bytes(gained)))
            }
            Self::Stopped { reason, loaded } => {
                write!(f, "stopped after {} of heap: {reason}", bytes(*loaded))
            }
        }
    }
}

fn standing(space: &Space) -> String {
    format!("{:.1} % used, {} used, {} free", space.used_percent(), bytes(space.used), bytes(space.free))
}

/// Why a successful fill ended. Its text is a phrase for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum StopReason {
    /// All rows asked for are there.
    Complete,
    /// The next chunk would take space that has to stay free.
    BrimReached {
        /// The volume without room.
        volume: VolumeRole,
        /// Bytes free there.
        free: u64,
        /// Of those, bytes that stay free.
        kept: u64,
        /// The reason for the reserve.
        because: String,
        /// The space that the next chunk needs, with all that later steps still need, bytes.
        needed: u64,
    },
    /// The server has no more room.
    DiskFull {
        /// The shortage that the server reported.
        shortage: Shortage,
    },
    /// The table's ids are of type integer, and there are no more of them.
    IdsUsedUp,
    /// The time is over.
    Duration {
        /// Asked for, seconds.
        seconds: f64,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("all rows are loaded"),
            Self::BrimReached { volume, free, kept, because, needed } => {
                let (free, reserved, needed) = (bytes(*free), reserved(*kept, because), bytes(*needed));
                write!(
                    f,
                    "no room for more on {volume}: {free} were free at the end of the load{reserved}; the next chunk and \
                     later steps need {needed}"
                )
            }
            Self::DiskFull { shortage } => write!(f, "no room for more: {shortage}"),
            Self::IdsUsedUp => f.write_str("the table has used all values of its integer ids"),
            // Of a schema, each table gets the time that is left.
            Self::Duration { seconds } => write!(f, "{} s have passed", (seconds * 100.0).round() / 100.0),
        }
    }
}
