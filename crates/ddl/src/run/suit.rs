//! Rows that suit the migration: they keep the rules that it adds, and their values can be cast to the types that it gives.
//!
//! Rules are added to the tables before the fill, which heeds them, and dropped after it. Rows do not keep a new rule if the migration
//! changes its columns before: such a backfill is there because they do not ([`Changes`]).

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, Target};
use server::Session;
use server::quote::{identifier, literal, shown};
use tokio_postgres::Row;

use crate::extent::{Extent, Takes};
use crate::outcome::StatementOutcome;
use crate::run::changes::Changes;
use crate::run::failure;
use crate::run::keys::Key;
use crate::run::rehearse::{Shape, Table, Tables, words};
use crate::run::rules::{Rule, Rules};
use crate::run::types::places;
use crate::schema::Schema;
use crate::script::Statement;

/// A rule as statements.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    pub(crate) add: String,
    drop: String,
    /// Statements that give columns the names that the migration gives them, each with the one that undoes it.
    renames: Vec<[String; 2]>,
    /// The key, if the rule is one.
    pub(crate) key: Option<Key>,
}

impl Addition {
    /// None if the table of the rule was not there before. `before` are the rules before the migration.
    fn of(rule: &Rule, tables: &Tables, before: &[Rule], number: usize) -> Option<Self> {
        let alter = match &rule.domain {
            Some(domain) => format!("ALTER DOMAIN {domain}"),
            None => format!("ALTER TABLE {}", tables.get(rule.table)?.sql()),
        };
        let with = |add: String, drop: String| Some(Self { add, drop, renames: Vec::new(), key: None });
        if let Some(index) = &rule.index {
            return with(rule.action.clone(), format!("DROP INDEX IF EXISTS {index}"));
        }
        if let Some(column) = rule.action.strip_suffix("SET NOT NULL") {
            let drop = format!("{alter} {column}DROP NOT NULL{}", kept(rule, tables, before));
            return with(format!("{alter} {}", rule.action), drop);
        }
        let name = format!("pgrig_suits_{number}");
        // A constraint of a partitioned table takes over those of its partitions, which go with it.
        with(
            format!("{alter} ADD CONSTRAINT {name} {}", rule.action),
            format!("{alter} DROP CONSTRAINT IF EXISTS {name}"),
        )
    }

    /// A statement between those that rename the columns.
    fn between(&self, statement: &str) -> String {
        let renamed = self.renames.iter().map(|[rename, _]| rename.as_str());
        let back = self.renames.iter().rev().map(|[_, back]| back.as_str());
        renamed.chain([statement]).chain(back).collect::<Vec<_>>().join(";\n")
    }
}

/// Statements that give partitions and INHERITS children their own NOT NULL of a column back: up to PostgreSQL 17, DROP NOT NULL of the table drops these, too.
fn kept(rule: &Rule, tables: &Tables, before: &[Rule]) -> String {
    let own = before.iter().filter(|old| {
        old.action == rule.action && !old.is_inherited && tables.is_below(old.table, rule.table)
    });
    let again = |old: &Rule| Some(format!(";\nALTER TABLE {} {}", tables.get(old.table)?.sql(), old.action));
    own.filter_map(again).collect()
}

/// The additions of the migration that tables before it take, one after the other, and warnings about the rules that they refuse. `empty` is a
/// copy of the tables without rows, which is changed. The rules of `after` are those after each statement.
pub(crate) async fn additions(
    empty: &Target,
    tables: &Tables,
    [before, after]: [&Shape; 2],
    changes: &Changes,
) -> Result<(Vec<Addition>, Vec<String>), ConnectError> {
    let session = Session::open(empty).await?;
    session.run("SET search_path = ''").await?;
    let renames = before.casts.renames(&after.casts, tables);
    // A partition that the migration detaches keeps the rules that it had of its parent.
    let is_new = |rule: &Rule| !before.rules.iter().any(|old| old.is_same(rule));
    let is_changed = |rule: &Rule| {
        let with_domain = rule.domain.as_ref().map(|domain| before.casts.tables_with(domain));
        changes.are_for(rule, [&before.casts, &after.casts], with_domain.as_ref())
    };
    let new = after.rules.iter().filter(|rule| !rule.is_inherited && !is_changed(rule) && is_new(rule));
    let addition = |(number, rule): (usize, &'_ Rule)| {
        let key = Key::of(rule, tables, &before.casts.names(&after.casts, rule.table));
        Some((rule.clone(), Addition { key, ..Addition::of(rule, tables, &before.rules, number)? }))
    };
    let mut waiting: Vec<(Rule, Addition)> = new.enumerate().filter_map(addition).collect();
    let mut taken = Vec::new();
    // A rule may need another one: a foreign key needs a unique index.
    let refused = loop {
        let mut refused = Vec::new();
        let of_before = taken.len();
        for (rule, plain) in waiting {
            match take(&session, &plain, &renames).await? {
                Ok(addition) => taken.push(addition),
                Err(error) => refused.push((rule, plain, error)),
            }
        }
        if taken.len() == of_before {
            break refused;
        }
        waiting = refused.into_iter().map(|(rule, plain, _)| (rule, plain)).collect();
    };
    session.close().await;
    let is_of_old = |rule: &Rule| is_of_old_columns(rule, [before, after]);
    let warned = refused.iter().filter(|(rule, ..)| is_of_old(rule));
    Ok((taken, warned.map(|(rule, _, error)| warning(rule, tables, error)).collect()))
}

/// Adds a rule: as it is, or between statements that rename the columns. The error is the server's refusal of the rule as it is.
async fn take(
    session: &Session,
    plain: &Addition,
    renames: &[[String; 2]],
) -> Result<Result<Addition, ConnectError>, ConnectError> {
    let Err(error) = failure::refused(session.run(&plain.between(&plain.add)).await)? else {
        return Ok(Ok(plain.clone()));
    };
    if renames.is_empty() {
        return Ok(Err(error));
    }
    let between = Addition { renames: renames.to_vec(), ..plain.clone() };
    let run = failure::refused(session.run(&between.between(&between.add)).await)?;
    Ok(run.map(|()| between).map_err(|_| error))
}

/// Whether all columns of a rule, or some of its domain, were there before the migration, perhaps with other names.
fn is_of_old_columns(rule: &Rule, [before, after]: [&Shape; 2]) -> bool {
    if let Some(domain) = &rule.domain {
        return !before.casts.tables_with(domain).is_empty();
    }
    let names = before.casts.names(&after.casts, rule.table);
    let is_old = |column: &String| names.iter().any(|[name, _]| name == column);
    !rule.columns.is_empty() && rule.columns.iter().all(is_old)
}

/// A warning about a rule that the tables before the migration refuse.
fn warning(rule: &Rule, tables: &Tables, error: &ConnectError) -> String {
    let action = &rule.action;
    let shown = match (&rule.domain, tables.get(rule.table)) {
        (Some(domain), _) => format!("{action} of domain {domain}"),
        (None, Some(table)) if rule.index.is_none() => format!("{action} of {}", table.shown()),
        _ => action.clone(),
    };
    let message = failure::of(error).message;
    format!(
        "the generated rows may not satisfy {shown}, which the migration adds, because pgrig could not add it to the tables before the \
         migration ({message}). If a statement fails because of it, give other values with --column"
    )
}

/// Drops the additions, the last one first. A child keeps NOT NULL as long as its parent has it, so a refused one is dropped after the others.
pub(crate) async fn drop_all(target: &Target, additions: &[Addition]) -> Result<(), ConnectError> {
    let session = Session::open(target).await?;
    let mut left: Vec<&Addition> = additions.iter().rev().collect();
    while !left.is_empty() {
        let (number, mut refused, mut refusal) = (left.len(), Vec::new(), None);
        for addition in left {
            if let Err(error) = failure::refused(session.run(&addition.between(&addition.drop)).await)? {
                refused.push(addition);
                refusal = Some(error);
            }
        }
        if let Some(error) = refusal.filter(|_| refused.len() == number) {
            return Err(error);
        }
        left = refused;
    }
    session.close().await;
    Ok(())
}

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Type {
    column: String,
    oid: u32,
    name: String,
    category: String,
    full: String,
    /// The full type, or the one under a domain.
    base: String,
    labels: Vec<String>,
    is_unique: bool,
    is_reference: bool,
    /// Whether a parent of the table has the column.
    is_inherited: bool,
    /// The file of the table.
    file: u32,
}

/// A column that changes between timestamp and timestamptz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zoned {
    /// OID of its table.
    pub(crate) table: u32,
    /// Its names before and after the migration.
    pub(crate) names: [String; 2],
    /// Whether a parent of the table has the column.
    pub(crate) is_inherited: bool,
    /// Whether the migration has given the table a new file.
    pub(crate) has_new_file: bool,
}

/// Types of all columns, by table and number.
#[derive(Clone, Debug)]
pub(crate) struct Casts(BTreeMap<(u32, i16), Type>);

impl Casts {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let column = |row: &Row| {
            let found = Type {
                column: row.get("name"),
                oid: row.get("type_oid"),
                name: row.get("type"),
                category: row.get("category"),
                full: row.get("full_type"),
                base: row.get("base_type"),
                labels: row.get("labels"),
                is_unique: row.get("is_unique"),
                is_reference: row.get("is_reference"),
                is_inherited: row.get("is_inherited"),
                file: row.get("file"),
            };
            ((row.get("oid"), row.get("attnum")), found)
        };
        Self(rows.iter().map(column).collect())
    }

    /// The names of a table's columns, and those that the migration gives them, each with the first one.
    pub(crate) fn names(&self, after: &Self, table: u32) -> Vec<[String; 2]> {
        let of_table = self.0.iter().filter(|((oid, _), _)| *oid == table);
        let names = of_table.flat_map(|(key, old)| {
            let new = after.0.get(key).filter(|new| new.column != old.column);
            [Some(old), new].into_iter().flatten().map(move |one| [one.column.clone(), old.column.clone()])
        });
        names.collect()
    }

    /// Statements that rename columns as the migration does, each with the one that undoes it. Those of children follow their parents'.
    fn renames(&self, after: &Self, tables: &Tables) -> Vec<[String; 2]> {
        let of_column = |(key, old): (&(u32, i16), &Type)| {
            let new = after.0.get(key).filter(|new| new.column != old.column && !old.is_inherited)?;
            let statement = format!("ALTER TABLE {} RENAME COLUMN", tables.get(key.0)?.sql());
            let (from, to) = (identifier(&old.column), identifier(&new.column));
            Some([format!("{statement} {from} TO {to}"), format!("{statement} {to} TO {from}")])
        };
        self.0.iter().filter_map(of_column).collect()
    }

    /// The columns that change between timestamp and timestamptz.
    pub(crate) fn zoned(&self, after: &Self) -> Vec<Zoned> {
        let is_zoned = |old: &Type, new: &Type| {
            [("timestamp", "timestamptz"), ("timestamptz", "timestamp")]
                .contains(&(old.name.as_str(), new.name.as_str()))
        };
        let column = |(key, old): (&(u32, i16), &Type)| {
            let new = after.0.get(key)?;
            is_zoned(old, new).then(|| Zoned {
                table: key.0,
                names: [old.column.clone(), new.column.clone()],
                is_inherited: old.is_inherited,
                has_new_file: old.file != new.file,
            })
        };
        self.0.iter().filter_map(column).collect()
    }

    /// The tables with columns of a type, or of arrays of it.
    fn tables_with(&self, full: &str) -> BTreeSet<u32> {
        let is_it = |one: &Type| one.full.strip_suffix("[]").unwrap_or(&one.full) == full;
        self.0.iter().filter(|(_, one)| is_it(one)).map(|((oid, _), _)| *oid).collect()
    }

    /// Columns to which the migration gives another type, with the old and the new one, unless it changes their values before. Types are as they are
    /// after the statement that gives them.
    pub(crate) fn retyped(
        &self,
        after: &Self,
        (tables, changes): (&Tables, &Changes),
        (statements, rules): (&[StatementOutcome], &Rules),
    ) -> Vec<Retyped> {
        let places = places(statements);
        let column = |(key, old): (&(u32, i16), &Type)| {
            let table = tables.get(key.0)?;
            let mut new = after.0.get(key).filter(|new| new.full != old.full)?.clone();
            let place = places.get(key).copied();
            if changes.are_for_column(key.0, &[&old.column, &new.column], place) {
                return None;
            }
            if let Some(labels) = place.and_then(|place| rules.labels(place, new.oid)) {
                new.labels = labels.to_vec();
            }
            Some(Retyped { table: table.clone(), old: old.clone(), new })
        };
        self.0.iter().filter_map(column).collect()
    }
}

/// A column to which the migration gives another type.
pub(crate) struct Retyped {
    table: Table,
    old: Type,
    new: Type,
}

impl Retyped {
    /// The specification of values that the new type takes; none where those that the column has anyway will do, or none is known.
    pub(crate) fn spec(&self, schema: &Schema) -> Option<String> {
        let [old, new] = [&self.old.base, &self.new.full].map(|full| Takes::of(full));
        let is_kept = |extent: &Extent| {
            old.zip(new).is_some_and(|(old, new)| new.is_like(old) && new.takes_made(extent))
        };
        if self.old.is_reference || self.extent(schema).is_some_and(is_kept) {
            return None;
        }
        let spec = values(&self.old, &self.new)?;
        Some(format!("{}.{}={spec}", self.table.plain_name(), self.old.column))
    }

    /// A warning if the new type does not take the values that the original has by its statistics, unless a statement computes others.
    pub(crate) fn warning(&self, schema: &Schema, statements: &[Statement]) -> Option<String> {
        let (extent, new) = (self.extent(schema)?, Takes::of(&self.new.base)?);
        let is_alike = new.is_like(Takes::of(&self.old.base)?);
        if !is_alike || new.takes(extent)? || self.old.is_inherited || self.is_computed(statements) {
            return None;
        }
        let values = match new {
            Takes::Text(_) => format!("texts of {} characters", extent.longest),
            _ => "numbers out of its range".to_owned(),
        };
        let (origin, table, column) = (&schema.origin, self.table.shown(), shown(&self.old.column));
        Some(format!(
            "in {origin}, the change of {table}.{column} to {} fails: by the statistics, the column has {values}. pgrig measures the change with \
             other values",
            self.new.full
        ))
    }

    fn extent<'a>(&self, schema: &'a Schema) -> Option<&'a Extent> {
        schema.extents.get(&(self.table.plain_name(), self.old.column.clone()))
    }

    /// Whether the text of a statement gives the column its type with USING.
    fn is_computed(&self, statements: &[Statement]) -> bool {
        let names = [&self.old.column, &self.new.column].map(|name| name.to_lowercase());
        statements.iter().any(|one| {
            let words = words(&one.sql);
            words.contains("using") && names.iter().any(|name| words.contains(name))
        })
    }
}

/// Values of the old type that the new one takes; none where any would do, or none is known.
fn values(old: &Type, new: &Type) -> Option<String> {
    if Takes::of(&old.base).zip(Takes::of(&new.full)).is_some_and(|(old, new)| new.takes_all_of(old)) {
        return None;
    }
    let length =
        || new.full.split_once('(').and_then(|(_, rest)| rest.trim_end_matches(')').parse::<u32>().ok());
    let whole = |most: u32| if old.is_unique { "serial".to_owned() } else { format!("uniform(0,{most})") };
    let most = match new.name.as_str() {
        "int2" => 30_000,
        "numeric" => {
            let digits = new.full.split_once('(').map_or("9,0", |(_, rest)| rest.trim_end_matches(')'));
            let (all, after) = digits.split_once(',').unwrap_or((digits, "0"));
            let before = all.parse::<u32>().ok()?.saturating_sub(after.parse().ok()?);
            10_u32.pow(before.min(9)) - 1
        }
        _ => 1_000_000,
    };
    let quoted = |labels: &[String]| {
        let labels: Vec<String> = labels.iter().map(|label| literal(label)).collect();
        format!("list({})", labels.join(","))
    };
    match (old.category.as_str(), new.category.as_str(), new.name.as_str()) {
        ("N", "N", "float4" | "float8") | ("N", "S", "text") => None,
        ("S" | "N", "N", _) => Some(whole(most)),
        ("S", "S", _) => match length() {
            Some(length) if old.is_unique && length >= 9 => Some("serial".to_owned()),
            Some(length) => Some(format!("random(1,{length})")),
            None => None,
        },
        ("S", "D", "date" | "timestamp" | "timestamptz") => {
            Some("list(2024-02-01,2024-08-15,2025-03-31)".to_owned())
        }
        ("S", "D", _) => Some("list(08:00,12:30,23:59:59)".to_owned()),
        ("S", "B", _) => Some("list(true,false)".to_owned()),
        ("S", "E", _) if !new.labels.is_empty() => Some(quoted(&new.labels)),
        ("S", _, "json" | "jsonb") => Some("list('{}','{\"a\": 1}')".to_owned()),
        ("S", _, "uuid") => {
            let one = |digit: u32| digit.to_string().repeat(8) + "-1111-4111-8111-111111111111";
            Some(format!("list({})", (1..=5).map(one).collect::<Vec<_>>().join(",")))
        }
        ("S", _, "inet") => Some("ip".to_owned()),
        _ => None,
    }
}

/// The statements that add them, in a session of any search_path.
pub(crate) fn script(additions: &[Addition]) -> String {
    let statements = additions.iter().map(|addition| format!(";\n{}", addition.between(&addition.add)));
    format!("{};\n", statements.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(category: &str, name: &str, full: &str) -> Type {
        Type {
            column: "c".to_owned(),
            oid: 1,
            name: name.to_owned(),
            category: category.to_owned(),
            full: full.to_owned(),
            base: full.to_owned(),
            labels: vec!["a b".to_owned(), "it's".to_owned()],
            is_unique: false,
            is_reference: false,
            is_inherited: false,
            file: 1,
        }
    }

    #[test]
    fn a_rule_of_a_renamed_column_is_added_under_its_new_name() {
        let rename = ["RENAME a TO b".to_owned(), "RENAME b TO a".to_owned()];
        let (add, renames) = ("ADD".to_owned(), vec![rename]);
        let addition = Addition { add, drop: String::new(), renames, key: None };
        assert_eq!(script(&[addition]), ";\nRENAME a TO b;\nADD;\nRENAME b TO a;\n");
    }

    #[test]
    fn values_of_the_old_type_can_be_cast_to_the_new_one() {
        let text = column("S", "text", "text");
        let price = Type { base: "numeric(12,2)".to_owned(), ..column("N", "price", "shop.price") };
        for (old, new, wanted) in [
            (&text, column("N", "int4", "integer"), Some("uniform(0,1000000)")),
            (&text, column("N", "numeric", "numeric(5,2)"), Some("uniform(0,999)")),
            (&text, column("S", "varchar", "character varying(5)"), Some("random(1,5)")),
            (&text, column("E", "mood", "mood"), Some("list('a b','it''s')")),
            (&column("N", "int4", "integer"), column("N", "int2", "smallint"), Some("uniform(0,30000)")),
            (&column("N", "int4", "integer"), column("S", "text", "text"), None),
            (&column("D", "timestamp", "timestamp"), column("D", "date", "date"), None),
            (&column("N", "int4", "integer"), column("N", "int8", "bigint"), None),
            (&price, column("N", "numeric", "numeric(14,2)"), None),
            (&price, column("N", "numeric", "numeric(11,2)"), Some("uniform(0,999999999)")),
            (
                &column("S", "varchar", "character varying(5)"),
                column("S", "varchar", "character varying(9)"),
                None,
            ),
        ] {
            assert_eq!(values(old, &new).as_deref(), wanted, "{old:?} {new:?}");
        }
    }
}
