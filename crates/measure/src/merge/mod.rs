//! One document from those of the parts of a run: several processes that worked on one server.
//!
//! `clock` has the server's time of each moment of a part, `parts` the rules for the parts of all verbs.
//!
//! - `tps`: `window` (whole seconds of the server's clock that all parts share) → `trial` (counts and histograms of the
//!   increments in it, added). Percentiles are those of one histogram that saw all latencies, not means of percentiles.
//! - `fill`: rows are added, whenever they came. The rate is that of the time in which all parts loaded rows.

mod clock;
mod fill;
mod parts;
mod tps;

use failure::{Class, Classified};

use crate::latencies::LatenciesError;
use crate::run::Run;

/// One part of a merged run.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedPart {
    /// Its number, from 1.
    pub number: u64,
    /// The id of its run.
    pub id: String,
    /// Measured seconds before and after the time that all parts share, all trials together. They do not count.
    pub cut: (f64, f64),
    /// The greatest error of its readings of the server's clock, seconds.
    pub(crate) clock_error: f64,
    /// Rows that it loaded, if it is a part of a fill.
    pub rows: Option<f64>,
}

/// A merged run.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The run, with id and start of the first part.
    pub run: Run,
    /// Beginning of the time that counts, by the server's clock, seconds since 1970.
    pub began: f64,
    /// The parts, by number.
    pub parts: Vec<MergedPart>,
    /// Numbers of the parts that are missing.
    pub missing: Vec<u64>,
}

/// Why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// They are not parts of one run: the reasons.
    #[error("these runs cannot be merged:\n  {}", .0.join("\n  "))]
    Refused(Vec<String>),
    /// Latencies cannot be read.
    #[error("run {id}: {source}")]
    Latencies {
        /// The id of the run.
        id: String,
        /// Why they cannot be read.
        source: LatenciesError,
    },
}

impl Classified for MergeError {
    fn class(&self) -> Class {
        Class::Request
    }
}

/// Merges the parts of a run, in any order.
///
/// # Errors
/// If they are not parts of one run, or (of `tps`) measured no whole second at the same time.
pub fn merge(runs: Vec<Run>) -> Result<Merged, MergeError> {
    parts::refuse(runs.iter().filter_map(of_another_verb).collect())?;
    let Some(first) = runs.first() else {
        return Err(MergeError::Refused(vec!["there is no run: give the runs of all parts".to_owned()]));
    };
    if let Some(other) = runs.iter().find(|run| run.verb != first.verb) {
        let (one, other, verb) = (&first.id, &other.id, &first.verb);
        let why = format!("{one} is a run of {verb}, and {other} is not: give the parts of one run");
        return Err(MergeError::Refused(vec![why]));
    }
    if first.verb == "fill" { fill::merge(runs) } else { tps::merge(runs) }
}

/// The reason why runs of a verb cannot be merged.
fn of_another_verb(run: &Run) -> Option<String> {
    let (id, verb) = (&run.id, &run.verb);
    let takes = "merge takes runs of pgrig tps --part and of pgrig fill --part only";
    match verb.as_str() {
        "tps" | "fill" => None,
        "blockio" => Some(format!(
            "{id} is a run of blockio: {takes}. blockio measures each step as a whole, so its document does not show how many bytes \
             the step read and wrote at the same time as a step of another run. pgrig blockio --clients N measures N connections at once, in one run"
        )),
        _ => Some(format!("{id} is a run of {verb}: {takes}")),
    }
}

impl MergedPart {
    fn of(run: &Run) -> Self {
        Self {
            number: parts::part(run).map_or(0, |part| part.0),
            id: run.id.clone(),
            cut: (0.0, 0.0),
            clock_error: 0.0,
            rows: None,
        }
    }
}
