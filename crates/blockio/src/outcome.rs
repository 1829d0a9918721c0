//! The outcome of a trial, and its form in a run document.

use std::time::Duration;

use measure::{Event, Trial, Unit};
use serde_json::json;

use crate::plan::Plan;
use crate::run::counters::Io;
use crate::run::vacuum::Rates;
use crate::state::CacheState;
use crate::step::Step;

/// The trial's configuration in run documents: all clients together.
pub const TOTAL: &str = "total";

/// The configuration of one client, counted from 1.
pub fn client_config(client: usize) -> String {
    format!("client {client}")
}

/// Results of one trial: all of its steps, on the tables of all clients.
#[derive(Debug)]
pub struct Outcome {
    /// The steps, in order.
    pub steps: Vec<Done>,
    /// Rows of all clients' tables.
    pub rows: u64,
    /// Sizes of all clients' relations when they were made.
    pub sizes: Sizes,
    /// Sizes after CLUSTER.
    pub(crate) sizes_after: Sizes,
    /// Disturbances and limits of the results.
    pub notes: Vec<String>,
}

/// Sizes of relations, main forks only (`pg_relation_size`), bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the tables.
    pub heap: u64,
    /// Bytes of the indexes.
    pub index: u64,
}

/// A step that was carried out, or left out.
#[derive(Debug)]
pub struct Done {
    /// The step as it was planned.
    pub step: &'static Step,
    /// Its end, as time since the trial began.
    pub at: Duration,
    /// Its measurement, or the reason why there is none.
    pub end: End,
    /// Buffers evicted before it; none if it was not tried.
    pub evicted: Option<u64>,
}

/// End of a step.
#[derive(Debug)]
pub enum End {
    /// The step was timed.
    Timed(Timed),
    /// The step was left out, because the role lacks a privilege.
    LeftOut {
        /// The reason, with the remedy.
        because: String,
    },
}

/// Observations of a step.
#[derive(Debug)]
pub struct Timed {
    /// Time from the first client's start to the last one's end.
    pub elapsed: Duration,
    /// Time of each client.
    pub clients: Vec<Duration>,
    /// Least number of bytes that the step must read.
    pub(crate) must_read: u64,
    /// Least number of bytes that the step must write.
    pub(crate) must_write: u64,
    /// Blocks found in shared_buffers and not found there, where that is known.
    pub blocks: Option<Blocks>,
    /// Seconds waited for reads and writes, all processes together; none without track_io_timing.
    pub waited: Option<(f64, f64)>,
    /// I/O as the server counted it.
    pub io: Option<Io>,
    /// Bytes of WAL that the whole server wrote meanwhile; none if the server does not tell.
    pub wal: Option<u64>,
    /// Number of parallel workers, for queries.
    pub(crate) workers: Option<u64>,
    /// Source of the data: storage or a cache.
    pub state: Option<CacheState>,
    /// The rates that the server reports, for VACUUM.
    pub rates: Option<Rates>,
}

/// Numbers of blocks that were looked for in shared_buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks of 8 kB found in shared_buffers.
    pub hits: u64,
    /// Blocks of 8 kB requested from the operating system.
    pub reads: u64,
}

impl Outcome {
    /// Trials of the run document: one for all clients together, and one for each client if there
    /// are several.
    pub fn trials(&self, plan: &Plan) -> Vec<Trial> {
        let mut total = Trial { config: TOTAL.to_owned(), ..Trial::default() };
        for done in &self.steps {
            done.observe(&mut total);
            total.events.extend(done.events());
        }
        total.observe("rows", self.rows as f64, Unit::Rows);
        for (name, bytes) in [
            ("heap", self.sizes.heap),
            ("index", self.sizes.index),
            ("heap-after", self.sizes_after.heap),
            ("index-after", self.sizes_after.index),
        ] {
            total.observe(name, bytes as f64, Unit::Bytes);
        }
        let clients = usize::from(plan.request.clients);
        let each = (0..clients).filter(|_| clients > 1).map(|client| {
            let mut trial = Trial { config: client_config(client + 1), ..Trial::default() };
            for done in &self.steps {
                if let End::Timed(timed) = &done.end
                    && let Some(elapsed) = timed.clients.get(client)
                {
                    trial.observe(done.step.name, elapsed.as_secs_f64(), Unit::Seconds);
                }
            }
            trial
        });
        std::iter::once(total).chain(each.collect::<Vec<_>>()).collect()
    }
}

impl Done {
    fn observe(&self, trial: &mut Trial) {
        let name = |what: &str| format!("{}-{what}", self.step.name);
        if let Some(evicted) = self.evicted {
            trial.observe(&name("evicted"), evicted as f64, Unit::Blocks);
        }
        let End::Timed(timed) = &self.end else { return };
        trial.observe(self.step.name, timed.elapsed.as_secs_f64(), Unit::Seconds);
        let mut observe = |what: &str, value: Option<f64>, unit: Unit| {
            if let Some(value) = value {
                trial.observe(&name(what), value, unit);
            }
        };
        let bytes = |number: Option<u64>| number.map(|number| number as f64);
        observe("must-read", bytes(Some(timed.must_read)), Unit::Bytes);
        observe("must-write", bytes(Some(timed.must_write)), Unit::Bytes);
        observe("hits", bytes(timed.blocks.map(|blocks| blocks.hits)), Unit::Blocks);
        observe("reads", bytes(timed.blocks.map(|blocks| blocks.reads)), Unit::Blocks);
        observe("read-time", timed.waited.map(|(read, _)| read), Unit::Seconds);
        observe("write-time", timed.waited.map(|(_, write)| write), Unit::Seconds);
        observe("wal", bytes(timed.wal), Unit::Bytes);
        observe("io-reads", bytes(timed.io.map(|io| io.reads)), Unit::Bytes);
        observe("io-writes", bytes(timed.io.map(|io| io.writes)), Unit::Bytes);
        observe("io-extends", bytes(timed.io.map(|io| io.extends)), Unit::Bytes);
        observe("io-fsyncs", bytes(timed.io.map(|io| io.fsyncs)), Unit::Count);
        observe("workers", bytes(timed.workers), Unit::Count);
    }

    /// Values that are not numbers: labels, the server's own rates, the reason why a step was left out.
    fn events(&self) -> Vec<Event> {
        let (at, step) = (self.at.as_secs_f64(), self.step.name);
        match &self.end {
            End::LeftOut { because } => vec![Event {
                at,
                text: format!("{}: left out, {because}", self.step.title),
                what: json!({ "event": "left-out", "step": step, "because": because }),
            }],
            End::Timed(timed) => {
                let state = timed.state.map(|state| Event {
                    at,
                    text: format!("{}: {state}", self.step.title),
                    what: json!({ "event": "state", "step": step, "state": state }),
                });
                let rates = timed.rates.map(|rates| Event {
                    at,
                    text: format!(
                        "{}: avg read rate: {} MB/s, avg write rate: {} MB/s",
                        self.step.title,
                        Rates::as_printed(rates.read),
                        Rates::as_printed(rates.write)
                    ),
                    what: json!({ "event": "server-rates", "step": step, "read": rates.read, "write": rates.write }),
                });
                state.into_iter().chain(rates).collect()
            }
        }
    }
}
