//! Temporary tables with the columns of a table, and rows in them: to have the server judge or measure rows, or choose
//! among their keys, without a trace.

use std::ops::Range;

use bytes::Bytes;
use futures_util::SinkExt;
use rowgen::{Constants, Encoder, Format, Table};
use tokio_postgres::{Client, Error};

use super::info::{ColumnInfo, Source, TableInfo};
use super::slot::has_sequence;
use server::quote::identifier;

/// Gives values where the table has a sequence.
const SEQUENCE: &str = "pgrig_sample_ids";

/// The statements that create a temporary table of this name with the table's columns, defaults and generated columns,
/// and with these constraints. Its sequence is a temporary one. (CREATE TABLE … LIKE needs SELECT on the table, and the
/// defaults that it copies move the table's own sequences.)
pub fn create(info: &TableInfo, name: &str, constraints: &[String]) -> String {
    let columns = info.columns.iter().map(column_definition);
    let body: Vec<String> = columns.chain(constraints.iter().cloned()).collect();
    format!("CREATE TEMPORARY SEQUENCE {SEQUENCE};\nCREATE TEMPORARY TABLE {name} ({})", body.join(", "))
}

/// Copies rows of these numbers into a temporary table of this name, and counts them.
///
/// # Errors
/// If the server refuses a row, or fails.
pub async fn copy(
    client: &Client,
    name: &str,
    table: &Table,
    rows: impl IntoIterator<Item = Range<u64>>,
) -> Result<u64, Error> {
    let encoder = Encoder::new(table, Format::Text, Constants::Sent);
    let columns: Vec<String> = encoder.columns().map(identifier).collect();
    let mut text = encoder.header().to_vec();
    for stretch in rows {
        encoder.encode(stretch, &mut text);
    }
    text.extend(encoder.trailer());
    let statement = format!("COPY pg_temp.{name} ({}) FROM STDIN", columns.join(", "));
    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(&statement).await?);
    // If this fails, so does the end, which can say why.
    let _ = sink.send(Bytes::from(text)).await;
    sink.finish().await
}

/// The column as in CREATE TABLE.
fn column_definition(column: &ColumnInfo) -> String {
    let collation = column.collation.as_ref().map(|collation| format!("COLLATE {collation}"));
    let source = match &column.source {
        Source::Generated { expression, stored } => {
            let kind = if *stored { "STORED" } else { "VIRTUAL" };
            Some(format!("GENERATED ALWAYS AS ({expression}) {kind}"))
        }
        // The table's own sequence must not move.
        source if has_sequence(source) => Some(format!("DEFAULT nextval('pg_temp.{SEQUENCE}')")),
        Source::Default { expression, .. } => Some(format!("DEFAULT {expression}")),
        Source::Identity { .. } | Source::Nothing => None,
    };
    let not_null = column.not_null.then(|| "NOT NULL".to_owned());
    let start = [identifier(&column.name), column.data_type.sql.clone()];
    let words: Vec<String> = start.into_iter().chain(collation).chain(source).chain(not_null).collect();
    words.join(" ")
}
