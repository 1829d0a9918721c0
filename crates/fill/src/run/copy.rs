//! One COPY: rows made into a buffer, the buffer handed to the server, the next one made.

use std::ops::Range;

use bytes::Bytes;
use futures_util::SinkExt;
use rowgen::{Constants, Encoder, Format, Table, hash_partition};
use tokio_postgres::Error;

use crate::request::CopyFormat;
use connect::Connection;
use server::quote::{identifier, qualified};

/// Bytes handed over at once: few messages for the server to open, and still in the processor's
/// cache when the socket takes them.
const BUFFER: usize = 256 << 10;

/// A table's rows on their way into relations of the server.
pub(crate) struct Copy {
    encoder: Encoder,
    schema: String,
    options: String,
    rows_per_buffer: u64,
}

/// Rows of a range, or those of them whose id (row number + 1) hashes to one partition, taken from
/// its beginning.
#[derive(Clone, Debug)]
pub(crate) struct RowSource {
    range: Range<u64>,
    partition: Option<Partition>,
    left: u64,
}

/// Some rows, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// All of a range.
    Range(Range<u64>),
    /// These.
    Listed(Vec<u64>),
}

impl Batch {
    /// One after the other.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let (range, listed) = match self {
            Self::Range(rows) => (rows.clone(), &[][..]),
            Self::Listed(rows) => (0..0, &rows[..]),
        };
        range.chain(listed.iter().copied())
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end - rows.start,
            Self::Listed(rows) => rows.len() as u64,
        }
    }
}

/// A partition by hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// Number of partitions.
    pub modulus: u32,
    /// Number of this one.
    pub remainder: u32,
}

impl Partition {
    fn holds(self, row: u64) -> bool {
        hash_partition(row.cast_signed() + 1, self.modulus) == self.remainder
    }
}

impl RowSource {
    /// All of the range, or those that belong to the partition.
    pub(crate) fn new(range: Range<u64>, partition: Option<Partition>) -> Self {
        let left = match partition {
            None => range.end - range.start,
            Some(partition) => range.clone().filter(|row| partition.holds(*row)).count() as u64,
        };
        Self { range, partition, left }
    }

    /// The first rows from `start` on that belong to the partition, so many of them.
    pub(crate) fn first(count: u64, start: u64, partition: Partition) -> Self {
        Self { range: start..u64::MAX, partition: Some(partition), left: count }
    }

    /// Number of rows left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes the next rows, at most so many; none if there are no more.
    pub(crate) fn take(&mut self, most: u64) -> Option<Batch> {
        let taken = most.min(self.left);
        if taken == 0 {
            return None;
        }
        self.left -= taken;
        let start = self.range.start;
        Some(match self.partition {
            None => {
                self.range.start += taken;
                Batch::Range(start..self.range.start)
            }
            Some(partition) => {
                let wanted = usize::try_from(taken).unwrap_or(usize::MAX);
                let mut rows = Vec::with_capacity(wanted);
                rows.extend(self.range.by_ref().filter(|row| partition.holds(*row)).take(wanted));
                Batch::Listed(rows)
            }
        })
    }
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

    /// Loads the next rows, at most so many, into `relation`, with a condition only those that fulfil it; `sent` is told of each buffer's rows as
    /// the server takes them.
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
        // Once the server has given up there is no use in sending on; the end tells why.
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
