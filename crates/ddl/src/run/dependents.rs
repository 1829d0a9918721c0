//! Statements that ran on the copy and that the server refuses in the original, because a view, rule, policy or trigger there depends on a column
//! that they drop, or whose type they change.

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;

use super::Observer;
use super::copies::Copies;
use super::cost::Costs;
use super::rules::Rules;
use super::types::{Change, Types};
use crate::dependents::{Dependent, Left, Object, cascades};
use crate::error::DdlError;
use crate::find::shown_relation;
use crate::outcome::{Failed, StatementOutcome};
use crate::schema::Schema;
use crate::script::Statement;

/// Objects that a message or a remedy names.
const NAMED: usize = 8;

/// The failures of statements that the server refuses in the original, by their places.
pub(crate) type Refused = BTreeMap<usize, Failed>;

/// Looks at the statements on tables without rows. If the server refuses one in the original, marks it as failed, and begins anew without it. Those
/// that failed after it are tried again: they may have failed because of it. Also returns the refused ones.
pub(crate) async fn look(
    (site, empty): (&Copies<'_>, &Target),
    schema: &Schema,
    statements: &mut [StatementOutcome],
    rules: &mut Rules,
    observer: &mut dyn Observer,
) -> Result<(Target, Costs, Refused), DdlError> {
    let original = Original::read(empty, schema).await?;
    let mut refused = Refused::new();
    loop {
        let (migrated, costs) = Box::pin(site.look(empty, statements, rules, observer)).await?;
        if !original.refuses_any(statements, &mut refused) {
            return Ok((migrated, costs, refused));
        }
        site.databases.drop(&migrated).await?;
    }
}

/// The outcomes of the statements before they run, the refused ones as failed.
pub(crate) fn outcomes(statements: &[Statement], refused: Refused) -> Vec<StatementOutcome> {
    let mut outcomes = StatementOutcome::of_all(statements);
    for (place, failed) in refused {
        outcomes[place].failed = Some(failed);
    }
    outcomes
}

/// The objects of the original, and the columns before the migration.
struct Original<'a> {
    origin: &'a str,
    dependents: &'a [Dependent],
    columns: Types,
}

/// A column that a statement changes, as it was called before the migration.
struct ChangedColumn<'a> {
    table: &'a (String, String),
    name: &'a str,
    change: Change,
}

impl<'a> Original<'a> {
    async fn read(empty: &Target, schema: &'a Schema) -> Result<Self, ConnectError> {
        let dependents = schema.dependents.as_slice();
        let columns = if dependents.is_empty() {
            Types::default()
        } else {
            let session = Session::open(empty).await?;
            let columns = Types::read(&session).await?;
            session.close().await;
            columns
        };
        Ok(Self { origin: &schema.origin, dependents, columns })
    }

    /// Marks the statements that the server refuses there, and adds their places to those that it refuses. Whether there was a new one.
    fn refuses_any(&self, statements: &mut [StatementOutcome], refused: &mut Refused) -> bool {
        let mut left = Left::new(self.dependents);
        let mut has_new = false;
        for (place, one) in statements.iter_mut().enumerate() {
            left.forget(&one.statement);
            if let Some(failed) = self.refused(&mut left, one) {
                (one.found, one.failed) = (None, Some(failed.clone()));
                refused.insert(place, failed);
                has_new = true;
            } else if has_new && !refused.contains_key(&place) {
                one.failed = None;
            }
        }
        has_new
    }

    /// The failure of a statement that ran on the copy; none if it runs in the original, too. Removes the objects that it drops there.
    fn refused(&self, left: &mut Left<'a>, one: &StatementOutcome) -> Option<Failed> {
        let changed = self.changed(one);
        let dropped: BTreeSet<&(String, String)> = changed
            .iter()
            .filter(|column| column.change == Change::WithTable)
            .map(|column| column.table)
            .collect();
        // With the table, the server drops these.
        let is_own = |object: &Object| dropped.iter().any(|table| object.goes_with(table));
        let own = left.objects(|one| is_own(&one.object));
        let first = changed.iter().filter(|column| column.change != Change::Type);
        for column in first.chain(changed.iter().filter(|column| column.change == Change::Type)) {
            let objects = left.objects(|one| column.is_used_by(one) && !is_own(&one.object));
            if objects.is_empty() {
                continue;
            }
            if column.change == Change::Type || !cascades(&one.statement) {
                return Some(self.failed(column, &objects, &left.in_order(&objects)));
            }
            left.remove(&objects);
        }
        left.remove(&own);
        None
    }

    /// The columns that a statement changes, as far as they were there before the migration.
    fn changed(&self, one: &StatementOutcome) -> Vec<ChangedColumn<'_>> {
        let changed = one.found.iter().flat_map(|found| &found.changed);
        let before = changed.filter_map(|changed| {
            let column = self.columns.get(*changed)?;
            Some(ChangedColumn { table: &column.table, name: &column.name, change: changed.change })
        });
        before.collect()
    }

    fn failed(&self, column: &ChangedColumn<'_>, objects: &[&Object], in_order: &[&Object]) -> Failed {
        let names: Vec<String> = objects.iter().map(|object| object.shown()).collect();
        let drops: Vec<String> = in_order.iter().map(|object| object.drop_sql()).collect();
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let (it, its) =
            if drops.len() == 1 { ("it", "this statement") } else { ("them", "these statements") };
        let message = format!(
            "in {}, the statement fails: {} ({} {uses} {})",
            self.origin,
            column.refusal(objects),
            listed(&names, ", "),
            column.shown()
        );
        let remedy = format!(
            "drop {it} earlier in the migration with {its}, and create {it} again later: {} (IF EXISTS, because pgrig's copy of the tables lacks \
             {it})",
            listed(&drops, "; ")
        );
        Failed { message, remedy: Some(remedy), unsuited: None, is_certain: false }
    }
}

impl ChangedColumn<'_> {
    /// Whether an object is in the way of the change.
    fn is_used_by(&self, dependent: &Dependent) -> bool {
        let is_of_column = self.change == Change::WithTable || dependent.column.as_deref() == Some(self.name);
        dependent.on == *self.table && is_of_column
    }

    /// For people; the table, if it is dropped.
    fn shown(&self) -> String {
        let table = self.shown_table();
        if self.change == Change::WithTable { table } else { format!("{table}.{}", shown(self.name)) }
    }

    fn shown_table(&self) -> String {
        let (schema, name) = self.table;
        shown_relation(schema, name)
    }

    /// The server's message, if these objects use it.
    fn refusal(&self, objects: &[&Object]) -> String {
        let table = self.shown_table();
        let depend = "because other objects depend on it";
        match (self.change, objects.first()) {
            (Change::Type, Some(object)) => object.kind.keeps_type().to_owned(),
            (Change::WithTable, _) => format!("cannot drop table {table} {depend}"),
            (Change::Type | Change::Dropped, _) => {
                format!("cannot drop column {} of table {table} {depend}", shown(self.name))
            }
        }
    }
}

/// The first of these texts, and how many more there are.
fn listed(texts: &[String], between: &str) -> String {
    let first = texts.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(between);
    let more = texts.len().saturating_sub(NAMED);
    if more > 0 { format!("{first} and {more} more") } else { first }
}
