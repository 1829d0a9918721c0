//! Whether a candidate differs from a baseline.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate is better: it takes less, or gets more done.
    Improved,
    /// The candidate is worse.
    Regressed,
    /// Both are the same, except for differences that do not matter.
    NoChange,
    /// The observations are not enough for a verdict.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::NoChange => "no change",
            Self::Inconclusive => "inconclusive",
        })
    }
}
