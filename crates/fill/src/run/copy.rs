//! One COPY: fills a buffer with rows, sends it to the server, and fills the next one.

use bytes::Bytes;
use futures_util::SinkExt;
use rowgen::{Constants, Encoder, Format, Table};
use tokio_postgres::Error;

use crate::request::CopyFormat;
use crate::run::rows::{Batch, RowSource};
use connect::Connection;
use server::quote::{identifier, qualified};

/// Size of the buffer, bytes: large enough that the server gets few messages, small enough to be in
/// the processor's cache when the socket takes it.
const BUFFER: usize = 256 << 10;

/// A table's rows on their way into relations of the server.
pub(crate) struct Copy {
    encoder: Encoder,
    schema: String,
    options: String,
    rows_per_buffer: u64,
}

impl Copy {
    /// COPY of `table`'s rows into relations in `schema`.
    pub(crate) fn new(
        schema: &str,
        table: &Table,
        format: CopyFormat,
        constants: Constants,
        freeze: bool,
    ) -> Self {
        let format = match format {
            CopyFormat::Text => Format::Text,
            CopyFormat::Binary => Format::Binary,
        };
        let encoder = Encoder::new(table, format, constants);
        let columns: Vec<String> = encoder.columns().map(identifier).collect();
        let options = format!(
            "({}) FROM STDIN (FORMAT {}{})",
            columns.join(", "),
            format.name(),
            if freeze { ", FREEZE" } else { "" }
        );
        let mut row = Vec::new();
        encoder.encode(0..1, &mut row);
        let rows_per_buffer = (BUFFER / row.len().max(1)).max(1) as u64;
        Self { encoder, schema: schema.to_owned(), options, rows_per_buffer }
    }

    /// Loads the next rows, at most `rows`, into `relation`; if there is a condition, only the rows
    /// that fulfil it. `sent` is called with the rows of each buffer once the server has taken it.
    pub(crate) async fn load(
        &self,
        connection: &Connection,
        relation: &str,
        rows: &mut RowSource,
        most: u64,
        condition: Option<&str>,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, Error> {
        connection.forget_errors();
        let condition = condition.map_or(String::new(), |condition| format!(" WHERE {condition}"));
        let statement = format!("COPY {} {}{condition}", qualified(&self.schema, relation), self.options);
        let sink = connection.client.copy_in::<_, Bytes>(&statement).await?;
        let mut sink = std::pin::pin!(sink);
        let mut left = most.min(rows.left());
        let mut buffer = self.encoder.header().to_vec();
        // After the server has given up, sending more is useless; the end of the COPY reports the reason.
        while left > 0 && !connection.heard_an_error() {
            buffer.reserve(BUFFER + BUFFER / 16);
            let Some(batch) = rows.take(left.min(self.rows_per_buffer)) else { break };
            match &batch {
                Batch::Range(range) => self.encoder.encode(range.clone(), &mut buffer),
                Batch::Listed(rows) => self.encoder.encode_rows(rows, &mut buffer),
            }
            let taken = batch.len();
            if sink.feed(Bytes::from(std::mem::take(&mut buffer))).await.is_err() {
                break;
            }
            sent(taken);
            left -= taken;
        }
        buffer.extend_from_slice(self.encoder.trailer());
        if !buffer.is_empty() {
            // If this fails, so does the end, which can say why.
            let _ = sink.feed(Bytes::from(buffer)).await;
        }
        sink.as_mut().finish().await
    }
}
