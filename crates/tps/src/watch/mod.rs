//! Other events while transactions were measured: on the server, and on this machine.
//!
//! ```text
//!  looks, one a second ──▶ checkpoints, vacuums, other sessions, WAL ─┐
//!  looks, ten a second ──▶ waits of the run's sessions ───────────────┼──▶ Watched: figures, notes
//!  /proc, getrusage ─────▶ processors, disk, pgrig's own CPU ─────────┘
//! ```
//!
//! The observer has a session of its own. It never makes a run fail: observations that are not
//! possible are left out, and a note says so.

mod host;
mod notes;
mod period;
mod sampler;
mod server;
mod waits;

use ::server::machine;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::host::{DiskUsed, ProcessorsUsed, Used};
pub use self::period::{Maintained, Period};
use self::sampler::Sampler;
use self::server::Server;
use connect::Target;

/// Sessions and server to watch.
#[derive(Clone, Debug)]
pub struct Watching {
    /// application_name of the run's own sessions: no other's may be the same.
    pub clients: String,
    /// The end of the application_name of the clients of all parts of a run, which are no other sessions either.
    pub of_all_parts: Option<String>,
    /// pgrig's threads that the clients share.
    pub jobs: usize,
}

/// A watch that runs until it is finished or dropped.
#[derive(Debug)]
pub struct Watch {
    part: watch::Sender<WatchPhase>,
    task: JoinHandle<Watched>,
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchPhase {
    /// Ramp or warm-up.
    Before,
    /// The measured part.
    Measured,
    /// The measured part has ended, if it ever began.
    Over,
}

/// Observations of the measured part. Times are seconds since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Disturbances and limits of the result, as sentences without a full stop.
    pub notes: Vec<String>,
    /// Waits of the run's sessions, `Client:ClientRead` as pg_stat_activity has it or `running on CPU`, with the
    /// share of all looks at sessions (0 to 1); the largest first.
    pub waits: Vec<(String, f64)>,
    /// Number of looks at sessions behind these shares.
    pub wait_samples: u64,
    /// The same looks over time.
    pub waits_over_time: WaitsOverTime,
    /// Times at which a checkpoint was running.
    pub checkpoints: Vec<Period>,
    /// Vacuums and the like.
    pub(crate) maintenance: Vec<Maintained>,
    /// Bytes of WAL that the server wrote, for all sessions.
    pub wal: Option<u64>,
    /// Use of this machine in all of the measured part; none where it is not known.
    pub used: Option<Used>,
    /// Findings second by second.
    pub seconds: Vec<WatchedSecond>,
}

/// Waits of the run's sessions over time, in at most 600 intervals: of about a second, or longer in a long run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitsOverTime {
    /// End of each interval, and how often all sessions were looked at in it. Intervals without a look are left out.
    pub looks: Vec<(f64, u64)>,
    /// Events, and sessions that the looks of an interval saw in it; the most frequent events first, the last may be
    /// `others`. Intervals in which no look saw the event are left out.
    pub events: Vec<(String, Vec<(f64, u64)>)>,
}

/// Findings of about a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchedSecond {
    /// Its end, in seconds since the measurement began.
    pub at: f64,
    /// Length, seconds.
    pub length: f64,
    /// Bytes of WAL written in it.
    pub wal: Option<u64>,
    /// Sessions at work at its end that are not the run's; none where they may not be seen.
    pub others: Option<u64>,
    /// Use of this machine in it.
    pub used: Used,
}

impl WatchedSecond {
    /// Time for which this machine's processors were busy, all together, seconds; none if the system does not count it.
    pub(crate) fn busy(&self) -> Option<f64> {
        let all = self.length * f64::from(machine::cores());
        self.used.processors.map(|used| used.busy * all)
    }
}

impl Watch {
    /// Starts observing. Observations count from [`Self::measured`] on.
    ///
    /// It takes one connection: where a run uses all that there are, start it after the clients connected.
    pub async fn start(target: &Target, watching: Watching) -> Self {
        let (part, parts) = watch::channel(WatchPhase::Before);
        let server = Server::open(target, &watching).await;
        let sampler = Sampler::new(server, watching.jobs).await;
        Self { part, task: tokio::spawn(sampler.run(parts)) }
    }

    /// Starts the measured part. From any thread, at once.
    pub fn measured(&self) {
        self.part.send_replace(WatchPhase::Measured);
    }

    /// Ends the measured part, and returns its observations. Nothing if nothing was measured.
    pub async fn finish(self) -> Watched {
        self.part.send_replace(WatchPhase::Over);
        self.task.await.unwrap_or_default()
    }
}
