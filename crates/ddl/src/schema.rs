//! The tables that a migration finds: from a file of SQL, a model, or a database whose catalogs are read.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use catalog::CatalogError;
use connect::{ConnectError, Connection};
use fill::{Modelled, RowsRule, SqlOrigin, TableRows, sql_of_script};
use futures_util::future::LocalBoxFuture;
use model::{Model, Privacy, Table};
use serde::Serialize;

use crate::blind;
use crate::dependents::{self, Dependent};
use crate::encoding;
use crate::error::DdlError;
use crate::extent::{Extent, Extents};
use crate::lacking;
use crate::locale::Locale;
use crate::outside;
use crate::script::{Script, Statement, StatementKind};
use crate::triggers::RowTrigger;

/// Settings that decide which tables a migration finds, how it is planned, and the memory and WAL that it takes.
const SETTINGS: [&str; 37] = [
    "search_path",
    // Decides whether timestamp → timestamptz rewrites a table
    "TimeZone",
    // Memory
    "maintenance_work_mem",
    "work_mem",
    "hash_mem_multiplier",
    "temp_buffers",
    "shared_buffers",
    "effective_io_concurrency",
    "maintenance_io_concurrency",
    // Planner
    "max_parallel_maintenance_workers",
    "max_parallel_workers_per_gather",
    "max_parallel_workers",
    "max_worker_processes",
    "min_parallel_table_scan_size",
    "min_parallel_index_scan_size",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "effective_cache_size",
    "random_page_cost",
    "seq_page_cost",
    "cpu_tuple_cost",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "default_statistics_target",
    "jit",
    // WAL and storage
    "wal_level",
    "wal_compression",
    "full_page_writes",
    "wal_log_hints",
    "data_checksums",
    "wal_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "commit_delay",
    "synchronous_commit",
    "default_toast_compression",
];

/// The tables that a migration finds.
#[derive(Clone, Debug, Serialize)]
pub struct Schema {
    /// Where it is from, for people: `shop.sql`, `database shop`.
    pub origin: String,
    /// SQL that creates the tables.
    #[serde(skip)]
    pub(crate) sql: String,
    /// Specifications of columns by a model.
    #[serde(skip)]
    pub(crate) modelled: Vec<Modelled>,
    /// Values of the original's columns, as far as its statistics tell.
    #[serde(skip)]
    pub(crate) extents: Extents,
    /// Rows of each table in the original, if they are known.
    pub rows: BTreeMap<String, u64>,
    /// Bytes of each table in the original with its indexes, if they are known.
    pub bytes: BTreeMap<String, u64>,
    /// Partitions that have no rows in the original, `schema.name`.
    #[serde(skip)]
    pub(crate) bare: BTreeSet<String>,
    /// The share of its table's rows that each default partition has in the original, 0 to 1, by `schema.name`; none if it is not known.
    #[serde(skip)]
    pub(crate) shares: BTreeMap<String, f64>,
    /// Settings of the original, which the server that measures gets as far as possible.
    pub settings: BTreeMap<String, String>,
    /// The locale for which the user asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_locale: Option<Locale>,
    /// The locale of the original; none if it is not known.
    #[serde(skip)]
    pub(crate) locale: Option<Locale>,
    /// Major version of the original's server; none if the schema is a file of SQL.
    #[serde(skip)]
    pub(crate) major: Option<u32>,
    /// Tables that were not analyzed in the original, `schema.name`: their rows are estimates.
    #[serde(skip)]
    pub(crate) estimated: Vec<String>,
    /// Views, rules, policies, triggers, functions and publications of the original that depend on its tables, which the copy lacks.
    #[serde(skip)]
    pub(crate) dependents: Vec<Dependent>,
    /// Triggers of the original that fire for each row, which the copy lacks, too.
    #[serde(skip)]
    pub(crate) triggers: Vec<RowTrigger>,
    /// Facts that the role could not see in the original, and why, what the copy of its tables lacks, and statements of the file that are skipped: a
    /// sentence each.
    #[serde(skip)]
    pub unseen: Vec<String>,
}

impl Schema {
    /// Of a file of SQL that psql could run.
    ///
    /// # Errors
    /// If it has psql's own commands, or makes a subscription.
    pub fn of_script(text: &str, origin: &str) -> Result<Self, DdlError> {
        Self::of_sql(text, origin).map_err(|error| error.of_sql(of_file(origin)))
    }

    /// Of SQL, whatever option gives it.
    fn of_sql(text: &str, origin: &str) -> Result<Self, DdlError> {
        if let Some((line, command)) = outside::subscription(text) {
            return Err(DdlError::Subscription { origin: origin.to_owned(), line, command });
        }
        let (text, mut unseen) = encoding::of_schema(text, origin);
        let sql = sql_of_script(&without_transactions(&text))?;
        let (sql, skipped) = match outside::inside(&sql, origin) {
            // The body of a DO or an extension may make mappings. The last statement of a file may lack its semicolon.
            Some((kept, warnings)) => {
                (format!("{kept}\n;\n{}", include_str!("sql/drop_mappings.sql")), warnings)
            }
            // The server refuses it.
            None => (sql, Vec::new()),
        };
        unseen.extend(skipped);
        Ok(Self {
            origin: origin.to_owned(),
            sql,
            modelled: Vec::new(),
            extents: Extents::new(),
            rows: BTreeMap::new(),
            bytes: BTreeMap::new(),
            bare: BTreeSet::new(),
            shares: BTreeMap::new(),
            settings: BTreeMap::new(),
            asked_locale: None,
            locale: None,
            major: None,
            estimated: Vec::new(),
            dependents: Vec::new(),
            triggers: Vec::new(),
            unseen,
        })
    }

    /// Of a model.
    ///
    /// # Errors
    /// If its SQL has psql's own commands.
    pub fn of_model(model: &Model, origin: &str) -> Result<Self, DdlError> {
        let schema = Self::of_sql(&model.ddl, origin).map_err(|error| error.of_sql(of_model(origin)))?;
        let rows = model.tables.iter().map(|table| (table.name.clone(), table.rows)).collect();
        let size = |table: &Table| table.bytes.heap + table.bytes.toast + table.bytes.indexes;
        let bytes = model.tables.iter().map(|table| (table.name.clone(), size(table))).collect();
        let columns = |table: &Table| -> Vec<Modelled> {
            let column = |spec| Modelled { table: table.name.clone(), spec };
            table.specs().into_iter().map(column).collect()
        };
        let modelled = model.tables.iter().flat_map(columns).collect();
        // "PostgreSQL 18.0"
        let major = model.server.split([' ', '.']).nth(1).and_then(|major| major.parse().ok());
        let locale = model.locale.as_ref().map(Locale::from);
        Ok(Self { modelled, rows, bytes, major, locale, unseen: vec![lacking::of_model()], ..schema })
    }

    /// Of a database: reads its catalogs, statistics and sizes in a read-only transaction, and no table.
    ///
    /// # Errors
    /// If it has no tables, or the server fails.
    pub fn of_database<'a>(
        connection: &'a Connection,
        database: &'a str,
    ) -> LocalBoxFuture<'a, Result<Self, DdlError>> {
        Box::pin(async move {
            Self::read(connection, database).await.map_err(|error| error.of_encoding(database))
        })
    }

    /// The same, with the server's error for texts that are not UTF-8.
    fn read<'a>(connection: &'a Connection, database: &'a str) -> LocalBoxFuture<'a, Result<Self, DdlError>> {
        Box::pin(async move {
            let facts =
                catalog::capture(&connection.client, None, None, catalog::TIMEOUT, &server::unwatched).await;
            let facts = match facts {
                Ok(facts) => facts,
                Err(CatalogError::Server(error)) => return Err(connection.explain(error).await.into()),
                Err(error) => return Err(DdlError::Original(Box::new(error))),
            };
            let seed = fastrand::u64(..);
            let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed });
            let mut schema = Self::of_model(&model, &format!("database {database}"))?;
            schema.extents = Extent::of_all(&facts, &model);
            schema.settings = settings(connection).await?;
            schema.bare = bare(connection).await?;
            schema.shares = shares(connection).await?;
            let short = model::shortened(&facts, &model);
            let blind = blind::warnings(connection, &facts).await?;
            schema.unseen = facts.unseen;
            schema.unseen.extend(blind);
            schema.unseen.extend(lacking::of_short_values(&short));
            schema.estimate_rows(connection).await?;
            schema.dependents = dependents::of_database(connection).await?;
            schema.triggers = RowTrigger::of_database(connection).await?;
            schema.unseen.extend(lacking::of_database(connection, database, &schema.sql).await?);
            schema.sql = lacking::schemas(connection).await? + &schema.sql;
            Ok(schema)
        })
    }

    /// Estimates the rows of tables that were not analyzed, from their sizes.
    async fn estimate_rows(&mut self, connection: &Connection) -> Result<(), ConnectError> {
        let found = match connection.client.query(include_str!("sql/unanalyzed.sql"), &[]).await {
            Ok(found) => found,
            Err(error) => return Err(connection.explain(error).await),
        };
        for row in found {
            let name: String = row.get("name");
            if let Some(rows) = self.rows.get_mut(&name) {
                *rows = u64::try_from(row.get::<_, i64>("rows")).unwrap_or_default();
                self.estimated.push(name);
            }
        }
        Ok(())
    }

    /// The option that gives it, with its value; or the database.
    pub(crate) fn option(&self) -> String {
        match self.sql_origin() {
            SqlOrigin::Database => self.origin.clone(),
            SqlOrigin::Model => of_model(&self.origin),
            SqlOrigin::File => of_file(&self.origin),
        }
    }

    /// Origin of its SQL.
    pub(crate) fn sql_origin(&self) -> SqlOrigin {
        if self.is_of_database() {
            SqlOrigin::Database
        } else if self.is_copy() {
            SqlOrigin::Model
        } else {
            SqlOrigin::File
        }
    }

    /// Whether the file has no statement: pgrig's own follow after a semicolon.
    pub(crate) fn is_empty(&self) -> bool {
        let sql = self.sql.trim_start();
        sql.is_empty() || sql.starts_with(';')
    }

    /// Whether it is that of a database, with its settings.
    pub(crate) fn is_of_database(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Whether it has the tables of a database or a model, and not all of the SQL.
    pub fn is_copy(&self) -> bool {
        self.major.is_some()
    }

    /// Rows of tables whose number in the original is known, in proportion to each other; no more than `most`.
    pub(crate) fn rules(&self, most: Option<u64>) -> impl Iterator<Item = RowsRule> {
        let filled = self.rows.iter().filter(|(_, rows)| **rows > 0);
        filled.map(move |(table, rows)| RowsRule {
            table: table.clone(),
            rows: TableRows::InProportion(most.map_or(*rows, |most| most.min(*rows))),
        })
    }

    /// Tables that have no rows in the original.
    pub(crate) fn empty(&self) -> Vec<String> {
        self.rows.iter().filter(|(_, rows)| **rows == 0).map(|(table, _)| table.clone()).collect()
    }
}

/// The text without BEGIN and COMMIT, which Django and Alembic write around what they create: pgrig runs it in a transaction of
/// its own.
fn without_transactions(text: &str) -> Cow<'_, str> {
    fn is_edge(one: &Statement) -> bool {
        let line = one.in_one_line().to_ascii_lowercase();
        let word = line.split(' ').next().unwrap_or_default();
        one.kind == StatementKind::Transaction && ["begin", "start", "commit", "end"].contains(&word)
    }
    match Script::read_whole(text, None) {
        Ok(script) if script.statements.iter().any(is_edge) => {
            let kept = script.statements.iter().filter(|one| !is_edge(one));
            kept.map(|one| one.sql.trim_end_matches(';').to_owned() + ";\n").collect::<String>().into()
        }
        _ => text.into(),
    }
}

/// The values of [`SETTINGS`], and the planner's switches that the original has changed. Of the levels of WAL only logical, with which the
/// server writes more of it: else the server that measures has its own.
async fn settings(connection: &Connection) -> Result<BTreeMap<String, String>, ConnectError> {
    let query = include_str!("sql/settings.sql");
    let rows = match connection.client.query(query, &[&SETTINGS.as_slice()]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await),
    };
    let mut settings: BTreeMap<String, String> =
        rows.iter().map(|row| (row.get("name"), row.get("value"))).collect();
    settings.retain(|name, value| name != "wal_level" || value == "logical");
    Ok(settings)
}

/// The partitions without rows.
async fn bare(connection: &Connection) -> Result<BTreeSet<String>, ConnectError> {
    match connection.client.query(include_str!("sql/bare.sql"), &[]).await {
        Ok(rows) => Ok(rows.iter().map(|row| row.get("name")).collect()),
        Err(error) => Err(connection.explain(error).await),
    }
}

/// The shares of default partitions.
async fn shares(connection: &Connection) -> Result<BTreeMap<String, f64>, ConnectError> {
    match connection.client.query(include_str!("sql/shares.sql"), &[]).await {
        Ok(rows) => Ok(rows.iter().map(|row| (row.get("name"), row.get("share"))).collect()),
        Err(error) => Err(connection.explain(error).await),
    }
}

/// The option that gives a file of SQL.
fn of_file(origin: &str) -> String {
    format!("--schema-file {origin}")
}

/// The option that gives a model.
fn of_model(origin: &str) -> String {
    format!("--model {origin}")
}
