//! Gives the columns of paired rows that are copies their values.

use std::sync::Arc;

use catalog::{ForeignKeyInfo, Planned, TableInfo};
use rowgen::{Pick, Reference, Turn, Values};

use super::design::Designed;
use super::order::{Placed, dropped, leave_out};
use super::pairs::{Copied, has_sequence, members};
use crate::cycle::{CycleError, SqlOrigin};
use crate::error::FillError;
use server::quote::{literal, shown};

/// Once the last table of a cycle is described: gives copies their values. `is_given` says whether the user describes a column of a
/// table.
///
/// # Errors
/// If the tables have different numbers of rows, or pgrig does not know the values to copy.
pub(super) fn copy(
    designed: &mut [Designed<'_>],
    order: &[Placed],
    origin: Option<SqlOrigin>,
    is_given: impl Fn(&TableInfo, &str) -> bool,
) -> Result<(), FillError> {
    let Some(last) = designed.len().checked_sub(1) else { return Ok(()) };
    let members = members(order, last);
    if members.last() != Some(&last) {
        return Ok(());
    }
    same_rows(designed, &members)?;
    let closing =
        members.first().and_then(|&first| Some((designed[first].info, order[first].later.first()?)));
    for &place in &members {
        if designed[place].rows == 0 {
            continue;
        }
        for copied in order[place].paired.iter().flat_map(|paired| &paired.copies) {
            let Some(from) = members.iter().copied().find(|&member| order[member].table == copied.table)
            else {
                continue;
            };
            let (info, of) = (designed[place].info, designed[from].info);
            if is_given(info, &copied.column) {
                return Err(FillError::Combination(format!(
                    "--column {}.{}: the foreign keys of the cycle give the column the values of {}.{}: give the specification for \
                     that one",
                    info.name, copied.column, of.name, copied.source
                )));
            }
            let planned = Planned {
                schema: of.schema.clone(),
                table: designed[from].described.table.clone(),
                first_row: designed[from].described.first_row,
            };
            let described = &mut designed[place].described;
            described.warnings.extend(copied.sequence_behind(info, of));
            let mut columns = described.table.columns.iter_mut();
            let Some(column) = columns.find(|column| column.name == copied.column) else { continue };
            let Some(keys) = planned.keys(std::slice::from_ref(&copied.source), &[&column.kind]) else {
                return Err(copied.unknown((info, of), closing, origin).into());
            };
            column.values = Values::Reference(Reference {
                keys: Arc::new(keys),
                column: 0,
                pick: Pick::InTurn(Turn::EACH),
                is_allowed: false,
            });
            column.not_null = true;
        }
    }
    Ok(())
}

impl Copied {
    /// A warning if the column has a sequence, from which the copies do not come.
    fn sequence_behind(&self, info: &TableInfo, of: &TableInfo) -> Option<String> {
        let column = info.column(&self.column).filter(|column| has_sequence(column))?;
        let (table, name) = (info.shown(), shown(&column.name));
        Some(format!(
            "column {name} has the values of {}.{}, and its sequence does not advance: before other sessions insert, run SELECT \
             setval(pg_get_serial_sequence({}, {}), max({name})) FROM {table}",
            of.name,
            self.source,
            literal(&table),
            literal(&column.name)
        ))
    }

    /// The error for values that pgrig does not know, or that do not suit the column. `key` is a foreign key of the cycle, with its
    /// table.
    fn unknown(
        &self,
        (info, of): (&TableInfo, &TableInfo),
        key: Option<(&TableInfo, &ForeignKeyInfo)>,
        origin: Option<SqlOrigin>,
    ) -> CycleError {
        CycleError {
            tables: format!("{} → {} → {}", info.shown(), of.shown(), info.shown()),
            keys: format!("foreign key {}", key.map_or("", |(_, key)| key.name.as_str())),
            why: format!(
                "{} needs the values of {}.{}, which pgrig does not know before that table has rows, or which do not suit the type",
                self.column,
                of.shown(),
                self.source
            ),
            nullable: None,
            drop: key.map_or_else(String::new, |(table, key)| dropped(table, &key.name)),
            origin,
            leave_out: leave_out([info, of].into_iter()),
        }
    }
}

/// Refuses tables that would have different numbers of rows.
fn same_rows(designed: &[Designed<'_>], members: &[usize]) -> Result<(), FillError> {
    let Some(least) = members.iter().copied().min_by_key(|&place| designed[place].rows) else {
        return Ok(());
    };
    let Some(other) = members.iter().copied().find(|&place| designed[place].rows > designed[least].rows)
    else {
        return Ok(());
    };
    let (least, other) = (&designed[least], &designed[other]);
    Err(FillError::Combination(format!(
        "{} and {} reference each other row by row, so they need the same number of rows, and the keys of {} allow only {rows}: give \
         --rows {}={rows}",
        least.info.shown(),
        other.info.shown(),
        least.info.shown(),
        other.info.name,
        rows = least.rows
    )))
}
