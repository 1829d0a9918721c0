//! Partitions without generated rows, such as a default partition: a statement that works on one takes hardly any time in the copy, and
//! pgrig does not know its time in the original.

use serde::Serialize;

use crate::edge::Edge;
use crate::outcome::{Outcome, StatementOutcome};

/// A partition on which a statement works, and that has no rows in the copy though its table has some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rowless {
    /// Name of the partition for people.
    pub partition: String,
    /// Whether it is the default partition.
    pub is_default: bool,
    /// The columns of a default partition's keys, each `TABLE.COLUMN` as `--column` names it; nothing if they are expressions.
    pub columns: Vec<String>,
}

impl Rowless {
    /// Why the time of the statement is not measured: a phrase for people.
    pub fn reason(&self) -> String {
        let kind = if self.is_default { "the default partition" } else { "the partition" };
        format!("{kind} {} has no generated rows", self.partition)
    }

    /// Advice for rows in the partition: a phrase for people.
    pub fn remedy(&self) -> String {
        let columns =
            if self.columns.is_empty() { vec!["TABLE.KEY".to_owned()] } else { self.columns.clone() };
        let option = |column: &String| format!("--column '{}=SPEC'", column.replace('\'', r"'\''"));
        let options: Vec<String> = columns.iter().map(option).collect();
        let values = if self.is_default {
            "values outside the bounds of all other partitions"
        } else {
            "values within its bounds"
        };
        format!("give {values} with {}", options.join(" and "))
    }
}

impl Outcome {
    /// The partition without rows because of which it is not known how long a statement holds its locks: one on which it works, or a later
    /// statement of its transaction.
    pub fn rowless(&self, one: &StatementOutcome) -> Option<&Rowless> {
        let place = self.statements.iter().position(|other| other.number == one.number)?;
        let own = self.statements[place].rowless.first();
        let (before, rest) = self.statements.split_at(place + 1);
        let last_edge = before.iter().rev().find_map(|other| Edge::of(&other.statement));
        if own.is_some() || last_edge.is_none_or(|edge| edge == Edge::Ends) {
            return own;
        }
        let ends = |other: &&StatementOutcome| Edge::of(&other.statement).is_some_and(|edge| edge.ends());
        rest.iter().take_while(|other| !ends(other)).find_map(|other| other.rowless.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn rowless(columns: &[&str]) -> Rowless {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Rowless { partition: "events_default".to_owned(), is_default: true, columns }
    }

    #[test]
    fn the_remedy_names_the_columns_of_the_keys() {
        let one = rowless(&["events.at"]);
        assert_eq!(one.reason(), "the default partition events_default has no generated rows");
        let values = "give values outside the bounds of all other partitions with ";
        assert_eq!(one.remedy(), format!("{values}--column 'events.at=SPEC'"));
        let both = rowless(&["events.at", "events.kind"]).remedy();
        assert!(both.ends_with("with --column 'events.at=SPEC' and --column 'events.kind=SPEC'"), "{both}");
        assert!(rowless(&[]).remedy().ends_with("with --column 'TABLE.KEY=SPEC'"));
    }

    #[test]
    fn the_locks_of_a_transaction_are_held_while_a_later_statement_of_it_works() {
        let migration = "SELECT 1; BEGIN; SELECT 2; SAVEPOINT a; SELECT 3; SELECT 4; COMMIT; SELECT 5";
        let script = Script::read(migration, None).unwrap();
        let mut outcome =
            Outcome { statements: StatementOutcome::of_all(&script.statements), ..Outcome::default() };
        outcome.statements[4].rowless = vec![rowless(&[])];
        let is_unknown = |one: &StatementOutcome| outcome.rowless(one).is_some();
        let unknown: Vec<usize> =
            outcome.statements.iter().filter(|one| is_unknown(one)).map(|one| one.number).collect();
        assert_eq!(unknown, [2, 3, 4, 5]);
    }
}
