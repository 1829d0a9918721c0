//! Cycles of foreign keys. Of each cycle a foreign key is chosen that closes it: its columns have keys that a later table
//! will have, or its rows are paired with those of the later table (`pairs.rs`).
//!
//! Where the SQL creates the tables, this key is dropped before the rows and created after those of both its tables. Tables
//! that were there before keep it: one transaction fills all tables of the cycle, and the key is checked before the commit.

use std::sync::Arc;

use catalog::{Planned, TableInfo};
use rowgen::{Keyed, Keys, Pick, Reference, Turn, Values};

use super::Planner;
use super::design::{Design, Designed};
use super::order::{Placed, dropped, is_referenced, is_unique, leave_out};
use super::postponed::PostponedKey;
use super::{PlannedTable, TableState, modelled};
use crate::cycle::{CycleError, SqlOrigin};
use crate::error::FillError;
use crate::plan::{ForeignKeys, Method, Plan};
use crate::schema::record::{InCycle, RecordedTable};
use catalog::ForeignKeyInfo;
use server::ask;
use server::quote::{literal, qualified};

/// Foreign keys that close cycles and are created after the rows.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    /// Statements that drop them.
    pub(super) drops: Vec<String>,
    keys: Vec<Closing>,
}

#[derive(Debug)]
struct Closing {
    /// Place of the table that has the key.
    at: usize,
    key: PostponedKey,
    /// A sentence for the plan.
    why: String,
}

impl Planner<'_> {
    /// Removes the keys that close cycles, and those that paired rows satisfy, from the description of their tables; drops the
    /// former, if the transaction has created the tables.
    pub(super) async fn cycles(
        &self,
        tables: &mut [TableInfo],
        order: &[Placed],
    ) -> Result<Cycles, FillError> {
        let mut cycles = Cycles::default();
        if order.iter().all(|placed| placed.later.is_empty()) {
            return Ok(cycles);
        }
        if self.request.ddl.is_some() {
            cycles = self.dropped(tables, order).await?;
        }
        for placed in order {
            let Placed { table, later, paired, .. } = placed;
            let info = &mut tables[*table];
            let is_later = |name: &String| later.iter().any(|key| key.name == *name);
            let is_paired = |name: &String| paired.iter().any(|paired| paired.satisfied.contains(name));
            info.foreign_keys.retain(|key| !is_later(&key.name) && !is_paired(&key.name));
            let has = |name: &String| {
                placed.closing().iter().any(|key| key.columns.contains(name))
                    || paired.iter().any(|paired| paired.is_copy(name))
            };
            for column in info.columns.iter_mut().filter(|column| has(&column.name)) {
                column.not_null = false;
            }
        }
        Ok(cycles)
    }

    /// Drops the keys that close cycles.
    async fn dropped(&self, tables: &[TableInfo], order: &[Placed]) -> Result<Cycles, FillError> {
        let mut cycles = Cycles::default();
        // Definitions are written for the search path, and run with another one.
        let path: String = ask(self.connection, "SELECT current_setting('search_path')", &[]).await?.get(0);
        self.run("SET LOCAL search_path = ''").await?;
        for (at, Placed { table, later, .. }) in order.iter().enumerate() {
            for key in later {
                let info = &tables[*table];
                let name = qualified(&info.schema, &info.name);
                let query = include_str!("../../sql/schema_cycle.sql");
                let row = ask(self.connection, query, &[&name, &key.name]).await?;
                let drops: String = row.get("drops");
                self.run(&drops).await?;
                cycles.drops.push(drops);
                let why = format!(
                    "foreign key {} is part of a cycle, so pgrig creates it after the rows of both tables",
                    key.name
                );
                let referenced = (key.referenced.schema.clone(), key.referenced.table.clone());
                let makes = row.get::<_, Vec<String>>("makes").join("; ");
                cycles.keys.push(Closing {
                    at,
                    key: PostponedKey { name: key.name.clone(), makes, referenced },
                    why,
                });
            }
        }
        self.run(&format!("SELECT set_config('search_path', {}, true)", literal(&path))).await?;
        Ok(cycles)
    }

    /// Has all tables of a cycle filled by pages or, if one of them cannot be, all by COPY.
    ///
    /// # Errors
    /// If COPY cannot load a row before the row that it references.
    pub(super) async fn in_one_transaction(
        &self,
        design: &Design<'_>,
        designed: &[Designed<'_>],
        planned: &mut [PlannedTable],
    ) -> Result<(), FillError> {
        let order = design.order;
        let is_copied = |at: usize, planned: &[PlannedTable]| {
            let cycle = order[at].cycle;
            cycle.is_some() && members(order, at).any(|at| !has_pages(&planned[at]))
        };
        let copied: Vec<usize> = (0..order.len()).filter(|&at| is_copied(at, planned)).collect();
        for at in copied {
            if let Some(cycle) = &mut planned[at].recorded.cycle {
                cycle.pages = false;
            }
            let recorded = planned[at].recorded.clone();
            let mut plan = self.plan_of(designed[at].info.clone(), &recorded, design.together(at)).await?;
            let TableState::ToFill(before) = &planned[at].state else { continue };
            // Why they have no pages.
            let why =
                before.reasons.iter().find(|reason| reason.starts_with("method direct is not possible"));
            plan.reasons.extend(why.cloned());
            planned[at].state = TableState::ToFill(Box::new(plan));
        }
        for (at, Placed { later, .. }) in order.iter().enumerate() {
            let Some(plan) = planned[at].plan() else { continue };
            if !later.is_empty() && !has_pages(&planned[at]) && planned[at].recorded.cycle.is_some() {
                self.refuse_early_check(designed[at].info, plan, later).await?;
            }
        }
        let names: Vec<String> = planned.iter().map(|table| table.name.clone()).collect();
        for (at, table) in planned.iter_mut().enumerate() {
            let names: Vec<&str> = members(order, at).map(|at| &*names[at]).collect();
            if let TableState::ToFill(plan) = &mut table.state {
                announce(plan, &table.recorded, &names);
            }
        }
        Ok(())
    }

    /// Refuses keys that the server checks row by row, and that the role cannot have checked at the end.
    async fn refuse_early_check(
        &self,
        info: &TableInfo,
        plan: &Plan,
        later: &[ForeignKeyInfo],
    ) -> Result<(), FillError> {
        let ForeignKeys::RowByRow(why) = &plan.foreign_keys else { return Ok(()) };
        for key in later {
            let table = qualified(&info.schema, &info.name);
            let row =
                ask(self.connection, include_str!("../../sql/may_defer.sql"), &[&table, &key.name]).await?;
            if !row.get::<_, bool>("is_deferrable") && !row.get::<_, bool>("may_alter") {
                return Err(FillError::CycleKey {
                    key: key.name.clone(),
                    table: info.shown(),
                    referenced: key.referenced.shown(),
                    role: info.role.clone(),
                    why: why.clone(),
                });
            }
        }
        Ok(())
    }
}

fn has_pages(table: &PlannedTable) -> bool {
    table.plan().is_some_and(|plan| plan.method == Method::Direct)
}

/// Places of the tables of the cycle that the table at this place belongs to; none if it belongs to no cycle.
pub(super) fn members(order: &[Placed], at: usize) -> impl Iterator<Item = usize> {
    let cycle = order[at].cycle;
    (0..order.len()).filter(move |&other| cycle.is_some() && order[other].cycle == cycle)
}

/// Mentions in the plan of a table that one transaction fills all tables of its cycle.
pub(super) fn announce(plan: &mut Plan, recorded: &RecordedTable, tables: &[&str]) {
    let Some(InCycle { later, .. }) = &recorded.cycle else { return };
    plan.reasons.retain(|reason| !reason.starts_with("chunk by chunk"));
    let how = match (&plan.foreign_keys, plan.method) {
        (ForeignKeys::RowByRow(_), method) if method != Method::Direct => "the server checks",
        _ => "pgrig checks",
    };
    let tables = tables.join(", ");
    plan.reasons.push(match later.as_slice() {
        [] => format!("foreign keys form a cycle, so one transaction fills {tables}"),
        keys => format!(
            "foreign keys form a cycle, so one transaction fills {tables}; {how} {} after their rows",
            keys.join(", ")
        ),
    });
}

impl Cycles {
    /// Makes the plan create the keys after the rows.
    pub(super) fn plan(self, planned: &mut [PlannedTable]) {
        for Closing { at, key, why } in self.keys {
            let table = &mut planned[at];
            table.recorded.postponed.foreign_keys.push(key);
            if let TableState::ToFill(plan) = &mut table.state {
                plan.reasons.push(why);
            }
        }
    }
}

/// Gives the columns of keys that close cycles values that will be keys of the later tables.
/// `is_given` says whether the user describes a column of a table; `keyed` how often a model has rows refer to each key.
///
/// # Errors
/// If those keys are generated by the server, so that pgrig does not know them beforehand.
pub(super) fn close(
    designed: &mut [Designed<'_>],
    order: &[Placed],
    origin: Option<SqlOrigin>,
    is_given: impl Fn(&TableInfo, &str) -> bool,
    keyed: impl Fn(&TableInfo, &str) -> Option<Keyed>,
) -> Result<(), FillError> {
    for (place, placed) in order.iter().enumerate() {
        for key in placed.closing() {
            let Some(parent) = designed.iter().find(|parent| is_referenced(key, parent.info)) else {
                continue;
            };
            let planned = Planned {
                schema: parent.info.schema.clone(),
                table: parent.described.table.clone(),
                first_row: parent.described.first_row,
            };
            let parent_info = parent.info;
            let (info, table) = (designed[place].info, &mut designed[place].described.table);
            let mut columns: Vec<_> =
                table.columns.iter_mut().filter(|column| key.columns.contains(&column.name)).collect();
            columns.sort_by_key(|column| key.columns.iter().position(|name| *name == column.name));
            if columns.iter().any(|column| is_given(info, &column.name)) {
                continue;
            }
            let kinds: Vec<_> = columns.iter().map(|column| &column.kind).collect();
            let keys: Arc<Keys> = match planned.keys(&key.referenced.columns, &kinds) {
                Some(keys) => Arc::new(keys),
                None if planned.first_row >= planned.table.rows => {
                    return Err(FillError::Combination(format!(
                        "{} references {} ({}), which gets no rows: give it at least 1 row with --rows",
                        info.shown(),
                        parent_info.shown(),
                        key.name
                    )));
                }
                None => {
                    return Err(unknown_keys((info, parent_info), key, origin).into());
                }
            };
            let is_unique = is_unique(info, key);
            let is_single = columns.len() == 1 && !is_unique;
            for (position, column) in columns.into_iter().enumerate() {
                let keyed = keyed(info, &column.name).filter(|_| is_single);
                let pick = match &keyed {
                    _ if is_unique => Pick::InTurn(Turn::EACH),
                    Some(keyed) => Pick::Spread { name: key.name.clone(), spread: keyed.spread.clone() },
                    None => Pick::Random { name: key.name.clone() },
                };
                let values = Values::Reference(Reference {
                    keys: Arc::clone(&keys),
                    column: position,
                    pick,
                    is_allowed: false,
                });
                column.not_null =
                    keyed.as_ref().and_then(|keyed| keyed.nulls).is_none_or(|nulls| nulls <= 0.0);
                column.values = modelled::ordered(values, keyed);
            }
        }
    }
    Ok(())
}

/// The error for a foreign key to keys that pgrig does not know.
fn unknown_keys(
    (info, parent): (&TableInfo, &TableInfo),
    key: &ForeignKeyInfo,
    origin: Option<SqlOrigin>,
) -> CycleError {
    let (name, of) = (info.shown(), parent.shown());
    CycleError {
        tables: format!("{name} → {of} → {name}"),
        keys: format!("foreign key {}", key.name),
        why: format!("pgrig does not know which keys {name} can reference before {of} has rows"),
        nullable: None,
        drop: dropped(info, &key.name),
        origin,
        leave_out: leave_out([info, parent].into_iter()),
    }
}
