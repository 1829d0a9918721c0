//! The statements to time, and the server's plans of them: data, printed by `--explain`, stored in the document.

pub(crate) mod arms;
pub(crate) mod calls;
pub(crate) mod finding;
pub(crate) mod inspect;
pub(crate) mod literal;
pub(crate) mod plan_tree;

use serde::Serialize;

use crate::plan::finding::Finding;
use crate::run::session::Given;

/// The plan of a `micro`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The arms that are timed in every round, the candidates first.
    pub arms: Vec<ArmPlan>,
    /// Optional candidates that the server does not support.
    pub left_out: Vec<LeftOut>,
    /// The session's settings.
    pub settings: Vec<Given>,
    /// Rows of a sample.
    pub rows: u64,
    /// Fixed time of a statement, seconds, besides the time of its rows; none before it is
    /// measured.
    pub fixed: Option<f64>,
    /// Schema of the tables.
    pub schema: Option<String>,
    /// Properties of the plans that change the meaning of results.
    pub findings: Vec<Finding>,
    /// Other limits of the results.
    pub notes: Vec<String>,
}

/// One statement that is timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmPlan {
    /// The candidate's name, `empty` or `repeat`.
    pub name: String,
    /// Purpose of the statement.
    pub role: Role,
    /// SQL that creates its table, if it has one.
    pub ddl: Option<String>,
    /// The statement as it is sent.
    pub sql: String,
    /// The statement that the server executes, in its words.
    pub executed: String,
    /// Types of the plan's nodes in one line; none if the plan was not read.
    pub shape: Option<String>,
    /// Expected time of a sample, seconds; none before it is tried.
    pub sample: Option<f64>,
}

/// Purpose of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// One of the compared candidates.
    Candidate,
    /// The empty loop, whose time is subtracted.
    Empty,
    /// The first candidate again, to show the noise.
    Repeat,
}

/// A candidate without which the others are measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Name of the candidate.
    pub name: String,
    /// The server's error.
    pub because: String,
}

impl Plan {
    /// The candidates' names, in order.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        self.arms.iter().filter(|arm| arm.role == Role::Candidate).map(|arm| arm.name.as_str())
    }

    /// Whether the time of an empty loop is subtracted from each candidate's.
    pub fn has_empty(&self) -> bool {
        self.arms.iter().any(|arm| arm.role == Role::Empty)
    }

    /// Fixed time as a share of the shortest candidate's sample.
    pub fn fixed_share(&self) -> Option<f64> {
        let of_candidates = self.arms.iter().filter(|arm| arm.role == Role::Candidate);
        let shortest = of_candidates.filter_map(|arm| arm.sample).reduce(f64::min)?;
        Some(self.fixed? / shortest)
    }
}
