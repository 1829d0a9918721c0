//! Counts and latencies of a short time, so that a trial can be cut later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latencies::{Latencies, LatenciesError};

/// About a second of a trial. The increments of a trial follow each other without a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Increment {
    /// Its beginning, seconds since the trial began.
    pub from: f64,
    /// Its end, seconds since the trial began.
    pub until: f64,
    /// Counts, with the names of the trial's observations; those that are 0 are left out.
    pub counts: BTreeMap<String, u64>,
    /// Latencies, with the names of the trial's histograms; empty ones are left out.
    pub histograms: BTreeMap<String, PackedLatencies>,
}

/// Latencies as the text that documents hold: a kilobyte, where [`Latencies`] take 90.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PackedLatencies(String);

impl PackedLatencies {
    /// The latencies.
    ///
    /// # Errors
    /// If [`From`] did not make the text.
    pub fn unpack(&self) -> Result<Latencies, LatenciesError> {
        Latencies::from_base64(&self.0)
    }
}

impl From<&Latencies> for PackedLatencies {
    fn from(latencies: &Latencies) -> Self {
        Self(latencies.to_base64())
    }
}
