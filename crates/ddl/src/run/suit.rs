//! Rows that suit the migration: they keep the rules that it adds, and their values can be cast to the types that it gives.
//!
//! Rules are added to the tables before the fill, which heeds them, and dropped after it. A table whose rows the migration
//! changes itself keeps only its own rules: a backfill is there because the rows do not keep the new ones.

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, Target};
use server::Session;
use server::quote::literal;
use tokio_postgres::Row;

use crate::run::failure;
use crate::run::rehearse::{Shape, Table, Tables};

/// A rule of a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    table: u32,
    /// The action of ALTER TABLE, or CREATE INDEX.
    action: String,
    /// The index as SQL, if it is one.
    index: Option<String>,
    /// Whether it is NOT NULL of a parent.
    is_inherited: bool,
}

impl Rule {
    pub(crate) fn of(row: &Row) -> Self {
        Self {
            table: row.get("oid"),
            action: row.get("action"),
            index: row.get("index"),
            is_inherited: row.get("inherited"),
        }
    }
}

/// A rule as statements.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    pub(crate) add: String,
    drop: String,
}

impl Addition {
    fn of(rule: &Rule, table: &Table, number: usize) -> Self {
        let alter = format!("ALTER TABLE {}", table.sql());
        if let Some(index) = &rule.index {
            return Self { add: rule.action.clone(), drop: format!("DROP INDEX {index}") };
        }
        if let Some(column) = rule.action.strip_suffix(" SET NOT NULL") {
            return Self {
                add: format!("{alter} {}", rule.action),
                drop: format!("{alter} {column} DROP NOT NULL"),
            };
        }
        let name = format!("pgrig_suits_{number}");
        Self {
            add: format!("{alter} ADD CONSTRAINT {name} {}", rule.action),
            drop: format!("{alter} DROP CONSTRAINT {name}"),
        }
    }
}

/// The additions of the migration that tables before it take, one after the other. `empty` is a copy of the tables without
/// rows, which is changed.
pub(crate) async fn additions(
    empty: &Target,
    tables: &Tables,
    [before, after]: [&Shape; 2],
    changed: &BTreeSet<u32>,
) -> Result<Vec<Addition>, ConnectError> {
    let session = Session::open(empty).await?;
    session.run("SET search_path = ''").await?;
    // A partition that the migration detaches keeps the rules that it had of its parent.
    let is_new = |rule: &Rule| {
        let same =
            |old: &Rule| (old.table, &old.action, &old.index) == (rule.table, &rule.action, &rule.index);
        !before.rules.iter().any(same)
    };
    let new = after
        .rules
        .iter()
        .filter(|rule| !rule.is_inherited && !changed.contains(&rule.table) && is_new(rule));
    let mut taken = Vec::new();
    for (number, rule) in new.enumerate() {
        let Some(table) = tables.get(rule.table) else { continue };
        let addition = Addition::of(rule, table, number);
        // A column that the migration adds is not there yet.
        if failure::refused(session.run(&addition.add).await)?.is_ok() {
            taken.push(addition);
        }
    }
    session.close().await;
    Ok(taken)
}

/// Drops the additions, the last one first.
pub(crate) async fn drop_all(target: &Target, additions: &[Addition]) -> Result<(), ConnectError> {
    let session = Session::open(target).await?;
    for addition in additions.iter().rev() {
        session.run(&addition.drop).await?;
    }
    session.close().await;
    Ok(())
}

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Type {
    column: String,
    name: String,
    category: String,
    full: String,
    labels: Vec<String>,
    is_unique: bool,
    is_reference: bool,
}

/// Types of all columns, by table and number.
#[derive(Clone, Debug)]
pub(crate) struct Casts(BTreeMap<(u32, i16), Type>);

impl Casts {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let column = |row: &Row| {
            let found = Type {
                column: row.get("name"),
                name: row.get("type"),
                category: row.get("category"),
                full: row.get("full_type"),
                labels: row.get("labels"),
                is_unique: row.get("is_unique"),
                is_reference: row.get("is_reference"),
            };
            ((row.get("oid"), row.get("attnum")), found)
        };
        Self(rows.iter().map(column).collect())
    }

    /// The names of a table's columns.
    pub(crate) fn columns(&self, table: u32) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |((oid, _), _)| *oid == table).map(|(_, one)| one.column.as_str())
    }

    /// Specifications of columns whose new type does not take all values of the old one.
    pub(crate) fn specs(&self, after: &Self, tables: &Tables, changed: &BTreeSet<u32>) -> Vec<String> {
        let of_table = |oid: &u32| tables.get(*oid).filter(|_| !changed.contains(oid));
        let spec = |((oid, number), old): (&(u32, i16), &Type)| {
            let table = of_table(oid)?;
            let new =
                after.0.get(&(*oid, *number)).filter(|new| new.full != old.full && !old.is_reference)?;
            let spec = values(old, new)?;
            Some(format!("{}.{}={spec}", table.plain_name(), old.column))
        };
        self.0.iter().filter_map(spec).collect()
    }
}

/// Values of the old type that the new one takes; none where any would do, or none is known.
fn values(old: &Type, new: &Type) -> Option<String> {
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
        ("S", "E", _) => Some(quoted(&new.labels)),
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
    let statements = additions.iter().map(|addition| format!(";\n{}", addition.add));
    format!("{};\n", statements.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(category: &str, name: &str, full: &str) -> Type {
        Type {
            column: "c".to_owned(),
            name: name.to_owned(),
            category: category.to_owned(),
            full: full.to_owned(),
            labels: vec!["a b".to_owned(), "it's".to_owned()],
            is_unique: false,
            is_reference: false,
        }
    }

    #[test]
    fn values_of_the_old_type_can_be_cast_to_the_new_one() {
        let text = column("S", "text", "text");
        for (old, new, wanted) in [
            (&text, column("N", "int4", "integer"), Some("uniform(0,1000000)")),
            (&text, column("N", "numeric", "numeric(5,2)"), Some("uniform(0,999)")),
            (&text, column("S", "varchar", "character varying(5)"), Some("random(1,5)")),
            (&text, column("E", "mood", "mood"), Some("list('a b','it''s')")),
            (&column("N", "int4", "integer"), column("N", "int2", "smallint"), Some("uniform(0,30000)")),
            (&column("N", "int4", "integer"), column("S", "text", "text"), None),
            (&column("D", "timestamp", "timestamp"), column("D", "date", "date"), None),
        ] {
            assert_eq!(values(old, &new).as_deref(), wanted, "{old:?} {new:?}");
        }
    }
}
