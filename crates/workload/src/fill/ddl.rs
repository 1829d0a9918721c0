//! The statements that make pgbench's tables what `pgbench -i` makes them.

use rowgen::{Column, Table, Values};

use super::plan::Plan;
use super::predict::key;
use super::request::Persistence;
use crate::quote::{identifier, literal, qualified};

/// CREATE TABLE, with the constant columns' values as defaults while the load lasts.
pub(super) fn create_table(plan: &Plan, table: &Table) -> String {
    let persistence = match plan.persistence {
        Persistence::Logged => "",
        Persistence::Unlogged => "UNLOGGED ",
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    // pgbench gives every table but the empty history its fillfactor, 100 too.
    let options = key(table).map_or(String::new(), |_| format!(" WITH (fillfactor = {})", plan.fillfactor));
    let name = qualified(&plan.schema, &table.name);
    format!("CREATE {persistence}TABLE {name} ({}){options}", columns.join(", "))
}

fn column(column: &Column) -> String {
    let not_null = if column.not_null { " NOT NULL" } else { "" };
    let default = default(column).map_or(String::new(), |value| format!(" DEFAULT {value}"));
    format!("{} {}{not_null}{default}", identifier(&column.name), column.kind.sql())
}

/// A constant column's value, unless it is NULL anyway.
fn default(column: &Column) -> Option<String> {
    match &column.values {
        Values::Int(value) => Some(value.to_string()),
        Values::Text(text) => Some(literal(text)),
        _ => None,
    }
}

/// Takes the load's defaults away again; none where the table has none.
pub(super) fn drop_defaults(plan: &Plan, table: &Table) -> Option<String> {
    let drops: Vec<String> = table
        .columns
        .iter()
        .filter(|column| default(column).is_some())
        .map(|column| format!("ALTER {} DROP DEFAULT", identifier(&column.name)))
        .collect();
    let name = qualified(&plan.schema, &table.name);
    (!drops.is_empty()).then(|| format!("ALTER TABLE {name} {}", drops.join(", ")))
}

/// DROP TABLE of all that exist, in one statement as they may reference each other.
pub(super) fn drop_tables(plan: &Plan) -> String {
    let names: Vec<String> = plan.dropped.iter().map(|name| qualified(&plan.schema, name)).collect();
    format!("DROP TABLE {}", names.join(", "))
}

/// ADD PRIMARY KEY; none for history.
pub(super) fn add_primary_key(plan: &Plan, table: &Table) -> Option<String> {
    let key = identifier(&key(table)?.name);
    Some(format!("ALTER TABLE {} ADD PRIMARY KEY ({key})", qualified(&plan.schema, &table.name)))
}
