//! Statements that begin, end or divide a transaction.

use crate::parts::names;
use crate::script::{Statement, StatementKind};

/// The effect of such a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// It begins a transaction.
    Begins,
    /// It ends the transaction.
    Ends,
    /// It ends the transaction and begins another one (AND CHAIN).
    Chains,
    /// It sets a savepoint.
    Saves(String),
    /// It goes back to a savepoint, and loses the locks that came after that.
    Returns(String),
    /// It forgets a savepoint; the locks stay.
    Releases(String),
}

impl Edge {
    /// The effect of a statement; none if it is no such statement.
    pub(crate) fn of(statement: &Statement) -> Option<Self> {
        if statement.kind != StatementKind::Transaction {
            return None;
        }
        let words: Vec<String> = names(&statement.sql).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match &words[..] {
            ["savepoint", name] => Self::Saves((*name).to_owned()),
            ["release", .., name] => Self::Releases((*name).to_owned()),
            ["rollback", "to", .., name] | ["rollback", _, "to", .., name] => {
                Self::Returns((*name).to_owned())
            }
            [.., "and", "chain"] => Self::Chains,
            _ if statement.ends_transaction() => Self::Ends,
            _ => Self::Begins,
        })
    }

    /// Whether the locks of the transaction end with it.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::Ends | Self::Chains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn the_effect_of_statements_on_transactions() {
        let name = |name: &str| name.to_owned();
        for (sql, wanted) in [
            ("BEGIN ISOLATION LEVEL SERIALIZABLE;", Some(Edge::Begins)),
            ("START TRANSACTION", Some(Edge::Begins)),
            ("COMMIT;", Some(Edge::Ends)),
            ("END WORK AND NO CHAIN", Some(Edge::Ends)),
            ("PREPARE TRANSACTION 'x'", Some(Edge::Ends)),
            ("commit/* */and chain;", Some(Edge::Chains)),
            ("ROLLBACK WORK AND CHAIN", Some(Edge::Chains)),
            ("SAVEPOINT A", Some(Edge::Saves(name("a")))),
            ("ROLLBACK TO SAVEPOINT \"A b\";", Some(Edge::Returns(name("A b")))),
            ("rollback transaction to a", Some(Edge::Returns(name("a")))),
            ("RELEASE a", Some(Edge::Releases(name("a")))),
            ("RELEASE SAVEPOINT a", Some(Edge::Releases(name("a")))),
            ("SET lock_timeout = 0", None),
            ("ALTER TABLE t ADD chain int", None),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(Edge::of(&script.statements[0]), wanted, "{sql}");
        }
    }
}
