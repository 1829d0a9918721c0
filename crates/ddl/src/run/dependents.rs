//! Statements that ran on the copy and that the server refuses in the original, because a view, rule, policy, trigger, function or publication
//! there depends on a column or constraint that they drop, or on a column to which they give a type (tablecmds.c:
//! `RememberAllDependentForRebuilding`). Of a model, none of these is known: a warning says so.

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, Target};
use fill::SqlOrigin;
use server::Session;
use server::quote::shown;

use super::Observer;
use super::copies::Copies;
use super::cost::Costs;
use super::rules::Rules;
use super::types::{Change, Part, Types};
use crate::dependents::{Dependent, Left, Object, Used, cascades};
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
            if let Some(warning) = original.unknown(statements) {
                observer.warned(&warning);
            }
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

/// The objects of the original, and the columns and constraints before the migration.
struct Original<'a> {
    origin: &'a str,
    dependents: &'a [Dependent],
    /// Whether it is a model, which has no such objects.
    is_model: bool,
    parts: Types,
}

/// A column or constraint that a statement changes, as it was called before the migration.
struct ChangedPart<'a> {
    table: &'a (String, String),
    used: Used,
    change: Change,
}

impl<'a> Original<'a> {
    async fn read(empty: &Target, schema: &'a Schema) -> Result<Self, ConnectError> {
        let dependents = schema.dependents.as_slice();
        let is_model = schema.sql_origin() == SqlOrigin::Model;
        let parts = if dependents.is_empty() && !is_model {
            Types::default()
        } else {
            let session = Session::open(empty).await?;
            let parts = Types::read(&session).await?;
            session.close().await;
            parts
        };
        Ok(Self { origin: &schema.origin, dependents, is_model, parts })
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
        let mut changed = self.changed(one);
        changed.sort_by_key(|part| part.change);
        let dropped: BTreeSet<&(String, String)> =
            changed.iter().filter(|part| part.change == Change::WithTable).map(|part| part.table).collect();
        // With the table, the server drops these.
        let is_own = |object: &Object| dropped.iter().any(|table| object.goes_with(table));
        let own = left.objects(|one| is_own(&one.object));
        for part in &changed {
            let objects = left.objects(|one| part.is_used_by(one) && !is_own(&one.object));
            if objects.is_empty() {
                continue;
            }
            if part.change == Change::Type || !cascades(&one.statement) {
                return Some(self.failed(part, &objects, &left.in_order(&objects)));
            }
            left.remove(&objects);
        }
        left.remove(&own);
        None
    }

    /// The columns and constraints that a statement changes, as far as they were there before the migration.
    fn changed(&self, one: &StatementOutcome) -> Vec<ChangedPart<'_>> {
        let changed = one.found.iter().flat_map(|found| &found.changed);
        let before = changed.filter_map(|changed| {
            let known = self.parts.get(*changed)?;
            let name = known.name.clone();
            let used = match changed.part {
                Part::Column(_) => Used::Column(name),
                Part::Constraint(_) => Used::Constraint(name),
            };
            Some(ChangedPart { table: &known.table, used, change: changed.change })
        });
        before.collect()
    }

    /// A warning about statements that the server may refuse in the original, if it is not known which objects that has.
    fn unknown(&self, statements: &[StatementOutcome]) -> Option<String> {
        let changing = statements.iter().filter(|one| self.is_model && !self.changed(one).is_empty());
        let numbers: Vec<String> = changing.map(|one| one.number.to_string()).collect();
        let (statements, verbs, they, fail) = match numbers.len() {
            0 => return None,
            1 => ("statement", "drops or retypes", "it", "fails"),
            _ => ("statements", "drop or retype", "they", "fail"),
        };
        Some(format!(
            "{statements} {} {verbs} columns, constraints or tables: {they} {fail} in the original if a view, rule, policy, trigger, function or \
             publication there uses these, and a model has none of these objects. To find out, give -d, or --schema-file with the output of \
             pg_dump --schema-only",
            listed(&numbers, ", ")
        ))
    }

    fn failed(&self, part: &ChangedPart<'_>, objects: &[&Object], in_order: &[&Object]) -> Failed {
        let names: Vec<String> = objects.iter().map(|object| object.shown()).collect();
        let drops: Vec<String> = in_order.iter().map(|object| object.drop_sql()).collect();
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let (it, its) =
            if drops.len() == 1 { ("it", "this statement") } else { ("them", "these statements") };
        let message = format!(
            "in {}, the statement fails: {} ({} {uses} {})",
            self.origin,
            part.refusal(objects),
            listed(&names, ", "),
            part.shown()
        );
        let remedy = format!(
            "drop {it} earlier in the migration with {its}, and create {it} again later: {} (IF EXISTS, because pgrig's copy of the tables lacks \
             {it})",
            listed(&drops, "; ")
        );
        Failed { message, remedy: Some(remedy), unsuited: None, is_certain: false }
    }
}

impl ChangedPart<'_> {
    /// Whether an object is in the way of the change.
    fn is_used_by(&self, dependent: &Dependent) -> bool {
        if self.change == Change::WithTable {
            dependent.is_of(self.table)
        } else {
            dependent.uses(self.table, &self.used)
        }
    }

    /// For people; the table, if it is dropped.
    fn shown(&self) -> String {
        let table = self.shown_table();
        match &self.used {
            _ if self.change == Change::WithTable => table,
            Used::Column(name) => format!("{table}.{}", shown(name)),
            Used::Constraint(name) => format!("constraint {} on {table}", shown(name)),
            Used::Relation | Used::Function(_) => table,
        }
    }

    fn shown_table(&self) -> String {
        let (schema, name) = self.table;
        shown_relation(schema, name)
    }

    /// The server's message, if these objects use it.
    fn refusal(&self, objects: &[&Object]) -> String {
        let table = self.shown_table();
        let depend = "because other objects depend on it";
        match (self.change, objects.first(), &self.used) {
            (Change::Type, Some(object), _) => object.kind.keeps_type().to_owned(),
            (Change::Dropped | Change::Rebuilt, _, Used::Constraint(name)) => {
                format!("cannot drop constraint {} on table {table} {depend}", shown(name))
            }
            (Change::Dropped, _, Used::Column(name)) => {
                format!("cannot drop column {} of table {table} {depend}", shown(name))
            }
            _ => format!("cannot drop table {table} {depend}"),
        }
    }
}

/// The first of these texts, and how many more there are.
fn listed(texts: &[String], between: &str) -> String {
    let first = texts.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(between);
    let more = texts.len().saturating_sub(NAMED);
    if more > 0 { format!("{first} and {more} more") } else { first }
}
