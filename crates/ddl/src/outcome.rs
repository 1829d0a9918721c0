//! The result of a measurement.

use measure::{Event, Trial, Unit};
use serde::Serialize;

use crate::find::{Class, Lock, LockMode, Work};
use crate::script::{Statement, StatementKind};

/// A migration that was measured, as far as it ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// All statements, in order.
    pub statements: Vec<StatementOutcome>,
    /// Bytes of all tables and indexes before the migration.
    pub bytes: u64,
}

/// A statement, and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct StatementOutcome {
    /// Its number, from 1.
    pub number: usize,
    /// The statement.
    #[serde(flatten)]
    pub statement: Statement,
    /// Work and locks; none if it did not run, or concerns only the session or the transaction.
    pub found: Option<Found>,
    /// Why it failed, if it did. Statements after it did not run.
    pub failed: Option<Failed>,
    /// Time and WAL; none if it did not run.
    pub cost: Option<Cost>,
}

/// Effects of a statement.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Its class.
    pub class: Class,
    /// Its work on relations, the heaviest first.
    pub works: Vec<Work>,
    /// Locks that it takes in addition to those that its transaction has, the strongest first.
    pub locks: Vec<Lock>,
    /// Whether it runs only outside of transactions.
    pub is_alone: bool,
    /// Times that it waited for transactions of others.
    pub waits: usize,
}

impl Found {
    /// The strongest lock on a relation that others may use.
    pub fn strongest(&self) -> Option<LockMode> {
        self.locks.iter().filter(|lock| !lock.is_new).map(|lock| lock.mode).max()
    }
}

/// A statement that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The server's message.
    pub message: String,
    /// Advice for the user, if there is any.
    pub remedy: Option<String>,
}

/// The cost of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds from sending it to the server's answer; outside of a transaction with its commit.
    pub seconds: f64,
    /// Bytes of WAL that the server wrote meanwhile.
    pub wal: u64,
    /// Seconds from its start to the end of its transaction: as long it keeps its locks.
    pub held: f64,
}

impl Outcome {
    /// The statement that failed, if one did.
    pub fn failed(&self) -> Option<(&StatementOutcome, &Failed)> {
        self.statements.iter().find_map(|one| Some((one, one.failed.as_ref()?)))
    }

    /// A trial of the run document for each statement that ran.
    pub fn trials(&self) -> Vec<Trial> {
        let ran = self.statements.iter().filter(|one| one.cost.is_some() || one.failed.is_some());
        ran.map(StatementOutcome::trial).collect()
    }
}

impl StatementOutcome {
    /// Whether it concerns only the session or the transaction.
    pub fn is_aside(&self) -> bool {
        matches!(self.statement.kind, StatementKind::Transaction | StatementKind::Session)
    }

    fn trial(&self) -> Trial {
        let config = format!("{}: {}", self.number, self.statement.in_one_line());
        let mut trial = Trial { config, ..Trial::default() };
        if let Some(cost) = self.cost {
            trial.observe("time", cost.seconds, Unit::Seconds);
            trial.observe("locks-held", cost.held, Unit::Seconds);
            #[expect(clippy::cast_precision_loss, reason = "documents have floating numbers")]
            trial.observe("wal", cost.wal as f64, Unit::Bytes);
        }
        if let Some(found) = &self.found {
            trial.events.push(Event {
                at: 0.0,
                text: found.class.to_string(),
                what: serde_json::json!({ "event": "found", "found": found }),
            });
        }
        if let Some(failed) = &self.failed {
            let text = format!("not measurable: {}", failed.message);
            trial.events.push(Event {
                at: 0.0,
                text,
                what: serde_json::json!({ "event": "failed", "failed": failed }),
            });
        }
        trial
    }
}
