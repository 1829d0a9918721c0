//! Published figures of other machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::request::Mode;
use crate::step::{Step, steps};

/// A machine and its figures, as published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its name, in one word.
    pub name: String,
    /// Processor, memory and disk, as far as published.
    pub machine: String,
    /// The article's size, as text; none if it was not published.
    pub size: Option<String>,
    /// Source of the figures.
    pub source: String,
    /// Bytes of the table; none if they were not published.
    pub heap: Option<u64>,
    /// Bytes of the index.
    pub index: Option<u64>,
    /// Seconds of each step, by the collector's key.
    pub seconds: BTreeMap<String, f64>,
    /// PostgreSQL's own rates of the VACUUM, as it prints them: MB/s of 1,048,576 bytes.
    pub vacuum: Option<Printed>,
}

/// Rates of reading and writing: as PostgreSQL prints them, MB/s of 1,048,576 bytes, or in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// Rate of blocks read.
    pub read: f64,
    /// Rate of blocks made dirty.
    pub write: f64,
}

impl Reference {
    /// Speed of a server at the step per byte of its table, as a share of this machine's: 0.021 is
    /// 2.1 %. None if there is no figure of this machine for the step.
    pub fn share(&self, key: &str, seconds: f64, heap: u64) -> Option<f64> {
        let theirs = self.heap? as f64 / self.seconds.get(key)?;
        Some(heap as f64 / seconds / theirs)
    }
}

/// A published machine, as run documents contain it: a report takes the machine that it draws beside a run from the
/// document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// In a word.
    pub name: String,
    /// Processor, memory and disk, as far as published.
    pub machine: String,
    /// The article's size, for people.
    pub size: Option<String>,
    /// Source of the figures.
    pub source: String,
    /// Bytes of the table.
    pub heap: Option<u64>,
    /// Seconds of each step of the run that does the same work.
    pub seconds: BTreeMap<&'static str, f64>,
    /// PostgreSQL's own rates of the VACUUM, bytes per second.
    pub vacuum: Option<Printed>,
}

/// Bytes of a megabyte as PostgreSQL counts: 1024 × 1024.
const MEBIBYTE: f64 = 1_048_576.0;

/// The published machines, by the steps of a mode.
pub(crate) fn published(mode: Mode) -> Vec<Published> {
    let of = |reference: Reference| {
        let same = |step: &'static Step| Some((step.name, *reference.seconds.get(step.key?)?));
        let seconds = steps(mode).iter().filter_map(same).collect();
        let bytes =
            |printed: Printed| Printed { read: printed.read * MEBIBYTE, write: printed.write * MEBIBYTE };
        Published {
            seconds,
            vacuum: reference.vacuum.map(bytes),
            name: reference.name,
            machine: reference.machine,
            size: reference.size,
            source: reference.source,
            heap: reference.heap,
        }
    };
    references().into_iter().map(of).collect()
}

/// All published machines, the best known first.
///
/// # Panics
/// Never: a test checks the built-in data.
pub fn references() -> Vec<Reference> {
    serde_json::from_str(include_str!("references.json")).expect("the data are ours")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_source_and_a_step() {
        let known: Vec<&str> = steps(Mode::Compat).iter().map(|step| step.name).collect();
        for reference in references() {
            assert!(reference.source.contains("gregs1104/pgbench-tools"), "{reference:?}");
            assert!(reference.seconds.keys().all(|key| known.contains(&key.as_str())), "{reference:?}");
            assert!(reference.seconds.is_empty() || reference.heap.is_some(), "{reference:?}");
        }
    }

    #[test]
    fn documents_hold_the_figures_of_their_own_steps() {
        for mode in [Mode::Own, Mode::Compat] {
            let names: Vec<&str> = steps(mode).iter().map(|step| step.name).collect();
            let [fastest, .., laptop] = published(mode).try_into().map(|all: [Published; 3]| all).unwrap();
            assert!(!fastest.seconds.is_empty());
            assert!(fastest.seconds.keys().all(|step| names.contains(step)), "{fastest:?}");
            assert!((laptop.vacuum.unwrap().read - 937.057 * 1_048_576.0).abs() < 1.0);
        }
    }

    #[test]
    fn a_share_is_per_byte() {
        let fastest = &references()[0];
        let (heap, seconds) = (fastest.heap.unwrap(), fastest.seconds["VACUUM"]);
        let share = |heap, seconds| fastest.share("VACUUM", seconds, heap).unwrap();
        assert!((share(heap, seconds) - 1.0).abs() < 1e-9);
        assert!((share(heap / 20, seconds) - 0.05).abs() < 1e-6);
        assert!((share(heap, seconds * 50.0) - 0.02).abs() < 1e-9);
        assert_eq!(fastest.share("scan-first", 1.0, 1), None);
    }
}
