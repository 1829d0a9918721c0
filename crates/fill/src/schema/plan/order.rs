//! The order of the tables: each after those that it references.

use catalog::{ForeignKeyInfo, TableInfo};

use crate::error::FillError;

/// A table's place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// Its index among the tables.
    pub(super) table: usize,
    /// Columns of foreign keys to tables that come later: NULL, so that there is an order.
    pub(super) cut: Vec<String>,
}

/// Indexes of the tables, those that are referenced first.
///
/// # Errors
/// If tables reference each other, and no foreign key of the circle may be NULL.
pub(super) fn order(tables: &[TableInfo]) -> Result<Vec<Placed>, FillError> {
    let mut left: Vec<usize> = (0..tables.len()).collect();
    let mut placed = Vec::with_capacity(tables.len());
    while !left.is_empty() {
        let waits = |table: usize| keys_into(tables, table, &left).next().is_some();
        let ready: Vec<usize> = left.iter().copied().filter(|&table| !waits(table)).collect();
        if ready.is_empty() {
            let (table, cut) = least_cut(tables, &left)?;
            left.retain(|&other| other != table);
            placed.push(Placed { table, cut });
            continue;
        }
        left.retain(|table| !ready.contains(table));
        placed.extend(ready.into_iter().map(|table| Placed { table, cut: Vec::new() }));
    }
    Ok(placed)
}

/// Foreign keys of a table to others of these.
fn keys_into<'a>(
    tables: &'a [TableInfo],
    table: usize,
    others: &'a [usize],
) -> impl Iterator<Item = &'a ForeignKeyInfo> {
    let is_among = move |key: &&ForeignKeyInfo| {
        others.iter().any(|&other| other != table && is_referenced(key, &tables[other]))
    };
    tables[table].foreign_keys.iter().filter(is_among)
}

/// Whether the foreign key refers to the table.
pub(super) fn is_referenced(key: &ForeignKeyInfo, table: &TableInfo) -> bool {
    !key.to_itself && key.referenced.schema == table.schema && key.referenced.table == table.name
}

/// Of tables that wait for each other, the one whose foreign keys to the others may be NULL, with the fewest of them.
fn least_cut(tables: &[TableInfo], left: &[usize]) -> Result<(usize, Vec<String>), FillError> {
    let cut = |&table: &usize| {
        let columns: Vec<String> =
            keys_into(tables, table, left).flat_map(|key| key.columns.clone()).collect();
        let may_be_null = |name: &String| {
            let is_key =
                tables[table].keys.iter().any(|key| key.primary && key.columns().any(|of| of == name));
            !is_key && tables[table].column(name).is_some_and(|column| !column.not_null)
        };
        columns.iter().all(may_be_null).then_some((table, columns))
    };
    let least = left.iter().filter_map(cut).min_by_key(|(_, columns)| columns.len());
    least.ok_or_else(|| circle(tables, left))
}

/// Names two tables that reference each other, directly or by way of others.
fn circle(tables: &[TableInfo], left: &[usize]) -> FillError {
    let step = |table: usize| {
        let key = keys_into(tables, table, left).next()?;
        let to = left.iter().copied().find(|&other| other != table && is_referenced(key, &tables[other]))?;
        Some((key, to))
    };
    // Whoever follows the keys comes round after as many steps as there are tables.
    let mut at = left[0];
    for _ in left {
        at = step(at).map_or(at, |(_, to)| to);
    }
    let (mut names, mut keys, first) = (Vec::new(), Vec::new(), at);
    while let Some((key, to)) = step(at) {
        names.push(tables[at].display_name());
        keys.push(key.name.clone());
        at = to;
        if at == first {
            break;
        }
    }
    FillError::Circle { tables: names.join(" → "), keys: keys.join(", ") }
}
