//! The trials in their order, and whether they are possible.

use futures_util::future::LocalBoxFuture;
use std::collections::HashSet;
use std::time::Duration;

use script::Source;
use serde_json::{Value, json};

use crate::connections::refuse_too_many;
use crate::matrix::axis::{Axis, Durability};
use crate::matrix::cell::Cell;
use crate::matrix::error::MatrixError;
use crate::matrix::order;
use crate::{Length, Parsed, Plan, Request};
use connect::{Connection, Target};
use server::removal;
use server::settings::{Effect, Looked, Restart, ToChange};

/// pgbench's tables, which its built-in scripts read and write.
const PGBENCH_TABLES: [&str; 4] =
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// A server that has run for less than this has read little data into its cache yet, seconds.
const YOUNG: f64 = 60.0;

/// The request for a matrix, without the request of each trial.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The axes; each has a name of its own.
    pub axes: Vec<Axis>,
    /// Trials of each cell.
    pub trials: usize,
    /// `--tables`: the tables that the user's own scripts write.
    pub tables: Vec<String>,
    /// `--allow-dangerous-settings`: whether settings with which a crash can lose data are allowed on a server that is not
    /// pgrig's own.
    pub allow_dangerous: bool,
}

impl Matrix {
    /// Refuses requests that cannot work on any server.
    ///
    /// # Errors
    /// If options contradict each other; the error names them.
    pub fn check(&self) -> Result<(), MatrixError> {
        let refused = |why: String| Err(MatrixError::Request(why));
        let mut names = HashSet::new();
        if let Some(axis) = self.axes.iter().find(|axis| !names.insert(axis.name())) {
            let name = axis.name();
            let mut values: Vec<String> = Vec::new();
            for value in self.axes.iter().filter(|axis| axis.name() == name).flat_map(Axis::values) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let values = values.join(",");
            return refused(format!(
                "axis {name} is given twice: give all its values at once: --matrix {name}={values}"
            ));
        }
        let mut settings = HashSet::new();
        for axis in &self.axes {
            let own: HashSet<&str> = axis.settings().into_iter().collect();
            if let Some(name) = own.iter().find(|name| settings.contains(**name)) {
                return refused(format!(
                    "durability sets {name} too: leave out the axis durability or {name}"
                ));
            }
            settings.extend(own);
        }
        let unlogged = Cell::all(&self.axes).iter().any(Cell::is_unlogged);
        if !self.tables.is_empty() && !unlogged {
            return refused(
                "--tables is for unlogged tables: leave it out, or add this level, for example --matrix durability=normal,unlogged"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// The run document's `request.matrix`.
    pub fn document(&self) -> Value {
        let axes = self.axes.iter().map(|axis| json!({ "axis": axis.name(), "values": axis.values() }));
        json!({
            "axes": axes.collect::<Vec<_>>(),
            "trials": self.trials,
            "tables": self.tables,
            "allow_dangerous_settings": self.allow_dangerous,
        })
    }

    fn has(&self, durability: Durability) -> bool {
        self.durabilities().is_some_and(|values| values.contains(&durability))
    }

    fn durabilities(&self) -> Option<&[Durability]> {
        self.axes.iter().find_map(|axis| match axis {
            Axis::Durability(values) => Some(&values[..]),
            _ => None,
        })
    }
}

/// Facts about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Whether it is pgrig's own.
    pub is_own: bool,
    /// Whether it can be restarted.
    pub restart: Restart,
}

/// A checked matrix, ready to be run.
#[derive(Clone, Debug)]
pub struct MatrixPlan {
    /// The request of each trial, without the parts that cells vary.
    pub base: Request,
    /// All combinations of the axes.
    pub cells: Vec<Cell>,
    /// Numbers of the cells in the order in which they run: each round has one trial of each cell.
    pub rounds: Vec<Vec<usize>>,
    /// The changes to the server.
    pub(super) to_change: ToChange,
    /// The settings that are varied, as found on the server.
    pub looked: Looked,
    /// Tables that are vacuumed before each trial.
    pub(super) tables: Vec<Written>,
    /// Warnings before the start.
    pub warnings: Vec<String>,
}

impl MatrixPlan {
    /// Checks the server, and refuses a matrix that cannot be run there. Changes nothing.
    ///
    /// # Errors
    /// If the matrix cannot be run.
    pub fn new<'a>(
        target: &'a Target,
        connection: &'a Connection,
        base: Request,
        matrix: &'a Matrix,
        ground: ServerFacts,
    ) -> LocalBoxFuture<'a, Result<Self, MatrixError>> {
        Box::pin(async move {
            matrix.check()?;
            refuse_danger(matrix, ground)?;
            let cells = Cell::all(&matrix.axes);
            for cell in &cells {
                Plan::parse(cell.request(&base))?;
            }
            let parsed = Plan::parse(base.clone())?;
            let named = tables(matrix, &base, &parsed)?;
            let mut warnings = parsed.plan(connection).await?.warnings;
            // A trial may have another max_connections than now.
            if !matrix.axes.iter().any(|axis| axis.settings().contains(&"max_connections")) {
                let requests = cells.iter().map(|cell| cell.request(&base));
                if let Some(largest) = requests.max_by_key(|request| request.clients) {
                    refuse_too_many(target, connection, &largest).await?;
                }
            }
            let tables = present(connection, &named).await?;
            if matrix.durabilities().is_some() {
                refuse_abnormal(connection, &tables).await?;
            }
            let mut settings: Vec<String> = Vec::new();
            for name in matrix.axes.iter().flat_map(Axis::settings) {
                if !settings.iter().any(|other| other == name) {
                    settings.push(name.to_owned());
                }
            }
            let unlogged = if matrix.has(Durability::Unlogged) { named } else { Vec::new() };
            let to_change = ToChange { settings, tables: unlogged, restart: ground.restart };
            let looked = to_change.look(target).await?;
            if base.warmup.is_zero() {
                warnings.extend(cold(connection, &looked).await?);
            }
            let rounds = order::rounds(cells.len(), matrix.trials, base.seed);
            Ok(Self { base, cells, rounds, to_change, looked, tables, warnings })
        })
    }

    /// The run document's `plan`.
    pub fn document(&self) -> Value {
        json!({
            "cells": self.cells.iter().map(Cell::name).collect::<Vec<_>>(),
            "rounds": self.rounds,
            "settings": self.looked.settings.iter().map(|found| json!({
                "name": found.before.name,
                "before": found.before.shown,
                "effect": found.effect.name(),
            })).collect::<Vec<_>>(),
            "unlogged_tables": self.looked.tables.iter().map(|found| found.table.qualified()).collect::<Vec<_>>(),
        })
    }

    /// The possible loss of other users in a crash during the run; none if there is none.
    pub fn danger(&self) -> Option<&'static str> {
        let reloaded = self.varied(Effect::Reload);
        let fsync = reloaded.contains(&"fsync") || reloaded.contains(&"full_page_writes");
        let unlogged = !self.looked.tables.is_empty();
        fsync.then_some(COST_OF_NO_FSYNC).or(unlogged.then_some(COST_OF_UNLOGGED))
    }

    /// Number of all trials.
    pub fn trials(&self) -> usize {
        self.cells.len() * self.rounds.len()
    }

    /// Duration of all trials, without the time between them; none if they are counted by transactions.
    pub fn duration(&self) -> Option<Duration> {
        let Length::Time(time) = self.base.length else { return None };
        let trial = self.base.ramp + self.base.warmup + time;
        u32::try_from(self.trials()).ok().and_then(|trials| trial.checked_mul(trials))
    }

    /// Bytes that each change of tables to unlogged, or back, rewrites.
    pub fn rewritten(&self) -> u64 {
        self.looked.tables.iter().map(|loggable| loggable.bytes).sum()
    }

    /// The settings of a cell with this effect.
    pub(super) fn settings(&self, cell: &Cell, effect: Effect) -> Vec<(String, String)> {
        let is_so = |name: &str| {
            self.looked
                .settings
                .iter()
                .any(|found| found.before.name.eq_ignore_ascii_case(name) && found.effect == effect)
        };
        let mut settings = cell.all_settings();
        settings.retain(|(name, _)| is_so(name));
        settings
    }

    /// Names of varied settings with this effect.
    pub fn varied(&self, effect: Effect) -> Vec<&str> {
        let found = self.looked.settings.iter().filter(|found| found.effect == effect);
        found.map(|found| found.before.name.as_str()).collect()
    }
}

/// Refuses a risk in a crash that the user has not accepted, unless the server is pgrig's own.
///
/// synchronous_commit is turned off only in the clients' own sessions, so it is no risk for others.
fn refuse_danger(matrix: &Matrix, ground: ServerFacts) -> Result<(), MatrixError> {
    if ground.is_own || matrix.allow_dangerous {
        return Ok(());
    }
    let off = |name: &str| matrix.axes.iter().any(|axis| axis.settings().contains(&name));
    if off("fsync") || off("full_page_writes") {
        return Err(MatrixError::Dangerous {
            action: "turn off fsync and full_page_writes",
            cost: COST_OF_NO_FSYNC,
        });
    }
    if matrix.has(Durability::Unlogged) {
        return Err(MatrixError::Dangerous { action: "make tables unlogged", cost: COST_OF_UNLOGGED });
    }
    Ok(())
}

const COST_OF_NO_FSYNC: &str = "a crash of the machine may corrupt EVERY database of that cluster beyond repair, \
                                not only the measured one";
const COST_OF_UNLOGGED: &str =
    "a crash of the server empties these tables, and its standbys and backups lack their rows";

/// Tables that the scripts write.
fn tables(matrix: &Matrix, base: &Request, parsed: &Parsed) -> Result<Vec<String>, MatrixError> {
    let builtin = if parsed.needs_tables() { &PGBENCH_TABLES[..] } else { &[] };
    let is_builtin = |source: &Source| Source::builtins().any(|(_, name)| name == source.name());
    let has_own = !base.sources.iter().all(is_builtin);
    if has_own && matrix.tables.is_empty() && matrix.has(Durability::Unlogged) {
        return Err(MatrixError::WhichTables);
    }
    let builtin = builtin.iter().map(|name| (*name).to_owned());
    Ok(builtin.chain(matrix.tables.iter().cloned()).collect())
}

/// Refuses a server whose settings or tables are not normal: the normal cells would not measure
/// normal durability.
async fn refuse_abnormal(connection: &Connection, tables: &[Written]) -> Result<(), MatrixError> {
    let query = "SELECT s.name, current_setting(s.name), s.source FROM pg_settings s \
                 WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit') \
                   AND current_setting(s.name) = 'off' ORDER BY s.name";
    let rows = match connection.client.query(query, &[]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    if let Some(row) = rows.first() {
        let (name, shown): (String, String) = (row.get(0), row.get(1));
        let remedy = match row.get(2) {
            "database" | "user" | "database user" | "global" | "client" => {
                match removal(&connection.client, &name).await {
                    Ok(remedy) => remedy,
                    Err(error) => return Err(connection.explain(error).await.into()),
                }
            }
            _ => format!(
                "set {name} = on in the server's configuration (pgrig's own server: leave out --profile \
                 dangerous, or run pgrig server stop and start it without that profile)"
            ),
        };
        return Err(MatrixError::NotNormal { name, shown, remedy });
    }
    match tables.iter().find(|table| table.is_unlogged) {
        None => Ok(()),
        Some(table) => Err(MatrixError::Unlogged { table: table.name.clone() }),
    }
}

/// A warning that some trials begin with a colder cache of the server than others.
async fn cold(connection: &Connection, looked: &Looked) -> Result<Option<String>, MatrixError> {
    let restarting = looked.settings.iter().find(|found| found.effect == Effect::Restart);
    if let Some(found) = restarting {
        return Ok(Some(format!(
            "each change of {} restarts the server, which empties its cache. Give --warm-up 10, so that the \
             cold start does not count",
            found.before.name
        )));
    }
    let query = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8";
    let age: f64 = match connection.client.query_one(query, &[]).await {
        Ok(row) => row.get(0),
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    Ok((age < YOUNG).then(|| {
        format!(
            "the server was started {age:.0} s ago: its cache is colder in the first trials than later. Give \
             --warm-up 10, so that the cold start does not count"
        )
    }))
}

/// A table that the scripts write.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Its name as SQL has it.
    pub(super) name: String,
    is_unlogged: bool,
}

/// The tables that exist.
async fn present(connection: &Connection, names: &[String]) -> Result<Vec<Written>, MatrixError> {
    let query = "SELECT c.oid::regclass::text, c.relpersistence = 'u' FROM unnest($1::text[]) t (name) \
                 JOIN pg_class c ON c.oid = to_regclass(t.name)";
    match connection.client.query(query, &[&names]).await {
        Ok(rows) => {
            Ok(rows.iter().map(|row| Written { name: row.get(0), is_unlogged: row.get(1) }).collect())
        }
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
