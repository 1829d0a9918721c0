//! One COPY: rows made into a buffer, the buffer handed to the server, the next one made.

use std::ops::Range;

use bytes::Bytes;
use futures_util::SinkExt;
use rowgen::{Encoder, Format, Table};
use tokio_postgres::Error;

use super::request::CopyFormat;
use crate::connect::Connection;
use crate::quote::{identifier, qualified};

/// Bytes handed over at once: few messages for the server to open, and still in the processor's
/// cache when the socket takes them.
const BUFFER: usize = 256 << 10;

/// A table's rows on their way into the server.
pub(super) struct Copy {
    encoder: Encoder,
    statement: String,
    rows_per_buffer: u64,
}

impl Copy {
    /// COPY of `table` in `schema`; its constant columns are left to their defaults.
    pub(super) fn new(schema: &str, table: &Table, format: CopyFormat, freeze: bool) -> Self {
        let format = match format {
            CopyFormat::Text => Format::Text,
            CopyFormat::Binary => Format::Binary,
        };
        let encoder = Encoder::new(table, format, rowgen::Constants::Defaulted);
        let columns: Vec<String> = encoder.columns().map(identifier).collect();
        let statement = format!(
            "COPY {} ({}) FROM STDIN (FORMAT {}{})",
            qualified(schema, &table.name),
            columns.join(", "),
            format.name(),
            if freeze { ", FREEZE" } else { "" }
        );
        let mut row = Vec::new();
        encoder.encode(table.rows.saturating_sub(1)..table.rows, &mut row);
        let rows_per_buffer = (BUFFER / row.len().max(1)).max(1) as u64;
        Self { encoder, statement, rows_per_buffer }
    }

    /// Loads a range of rows; `sent` is told of each buffer's rows as the server takes them.
    pub(super) async fn load(
        &self,
        connection: &Connection,
        range: Range<u64>,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, Error> {
        connection.forget_errors();
        let sink = connection.client.copy_in::<_, Bytes>(&self.statement).await?;
        let mut sink = std::pin::pin!(sink);
        let mut start = range.start;
        let mut buffer = self.encoder.header().to_vec();
        // Once the server has given up there is no use in sending on; the end tells why.
        while start < range.end && !connection.heard_an_error() {
            let end = range.end.min(start + self.rows_per_buffer);
            buffer.reserve(BUFFER + BUFFER / 16);
            self.encoder.encode(start..end, &mut buffer);
            if sink.feed(Bytes::from(std::mem::take(&mut buffer))).await.is_err() {
                break;
            }
            sent(end - start);
            start = end;
        }
        buffer.extend_from_slice(self.encoder.trailer());
        if !buffer.is_empty() {
            // If this fails, so does the end, which can say why.
            let _ = sink.feed(Bytes::from(buffer)).await;
        }
        sink.as_mut().finish().await
    }
}
