//! One COPY: rows made into a buffer, the buffer handed to the server, the next one made.

use std::ops::Range;

use bytes::Bytes;
use futures_util::SinkExt;
use rowgen::{Constants, Encoder, Format, Table, hash_partition};
use tokio_postgres::Error;

use super::request::CopyFormat;
use crate::connect::Connection;
use crate::quote::{identifier, qualified};

/// Bytes handed over at once: few messages for the server to open, and still in the processor's
/// cache when the socket takes them.
const BUFFER: usize = 256 << 10;
/// Row numbers that are looked through at once for those of a leaf by hash.
const SIEVE: u64 = 4096;

/// A table's rows on their way into relations of the server.
pub(super) struct Copy {
    encoder: Encoder,
    schema: String,
    options: String,
    rows_per_buffer: u64,
}

/// Which rows of a range are meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sieve {
    /// All.
    All,
    /// Those whose id, row number + 1, hashes to this partition.
    Hash {
        /// Number of partitions.
        modulus: u32,
        /// Number of the partition.
        remainder: u32,
    },
}

impl Copy {
    /// COPY of `table`'s rows into relations in `schema`.
    pub(super) fn new(
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

    /// Loads a range of rows into `relation`; `sent` is told of each buffer's rows as the server
    /// takes them.
    pub(super) async fn load(
        &self,
        connection: &Connection,
        relation: &str,
        range: Range<u64>,
        sieve: Sieve,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, Error> {
        connection.forget_errors();
        let statement = format!("COPY {} {}", qualified(&self.schema, relation), self.options);
        let sink = connection.client.copy_in::<_, Bytes>(&statement).await?;
        let mut sink = std::pin::pin!(sink);
        let mut start = range.start;
        let mut buffer = self.encoder.header().to_vec();
        // Once the server has given up there is no use in sending on; the end tells why.
        while start < range.end && !connection.heard_an_error() {
            let end = range.end.min(start + self.rows_per_buffer);
            buffer.reserve(BUFFER + BUFFER / 16);
            let rows = self.encode(start..end, sieve, &mut buffer);
            if sink.feed(Bytes::from(std::mem::take(&mut buffer))).await.is_err() {
                break;
            }
            sent(rows);
            start = end;
        }
        buffer.extend_from_slice(self.encoder.trailer());
        if !buffer.is_empty() {
            // If this fails, so does the end, which can say why.
            let _ = sink.feed(Bytes::from(buffer)).await;
        }
        sink.as_mut().finish().await
    }

    /// Appends the rows that pass the sieve, and counts them.
    fn encode(&self, range: Range<u64>, sieve: Sieve, buffer: &mut Vec<u8>) -> u64 {
        let Sieve::Hash { modulus, remainder } = sieve else {
            self.encoder.encode(range.clone(), buffer);
            return range.end - range.start;
        };
        let mut passed = 0;
        let mut rows = Vec::with_capacity(SIEVE as usize);
        for start in range.clone().step_by(SIEVE as usize) {
            rows.clear();
            let belongs = |row: &u64| hash_partition(row.cast_signed() + 1, modulus) == remainder;
            rows.extend((start..range.end.min(start + SIEVE)).filter(belongs));
            self.encoder.encode_rows(&rows, buffer);
            passed += rows.len() as u64;
        }
        passed
    }
}
