//! The outcome of a fill.

use std::ops::Range;
use std::time::Duration;

use measure::{Series, Trial, Unit};

use crate::limits::{Event, StopReason};
use crate::part_work::{self, FillId, PartWork};
use crate::plan::Plan;
use crate::plan::sizes::Sizes;
use crate::probe::{ProbeKind, ProbePoint};
use crate::request::InitStep;
use crate::run::PartEnd;
use crate::run::compression::Compression;

/// A finished fill.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Each step's wall-clock time, in order.
    pub steps: Vec<(InitStep, Duration)>,
    /// Rows of the bulk table that this run loaded, as the server counted them.
    pub rows: u64,
    /// Sizes of tables and indexes, bytes.
    pub sizes: Sizes,
    /// Their sizes before, where rows were added; else 0.
    pub before: Sizes,
    /// Whether chunks were rolled back, or may have been in an earlier run.
    pub rolled_back: bool,
    /// Why generating ended.
    pub stop: StopReason,
    /// Missing rows between loaded ones (of leaves by hash, some of these rows): their chunk found
    /// no room while a later chunk did.
    pub gaps: Vec<Range<u64>>,
    /// Events of limits and marks.
    pub events: Vec<Event>,
    /// Bytes free on the tables' volume at the end; none where pgrig did not read that.
    pub free: Option<u64>,
    /// Rows handed to the server, second by second.
    pub rate: Option<Series>,
    /// Results of probes, size by size.
    pub probes: Vec<ProbePoint>,
    /// Time of probes, including the wait for streams to pause.
    pub probing: Duration,
    /// Compression of a sample of the bulk table.
    pub compression: Option<Compression>,
    /// Time of that sample, which belongs to no step.
    pub sampling: Duration,
    /// WAL that the server wrote meanwhile (all of it, also others'), bytes.
    pub wal: u64,
    /// Processor time that pgrig itself took to generate and send, user and system.
    pub(crate) client_cpu: Duration,
    /// Where that WAL begins and ends, bytes since the beginning of the server's.
    pub(crate) wal_positions: Vec<[u64; 2]>,
    /// How this part of the fill ended; none if there is but one process.
    pub part_end: Option<PartEnd>,
    /// When this part worked on the rows; none if there is but one process.
    pub(crate) part_work: Option<PartWork>,
    /// The fill of the table that this is a part of.
    pub fill: Option<FillId>,
    /// Checkpoints that the fill itself forced.
    pub own_checkpoints: u64,
}

impl Outcome {
    /// This outcome and that of later work on the same table as one.
    pub(crate) fn followed_by(mut self, later: Self) -> Self {
        for (step, elapsed) in later.steps {
            match self.steps.iter_mut().find(|(known, _)| *known == step) {
                Some((_, known)) => *known += elapsed,
                None => self.steps.push((step, elapsed)),
            }
        }
        self.rows += later.rows;
        self.wal += later.wal;
        self.wal_positions.extend(later.wal_positions);
        self.client_cpu += later.client_cpu;
        self.events.extend(later.events);
        if let Some(more) = later.part_work {
            if let Some(work) = &mut self.part_work {
                work.append(self.rate.as_mut(), more, later.rate);
            } else {
                (self.part_work, self.rate) = (Some(more), later.rate);
            }
        }
        Self { sizes: later.sizes, free: later.free, ..self }
    }

    /// Wall-clock time of all steps.
    pub fn elapsed(&self) -> Duration {
        self.steps.iter().map(|(_, elapsed)| *elapsed).sum()
    }

    /// Wall-clock time of one step; zero if it was not done.
    pub fn step(&self, wanted: InitStep) -> Duration {
        self.steps.iter().filter(|(step, _)| *step == wanted).map(|(_, elapsed)| *elapsed).sum()
    }

    /// Whether the fill is complete, as far as this process knows.
    pub fn is_whole(&self) -> bool {
        matches!(self.part_end, None | Some(PartEnd::Last))
    }

    /// Growth of tables and indexes, bytes.
    pub fn grown(&self) -> Sizes {
        self.sizes.less(self.before)
    }

    /// Bytes that rolled back chunks have left in the table. None if no chunk was rolled back, if
    /// they are few, or if a later vacuum has freed them.
    pub fn dead_space(&self, plan: &Plan) -> Option<u64> {
        // The size of rows in a user's table is an estimate.
        if !self.rolled_back || plan.is_own_table() || plan.includes(InitStep::Vacuum) {
            return None;
        }
        let grown = self.sizes.heap.saturating_sub(self.before.heap);
        let rows = match self.part_end {
            None => self.rows + plan.rows_done(),
            Some(PartEnd::Last) => plan.rows()?,
            Some(PartEnd::Others { .. } | PartEnd::Done) => return None,
        };
        let live = plan.heap_of(rows);
        grown.checked_sub(live).filter(|dead| *dead > live / 100)
    }

    /// The outcome as a trial of a run document, with predictions beside results. `probe` is the
    /// kind of the probes.
    pub fn trial(&self, config: &str, plan: &Plan, probe: Option<&ProbeKind>) -> Trial {
        let mut trial = Trial { config: config.to_owned(), ..Trial::default() };
        for (step, elapsed) in &self.steps {
            trial.observe(step.name(), elapsed.as_secs_f64(), Unit::Seconds);
        }
        trial.observe("total", self.elapsed().as_secs_f64(), Unit::Seconds);
        trial.observe("client-cpu", self.client_cpu.as_secs_f64(), Unit::Seconds);
        trial.observe("rows", self.rows as f64, Unit::Rows);
        for (name, bytes) in [
            ("heap", self.sizes.heap),
            ("index", self.sizes.index),
            ("heap-before", self.before.heap),
            ("index-before", self.before.index),
            ("wal", self.wal),
        ] {
            trial.observe(name, bytes as f64, Unit::Bytes);
        }
        if plan.rows().is_some() && self.is_whole() {
            trial.observe("predicted-heap", plan.predicted.sizes.heap as f64, Unit::Bytes);
            trial.observe("predicted-index", plan.predicted.sizes.index as f64, Unit::Bytes);
            trial.observe("predicted-wal", plan.predicted.wal as f64, Unit::Bytes);
        }
        if let Some(Compression { rows, blocks }) = &self.compression {
            trial.observe("sample-rows", rows.plain as f64, Unit::Bytes);
            trial.observe("sample-rows-compressed", rows.compressed as f64, Unit::Bytes);
            if let Some(blocks) = blocks {
                trial.observe("sample-blocks", blocks.plain as f64, Unit::Bytes);
                trial.observe("sample-blocks-compressed", blocks.compressed as f64, Unit::Bytes);
            }
        }
        trial.events.extend(self.events.iter().map(measure::Event::from));
        if let Some(work) = &self.part_work {
            trial.events.extend(work.events());
            let at = trial.value("total").unwrap_or_default();
            trial.events.push(part_work::event(
                at,
                self.part_end.as_ref(),
                self.fill.as_ref(),
                &self.wal_positions,
            ));
        }
        trial.series.extend(self.rate.clone());
        if let Some(kind) = probe {
            trial.observe("probing", self.probing.as_secs_f64(), Unit::Seconds);
            trial.series.extend(ProbePoint::series(kind, &self.probes));
        }
        trial
    }
}
