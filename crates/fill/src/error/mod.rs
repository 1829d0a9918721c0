//! Errors of a fill. `begun`: a fill that was begun before, or that other processes run too.

mod begun;

use failure::{Class, Classified};
use measure::human::{bytes, counted};
use rowgen::SpecError;
use thiserror::Error;

use crate::cause::Cause;
use crate::cycle::CycleError;
use crate::limits::{LimitsError, Shortage};
use crate::probe::ProbeError;
use crate::remains::{Remains, StartOver};
use crate::request::InitStep;
use crate::run::direct::NotDirect;
use crate::sql::ddl::ANOTHER_DATABASE;
use catalog::CatalogError;
use connect::{ConnectError, SqlState};
use server::SurveyError;
use server::quote::shown;

pub use self::begun::BegunError;

/// Why a fill was refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FillError {
    /// The server could not be reached or asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server or the schema is not fit for tables.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// A size that these tables cannot have.
    #[error(
        "size {} is out of range: with these options the tables take {} to {}",
        bytes(*size), bytes(rounded_up(*smallest)), bytes(rounded_down(*largest))
    )]
    Size {
        /// Asked for, bytes.
        size: u64,
        /// One account, bytes.
        smallest: u64,
        /// One full table, bytes.
        largest: u64,
    },
    /// A scale that pgbench's tables cannot have.
    #[error("--scale {scale} is out of range: give 1 to {most}")]
    Scale {
        /// The scale that the user gave.
        scale: u64,
        /// The most that one table holds.
        most: u64,
    },
    /// A number of rows that one table cannot have.
    #[error("--rows {rows} is out of range: give 1 to {most}")]
    Rows {
        /// The number of rows that the user gave.
        rows: u64,
        /// The most that one table holds.
        most: u64,
    },
    /// More rows than the ids of existing tables can number.
    #[error(
        "the ids of the existing tables are integer, so the tables can grow by at most {} ({most} rows): give a smaller amount, or \
         --drop instead of --append, which makes new tables with bigint ids",
        bytes(rounded_down(*size))
    )]
    NarrowIds {
        /// The growth that is possible, bytes.
        size: u64,
        /// The same, rows.
        most: u64,
    },
    /// More loading connections than the server takes.
    #[error("--streams {streams} is too many for this server's max_connections: give at most {most}")]
    Streams {
        /// The number of streams that the user gave.
        streams: u16,
        /// Left of max_connections beside pgrig's other sessions.
        most: u32,
    },
    /// Tables that reference each other, so that none can come first.
    #[error(transparent)]
    Cycle(Box<CycleError>),
    /// A foreign key of such tables, whose check cannot wait until all rows are there.
    #[error(
        "{key} of {table} references {referenced}, which references {table}, and the server checks the key row by row \
         ({why}). Role {role} does not own {table}, so pgrig cannot defer the check: connect as the owner of {table}, \
         or run as the owner ALTER TABLE {table} ALTER CONSTRAINT {key} DEFERRABLE"
    )]
    CycleKey {
        /// The foreign key's name.
        key: String,
        /// The referencing table.
        table: String,
        /// The referenced table.
        referenced: String,
        /// The session's role.
        role: String,
        /// Why the server checks it row by row.
        why: String,
    },
    /// Nothing to fill.
    #[error("there is no table to fill: give another --schema, or give --ddl FILE to create tables")]
    NothingToFill,
    /// All tables of a model are empty.
    #[error(
        "all tables of the model have 0 rows, so there is nothing to fill. If the original has rows, run ANALYZE there and capture \
         the model again; or edit rows of the tables in the model"
    )]
    NoRows,
    /// The keys leave no room for as many rows as the size needs.
    #[error(
        "{} is too large: the keys of these tables allow about {}. Give a smaller size, or --rows",
        bytes(*size), bytes(*about)
    )]
    SchemaSize {
        /// Asked for, bytes.
        size: u64,
        /// The size that the keys leave room for, bytes.
        about: u64,
    },
    /// A size that is too small for the given numbers of rows.
    #[error(
        "{} is too small: one row in each table, and the rows that --rows gives, take about {}. Give a larger size",
        bytes(*size), bytes(*about)
    )]
    SchemaTooSmall {
        /// Asked for, bytes.
        size: u64,
        /// The least that the tables take, bytes.
        about: u64,
    },
    /// The fill was begun before, or other processes run it too.
    #[error(transparent)]
    Begun(#[from] BegunError),
    /// The user wants to stop, and no table is being filled.
    #[error(
        "interrupted: {filled} of {} filled; all rows loaded so far stay. To complete the fill, repeat the command",
        counted(*of as u64, "table")
    )]
    SchemaInterrupted {
        /// Tables that are filled.
        filled: usize,
        /// Number of all tables.
        of: usize,
    },
    /// A table of a schema could not be filled.
    #[error(
        "{table}: {source} {filled} of {} filled; all rows loaded so far stay. To complete the fill, {}{}",
        counted(*of as u64, "table"), source.completed_by(), start_over.of_all()
    )]
    OfTable {
        /// Schema and name.
        table: String,
        /// Tables that are filled.
        filled: usize,
        /// Number of all tables.
        of: usize,
        /// The way to start over.
        start_over: StartOver,
        /// The error of the table's own fill.
        source: Box<FillError>,
    },
    /// Things asked for that do not go together.
    #[error("{0}")]
    Combination(String),
    /// Pages cannot be written into the tables' files.
    #[error("--method direct is not possible: {0}. To fill by COPY, leave out --method direct")]
    NotDirect(#[from] NotDirect),
    /// `--append` to tables that have lost rows.
    #[error(
        "--append: rows are missing: {problem}. Nothing was changed. To fill all tables again, give --drop and \
         the whole amount instead of --append"
    )]
    NotWhole {
        /// The table, and the missing rows.
        problem: String,
    },
    /// The steps need tables that do not exist.
    #[error("schema {schema} has no {}: add t to --init-steps, or give another --schema", tables.join(", "))]
    NoTables {
        /// Schema that lacks the tables.
        schema: String,
        /// The missing tables.
        tables: Vec<String>,
    },
    /// The table of pgrig's own has rows, and the request does not add to them.
    #[error("{schema}.{table} has rows: give --append to add rows, or --drop to replace the tables")]
    HasRows {
        /// Schema of the table.
        schema: String,
        /// Name of the table that has rows.
        table: String,
    },
    /// The user's table has rows already.
    #[error(
        "{table} has rows: give --append to add rows, or run {truncate} first{}{}",
        if *.referencing { " (this also empties the tables that reference it)" } else { "" },
        if excluded.is_empty() { String::new() } else { format!("; to fill only the other tables, give {excluded}") }
    )]
    OwnTableHasRows {
        /// Schema and name.
        table: String,
        /// The TRUNCATE that empties the tables with rows, as SQL, or the command that runs it.
        truncate: String,
        /// Whether it also names tables that only reference tables with rows.
        referencing: bool,
        /// The options that leave out the tables with rows; empty if no others are to be filled.
        excluded: String,
    },
    /// A tablespace that is not there or not allowed.
    #[error("tablespace {name} {problem}")]
    Tablespace {
        /// The name that the user gave.
        name: String,
        /// The problem, with the remedy.
        problem: String,
    },
    /// The role may not create the table that records the loaded chunks.
    #[error(
        "role {role} may not create tables in schema {schema}, where pgrig records the loaded rows: run GRANT \
         CREATE ON SCHEMA {} TO {}, or connect as another role",
        shown(schema),
        shown(role)
    )]
    LedgerPrivilege {
        /// The role that lacks the privilege.
        role: String,
        /// Schema of the ledger.
        schema: String,
    },
    /// Tables with the names of the fill's tables exist.
    #[error(
        "schema {schema} already has {}{}: give --append to add rows, --drop to drop and replace the tables, or another --schema",
        tables.join(", "),
        if *.emptied { " (unlogged and empty, as a crash of the server leaves them)" } else { "" }
    )]
    TablesExist {
        /// Schema of the existing tables.
        schema: String,
        /// Names of the existing relations.
        tables: Vec<String>,
        /// Whether the tables are unlogged and empty, as after a crash.
        emptied: bool,
    },
    /// A relation has the name of one of the tables, and is nothing that --drop drops.
    #[error("{name} in schema {schema} is not a table, and --drop drops only tables: give another --schema")]
    NotATable {
        /// Schema of the existing relation.
        schema: String,
        /// Name of the existing relation.
        name: String,
    },
    /// The data volume is too small.
    #[error(
        "pgrig needs {} of disk space (tables and indexes {}, WAL {}, temporary files {}), and {mount} has {} free. \
         Give a smaller SIZE or fewer rows, or free some space",
        bytes(*needed), bytes(*total), bytes(*wal), bytes(*temporary), bytes(*free)
    )]
    Disk {
        /// At the peak, bytes.
        needed: u64,
        /// Tables and indexes, bytes.
        total: u64,
        /// WAL, bytes.
        wal: u64,
        /// Index build's temporary files, bytes.
        temporary: u64,
        /// On the volume, bytes.
        free: u64,
        /// The volume's mount point.
        mount: String,
    },
    /// A table of the user's cannot be filled.
    #[error(transparent)]
    Table(Box<CatalogError>),
    /// A --column that cannot be parsed.
    #[error("--column {0}")]
    Column(#[from] SpecError),
    /// SQL of the user's that the server refuses.
    #[error("--ddl: {problem}")]
    Ddl {
        /// The problem, with the remedy.
        problem: String,
        /// The server's SQLSTATE; none if pgrig refuses the SQL.
        sqlstate: Option<SqlState>,
    },
    /// Keys leave room for too few rows to reach the size.
    #[error(
        "{table} cannot grow to {}: its keys allow {most} more {}, about {}, because {why}. Give a smaller SIZE, \
         or give --rows", bytes(*size), if *most == 1 { "row" } else { "rows" }, bytes(*about)
    )]
    KeysTooFew {
        /// The table that cannot grow.
        table: String,
        /// Asked for, bytes.
        size: u64,
        /// Rows.
        most: u64,
        /// Their size, bytes.
        about: u64,
        /// Why keys leave room for no more rows.
        why: String,
    },
    /// The rows are to be loaded by COPY without triggers, but the table needs its triggers.
    #[error(
        "--triggers off is not possible for {table}, which pgrig fills by COPY: {why}. Leave the option out; the triggers \
         then run for each row"
    )]
    Triggers {
        /// The table that needs its triggers.
        table: String,
        /// Why the triggers cannot be disabled.
        why: String,
    },
    /// A probe cannot be run.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Limits that cannot be kept.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The server refuses the query of a probe.
    #[error("--probe: {0}. Nothing was changed")]
    ProbeQuery(ConnectError),
    /// The server refuses a statement before the rows.
    #[error("{0}. Nothing was changed")]
    Rehearsal(ConnectError),
    /// Pages could not be written into the files of tables like these.
    #[error("{0}. Nothing was changed")]
    Pages(Box<Cause>),
    /// A step failed.
    #[error("{} failed: {source}\n{remains}", step.name())]
    Step {
        /// The step that failed.
        step: InitStep,
        /// Why the step failed.
        source: Box<Cause>,
        /// The state of the tables.
        remains: Remains,
    },
    /// The user interrupted it.
    #[error("interrupted in step {}\n{remains}", step.name())]
    Interrupted {
        /// At which step.
        step: InitStep,
        /// The state of the tables.
        remains: Remains,
    },
}

impl FillError {
    /// SQL of the user's that pgrig refuses before the server does.
    pub(crate) fn refused_ddl(problem: impl Into<String>) -> Self {
        Self::Ddl { problem: problem.into(), sqlstate: None }
    }

    /// The problem of SQL of the user's, for a verb that has other options than `fill`: without the name of the option, and without advice to give
    /// options. None if the error is not about this SQL.
    pub fn of_sql(&self) -> Option<String> {
        let Self::Ddl { problem, .. } = self else { return None };
        let of_fill = [
            ". If another pgrig fill creates them at the same time, wait for its end. To create the tables elsewhere, give --schema NAME if the statements name no schema, or another database: -d DBNAME",
            ". To fill tables that exist, give --all-tables or --table NAME instead of --ddl",
            ", or give another --schema",
            ", or give --table NAME",
        ];
        Some(of_fill.iter().fold(problem.clone(), |problem, advice| problem.replace(advice, "")))
    }

    /// The error of SQL, or of a model, whose tables exist, with the way to another database of the user's server. None for other errors.
    pub fn in_another_database(&self, way: &str) -> Option<Self> {
        let (Self::Ddl { problem, .. } | Self::Combination(problem)) = self else { return None };
        if !problem.contains(ANOTHER_DATABASE) {
            return None;
        }
        let problem = problem.replace(ANOTHER_DATABASE, &format!("another database: {way}"));
        Some(match self {
            Self::Ddl { sqlstate, .. } => Self::Ddl { problem, sqlstate: sqlstate.clone() },
            _ => Self::Combination(problem),
        })
    }

    /// The error of tables that reference each other, whose remedies depend on the verb.
    pub fn cycle(&self) -> Option<&CycleError> {
        match self {
            Self::Cycle(error) => Some(error),
            _ => None,
        }
    }

    /// SQL of the user's without a table to fill.
    pub(crate) fn no_table_created() -> Self {
        Self::refused_ddl("it creates no table: give a file that creates one, or give --table NAME")
    }
}

impl Classified for FillError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::Table(error) => error.class(),
            Self::Limits(error) => error.class(),
            Self::Begun(error) => error.class(),
            Self::OfTable { source, .. } => source.class(),
            Self::ProbeQuery(error) => error.class_of_own_sql(),
            Self::Rehearsal(error)
                if matches!(error, ConnectError::Query { .. }) && Shortage::of(error).is_none() =>
            {
                Class::Request
            }
            Self::Size { .. }
            | Self::Scale { .. }
            | Self::Rows { .. }
            | Self::NarrowIds { .. }
            | Self::Streams { .. }
            | Self::Combination(_)
            | Self::Cycle(_)
            | Self::CycleKey { .. }
            | Self::NothingToFill
            | Self::NoRows
            | Self::SchemaSize { .. }
            | Self::SchemaTooSmall { .. }
            | Self::NotDirect(_)
            | Self::NoTables { .. }
            | Self::HasRows { .. }
            | Self::OwnTableHasRows { .. }
            | Self::Tablespace { .. }
            | Self::LedgerPrivilege { .. }
            | Self::TablesExist { .. }
            | Self::NotATable { .. }
            | Self::Column(_)
            | Self::Ddl { .. }
            | Self::KeysTooFew { .. }
            | Self::Triggers { .. }
            | Self::Probe(_)
            | Self::Pages(_) => Class::Request,
            Self::Rehearsal(_) | Self::NotWhole { .. } | Self::Disk { .. } | Self::Step { .. } => {
                Class::Machine
            }
            Self::Interrupted { .. } | Self::SchemaInterrupted { .. } => Class::Interrupted,
        }
    }

    fn is_explained_by_log(&self) -> bool {
        match self {
            Self::OfTable { source, .. } => source.is_explained_by_log(),
            error => matches!(error, Self::Step { .. }),
        }
    }
}

/// A number that is not less and has three digits, as [`bytes`] shows them.
fn rounded_up(number: u64) -> u64 {
    let last = last_of_three(number);
    number.div_ceil(last) * last
}

/// A number that is not more and has three digits, as [`bytes`] shows them.
fn rounded_down(number: u64) -> u64 {
    let last = last_of_three(number);
    number / last * last
}

/// The value of a one as the third digit.
fn last_of_three(number: u64) -> u64 {
    10_u64.pow(number.checked_ilog10().unwrap_or_default().saturating_sub(2))
}

impl From<CycleError> for FillError {
    fn from(error: CycleError) -> Self {
        Self::Cycle(Box::new(error))
    }
}

impl From<CatalogError> for FillError {
    fn from(error: CatalogError) -> Self {
        Self::Table(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_a_size_can_be_given_as_shown() {
        for (number, up, down) in [
            (7, 7, 7),
            (172_032, 173_000, 172_000),
            (41_099_999_999_999, 41_100_000_000_000, 41_000_000_000_000),
            (999_500, 1_000_000, 999_000),
        ] {
            assert_eq!((rounded_up(number), rounded_down(number)), (up, down));
        }
    }
}
