//! A saved run to compare with.

use measure::compare::{Difference, differing_settings};
use measure::human::bytes;
use measure::{Run, Sample, Setting, Status, Trial};

use crate::error::BlockioError;
use crate::outcome::TOTAL;
use crate::request::Request;
use crate::step::{Step, steps};

/// A saved run of `blockio` with the same mode, size and number of clients as the request.
#[derive(Debug)]
pub struct Baseline {
    run: Run,
}

/// One step beside its baseline.
#[derive(Debug)]
pub struct Compared {
    /// The step that both runs timed.
    pub step: &'static Step,
    /// Seconds of the baseline's trials.
    pub baseline: Sample,
    /// Seconds of the present trials, for the same number of bytes.
    pub candidate: Sample,
}

impl Compared {
    /// Ratio of this median to the baseline's.
    pub fn ratio(&self) -> f64 {
        self.candidate.median() / self.baseline.median()
    }
}

impl Baseline {
    /// Refuses a run that cannot be compared with the request.
    ///
    /// # Errors
    /// [`BlockioError::Baseline`].
    pub fn new(run: Run, request: &Request) -> Result<Self, BlockioError> {
        let refuse = |why: String| Err(BlockioError::Baseline(why));
        if run.verb != "blockio" {
            return refuse(format!(
                "that is a run of {}, not of blockio: give a run that pgrig runs list --verb blockio shows",
                run.verb
            ));
        }
        if run.status != Status::Done {
            return refuse("the baseline run is not complete: give a complete run".to_owned());
        }
        let asked = |field: &str| run.request.get(field).cloned().unwrap_or_default();
        if asked("mode") != request.mode.name() {
            return refuse(format!(
                "the baseline has mode {} and this run has mode {}, so their statements differ: give --compat to both or \
                 to neither",
                asked("mode").as_str().unwrap_or("unknown"),
                request.mode.name()
            ));
        }
        if asked("size") != request.size {
            let size = asked("size").as_u64().unwrap_or_default();
            return refuse(format!(
                "the baseline has SIZE {}, not {}: give the same SIZE",
                bytes(size),
                bytes(request.size)
            ));
        }
        if asked("clients") != request.clients {
            return refuse(format!(
                "the baseline has --clients {}, not {}: give the same --clients",
                asked("clients"),
                request.clients
            ));
        }
        Ok(Self { run })
    }

    /// Start of the run, RFC 3339.
    pub fn started_at(&self) -> &str {
        &self.run.started_at
    }

    /// The steps that both have, in order.
    pub fn compare(&self, request: &Request, trials: &[Trial]) -> Vec<Compared> {
        steps(request.mode)
            .iter()
            .filter_map(|step| {
                let baseline = Sample::new(seconds(&self.run.trials, step, heap(&self.run.trials)?))?;
                let candidate = Sample::new(seconds(trials, step, heap(&self.run.trials)?))?;
                Some(Compared { step, baseline, candidate })
            })
            .collect()
    }

    /// Bytes of the baseline's table, to which [`Baseline::compare`] scales, and of the table of the present trials.
    pub fn tables(&self, trials: &[Trial]) -> Option<[f64; 2]> {
        Some([heap(&self.run.trials)?, heap(trials)?])
    }

    /// Settings that differed in the baseline.
    pub fn differing_settings(&self, now: &[Setting]) -> Vec<Difference> {
        differing_settings(&self.run.environment.server.settings, now)
    }

    /// The baseline's server.
    pub fn server(&self) -> &str {
        &self.run.environment.server.version
    }
}

/// The table's bytes in the first trial.
fn heap(trials: &[Trial]) -> Option<f64> {
    trials.iter().find_map(|trial| trial.value("heap")).filter(|heap| *heap > 0.0)
}

/// Seconds of a step in all trials, scaled to `heap` bytes of table: the size of the published
/// tables depends on the server.
fn seconds(trials: &[Trial], step: &Step, heap: f64) -> Vec<f64> {
    let of_all = trials.iter().filter(|trial| trial.config == TOTAL);
    of_all.filter_map(|trial| Some(trial.value(step.name)? * heap / trial.value("heap")?)).collect()
}
