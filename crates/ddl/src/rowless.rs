//! Statements that take hardly any time in the copy, so that pgrig does not know their time in the original: those that work on a partition
//! without generated rows, such as a default partition, those whose conditions no generated row satisfies, and changes that rewrite the table in
//! most time zones, but not in that of the copy.

use serde::Serialize;

use crate::edge::Edge;
use crate::find::Class;
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

/// Why a statement that writes rows of a table changed none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unchanged {
    /// No row satisfies its conditions.
    Conditions,
    /// Earlier statements have removed all rows.
    Removed,
    /// Each row of INSERT … ON CONFLICT conflicts with one that is there, and that it does not change.
    Conflict,
}

/// A table whose rows a statement writes, and of which it changed none, though it could change some if there were other rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// Name of the table for people.
    pub table: String,
    /// Whether rows would be inserted.
    pub is_insert: bool,
    /// Whether the conditions concern no other table.
    pub is_plain: bool,
    /// Why it changed none.
    pub why: Unchanged,
    /// The tables on whose rows that depends: the table itself, or those that INSERT reads.
    pub sources: Vec<String>,
    /// Whether the schema itself inserts the rows of all these tables, so that pgrig generates none there.
    pub is_of_schema: bool,
}

impl Unmatched {
    /// Why the time of the statement is not measured: a phrase for people.
    pub fn reason(&self) -> String {
        let changes = if self.is_insert { "inserts no row into" } else { "changes no row of" };
        let sources = self.sources.join(", ");
        let cause = match self.why {
            Unchanged::Conditions if self.is_of_schema => {
                format!("no row that the schema inserts into {sources} satisfies its conditions")
            }
            Unchanged::Conditions => "no generated row satisfies its conditions".to_owned(),
            Unchanged::Removed => format!("earlier statements have removed all rows of {sources}"),
            Unchanged::Conflict if self.is_of_schema => {
                "each of its rows conflicts with one that the schema inserts".to_owned()
            }
            Unchanged::Conflict => "each of its rows conflicts with an existing row".to_owned(),
        };
        format!("it {changes} {}, because {cause}", self.table)
    }

    /// Advice for other rows: a phrase for people.
    pub fn remedy(&self) -> String {
        let (values, insert) = match self.why {
            Unchanged::Conditions => ("values that do", "insert such rows in the schema; or "),
            Unchanged::Removed => {
                ("values that these do not remove", "insert rows in the schema that these do not remove; or ")
            }
            Unchanged::Conflict => ("other values of the key", ""),
        };
        let values = format!("give {values} with {}", self.option());
        if !self.is_of_schema {
            return values;
        }
        let sources = self.sources.join(", ");
        format!(
            "{insert}remove the rows of {sources} from the schema, so that pgrig generates rows \
             there, and {values}"
        )
    }

    /// The option for other values: it names the table on whose rows the result depends, if that is a single one.
    fn option(&self) -> String {
        let is_named = self.is_plain || self.is_of_schema || self.why != Unchanged::Conditions;
        let table = match &self.sources[..] {
            [source] if is_named => source.replace('\'', r"'\''"),
            _ => "TABLE".to_owned(),
        };
        format!("--column '{table}.COLUMN=SPEC'")
    }
}

/// Columns that a statement changes between timestamp and timestamptz, if nobody gave the time zone, which decides whether it rewrites the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownZone {
    /// The columns for people: `orders.at`.
    pub columns: Vec<String>,
    /// The time zone of the server that measures.
    pub zone: String,
}

impl UnknownZone {
    /// Advice: a phrase for people.
    pub const REMEDY: &str = "give the time zone of the migration's sessions in production (--set TimeZone=ZONE, or SET \
                              TimeZone in the migration)";

    /// Why the class and the time of the statement are not measured: a phrase for people.
    pub fn reason(&self) -> String {
        format!(
            "the time zone decides whether PostgreSQL rewrites the table ({}), and the time zone of the original is not known",
            self.columns.join(", ")
        )
    }
}

/// Why the time of a statement is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untimed<'a> {
    /// It works on a partition without rows.
    Partition(&'a Rowless),
    /// It changes no row.
    Write(&'a Unmatched),
    /// It rewrites the table in most time zones, but not in that of the server that measures.
    Zone(&'a UnknownZone),
}

impl Untimed<'_> {
    /// A phrase for people.
    pub fn reason(&self) -> String {
        match self {
            Self::Partition(rowless) => rowless.reason(),
            Self::Write(unmatched) => unmatched.reason(),
            Self::Zone(zone) => zone.reason(),
        }
    }

    /// Advice: a phrase for people.
    pub fn remedy(&self) -> String {
        match self {
            Self::Partition(rowless) => rowless.remedy(),
            Self::Write(unmatched) => unmatched.remedy(),
            Self::Zone(_) => UnknownZone::REMEDY.to_owned(),
        }
    }
}

impl StatementOutcome {
    /// Why its time is not measured; none if it is.
    pub fn untimed(&self) -> Option<Untimed<'_>> {
        let unmatched = self.found.as_ref().and_then(|found| found.unmatched.first());
        let is_rewrite = self.found.as_ref().is_some_and(|found| found.class == Class::Rewrite);
        let zone = self.zone.as_ref().filter(|_| !is_rewrite).map(Untimed::Zone);
        unmatched.map(Untimed::Write).or(self.rowless.first().map(Untimed::Partition)).or(zone)
    }
}

impl Outcome {
    /// Why it is not known how long a statement holds its locks: its own time is not measured, or that of a later statement of its
    /// transaction.
    pub fn untimed(&self, one: &StatementOutcome) -> Option<Untimed<'_>> {
        let place = self.statements.iter().position(|other| other.number == one.number)?;
        let own = self.statements[place].untimed();
        let (before, rest) = self.statements.split_at(place + 1);
        let last_edge = before.iter().rev().find_map(|other| Edge::of(&other.statement));
        if own.is_some() || last_edge.is_none_or(|edge| edge == Edge::Ends) {
            return own;
        }
        let ends = |other: &&StatementOutcome| Edge::of(&other.statement).is_some_and(|edge| edge.ends());
        rest.iter().take_while(|other| !ends(other)).find_map(StatementOutcome::untimed)
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
    fn the_remedy_of_a_write_names_its_table_if_the_conditions_concern_no_other() {
        let of = |is_insert: bool, is_plain: bool| Unmatched {
            table: "posts".to_owned(),
            is_insert,
            is_plain,
            why: Unchanged::Conditions,
            sources: vec![if is_insert { "users" } else { "posts" }.to_owned()],
            is_of_schema: false,
        };
        let plain = of(false, true);
        assert_eq!(
            plain.reason(),
            "it changes no row of posts, because no generated row satisfies its conditions"
        );
        assert_eq!(plain.remedy(), "give values that do with --column 'posts.COLUMN=SPEC'");
        let inserted = of(true, false);
        assert!(inserted.reason().starts_with("it inserts no row into posts, because "));
        assert!(inserted.remedy().ends_with("--column 'TABLE.COLUMN=SPEC'"));
        let of_schema = Unmatched { is_of_schema: true, ..inserted };
        let reason = "because no row that the schema inserts into users satisfies its conditions";
        assert!(of_schema.reason().ends_with(reason));
        assert!(of_schema.remedy().contains("remove the rows of users from the schema"));
        assert!(of_schema.remedy().ends_with("--column 'users.COLUMN=SPEC'"));
        let removed = Unmatched { why: Unchanged::Removed, is_of_schema: false, ..of_schema };
        assert!(removed.reason().ends_with(", because earlier statements have removed all rows of users"));
        let remedy = "give values that these do not remove with --column 'users.COLUMN=SPEC'";
        assert_eq!(removed.remedy(), remedy);
        let conflict = Unmatched { why: Unchanged::Conflict, sources: vec!["posts".to_owned()], ..removed };
        assert!(conflict.reason().ends_with(", because each of its rows conflicts with an existing row"));
        assert_eq!(conflict.remedy(), "give other values of the key with --column 'posts.COLUMN=SPEC'");
    }

    #[test]
    fn the_locks_of_a_transaction_are_held_while_a_later_statement_of_it_works() {
        let migration = "SELECT 1; BEGIN; SELECT 2; SAVEPOINT a; SELECT 3; SELECT 4; COMMIT; SELECT 5";
        let script = Script::read(migration, None).unwrap();
        let mut outcome =
            Outcome { statements: StatementOutcome::of_all(&script.statements), ..Outcome::default() };
        outcome.statements[4].rowless = vec![rowless(&[])];
        let is_unknown = |one: &StatementOutcome| outcome.untimed(one).is_some();
        let unknown: Vec<usize> =
            outcome.statements.iter().filter(|one| is_unknown(one)).map(|one| one.number).collect();
        assert_eq!(unknown, [2, 3, 4, 5]);
    }
}
