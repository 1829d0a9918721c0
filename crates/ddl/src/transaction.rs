//! The transaction that a statement of a migration shares with others.

use crate::edge::Edge;
use crate::outcome::StatementOutcome;
use crate::script::{Statement, StatementKind};

/// Whether a statement shares a transaction that is committed: a better way needs a migration of its own, without a transaction. That of a
/// table which the transaction has made begins within it.
pub fn is_in_transaction(statements: &[StatementOutcome], number: usize) -> bool {
    let is_unshared = |one: &StatementOutcome| one.found.as_ref().is_some_and(|found| found.is_unshared);
    number > 0 && is_committed(statements, number - 1) && !is_unshared(&statements[number - 1])
}

/// Whether a transaction that the statements begin is open at their end: the end of the session rolls it back.
pub fn is_left_open<'s>(statements: impl Iterator<Item = &'s Statement>) -> bool {
    statements.filter_map(Edge::of).fold(false, |is_open, edge| match edge {
        Edge::Begins | Edge::Chains => true,
        Edge::Ends => false,
        Edge::Saves(_) | Edge::Returns(_) | Edge::Releases(_) => is_open,
    })
}

/// For each statement the number of its transaction.
pub(crate) fn numbers<'s>(statements: impl Iterator<Item = &'s Statement>) -> Vec<usize> {
    let (mut number, mut is_open) = (0, false);
    let of = |statement: &'s Statement| {
        let edge = Edge::of(statement);
        if !is_open || edge.as_ref().is_some_and(Edge::ends) {
            number += 1;
        }
        is_open = match edge {
            Some(Edge::Begins | Edge::Chains) => true,
            Some(Edge::Ends) => false,
            None | Some(Edge::Saves(_) | Edge::Returns(_) | Edge::Releases(_)) => is_open,
        };
        number
    };
    statements.map(of).collect()
}

/// Whether the statement at this place shares a transaction that is committed, and has no savepoints.
pub(crate) fn is_committed(statements: &[StatementOutcome], place: usize) -> bool {
    transaction(statements, place) == Transaction::Open
}

/// The transaction in which a statement is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// Its own.
    None,
    /// One that is committed, and can be committed before it, too.
    Open,
    /// One that is rolled back, or has savepoints: statements do not move out of it.
    Bound,
}

pub(crate) fn transaction(statements: &[StatementOutcome], place: usize) -> Transaction {
    let is_edge = |one: &&StatementOutcome| one.statement.kind == StatementKind::Transaction;
    let word = |one: &StatementOutcome| {
        one.statement.in_one_line().split([' ', ';']).next().map(str::to_ascii_lowercase).unwrap_or_default()
    };
    // Statements after COMMIT AND CHAIN are in a transaction; those after ROLLBACK TO are in one with savepoints.
    let begins = |one: &StatementOutcome| match Edge::of(&one.statement) {
        Some(Edge::Chains) => "begin".to_owned(),
        Some(Edge::Returns(_)) => "savepoint".to_owned(),
        _ => word(one),
    };
    let before = statements[..place].iter().rfind(is_edge).map(begins);
    let after = statements[place + 1..].iter().find(is_edge).map(word);
    match (before.as_deref(), after.as_deref()) {
        (Some("begin" | "start"), Some("commit" | "end")) => Transaction::Open,
        (Some("begin" | "start" | "savepoint" | "release"), _) | (_, Some("savepoint" | "release")) => {
            Transaction::Bound
        }
        _ => Transaction::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn statements_between_begin_and_commit_have_the_same_transaction() {
        for (sql, wanted) in [
            ("SELECT 1; SELECT 2", &[1, 2][..]),
            ("BEGIN; SELECT 1; SAVEPOINT a; SELECT 2; COMMIT; SELECT 3", &[1, 1, 1, 1, 2, 3]),
            ("BEGIN; SELECT 1; COMMIT AND CHAIN; SELECT 2; ROLLBACK", &[1, 1, 2, 2, 3]),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(numbers(script.statements.iter()), wanted, "{sql}");
        }
    }

    #[test]
    fn a_transaction_without_its_end_is_left_open() {
        for (sql, is_open) in [
            ("BEGIN; ALTER TABLE t ADD z int", true),
            ("BEGIN; ALTER TABLE t ADD z int; COMMIT", false),
            ("BEGIN; SAVEPOINT a; SELECT 1; ROLLBACK TO a", true),
            ("BEGIN; SELECT 1; COMMIT AND CHAIN; SELECT 1", true),
            ("ALTER TABLE t ADD z int", false),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(is_left_open(script.statements.iter()), is_open, "{sql}");
        }
    }
}
