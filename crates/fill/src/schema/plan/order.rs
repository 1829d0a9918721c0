//! The order of the tables: each after those that it references.

use catalog::{ColumnInfo, ForeignKeyInfo, Source, TableInfo};

use crate::error::FillError;

/// A table's place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// Its index among the tables.
    pub(super) table: usize,
    /// Columns of foreign keys to tables that come later. They are NULL, so that an order exists.
    pub(super) cut: Vec<String>,
    /// Foreign keys to tables that come later, and are created after the rows of those.
    pub(super) later: Vec<ForeignKeyInfo>,
}

/// Indexes of the tables, those that are referenced first. `are_new`: whether the tables are created, so that a foreign key
/// can be created after the rows.
///
/// # Errors
/// If tables reference each other, and no foreign key of the circle may be NULL, or created later.
pub(super) fn order(tables: &[TableInfo], are_new: bool) -> Result<Vec<Placed>, FillError> {
    let mut left: Vec<usize> = (0..tables.len()).collect();
    let mut placed = Vec::with_capacity(tables.len());
    while !left.is_empty() {
        let waits = |table: usize| keys_into(tables, table, &left).next().is_some();
        let ready: Vec<usize> = left.iter().copied().filter(|&table| !waits(table)).collect();
        if ready.is_empty() {
            let cut = if are_new { least_later(tables, &left) } else { None };
            let cut = cut.map_or_else(|| least_cut(tables, &left), Ok)?;
            left.retain(|&other| other != cut.table);
            placed.push(cut);
            continue;
        }
        left.retain(|table| !ready.contains(table));
        let placed_as = |table| Placed { table, cut: Vec::new(), later: Vec::new() };
        placed.extend(ready.into_iter().map(placed_as));
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

/// Of tables that reference each other in a circle, the one whose foreign keys to the others may be
/// NULL and are fewest.
fn least_cut(tables: &[TableInfo], left: &[usize]) -> Result<Placed, FillError> {
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
    let placed = |(table, cut)| Placed { table, cut, later: Vec::new() };
    least.map(placed).ok_or_else(|| circle(tables, left))
}

/// Of tables that reference each other in a circle, the one whose foreign keys to the others can be
/// created later and are fewest. Their columns get keys that the other tables will have. Columns
/// that are unique or computed are excluded, because their values must be known before.
fn least_later(tables: &[TableInfo], left: &[usize]) -> Option<Placed> {
    let later = |&table: &usize| {
        let info = &tables[table];
        let is_free = |name: &String| {
            let is_key = info.keys.iter().any(|key| key.columns().any(|of| of == name));
            let is_given = |column: &ColumnInfo| matches!(column.source, Source::Generated { .. });
            let is_shared = info.foreign_keys.iter().filter(|key| key.columns.contains(name)).count() > 1;
            !is_key && !is_shared && info.column(name).is_some_and(|column| !is_given(column))
        };
        let later: Vec<ForeignKeyInfo> = keys_into(tables, table, left).cloned().collect();
        let are_free = later.iter().all(|key| !key.period && key.columns.iter().all(is_free));
        let is_plain = info.partitions.is_none() && info.partition_of.is_none();
        (is_plain && are_free).then_some(Placed { table, cut: Vec::new(), later })
    };
    left.iter().filter_map(later).min_by_key(|placed| placed.later.len())
}

/// Names two tables that reference each other, directly or by way of others.
fn circle(tables: &[TableInfo], left: &[usize]) -> FillError {
    let step = |table: usize| {
        let key = keys_into(tables, table, left).next()?;
        let to = left.iter().copied().find(|&other| other != table && is_referenced(key, &tables[other]))?;
        Some((key, to))
    };
    // After as many steps as there are tables, the walk along the keys is within a circle.
    let mut at = left[0];
    for _ in left {
        at = step(at).map_or(at, |(_, to)| to);
    }
    let (mut names, mut keys, first) = (Vec::new(), Vec::new(), at);
    while let Some((key, to)) = step(at) {
        names.push(tables[at].shown());
        keys.push(key.name.clone());
        at = to;
        if at == first {
            break;
        }
    }
    FillError::Circle { tables: names.join(" → "), keys: keys.join(", ") }
}
