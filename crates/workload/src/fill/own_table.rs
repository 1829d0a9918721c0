//! A table of the user's: described by its catalog, loaded by COPY chunk by chunk, until it has the
//! rows or the size that was asked for.

use std::num::NonZeroU16;

use page::{LINE_POINTER, max_align};
use rowgen::{ColumnSpec, Format, Storage, Stored, Table};
use tokio_postgres::Client;

use super::chunks::{Chunking, Spread};
use super::ddl;
use super::error::FillError;
use super::ledger::{self, Unfinished};
use super::plan::{Method, Plan, Prediction, Rows};
use super::predict::Sizes;
use super::present;
use super::request::{Amount, CopyFormat, InitStep, OwnTable, Request};
use super::survey::{Survey, ask};
use crate::catalog::{CatalogError, Described, Scope, TableInfo, Wish, describe, verify};
use crate::connect::Connection;
use crate::quote::{identifier, qualified};

/// Rows whose stored size is looked at to predict the others'.
const SAMPLE: u64 = 1_000;
/// `HeapTupleHeaderData` up to the null bitmap, bytes.
const TUPLE_HEADER: u32 = 23;
/// Heap that a chunk fills at most, bytes.
const LARGE_CHUNK: u64 = 16 << 20;
/// Heap that a chunk fills at least, if a size is asked for, bytes: each has its commit.
const SMALL_CHUNK: u64 = 512 << 10;
/// So many chunks make the size that is asked for, if they are neither too small nor too large: as
/// exact is the size then.
const CHUNKS: u64 = 200;

/// A table, seen.
struct Seen {
    info: TableInfo,
    rows: Rows,
    first_row: u64,
}

/// Plans the fill of a table of the user's. Nothing is changed: what --ddl makes is rolled back.
pub(super) async fn plan(
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    own: &OwnTable,
    resume: bool,
) -> Result<Plan, FillError> {
    let client = &connection.client;
    let specs: Vec<ColumnSpec> = own.columns.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let name = own.name.as_deref().map(|name| in_schema(request.schema.as_deref(), name));
    let there = match &name {
        Some(name) => there(client, name, own.ddl.is_some()).await?,
        None => None,
    };
    if let Some(info) = there {
        return existing(survey, connection, request, info, specs, resume).await;
    }
    let Some(ddl) = &own.ddl else { unreachable!("refused: neither name nor DDL") };
    let schema_of_session = ask(connection, "SELECT current_schema()::text", &[]).await?;
    if schema_of_session.get::<_, Option<String>>(0).is_none() && request.schema.is_none() {
        return Err(FillError::NoSchema);
    }
    run(connection, "BEGIN").await?;
    let seen = made(connection, ddl, name.as_deref(), request, specs).await;
    run(connection, "ROLLBACK").await?;
    planned(survey, request, seen?, None, None)
}

/// The name within --schema, if that is given and the name has none of its own.
fn in_schema(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) if !name.contains('.') => format!("{}.{name}", identifier(schema)),
        _ => name.to_owned(),
    }
}

/// The table, if it is there; that it is not is an error only if nothing creates it.
async fn there(client: &Client, name: &str, may_be_missing: bool) -> Result<Option<TableInfo>, FillError> {
    match TableInfo::read(client, name, Scope::Idle).await {
        Ok(info) => Ok(Some(info)),
        Err(CatalogError::NoTable { .. }) if may_be_missing => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Looks at the table that the user's SQL creates, within the transaction.
async fn made(
    connection: &Connection,
    sql: &str,
    name: Option<&str>,
    request: &Request,
    specs: Vec<ColumnSpec>,
) -> Result<Seen, FillError> {
    let client = &connection.client;
    if let Err(error) = client.batch_execute(&ddl::execute(sql)).await {
        let said = connection.explain(error).await.to_string();
        return Err(FillError::Ddl { problem: format!("{said}. Nothing was changed") });
    }
    let created: Vec<String> = ask(connection, include_str!("../sql/created_tables.sql"), &[]).await?.get(0);
    let name = match (name, created.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => {
            return Err(FillError::Ddl { problem: "it creates no table: give --table NAME".to_owned() });
        }
        (None, several) => {
            let problem = format!("it creates {}: say which to fill with --table NAME", several.join(", "));
            return Err(FillError::Ddl { problem });
        }
    };
    let info = TableInfo::read(client, name, Scope::Transaction).await?;
    look(client, info, request, specs, Scope::Transaction).await
}

/// Plans for a table that is there: a fill begun before, or one that finds or leaves it empty.
async fn existing(
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    info: TableInfo,
    specs: Vec<ColumnSpec>,
    resume: bool,
) -> Result<Plan, FillError> {
    let client = &connection.client;
    let adjusted = present::adjusted(connection, request, &info.schema, &info.name).await?;
    let ledger = ledger::name(&info.name);
    let row = ask(connection, include_str!("../sql/ledger.sql"), &[&info.schema, &ledger]).await?;
    let mut stale = None;
    if row.get::<_, bool>("ledger_exists") {
        let comment: Option<String> = row.get("ledger_comment");
        let begun = match ledger::read(client, &info.schema, &info.name, comment.as_deref()).await {
            Ok(begun) => begun.filter(|begun| resume && begun.charter.request == adjusted),
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        if let Some(begun) = begun
            && let Some(table) = begun.charter.described.clone()
        {
            let rows = Rows { table, binary: begun.charter.binary, most: None, warnings: Vec::new() };
            let seen = Seen { info, rows, first_row: begun.charter.first_row };
            let until_size = begun.charter.until_size;
            return planned(survey, &adjusted, seen, Some(begun), until_size);
        }
        if resume {
            return Err(FillError::Unfinished { schema: info.schema, may_forget: true });
        }
        stale = Some(ledger);
    }
    if request.steps.include(InitStep::Create) {
        let problem = format!("{} exists already: leave out --ddl to fill it as it is", info.display_name());
        return Err(FillError::Ddl { problem });
    }
    let table = qualified(&info.schema, &info.name);
    let has_rows = format!("SELECT EXISTS (SELECT FROM {table})");
    if !request.append && info.may_select && ask(connection, &has_rows, &[]).await?.get(0) {
        return Err(FillError::OwnTableHasRows { table: info.display_name() });
    }
    let mut begun_at = None;
    if let Amount::Size(size) = request.amount {
        let row =
            ask(connection, include_str!("../sql/sizes.sql"), &[&info.schema, &vec![&info.name]]).await?;
        let present = row.get::<_, i64>("heap") + row.get::<_, i64>("index");
        let present = if request.append { u64::try_from(present).unwrap_or_default() } else { 0 };
        begun_at = Some(size + present);
    }
    let seen = look(client, info, &adjusted, specs, Scope::Idle).await?;
    let mut plan = planned(survey, &adjusted, seen, None, begun_at)?;
    plan.stale_ledger = stale;
    Ok(plan)
}

async fn look(
    client: &Client,
    info: TableInfo,
    request: &Request,
    specs: Vec<ColumnSpec>,
    scope: Scope,
) -> Result<Seen, FillError> {
    let super::request::Subject::Table(own) = &request.subject else { unreachable!("a table of the user's") };
    let rows = match request.amount {
        Amount::Rows(rows) => Some(rows),
        _ => None,
    };
    let wish = Wish { columns: specs, rows, seed: own.seed, ..Wish::default() };
    let described = describe(client, &info, &wish, scope).await?;
    let mut warnings = verify(client, &info, &described, scope).await?;
    let binary = described.supports(Format::Binary);
    let Described { table, first_row, most_rows, warnings: told, .. } = described;
    warnings.splice(0..0, told);
    let most = most_rows.map(|most| (most.rows, most.why));
    Ok(Seen { info, rows: Rows { table, binary, most, warnings }, first_row })
}

fn planned(
    survey: &Survey,
    request: &Request,
    seen: Seen,
    unfinished: Option<Unfinished>,
    until_size: Option<u64>,
) -> Result<Plan, FillError> {
    let Seen { info, rows, first_row } = seen;
    let bytes_per_row = bytes_per_row(&rows.table);
    let most = rows.most.as_ref().map(|(most, _)| *most);
    let until_size = match request.amount {
        Amount::Size(size) => Some(until_size.unwrap_or(size)),
        _ => None,
    };
    let wanted = match (request.amount, &rows.most) {
        (Amount::Rows(wanted), Some((most, why))) if wanted > *most => {
            return Err(FillError::MostRows { table: info.display_name(), most: *most, why: why.clone() });
        }
        (Amount::Rows(wanted), _) => Some(wanted),
        _ => most,
    };
    let chunk_bytes = match request.amount {
        _ if request.chunk.is_some() => request.chunk.unwrap_or(LARGE_CHUNK),
        Amount::Size(size) => (size / CHUNKS).clamp(SMALL_CHUNK, LARGE_CHUNK),
        _ => LARGE_CHUNK,
    };
    let chunk_rows = match &unfinished {
        Some(begun) => begun.charter.chunk_rows,
        None => (chunk_bytes / bytes_per_row).max(1),
    };
    let wanted = unfinished.as_ref().map_or(wanted, |begun| begun.charter.rows);
    let chunking = Chunking { first_row, rows: wanted, chunk_rows, spread: Spread::Table };
    let (format, why) = match (request.format, rows.binary) {
        (Some(CopyFormat::Binary), false) => {
            return Err(FillError::Combination(
                "--format binary: not all of these columns can be sent so. Leave it out".to_owned(),
            ));
        }
        (Some(format), _) => (format, "--format says so"),
        (None, true) if !survey.is_remote() => (CopyFormat::Binary, "the server parses it fastest"),
        (None, true) => (CopyFormat::Text, "fewer bytes cross the network than in binary"),
        (None, false) => (CopyFormat::Text, "not all of these columns can be sent in binary"),
    };
    let streams = request.streams.unwrap_or_else(|| streams(survey, wanted));
    let rows_predicted = match (request.amount, wanted) {
        (Amount::Rows(rows), _) => rows,
        _ => chunk_rows,
    };
    let sizes = Sizes { heap: rows_predicted.saturating_mul(bytes_per_row), index: 0 };
    let logged = request.persistence == super::request::Persistence::Logged;
    Ok(Plan {
        request: request.clone(),
        geometry: survey.server.geometry,
        major: survey.server.major(),
        subject: request.subject.clone(),
        schema: info.schema,
        create_schema: false,
        dropped: Vec::new(),
        dropped_bytes: 0,
        stale_ledger: None,
        until_size,
        reasons: vec![
            "chunk by chunk: it is a table of your own".to_owned(),
            format!("{} format: {why}", format.name()),
        ],
        described: Some(rows),
        chunking,
        unfinished,
        scale: 1,
        scale_before: 0,
        persistence: request.persistence,
        fillfactor: request.fillfactor,
        partitions: None,
        index: request.index,
        tablespace: None,
        index_tablespace: None,
        autovacuum: true,
        payload: request.payload,
        steps: request.steps.clone(),
        method: Method::ChunkedCopy,
        streams,
        copy_rows: chunk_rows,
        write_behind: false,
        flush_early: true,
        vacuum: request.steps.include(InitStep::Vacuum).then_some("FREEZE, ANALYZE"),
        format,
        index_build: None,
        predicted: Prediction { sizes, wal: if logged { sizes.heap } else { 0 }, temporary: 0 },
    })
}

/// As many as there are cores; one where the rows are few.
fn streams(survey: &Survey, rows: Option<u64>) -> NonZeroU16 {
    let cores = survey.site.cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(2).min(8);
    let few = rows.is_some_and(|rows| rows < 100_000);
    NonZeroU16::new(if few { 1 } else { cores }).unwrap_or(NonZeroU16::MIN)
}

/// Heap bytes of a row with its line pointer, on average over a sample.
fn bytes_per_row(table: &Table) -> u64 {
    let storage = Storage::new(table);
    let rows = table.rows.clamp(1, SAMPLE);
    let total: u64 = (0..rows).map(|row| u64::from(tuple(storage.row(row)) + LINE_POINTER)).sum();
    (total / rows).max(1)
}

/// Length of a tuple with these values, rounded up as it is stored.
fn tuple(values: impl Iterator<Item = Stored>) -> u32 {
    let mut columns = 0;
    let mut has_null = false;
    let data = values.fold(0_u32, |offset, value| {
        columns += 1;
        match value {
            Stored::Null => {
                has_null = true;
                offset
            }
            Stored::Fixed { length, align } | Stored::Varying { length, align } => {
                offset.next_multiple_of(align.max(1)) + length
            }
        }
    });
    let bitmap = if has_null { u32::div_ceil(columns, 8) } else { 0 };
    max_align(max_align(TUPLE_HEADER + bitmap) + data)
}

async fn run(connection: &Connection, sql: &str) -> Result<(), FillError> {
    match connection.client.batch_execute(sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
