//! The order of the tables: each after those that it references.

use catalog::{ColumnInfo, ForeignKeyInfo, KeyElement, KeyInfo, Source, TableInfo};

use super::amounts::is_named;
use super::design::{referenced, table_and_column};
use super::pairs::{self, Paired};
use crate::cycle::{CycleError, SqlOrigin};
use crate::error::FillError;
use crate::schema::request::SchemaRequest;
use rowgen::ColumnSpec;
use server::quote::{shell_word, shown};

/// A table's place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// Its index among the tables.
    pub(super) table: usize,
    /// Columns of foreign keys to tables that come later. They are NULL, so that an order exists.
    pub(super) cut: Vec<String>,
    /// Foreign keys to tables that come later. They are created after the rows of those or, in a cycle, checked after them.
    pub(super) later: Vec<ForeignKeyInfo>,
    /// The cycle that one transaction fills; its tables have neighbouring places. None for other tables.
    pub(super) cycle: Option<usize>,
    /// Its part in a cycle whose rows are paired. Such tables have neighbouring places, too.
    pub(super) paired: Option<Paired>,
}

impl Placed {
    pub(super) fn new(table: usize) -> Self {
        Self { table, cut: Vec::new(), later: Vec::new(), cycle: None, paired: None }
    }

    /// Foreign keys whose columns get keys that later tables will have.
    pub(super) fn closing(&self) -> &[ForeignKeyInfo] {
        // Paired rows satisfy them.
        if self.paired.is_some() { &[] } else { &self.later }
    }
}

/// Indexes of the tables, those that are referenced first.
///
/// # Errors
/// If tables reference each other, no foreign key of the cycle may be NULL or come later, and their rows cannot be paired.
pub(super) fn order(tables: &[TableInfo], request: &SchemaRequest) -> Result<Vec<Placed>, FillError> {
    // A foreign key of a table that is created can be created after the rows.
    let are_new = request.ddl.is_some();
    let mut left: Vec<usize> = (0..tables.len()).collect();
    let mut placed = Vec::with_capacity(tables.len());
    let mut cycles = 0;
    let references = references(tables, request);
    while !left.is_empty() {
        let ready = first_of(ready(tables, &left), &references, &left);
        if !ready.is_empty() {
            left.retain(|table| !ready.contains(table));
            placed.extend(ready.into_iter().map(Placed::new));
            continue;
        }
        let cycle = first_cycle(tables, &left);
        let opened = match (are_new, least_later(tables, &cycle), least_cut(tables, &cycle)) {
            (true, Some(later), _) => vec![later],
            (_, _, Some(cut)) => vec![cut],
            (true, None, None) => paired(tables, &cycle, request)?,
            (false, _, None) => {
                cycles += 1;
                one_transaction(tables, &cycle, cycles - 1, request)?
            }
        };
        left.retain(|table| opened.iter().all(|placed| placed.table != *table));
        placed.extend(opened);
    }
    Ok(placed)
}

/// Tables whose columns get values of other tables (`--column 'a.b=reference(c.d)'`), each with the other one.
fn references(tables: &[TableInfo], request: &SchemaRequest) -> Vec<(usize, usize)> {
    let place = |name: &str| tables.iter().position(|table| is_named(table, name));
    let pair = |text: &String| {
        let (table, spec) = table_and_column(text)?;
        let spec: ColumnSpec = spec.parse().ok()?;
        let (other, _) = referenced(&spec)?;
        Some((place(table)?, place(other)?))
    };
    request.columns.iter().filter_map(pair).filter(|(table, other)| table != other).collect()
}

/// Of tables that could come next, those whose columns get no values of tables that are left; all if there are none.
fn first_of(ready: Vec<usize>, references: &[(usize, usize)], left: &[usize]) -> Vec<usize> {
    let waits = |table: usize| references.iter().any(|(of, other)| *of == table && left.contains(other));
    let first: Vec<usize> = ready.iter().copied().filter(|&table| !waits(table)).collect();
    if first.is_empty() { ready } else { first }
}

/// Those of the tables that reference none of the others.
fn ready(tables: &[TableInfo], left: &[usize]) -> Vec<usize> {
    let waits = |table: usize| keys_into(tables, table, left).next().is_some();
    left.iter().copied().filter(|&table| !waits(table)).collect()
}

/// Of tables that all wait for others, some that reference each other, and no other table.
fn first_cycle(tables: &[TableInfo], left: &[usize]) -> Vec<usize> {
    let reached = |from: usize| {
        let mut reached: Vec<usize> = Vec::new();
        let mut to_visit = vec![from];
        while let Some(table) = to_visit.pop() {
            for key in keys_into(tables, table, left) {
                let next = left.iter().copied().find(|&other| is_referenced(key, &tables[other]));
                let next = next.filter(|next| !reached.contains(next));
                reached.extend(next);
                to_visit.extend(next);
            }
        }
        reached
    };
    // From a table that reaches fewest tables, each of these is reached again.
    left.iter().map(|&table| reached(table)).min_by_key(Vec::len).unwrap_or_default()
}

/// The tables of a cycle in the order in which one transaction fills them.
fn one_transaction(
    tables: &[TableInfo],
    cycle: &[usize],
    number: usize,
    request: &SchemaRequest,
) -> Result<Vec<Placed>, FillError> {
    let mut left = cycle.to_vec();
    let mut placed: Vec<Placed> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = ready(tables, &left);
        if !ready.is_empty() {
            placed.extend(ready.into_iter().map(Placed::new));
        } else if let Some(later) = least_later(tables, &left) {
            placed.push(later);
        } else {
            placed.extend(paired(tables, &first_cycle(tables, &left), request)?);
        }
        left.retain(|table| placed.iter().all(|placed| placed.table != *table));
    }
    Ok(placed.into_iter().map(|placed| Placed { cycle: Some(number), ..placed }).collect())
}

/// The tables of a cycle, whose rows are paired.
///
/// # Errors
/// If they cannot be, or if the tables may have rows.
fn paired(tables: &[TableInfo], cycle: &[usize], request: &SchemaRequest) -> Result<Vec<Placed>, FillError> {
    let why = match pairs::paired(tables, cycle) {
        Some(placed) if !request.append => return Ok(placed),
        Some(_) => {
            "row 1 of each table must reference row 1 of the others, row 2 the rows 2, and so on, and --append cannot add such rows"
        }
        None => {
            "no foreign key has columns that may be NULL, pgrig cannot create or check any of these keys after the rows, and \
             it cannot make rows that reference each other in pairs"
        }
    };
    Err(cycle_of_keys(tables, cycle, why, origin(request)).into())
}

/// Origin of the SQL that creates the tables; none if they were there before.
pub(super) fn origin(request: &SchemaRequest) -> Option<SqlOrigin> {
    let of_sql = if request.modelled_types.is_empty() { SqlOrigin::File } else { SqlOrigin::Model };
    request.ddl.as_ref().map(|_| of_sql)
}

/// Foreign keys of a table to others of these.
pub(super) fn keys_into<'a>(
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

/// Of tables that reference each other in a cycle, the one whose foreign keys to the others may be
/// NULL and are fewest.
fn least_cut(tables: &[TableInfo], left: &[usize]) -> Option<Placed> {
    let cut = |&table: &usize| {
        let mut columns: Vec<String> = Vec::new();
        for key in keys_into(tables, table, left) {
            let is_nullable = |name: &&String| may_be_null(&tables[table], name) == Some(true);
            let nullable: Vec<&String> = key.columns.iter().filter(is_nullable).collect();
            // NULL in one column is enough, except with MATCH FULL.
            let least = if key.is_match_full() { key.columns.len() } else { 1 };
            if nullable.len() < least {
                return None;
            }
            columns.extend(nullable.into_iter().cloned());
        }
        Some((table, columns))
    };
    let least = left.iter().filter_map(cut).min_by_key(|(_, columns)| columns.len());
    least.map(|(table, cut)| Placed { cut, ..Placed::new(table) })
}

/// Whether a column may be NULL; none if it never may: it is part of the primary key, or computed.
fn may_be_null(info: &TableInfo, name: &str) -> Option<bool> {
    let is_primary = info.keys.iter().any(|key| key.primary && key.columns().any(|of| of == name));
    let is_computed = |column: &ColumnInfo| matches!(column.source, Source::Generated { .. });
    info.column(name).filter(|column| !is_primary && !is_computed(column)).map(|column| !column.not_null)
}

/// Of tables that reference each other in a cycle, the one whose foreign keys to the others can be
/// created or checked later and are fewest. Their columns get keys that the other tables will have.
/// Columns that are computed or part of another key are excluded, because their values must be known before.
fn least_later(tables: &[TableInfo], left: &[usize]) -> Option<Placed> {
    let later = |&table: &usize| {
        let info = &tables[table];
        let is_free = |of_key: &ForeignKeyInfo, name: &String| {
            let is_key = info.keys.iter().any(|key| {
                key.columns().any(|of| of == name)
                    && (!is_one_to_one(key, of_key) || is_target(tables, info, key))
            });
            let is_given = |column: &ColumnInfo| matches!(column.source, Source::Generated { .. });
            let is_shared = info.foreign_keys.iter().filter(|key| key.columns.contains(name)).count() > 1;
            !is_key && !is_shared && info.column(name).is_some_and(|column| !is_given(column))
        };
        let later: Vec<ForeignKeyInfo> = keys_into(tables, table, left).cloned().collect();
        let are_free =
            later.iter().all(|key| !key.period && key.columns.iter().all(|name| is_free(key, name)));
        let is_plain = info.partitions.is_none() && info.partition_of.is_none();
        (is_plain && are_free).then_some(Placed { later, ..Placed::new(table) })
    };
    // A key that is deferrable can be checked later by any role.
    let is_fixed = |key: &ForeignKeyInfo| !key.definition.contains(" DEFERRABLE");
    // A key without unique columns leaves the number of rows free.
    let are_unique = |placed: &Placed| placed.later.iter().any(|key| is_unique(&tables[placed.table], key));
    let cost = |placed: &Placed| (placed.later.iter().any(is_fixed), are_unique(placed), placed.later.len());
    left.iter().filter_map(later).min_by_key(cost)
}

/// Whether the columns of a foreign key are those of a unique key, so that no two rows reference the same one.
fn is_one_to_one(key: &KeyInfo, of: &ForeignKeyInfo) -> bool {
    let plain = |element: &KeyElement| {
        element.equality && element.column.as_ref().is_some_and(|name| of.columns.contains(name))
    };
    !key.exclusion && key.elements.len() == of.columns.len() && key.elements.iter().all(plain)
}

/// Whether the columns of a foreign key of this table are unique.
pub(super) fn is_unique(table: &TableInfo, key: &ForeignKeyInfo) -> bool {
    table.keys.iter().any(|of| is_one_to_one(of, key))
}

/// Whether a foreign key of one of the tables references columns of this key.
fn is_target(tables: &[TableInfo], table: &TableInfo, key: &KeyInfo) -> bool {
    let references = |of: &ForeignKeyInfo| {
        let is_to_it = of.referenced.schema == table.schema && of.referenced.table == table.name;
        is_to_it && key.columns().any(|name| of.referenced.columns.iter().any(|of| of == name))
    };
    tables.iter().flat_map(|table| &table.foreign_keys).any(references)
}

/// Names two tables that reference each other, directly or by way of others.
fn cycle_of_keys(tables: &[TableInfo], left: &[usize], why: &str, origin: Option<SqlOrigin>) -> CycleError {
    let step = |table: usize| {
        let key = keys_into(tables, table, left).next()?;
        let to = left.iter().copied().find(|&other| other != table && is_referenced(key, &tables[other]))?;
        Some((key, to))
    };
    // After as many steps as there are tables, the walk along the keys is within a cycle.
    let mut at = left[0];
    for _ in left {
        at = step(at).map_or(at, |(_, to)| to);
    }
    let (mut names, mut keys, mut walked, first) = (Vec::new(), Vec::new(), Vec::new(), at);
    while let Some((key, to)) = step(at) {
        names.push(tables[at].shown());
        keys.push(key.name.clone());
        walked.push(at);
        at = to;
        if at == first {
            break;
        }
    }
    let drop = keys
        .first()
        .zip(walked.first())
        .map_or_else(String::new, |(key, &table)| dropped(&tables[table], key));
    CycleError {
        tables: names.join(" → "),
        keys: format!("foreign keys {}", keys.join(", ")),
        why: why.to_owned(),
        nullable: walked.iter().find_map(|&table| nullable(tables, table, left)),
        drop,
        origin,
        leave_out: leave_out(walked.iter().map(|&table| &tables[table])),
    }
}

/// The statement that lets all foreign keys of this table to the others be NULL, if there is one.
fn nullable(tables: &[TableInfo], table: usize, others: &[usize]) -> Option<String> {
    let info = &tables[table];
    let mut columns: Vec<&String> = Vec::new();
    for key in keys_into(tables, table, others) {
        let possible: Vec<&String> =
            key.columns.iter().filter(|name| may_be_null(info, name).is_some()).collect();
        let is_null = |name: &&String| may_be_null(info, name) == Some(true) || columns.contains(name);
        if key.is_match_full() {
            if possible.len() < key.columns.len() {
                return None;
            }
            let more: Vec<&String> = possible.into_iter().filter(|name| !is_null(name)).collect();
            columns.extend(more);
        } else if !possible.iter().any(is_null) {
            // The last one is of this reference alone, where the first ones are of a tenant.
            columns.push(possible.last().copied()?);
        }
    }
    let drop = |column: &&String| format!("ALTER COLUMN {} DROP NOT NULL", shown(column));
    let drops: Vec<String> = columns.iter().map(drop).collect();
    (!drops.is_empty()).then(|| format!("ALTER TABLE {} {}", info.shown(), drops.join(", ")))
}

/// The statement that removes a foreign key.
pub(super) fn dropped(table: &TableInfo, key: &str) -> String {
    format!("ALTER TABLE {} DROP CONSTRAINT {}", table.shown(), shown(key))
}

/// The options that leave these tables out.
pub(super) fn leave_out<'a>(tables: impl Iterator<Item = &'a TableInfo>) -> String {
    tables
        .map(|table| format!("--exclude-table {}", shell_word(&table.shown())))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_whose_columns_get_values_of_others_come_after_these() {
        let references = [(0, 2), (1, 0)];
        assert_eq!(first_of(vec![0, 1, 2, 3], &references, &[0, 1, 2, 3]), [2, 3]);
        assert_eq!(first_of(vec![0, 1], &references, &[0, 1]), [0]);
        // A cycle, or one that a foreign key forces.
        assert_eq!(first_of(vec![0], &references, &[0, 1, 2]), [0]);
        assert_eq!(first_of(Vec::new(), &references, &[0, 1]), Vec::<usize>::new());
    }
}
