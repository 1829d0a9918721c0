//! The tables to fill, and the request for each.

use std::collections::BTreeSet;

use super::Planner;
use super::amounts::{is_named, listed};
use super::design::table_and_column;
use super::order::Placed;
use crate::error::FillError;
use crate::request::{Amount, MethodChoice, OwnTable, Request, RowOrder, Subject};
use crate::schema::record::RecordedTable;
use crate::schema::request::{ModelledType, SchemaRequest};
use crate::sql::ddl;
use crate::sql::emptied::has_rows;
use catalog::{CatalogError, DescribeRequest, Scope, TableInfo, describe};
use connect::SqlState;
use failure::Classified;
use server::ask;
use server::quote::{qualified, shell_word};

/// The schemas that a user may mean.
const SCHEMAS: &str = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1";

/// Whether the server lacks an object of PostgreSQL itself, which a newer release has: a type of multiranges, or a name that begins with pg_.
fn is_of_newer_release(problem: &str) -> bool {
    let mut names = problem.split('"').skip(1).step_by(2);
    names.any(|name| name.ends_with("multirange") || name.starts_with("pg_"))
}

impl Planner<'_> {
    /// Runs the statements that create the tables, in the transaction that the session is in.
    pub(super) async fn create(&self, statements: &[String]) -> Result<(), FillError> {
        if statements.is_empty() {
            return Ok(());
        }
        (self.steps)("creating the tables");
        let ran = ddl::run_script(self.connection, statements).await;
        match ran {
            Err(FillError::Ddl { problem, sqlstate }) if !self.request.modelled.is_empty() => {
                let problem = problem.strip_suffix(ddl::INSTEAD_OF_DDL).unwrap_or(&problem);
                let is_of_release = match &sqlstate {
                    Some(code) if *code == SqlState::UNDEFINED_OBJECT => is_of_newer_release(problem),
                    Some(code) => [SqlState::SYNTAX_ERROR, SqlState::UNDEFINED_FUNCTION].contains(code),
                    None => false,
                };
                let problem =
                    if is_of_release { problem.trim_end_matches(ddl::CREATE_FIRST) } else { problem };
                let remedy = if is_of_release {
                    ". If this server is older than the original's, edit ddl in the model, or fill a server of the original's version"
                } else {
                    ""
                };
                Err(FillError::Combination(format!("the model's statements (ddl): {problem}{remedy}")))
            }
            ran => ran,
        }
    }

    /// The tables' names as SQL has them.
    pub(super) async fn names(&self) -> Result<Vec<String>, FillError> {
        if self.request.ddl.is_some() {
            return Ok(ask(self.connection, include_str!("../../sql/created_tables.sql"), &[]).await?.get(0));
        }
        let query = include_str!("../../sql/schema_tables.sql");
        match self.connection.client.query(query, &[&self.request.schema]).await {
            Ok(rows) => Ok(rows.iter().map(|row| row.get("name")).collect()),
            Err(error) => Err(self.connection.explain(error).await.into()),
        }
    }

    /// Whether materialized views are made from a table, so that they are refreshed after the rows.
    pub(super) async fn has_views(&self, table: &String) -> Result<bool, FillError> {
        let query = include_str!("../../sql/schema_views.sql");
        match self.connection.client.query(query, &[&[table].as_slice()]).await {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(error) => Err(self.connection.explain(error).await.into()),
        }
    }

    /// The tables, without those that the request leaves out, those that cannot hold a row, and those that the SQL itself
    /// gives rows; with a warning for each of the latter two.
    ///
    /// # Errors
    /// If one has rows and none are to be added, or the role may not fill it.
    pub(super) async fn tables(&self, names: &[String]) -> Result<(Vec<TableInfo>, Vec<String>), FillError> {
        (self.steps)("reading the catalogs on the tables");
        let found = TableInfo::read_all(&self.connection.client, names, Scope::Transaction).await?;
        let inserted = self.inserted(&found).await?;
        let mut tables = Vec::with_capacity(names.len());
        let mut warnings = Vec::new();
        let mut unknown: Vec<&str> = Vec::new();
        let mut not_met: Vec<&String> = self.request.exclude.iter().collect();
        let mut present = Vec::with_capacity(names.len());
        let mut empty = 0;
        if self.request.ddl.is_some() {
            unknown.extend(self.request.modelled_types.iter().map(|column| column.table.as_str()));
        }
        for (name, info) in names.iter().zip(found) {
            not_met.retain(|excluded| !is_name(name, excluded));
            present.push(name.as_str());
            let mut info = match info.map_err(left_out) {
                Ok(info) => info,
                Err(Ok((table, why))) => {
                    // The model and the user may name it, too.
                    unknown.retain(|name| !is_name(&table, name));
                    not_met.retain(|excluded| !is_name(&table, excluded));
                    warnings.push(format!("{table} is left out: {why}"));
                    continue;
                }
                Err(Err(error)) => return Err(error.into()),
            };
            self.request.triggers.left_of(&mut info);
            unknown.retain(|name| !is_named(&info, name));
            self.check_types(&info).await?;
            not_met.retain(|excluded| !is_named(&info, excluded));
            if self.request.empty.iter().any(|left| is_named(&info, left)) {
                empty += 1;
                continue;
            }
            if self.request.exclude.iter().any(|left| is_named(&info, left)) {
                continue;
            }
            if inserted.contains(&info.oid) {
                let table = info.display_name();
                warnings.push(format!("{table} is left out: --ddl inserts its rows"));
                continue;
            }
            tables.push(info);
        }
        if let Some(excluded) = not_met.first() {
            let text =
                format!("--exclude-table {excluded}: there is no such table; there are {}", listed(&present));
            return Err(FillError::Combination(text));
        }
        if let Some(unknown) = unknown.first() {
            let text = format!(
                "the model has table {unknown}, and its statements do not create it: edit the name there or in ddl"
            );
            return Err(FillError::Combination(text));
        }
        if empty > 0 && empty == names.len() {
            return Err(FillError::NoRows);
        }
        if tables.is_empty() && !self.request.exclude.is_empty() {
            let excluded = self.request.exclude.join(" --exclude-table ");
            let text = format!("--exclude-table {excluded} leaves no table to fill: exclude fewer tables");
            return Err(FillError::Combination(text));
        }
        if tables.is_empty() {
            self.refuse_missing_schema().await?;
            return Err(FillError::NothingToFill);
        }
        if !self.request.append && self.request.ddl.is_none() {
            self.refuse_rows(&tables).await?;
        }
        if self.request.append && self.request.modelled.is_empty() {
            tables = self.without_full(tables, &mut warnings).await?;
        }
        Ok((tables, warnings))
    }

    /// The tables without those that have no room for another row, with a warning for each. If all are full, all remain.
    async fn without_full(
        &self,
        tables: Vec<TableInfo>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<TableInfo>, FillError> {
        let mut reasons = Vec::with_capacity(tables.len());
        for info in &tables {
            reasons.push(self.full(info).await?);
        }
        if reasons.iter().all(Option::is_some) {
            return Ok(tables);
        }
        let mut with_room = Vec::with_capacity(tables.len());
        for (info, reason) in tables.into_iter().zip(reasons) {
            match reason {
                Some(why) => warnings.push(format!("{} gets no more rows: {why}", info.display_name())),
                None => with_room.push(info),
            }
        }
        Ok(with_room)
    }

    /// Why the table has no room for another row, whatever rows other tables get. None if it has, or if the user describes its
    /// rows.
    async fn full(&self, info: &TableInfo) -> Result<Option<String>, FillError> {
        let is_of_table =
            |text: &String| table_and_column(text).is_some_and(|(table, _)| is_named(info, table));
        let has_rule = self.request.rules.iter().any(|rule| is_named(info, &rule.table));
        let is_described = has_rule || self.request.columns.iter().any(is_of_table);
        if is_described || info.keys.is_empty() || !info.may_be_full() {
            return Ok(None);
        }
        let one = DescribeRequest {
            rows: Some(1),
            seed: self.request.seed,
            takes_defaults: true,
            plain: self.request.plain,
            ..DescribeRequest::default()
        };
        let is_alone = info.foreign_keys.iter().all(|key| key.to_itself);
        match describe(&self.connection.client, info, &one, Scope::Transaction).await {
            Err(CatalogError::TooManyRows { most: 0, why, is_constant, .. }) if is_alone || is_constant => {
                Ok(Some(why))
            }
            Err(CatalogError::RowsPresent { key, definition, .. }) if is_alone => {
                Ok(Some(format!("pgrig finds no values of {key} ({definition}) that are not in use")))
            }
            Err(error) if !error.is_usage() => Err(error.into()),
            // Other faults are errors once all tables are described.
            _ => Ok(None),
        }
    }

    /// Refuses a model that gives a column another type than its own statements do.
    async fn check_types(&self, info: &TableInfo) -> Result<(), FillError> {
        let modelled = self.request.modelled_types.iter().filter(|column| is_named(info, &column.table));
        for ModelledType { table, column, data_type } in modelled.filter(|_| self.request.ddl.is_some()) {
            let Some(created) = info.column(column) else {
                return Err(FillError::Combination(format!(
                    "{table} lacks column {column}, which the model has: add the column, or remove it from the model"
                )));
            };
            let created = &created.data_type.sql;
            // The catalog's spelling; `int` and `varchar(5)` are others of the same types.
            if created != data_type && !self.is_same_type(created, data_type).await? {
                return Err(FillError::Combination(format!(
                    "{table}.{column}: the model has type {data_type}, and its statements (ddl) make it {created}: edit one \
                     of the two"
                )));
            }
        }
        Ok(())
    }

    /// Whether the server reads both as the same type with the same modifiers. It may not know the second.
    async fn is_same_type(&self, created: &str, data_type: &str) -> Result<bool, FillError> {
        let modifiers = |text: &str| {
            let within = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            within.map_or_else(String::new, |(within, _)| within.replace(' ', ""))
        };
        if modifiers(created) != modifiers(data_type) {
            return Ok(false);
        }
        // to_regtype raises an error for text that is not the form of a type. The plan then ends.
        let query = "SELECT to_regtype($1) = to_regtype($2)";
        let same = self.connection.client.query_one(query, &[&created, &data_type]).await;
        match same {
            Ok(row) => Ok(row.get::<_, Option<bool>>(0).unwrap_or(false)),
            Err(error) if error.as_db_error().is_some() => Ok(false),
            Err(error) => Err(self.connection.explain(error).await.into()),
        }
    }

    /// The error, with the remedy where a table must reference an excluded one, or a partition of one that is filled.
    pub(super) async fn with_remedy(&self, error: FillError) -> FillError {
        let FillError::Table(cause) = &error else { return error };
        let CatalogError::NothingToReference { table, columns, constraint, referenced } = &**cause else {
            return error;
        };
        match self.request.exclude.iter().find(|excluded| is_name(referenced, excluded)) {
            // Only the rows of a partitioned table tell which keys each partition has.
            None if self.is_partition(referenced).await => FillError::Combination(format!(
                "{columns} of {table} must reference rows of {referenced} ({constraint}), a partition whose keys are not known \
                 before it has rows: give --exclude-table {word}, and fill that table at the end (pgrig fill --table {word} \
                 --rows 1000, with the same server and database)",
                word = shell_word(table)
            )),
            None => error,
            Some(excluded) => FillError::Combination(format!(
                "{columns} of {table} must reference rows of {referenced} ({constraint}), which stays empty: leave out \
                 --exclude-table {excluded}, or give --exclude-table {} too",
                shell_word(table)
            )),
        }
    }

    /// Whether a table of that schema and name is a partition; no, if the server cannot be asked.
    async fn is_partition(&self, table: &str) -> bool {
        let query = "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE c.relispartition AND n.nspname || '.' || c.relname = $1) AS is_partition";
        ask(self.connection, query, &[&table]).await.is_ok_and(|row| row.get("is_partition"))
    }

    /// Bytes of the tables and their indexes now.
    pub(super) async fn bytes_present(&self, tables: &[TableInfo]) -> Result<u64, FillError> {
        let names: Vec<String> = tables.iter().map(|info| qualified(&info.schema, &info.name)).collect();
        let row = ask(self.connection, include_str!("../../sql/schema_bytes.sql"), &[&names]).await?;
        Ok(u64::try_from(row.get::<_, i64>("bytes")).unwrap_or_default())
    }

    /// OIDs of the tables to which the SQL itself gives rows.
    async fn inserted(&self, tables: &[Result<TableInfo, CatalogError>]) -> Result<BTreeSet<u32>, FillError> {
        let is_asked = |info: &&TableInfo| self.request.ddl.is_some() && !self.is_left_out(info);
        let asked = tables.iter().flatten().filter(is_asked).collect();
        Ok(self.with_rows(asked).await?.into_iter().map(|info| info.oid).collect())
    }

    /// Whether the request leaves the table without rows.
    fn is_left_out(&self, info: &TableInfo) -> bool {
        self.request.exclude.iter().chain(&self.request.empty).any(|left| is_named(info, left))
    }

    /// Those of the tables that have rows.
    async fn with_rows<'t>(&self, tables: Vec<&'t TableInfo>) -> Result<Vec<&'t TableInfo>, FillError> {
        if tables.is_empty() {
            return Ok(tables);
        }
        (self.steps)("looking for rows in the tables");
        let any = |info: &&TableInfo| format!("EXISTS (SELECT FROM {})", qualified(&info.schema, &info.name));
        let any: Vec<String> = tables.iter().map(any).collect();
        let query = format!("SELECT ARRAY[{}] AS have_rows", any.join(", "));
        let have_rows: Vec<bool> = ask(self.connection, &query, &[]).await?.get("have_rows");
        let each = tables.into_iter().zip(have_rows);
        Ok(each.filter(|(_, has_rows)| *has_rows).map(|(info, _)| info).collect())
    }

    async fn refuse_rows(&self, tables: &[TableInfo]) -> Result<(), FillError> {
        let with_rows = self.with_rows(tables.iter().filter(|info| info.may_select).collect()).await?;
        match with_rows.first() {
            None => Ok(()),
            Some(first) => {
                let error = has_rows(self.connection, first, &with_rows).await?;
                Err(if with_rows.len() < tables.len() { error.or_without(&with_rows) } else { error })
            }
        }
    }

    /// Refuses a schema that does not exist, with those that do.
    async fn refuse_missing_schema(&self) -> Result<(), FillError> {
        let Some(schema) = &self.request.schema else { return Ok(()) };
        let found = match self.connection.client.query(SCHEMAS, &[]).await {
            Ok(rows) => rows,
            Err(error) => return Err(self.connection.explain(error).await.into()),
        };
        let names: Vec<String> = found.iter().map(|row| row.get(0)).collect();
        if names.contains(schema) {
            return Ok(());
        }
        let unquoted = if schema.starts_with('"') { "; give the name without the quotes of SQL" } else { "" };
        let names: Vec<String> = names.iter().map(|name| shell_word(name)).collect();
        Err(FillError::Combination(format!(
            "--schema {}: there is no such schema; there are {}{unquoted}",
            shell_word(schema),
            names.join(", ")
        )))
    }

    /// Makes the tables unlogged, those that reference others first, and gives the statements.
    pub(super) async fn unlogged(
        &self,
        tables: &[TableInfo],
        order: &[Placed],
    ) -> Result<Vec<String>, FillError> {
        let mut statements = Vec::new();
        for Placed { table, .. } in order.iter().rev() {
            let info = &tables[*table];
            let names: Vec<String> = match &info.partitions {
                None => vec![qualified(&info.schema, &info.name)],
                Some(leaves) => leaves.iter().map(|leaf| leaf.name.clone()).collect(),
            };
            statements.extend(names.iter().map(|name| format!("ALTER TABLE {name} SET UNLOGGED")));
        }
        self.create(&statements).await?;
        Ok(statements)
    }
}

/// The table that an error leaves out, and why; else the error.
fn left_out(error: CatalogError) -> Result<(String, String), CatalogError> {
    match error {
        CatalogError::NoColumns { table } => Ok((table, "it has no columns".to_owned())),
        CatalogError::NoPartitions { table, .. } => {
            Ok((table, "it has no partition that could hold a row".to_owned()))
        }
        CatalogError::ForeignPartition { table, partition } => {
            let why = format!(
                "its partition {partition} is a foreign table. To fill {table}, detach this partition"
            );
            Ok((table, why))
        }
        error => Err(error),
    }
}

/// Whether a name, with or without its schema, is that of a table as SQL names it.
fn is_name(table: &str, name: &str) -> bool {
    let plain = |name: &str| name.replace('"', "");
    let table = plain(table);
    table == plain(name) || table.split_once('.').is_some_and(|(_, table)| table == plain(name))
}

/// The request for one table. It is the same for a fill that begins and for one that is completed.
pub(super) fn request_for(all: &SchemaRequest, table: &RecordedTable, together: Vec<String>) -> Request {
    let rows = table.described.rows.saturating_sub(table.first_row);
    let name = Some(qualified(&table.schema, &table.described.name));
    let own = OwnTable {
        name,
        ddl: None,
        create_roles: false,
        columns: Vec::new(),
        seed: all.seed,
        plain: all.plain,
        triggers: all.triggers,
        together,
        in_cycle: table.cycle.is_some(),
        order: if all.modelled.is_empty() { RowOrder::Any } else { RowOrder::Kept },
    };
    let is_copied = table.cycle.as_ref().is_some_and(|cycle| !cycle.pages);
    Request {
        subject: Subject::Table(own),
        append: all.append,
        method: if is_copied { MethodChoice::Copy } else { all.method },
        streams: all.streams,
        format: all.format,
        chunk: all.chunk,
        in_chunks: all.in_chunks,
        part: all.part,
        place: all.part.map(|_| table.place),
        ..Request::new(Amount::Rows(rows), all.steps.clone())
    }
}
