//! Rows that are drawn from tables, to compare distributions: of two databases in the same way.

use model::{Cells, ColumnFacts, Drawn, DrawnKey, DrawnTable, Facts};
use rowgen::Kind;
use server::quote::identifier;
use tokio_postgres::{Client, Row};

use super::aggregates::rows_of;
use super::{FEW, TIMEOUT, in_transaction, read_all};
use crate::error::CatalogError;
use crate::info::{ForeignKeyInfo, TableInfo};
use futures_util::future::LocalBoxFuture;
use server::Steps;

/// Rows that are drawn from a table.
const ROWS: u64 = 40_000;
/// Rows of foreign keys that are grouped; of more, those of a sample of keys.
const KEYED: u64 = 2_000_000;

/// Values drawn from a database, and from a copy of it.
#[derive(Debug)]
pub struct Drawing {
    tables: Vec<TableDrawing>,
    keys: Vec<KeyDrawing>,
}

#[derive(Debug)]
struct TableDrawing {
    name: String,
    sql_name: String,
    columns: Vec<(String, Reading)>,
}

/// How a column's values are read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Number(&'static str),
    Label,
    Text,
}

#[derive(Debug)]
struct KeyDrawing {
    name: String,
    rows_per_key: String,
    orphans: String,
}

/// Decides from a database's catalogs and statistics how its tables, and a copy's, are read. `k` is the model's: it tells which numbers
/// are replaced.
///
/// # Errors
/// If there is no table, or the server fails.
pub fn drawing<'a>(
    client: &'a Client,
    schema: Option<&'a str>,
    k: u32,
) -> LocalBoxFuture<'a, Result<Drawing, CatalogError>> {
    Box::pin(in_transaction(client, TIMEOUT, async move {
        let (facts, infos) = read_all(client, schema).await?;
        Ok(Drawing {
            tables: facts.tables.iter().zip(&infos).map(|(facts, info)| of_table(facts, info, k)).collect(),
            keys: keys(&facts, &infos),
        })
    }))
}

/// Draws. Nothing is changed; the result names the tables that cannot be read.
///
/// # Errors
/// If the server fails.
pub fn draw<'a>(
    client: &'a Client,
    drawing: &'a Drawing,
    steps: Steps<'a>,
) -> LocalBoxFuture<'a, Result<Drawn, CatalogError>> {
    Box::pin(in_transaction(client, TIMEOUT, async move {
        let mut drawn = Drawn::default();
        let of = drawing.tables.len();
        for (place, table) in drawing.tables.iter().enumerate() {
            steps(&format!("reading {}, table {} of {of}", table.name, place + 1));
            match rows(client, table).await? {
                Ok(rows) => {
                    drawn.tables.push(DrawnTable { name: table.name.clone(), columns: cells(table, &rows) });
                }
                Err(why) => drawn.unseen.push(format!("columns of {} are not compared: {why}", table.name)),
            }
        }
        for key in &drawing.keys {
            steps(&format!("counting the rows for each key of {}", key.name));
            match key_rows(client, key).await? {
                Ok(key) => drawn.keys.push(key),
                Err(why) => {
                    drawn.unseen.push(format!("rows for each key of {} are not compared: {why}", key.name));
                }
            }
        }
        Ok(drawn)
    }))
}

fn of_table(facts: &model::TableFacts, info: &TableInfo, k: u32) -> TableDrawing {
    TableDrawing {
        name: facts.name.clone(),
        sql_name: rows_of(&info.schema, &info.name, info.partitions.is_some()),
        columns: facts
            .columns
            .iter()
            .map(|column| (column.name.clone(), reading(column, facts.rows, facts.k(k))))
            .collect(),
    }
}

fn reading(column: &ColumnFacts, rows: u64, k: u32) -> Reading {
    // Codes are replaced, as text is.
    if model::is_code(column, rows, k) {
        return Reading::Text;
    }
    let number = match &column.kind {
        Some(Kind::Bool) => Some("::int::float8"),
        Some(Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Numeric(_)) => {
            Some("::float8")
        }
        Some(Kind::Money) => Some("::numeric::float8"),
        Some(
            Kind::Date | Kind::Time | Kind::TimeTz | Kind::Timestamp | Kind::TimestampTz | Kind::Interval,
        ) => Some(""),
        _ => None,
    };
    let has_few =
        column.statistics.as_ref().is_some_and(|statistics| (1.0..=FEW).contains(&statistics.n_distinct));
    match number {
        Some(cast) => Reading::Number(cast),
        None if has_few => Reading::Label,
        None => Reading::Text,
    }
}

fn keys(facts: &Facts, infos: &[TableInfo]) -> Vec<KeyDrawing> {
    let mut keys = Vec::new();
    for (table, info) in facts.tables.iter().zip(infos) {
        let is_there = |key: &&ForeignKeyInfo| {
            !key.period && facts.tables.iter().any(|table| table.name == key.referenced.display_name())
        };
        keys.extend(info.foreign_keys.iter().filter(is_there).map(|key| of_key(table, info, key)));
    }
    keys
}

fn of_key(facts: &model::TableFacts, info: &TableInfo, key: &ForeignKeyInfo) -> KeyDrawing {
    let columns = |names: &[String], of: &str| -> Vec<String> {
        names.iter().map(|name| format!("{of}.{}", identifier(name))).collect()
    };
    let (own, theirs) = (columns(&key.columns, "c"), columns(&key.referenced.columns, "p"));
    let there: Vec<String> = own.iter().map(|column| format!("{column} IS NOT NULL")).collect();
    let there = there.join(" AND ");
    let child = rows_of(&info.schema, &info.name, info.partitions.is_some());
    let parent = rows_of(&key.referenced.schema, &key.referenced.table, key.referenced.partitioned);
    // Two parts of the keys by a hash, so that all rows of a key are in the same part.
    let mask = 2 * facts.rows.div_ceil(2 * KEYED).max(1).next_power_of_two() - 1;
    let part =
        |columns: &[String]| format!("hashtextextended(ROW({})::text, 0) & {mask}", columns.join(", "));
    let (own_part, their_part) = (part(&own), part(&theirs));
    let rows_per_key = format!(
        "SELECT part::int, n, count(*) AS keys\n  \
           FROM (SELECT {own_part} AS part, count(*) AS n FROM {child} AS c\n         \
                  WHERE {there} AND {own_part} < 2 GROUP BY {}) AS child\n \
          GROUP BY part, n\n\
         UNION ALL\nSELECT ({their_part})::int, -1, count(*) FROM {parent} AS p WHERE {their_part} < 2 GROUP BY 1",
        own.join(", "),
    );
    let same: Vec<String> = own.iter().zip(&theirs).map(|(own, their)| format!("{own} = {their}")).collect();
    let orphans = format!(
        "SELECT count(*) FROM {child} AS c WHERE {there} AND NOT EXISTS (SELECT FROM {parent} AS p WHERE {})",
        same.join(" AND ")
    );
    KeyDrawing { name: format!("{} ({})", facts.name, key.columns.join(", ")), rows_per_key, orphans }
}

/// The answer, or the server's reason for none.
async fn asked(client: &Client, sql: &str) -> Result<Result<Vec<Row>, String>, CatalogError> {
    client.batch_execute("SAVEPOINT asked").await?;
    match client.query(sql, &[]).await {
        Ok(rows) => {
            client.batch_execute("RELEASE SAVEPOINT asked").await?;
            Ok(Ok(rows))
        }
        Err(error) => {
            let Some(why) = error.as_db_error() else { return Err(error.into()) };
            // Fails if the server ended the session.
            client.batch_execute("ROLLBACK TO SAVEPOINT asked").await?;
            Ok(Err(why.message().to_owned()))
        }
    }
}

async fn rows(client: &Client, table: &TableDrawing) -> Result<Result<Vec<Row>, String>, CatalogError> {
    let selected: Vec<String> = table
        .columns
        .iter()
        .map(|(name, reading)| {
            let name = identifier(name);
            match reading {
                Reading::Number("") => format!("extract(epoch FROM {name})::float8"),
                Reading::Number(cast) => format!("{name}{cast}"),
                Reading::Label => format!("{name}::text"),
                Reading::Text => {
                    format!("hashtextextended({name}::text COLLATE \"C\", 0), length({name}::text)")
                }
            }
        })
        .collect();
    if selected.is_empty() {
        return Ok(Ok(Vec::new()));
    }
    let there = match asked(client, &format!("SELECT count(*) FROM {}", table.sql_name)).await? {
        Ok(rows) => u64::try_from(rows[0].get::<_, i64>(0)).unwrap_or_default(),
        Err(why) => return Ok(Err(why)),
    };
    let drawn = if there > ROWS {
        format!(" TABLESAMPLE BERNOULLI ({:.6})", ROWS as f64 / there as f64 * 100.0)
    } else {
        String::new()
    };
    asked(client, &format!("SELECT {} FROM {}{drawn}", selected.join(", "), table.sql_name)).await
}

fn cells(table: &TableDrawing, rows: &[Row]) -> Vec<(String, Cells)> {
    let mut at = 0;
    let mut columns = Vec::with_capacity(table.columns.len());
    for (name, reading) in &table.columns {
        let cells = match reading {
            Reading::Number(_) => Cells::Numbers(rows.iter().map(|row| row.get(at)).collect()),
            Reading::Label => Cells::Labels(rows.iter().map(|row| row.get(at)).collect()),
            Reading::Text => {
                let text = |row: &Row| {
                    let length: i32 = row.get::<_, Option<i32>>(at + 1)?;
                    Some((row.get::<_, Option<i64>>(at)?, u32::try_from(length).unwrap_or_default()))
                };
                Cells::Texts(rows.iter().map(text).collect())
            }
        };
        at += if matches!(reading, Reading::Text) { 2 } else { 1 };
        columns.push((name.clone(), cells));
    }
    columns
}

async fn key_rows(client: &Client, key: &KeyDrawing) -> Result<Result<DrawnKey, String>, CatalogError> {
    let orphans = match asked(client, &key.orphans).await? {
        Ok(rows) => u64::try_from(rows[0].get::<_, i64>(0)).unwrap_or_default(),
        Err(why) => return Ok(Err(why)),
    };
    let counted = match asked(client, &key.rows_per_key).await? {
        Ok(rows) => rows,
        Err(why) => return Ok(Err(why)),
    };
    let mut parts = [Vec::new(), Vec::new()];
    for (part, counts) in parts.iter_mut().enumerate() {
        let of_part = || counted.iter().filter(|row| usize::try_from(row.get::<_, i32>("part")) == Ok(part));
        let keys = |row: &Row| u64::try_from(row.get::<_, i64>("keys")).unwrap_or_default();
        let (mut all, mut used) = (0, 0);
        for row in of_part() {
            match u64::try_from(row.get::<_, i64>("n")) {
                Ok(n) => {
                    used += keys(row);
                    counts.push((n, keys(row)));
                }
                Err(_) => all = keys(row),
            }
        }
        counts.push((0, all.saturating_sub(used)));
    }
    Ok(Ok(DrawnKey { name: key.name.clone(), rows: parts, orphans }))
}
