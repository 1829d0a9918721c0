//! Examines a user's table: describes its rows from the catalog, and has the server judge a sample.

mod key;
mod measured;
mod pages;
mod rows;
mod width;

use rowgen::{Column, ColumnSpec, Format, Table, Values};

pub(crate) use self::measured::{BYTES, STRETCHES, stretches};
use self::pages::StoredTable;
use self::rows::DescribedRows;
pub(super) use self::rows::OwnTableFacts;
pub(crate) use self::width::rows_within;
use super::existing::adjusted;
use super::facts::{Facts, TablesFacts, VacuumRefused};
use super::tables::TableNames;
use crate::error::{BegunError, FillError};
use crate::ledger::relations::Relations;
use crate::ledger::{self, Unfinished};
use crate::request::{Amount, InitStep, OwnTable, Request, Subject};
use crate::run::direct::NotDirect;
use crate::run::resume::same_tables;
use crate::schema::is_name_of;
use crate::sql::absent::adapted;
use crate::sql::ddl;
use crate::sql::emptied::has_rows;
use catalog::{CatalogError, DescribeRequest, Described, Scope, SequenceTaken, TableInfo, describe, verify};
use connect::{ConnectError, Connection};
use server::quote::{identifier, qualified, shown_qualified};
use server::{Survey, ask, run_sql, schema_for_tables};

/// Looks at the table, or at the one that --ddl creates in a transaction that is rolled back. `may_write_pages` says
/// whether request and server allow direct pages.
///
/// # Errors
/// If the request does not suit the table.
pub(super) async fn look(
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    own: &OwnTable,
    resume: bool,
    may_write_pages: bool,
) -> Result<Facts, FillError> {
    let specs: Vec<ColumnSpec> = own.columns.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let name = match &own.name {
        Some(name) => Some(in_schema(request.schema.as_deref(), name)),
        // The table that --ddl creates is known only once it is there.
        None if resume => begun(connection, request).await?,
        None => None,
    };
    let look = Look { survey, connection, request, own, specs, may_write_pages };
    let there = match &name {
        Some(name) => there(connection, name, own.ddl.is_some()).await?,
        None => None,
    };
    match (there, &own.ddl) {
        (Some(info), _) => look.existing(info, resume).await,
        (None, Some(ddl)) => look.created(ddl, name.as_deref(), resume).await,
        (None, None) => unreachable!("refused: neither name nor DDL"),
    }
}

/// Facts about a table whose rows are described already, and of which no fill has begun.
///
/// # Errors
/// If the role may not fill it.
pub(super) async fn look_at_described(
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    info: TableInfo,
    rows: DescribedTable,
) -> Result<Facts, FillError> {
    let Subject::Table(own) = &request.subject else { unreachable!("a table of the user's") };
    let (request, _) = adjusted(connection, request, &info.schema, &info.name).await?;
    let key = key::row_key(connection, &info, &rows.table, rows.first_row, 0).await?;
    let width = width::of_row(&rows.table, survey.server.geometry, None);
    let rows = DescribedRows::new(rows, width, key);
    let look = Look { survey, connection, request: &request, own, specs: Vec::new(), may_write_pages: false };
    let stale_ledger = look.ledger(&info.schema, &info.name).await?.is_some();
    let stored = look.stored(&info).await?;
    Ok(Facts { stale_ledger, ..look.facts(request.clone(), info, rows, stored, None).await? })
}

/// Rows of a table, as they are described.
#[derive(Clone, Debug)]
pub(crate) struct DescribedTable {
    /// Description of the rows.
    pub(crate) table: Table,
    /// Number of the first row, from 0.
    pub(crate) first_row: u64,
    /// Whether every column can be sent in binary.
    pub(crate) binary: bool,
    /// Sequences in whose place pgrig counts.
    pub(crate) sequences: Vec<SequenceTaken>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// The table that an interrupted fill of the same request has created.
async fn begun(connection: &Connection, request: &Request) -> Result<Option<String>, FillError> {
    match ledger::table_begun(&connection.client, &request.subject).await {
        Ok(name) => Ok(name),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

/// The only one of the created tables that has this name in some schema (a dump leaves the search
/// path empty). Otherwise the name itself.
fn among<'a>(created: &'a [String], name: &'a str) -> &'a str {
    let mut same =
        created.iter().filter(|table| table.strip_suffix(name).is_some_and(|schema| schema.ends_with('.')));
    match (same.next(), same.next()) {
        (Some(only), None) => only,
        _ => name,
    }
}

/// The name within --schema, if that is given and the name has none of its own.
fn in_schema(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) if !name.contains('.') => format!("{}.{name}", identifier(schema)),
        _ => name.to_owned(),
    }
}

/// The table, if it exists. It is an error that it does not exist only if no SQL creates it.
async fn there(
    connection: &Connection,
    name: &str,
    may_be_missing: bool,
) -> Result<Option<TableInfo>, FillError> {
    match TableInfo::read(&connection.client, name, Scope::Idle).await {
        Ok(info) => Ok(Some(info)),
        Err(CatalogError::NoTable { .. }) if may_be_missing => Ok(None),
        Err(CatalogError::InsertPrivilege { table, role }) => {
            Err(may_not_insert(connection, table, role).await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The error for a role that may not insert. If the role also lacks the right to record the rows, it names both.
async fn may_not_insert(
    connection: &Connection,
    table: String,
    role: String,
) -> Result<FillError, ConnectError> {
    let query = "SELECT quote_ident(n.nspname) AS schema, has_schema_privilege(n.oid, 'CREATE') AS may_create_tables
                   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1::text)";
    let row = ask(connection, query, &[&table]).await?;
    if row.get("may_create_tables") {
        return Ok(CatalogError::InsertPrivilege { table, role }.into());
    }
    let schema: String = row.get("schema");
    Ok(FillError::Combination(format!(
        "role {role} may not insert into {table}, and may not create tables in schema {schema}, where pgrig records the loaded rows: run \
         GRANT INSERT ON {table} TO {role} and GRANT CREATE ON SCHEMA {schema} TO {role}, or connect as another role"
    )))
}

/// An examination of a table for a fill.
struct Look<'a> {
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a Request,
    own: &'a OwnTable,
    specs: Vec<ColumnSpec>,
    /// Whether request and server allow direct pages.
    may_write_pages: bool,
}

impl Look<'_> {
    /// Facts about the table that the user's SQL creates.
    async fn created(&self, sql: &str, name: Option<&str>, resume: bool) -> Result<Facts, FillError> {
        let create_schema = match &self.request.schema {
            Some(schema) => !schema_for_tables(self.connection, Some(schema)).await?.exists,
            None => false,
        };
        self.run("BEGIN").await?;
        let made = self.made(sql, name, create_schema).await;
        self.run("ROLLBACK").await?;
        let (facts, table) = made?;
        let (request, schema) = (&facts.request, &facts.schema);
        let Some(comment) = self.ledger(schema, &table).await? else { return Ok(facts) };
        // A fill that was interrupted had created the table, and somebody has dropped it.
        let begun = ledger::read(self.connection, schema, &table, comment.as_deref()).await?;
        let differences =
            begun.as_ref().map_or(String::new(), |begun| request.differences(&begun.header.request));
        if let Some(begun) = begun.filter(|begun| resume && request.is_that_of(&begun.header.request)) {
            same_tables(None, &begun)?;
        }
        if resume {
            let table = shown_qualified(&facts.schema, &table);
            return Err(BegunError::UnfinishedTable { table, differences }.into());
        }
        Ok(Facts { stale_ledger: true, ..facts })
    }

    /// Facts about the table, and its name, from within the transaction that creates it.
    async fn made(
        &self,
        sql: &str,
        name: Option<&str>,
        create_schema: bool,
    ) -> Result<(Facts, String), FillError> {
        let connection = self.connection;
        let script = adapted(connection, sql, self.own.create_roles).await?;
        let create = ddl::of_script(self.request.schema.as_deref(), create_schema, &script);
        ddl::run_script(connection, &create).await?;
        let created: Vec<String> =
            ask(connection, include_str!("../../sql/created_tables.sql"), &[]).await?.get(0);
        let name = match (name, created.as_slice()) {
            (Some(name), _) => among(&created, name),
            (None, [only]) => only,
            (None, []) => {
                return Err(FillError::no_table_created());
            }
            (None, several) => {
                let limited = self.request.in_chunks || self.request.chunk.is_some();
                let why = if limited {
                    "without SIZE, --rows and --scale, or with --brim, --until-free or --probe, pgrig fills only one table; "
                } else {
                    ""
                };
                let problem =
                    format!("it creates {}: {why}name one of them with --table NAME", several.join(", "));
                return Err(FillError::refused_ddl(problem));
            }
        };
        let read = TableInfo::read(&connection.client, name, Scope::Transaction).await;
        let mut info = read.map_err(|error| match error {
            CatalogError::NoTable { name, .. } if !created.is_empty() => {
                let created = created.join(", ");
                FillError::refused_ddl(format!("it does not create {name}; it creates {created}"))
            }
            error => error.into(),
        })?;
        self.own.triggers.left_of(&mut info);
        let (request, _) = adjusted(connection, self.request, &info.schema, &info.name).await?;
        let table = info.name.clone();
        let mut facts = self.described(request, info, Scope::Transaction).await?;
        if let TablesFacts::Own(own) = &mut facts.tables {
            own.rows.warnings.splice(0..0, script.skipped.iter().map(|skipped| skipped.of_fill("--ddl")));
        }
        Ok((Facts { create_schema, create, ..facts }, table))
    }

    /// Facts about a table that exists: of a fill that was begun, or of a new fill, for which the
    /// table is empty or is emptied.
    async fn existing(&self, mut info: TableInfo, resume: bool) -> Result<Facts, FillError> {
        let connection = self.connection;
        self.own.triggers.left_of(&mut info);
        let (request, _) = adjusted(connection, self.request, &info.schema, &info.name).await?;
        let ledger = self.ledger(&info.schema, &info.name).await?;
        if let Some(comment) = ledger.as_ref().filter(|_| resume) {
            return self.unfinished(request, info, comment.as_deref()).await;
        }
        if request.steps.include(InitStep::Create) {
            let problem = format!("{} exists already: leave out --ddl to fill it as it is", info.shown());
            return Err(FillError::refused_ddl(problem));
        }
        let table = qualified(&info.schema, &info.name);
        let any_rows = format!("SELECT EXISTS (SELECT FROM {table})");
        if !request.append && info.may_select && ask(connection, &any_rows, &[]).await?.get(0) {
            return Err(has_rows(connection, &info, &[&info]).await?);
        }
        let stale_ledger = ledger.is_some();
        Ok(Facts { stale_ledger, ..self.described(request, info, Scope::Idle).await? })
    }

    /// The comment of the ledger beside the table, if there is one.
    async fn ledger(&self, schema: &str, table: &str) -> Result<Option<Option<String>>, FillError> {
        let query = include_str!("../../sql/ledger.sql");
        let row = ask(self.connection, query, &[&schema, &ledger::name(table)]).await?;
        Ok(row.get::<_, bool>("ledger_exists").then(|| row.get("ledger_comment")))
    }

    /// Facts about the rest of a fill that was begun by the same request.
    async fn unfinished(
        &self,
        request: Request,
        info: TableInfo,
        comment: Option<&str>,
    ) -> Result<Facts, FillError> {
        let begun = ledger::read(self.connection, &info.schema, &info.name, comment).await?;
        let differences =
            begun.as_ref().map_or(String::new(), |begun| request.differences(&begun.header.request));
        let begun = begun.filter(|begun| request.is_that_of(&begun.header.request));
        let described = |begun: Unfinished| Some((begun.header.described.clone()?, begun));
        let Some((table, begun)) = begun.and_then(described) else {
            return Err(BegunError::UnfinishedTable { table: info.shown(), differences }.into());
        };
        let names = TableNames::single(&table.name);
        let now =
            Relations::ask(self.connection, &info.schema, &names, begun.header.relations.routes).await?;
        same_tables(now.as_ref(), &begun)?;
        let first_row = begun.header.first_row;
        let key = key::row_key(self.connection, &info, &table, first_row, begun.rows()).await?;
        let binary = begun.header.binary;
        let width = width::of_row(&table, self.survey.server.geometry, None);
        let until_size = begun.header.until_size;
        let described =
            DescribedTable { table, first_row, binary, sequences: Vec::new(), warnings: Vec::new() };
        let rows = DescribedRows::new(described, width, key);
        let stored = self.stored(&info).await?;
        let facts = self.facts(request, info, rows, stored, until_size).await?;
        Ok(Facts { unfinished: Some(begun), ..facts })
    }

    /// Describes the rows, and has the server judge a sample. A fill of a given size with finished
    /// pages needs the number of rows beforehand. If it cannot be calculated, it is measured.
    async fn described(&self, request: Request, info: TableInfo, scope: Scope) -> Result<Facts, FillError> {
        let stored = self.stored(&info).await?;
        let wanted = match request.amount {
            Amount::Rows(rows) => Some(rows),
            _ => None,
        };
        let mut rows = self.rows(&info, wanted, self.may_write_pages, scope).await?;
        if self.may_write_pages {
            match (stored.pages(&request, self.survey.server.geometry, &rows, None), request.amount) {
                (Ok(_), _) => {}
                (Err(NotDirect::Size), Amount::Size(size)) => {
                    let beside = stored.beside(&request, self.survey.server.geometry);
                    rows = self.rows_for(size, &request, &info, (rows, beside), scope).await?;
                }
                // COPY leaves defaults to the server.
                (Err(why), _) => {
                    rows = self.rows(&info, wanted, false, scope).await?;
                    rows.refused = Some(why);
                }
            }
        }
        let until_size = self.until_size(&info).await?;
        self.facts(request, info, rows, stored, until_size).await
    }

    /// The specifications, with the names of the table's columns: the user may write the table's name before them.
    fn specs_of(&self, info: &TableInfo) -> Vec<ColumnSpec> {
        let of_table = |spec: &ColumnSpec| {
            let mut spec = spec.clone();
            if info.column(&spec.column).is_none()
                && let Some((table, column)) = spec.column.rsplit_once('.')
                && is_name_of((&info.schema, &info.name), table)
            {
                spec.column = column.to_owned();
            }
            spec
        };
        self.specs.iter().map(of_table).collect()
    }

    /// Describes so many rows, and has the server judge a sample. For direct pages the server
    /// gives no values, so pgrig gives the values of defaults and sequences too.
    async fn rows(
        &self,
        info: &TableInfo,
        rows: Option<u64>,
        takes_defaults: bool,
        scope: Scope,
    ) -> Result<DescribedRows, FillError> {
        let client = &self.connection.client;
        let describe_request = DescribeRequest {
            columns: self.specs_of(info),
            rows,
            seed: self.own.seed,
            plain: self.own.plain,
            takes_defaults,
            ..DescribeRequest::default()
        };
        let described = describe(client, info, &describe_request, scope).await?;
        let verified = verify(client, info, &described, scope).await;
        let verified = verified.map_err(|error| error.of_given(&self.given(info)))?;
        let binary = described.supports(Format::Binary);
        let Described { mut table, first_row, most_rows, mut warnings, sequences, .. } = described;
        if self.request.append && first_row == 0 {
            // Nothing is unique by its row number, so the rows would be those of the last time.
            table.seed = table.seed.wrapping_add(self.bytes_present(info).await?);
        }
        warnings.extend(verified.warnings);
        let width = width::of_row(&table, self.survey.server.geometry, verified.bytes_per_row);
        let most = most_rows.map(|most| (most.rows, most.why));
        let key = key::row_key(self.connection, info, &table, first_row, 0).await?;
        let described = DescribedTable { table, first_row, binary, sequences, warnings };
        Ok(DescribedRows { most, ..DescribedRows::new(described, width, key) })
    }

    /// The user's specifications, each with the name of its column.
    fn given(&self, info: &TableInfo) -> Vec<(String, String)> {
        let columns = self.specs_of(info).into_iter().map(|spec| spec.column);
        columns.zip(self.own.columns.iter().cloned()).collect()
    }

    /// The table's files and indexes.
    async fn stored(&self, info: &TableInfo) -> Result<StoredTable, FillError> {
        let Self { own, survey, .. } = self;
        StoredTable::of(self.connection, info, own, survey.server.major()).await
    }

    /// Asks for facts that do not follow from the constraints.
    async fn facts(
        &self,
        request: Request,
        info: TableInfo,
        rows: DescribedRows,
        stored: StoredTable,
        until_size: Option<u64>,
    ) -> Result<Facts, FillError> {
        let row = ask(self.connection, include_str!("../../sql/own_table.sql"), &[&info.oid]).await?;
        if !row.get::<_, bool>("may_create_tables") {
            return Err(FillError::LedgerPrivilege { role: row.get("role"), schema: row.get("schema") });
        }
        if info.partitions.is_some() {
            self.refuse_mixed(&info, &rows.table).await?;
        }
        let table = info.shown();
        let vacuum_refused = (!row.get::<_, bool>("may_vacuum"))
            .then(|| VacuumRefused { table: table.clone(), role: info.role.clone() });
        let own = OwnTableFacts { name: table, rows, stored, until_size };
        Ok(Facts {
            request,
            schema: info.schema,
            create_schema: false,
            create: Vec::new(),
            dropped: Vec::new(),
            dropped_bytes: 0,
            stale_ledger: false,
            unfinished: None,
            emptied: false,
            vacuum_refused,
            tables: TablesFacts::Own(Box::new(own)),
        })
    }

    /// Refuses a table with logged and unlogged leaves, unless pgrig knows the leaf of each row: a
    /// crash empties only the unlogged ones.
    async fn refuse_mixed(&self, info: &TableInfo, table: &Table) -> Result<(), FillError> {
        let names = TableNames::single(&table.name);
        let relations = Relations::ask(self.connection, &info.schema, &names, true).await?;
        if relations.is_none_or(|relations| relations.of_leaves().len() < 2) {
            return Ok(());
        }
        let query = include_str!("../../sql/partition_columns.sql");
        let decide: Vec<String> = match self.connection.client.query(query, &[&info.oid]).await {
            Ok(rows) => rows.iter().map(|row| row.get("name")).collect(),
            Err(error) => return Err(self.connection.explain(error).await.into()),
        };
        let of_server = |column: &&Column| column.values == Values::Server && decide.contains(&column.name);
        let remedy = if matches!(self.request.amount, Amount::Size(_)) {
            "give --rows instead of SIZE".to_owned()
        } else if let Some(column) = table.columns.iter().find(of_server) {
            format!("give column {} of the partition key values with --column", column.name)
        } else {
            return Ok(());
        };
        Err(FillError::Combination(format!(
            "{} has logged and unlogged partitions, so pgrig could not resume after a crash: {remedy}, or make all \
             partitions logged or all unlogged",
            info.shown()
        )))
    }

    /// The size of table and indexes at the end, bytes, if the user gave a size.
    async fn until_size(&self, info: &TableInfo) -> Result<Option<u64>, FillError> {
        let Amount::Size(size) = self.request.amount else { return Ok(None) };
        let present = if self.request.append { self.bytes_present(info).await? } else { 0 };
        Ok(Some(size + present))
    }

    /// The present size of table and indexes.
    async fn bytes_present(&self, info: &TableInfo) -> Result<u64, FillError> {
        let names = vec![&info.name];
        let row = ask(self.connection, include_str!("../../sql/sizes.sql"), &[&info.schema, &names]).await?;
        let present = row.get::<_, i64>("heap") + row.get::<_, i64>("index");
        Ok(u64::try_from(present).unwrap_or_default())
    }

    async fn run(&self, sql: &str) -> Result<(), FillError> {
        Ok(run_sql(self.connection, sql).await?)
    }
}
