//! Statements that did nothing, because the tables that they name are not there, and that say so by no error.

use crate::outcome::{Effects, StatementOutcome};

/// Errors of missing tables and columns, as a body catches them (EXCEPTION WHEN).
const CAUGHT: [&str; 2] = ["undefined_table", "undefined_column"];

impl StatementOutcome {
    /// Why it did nothing though it may do something in the original: a phrase for people; none if it did something, or this is not known.
    pub fn skipped(&self) -> Option<String> {
        self.found.as_ref().filter(|found| is_without_tables(found))?;
        let line = self.statement.in_one_line().to_ascii_lowercase();
        if line.starts_with("alter table if exists ") {
            return Some(format!("there is no table {}", self.statement.target()?));
        }
        let caught = CAUGHT.into_iter().find(|error| line.starts_with("do ") && line.contains(error))?;
        Some(format!("its code catches the error {caught}"))
    }
}

/// Whether the transaction of a statement has locked no table after it. The locks of a statement outside of transactions are not at hand.
fn is_without_tables(found: &Effects) -> bool {
    !found.is_alone && found.works.is_empty() && found.locks.is_empty() && found.held.is_empty()
}
