//! Compressibility of the data, for backups and for volumes that compress.

mod dump;

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_postgres::{Client, Error};

use crate::leaf::Leaf;

/// zstd's level: its own default and that of `pg_dump --compress=zstd`.
pub(crate) const LEVEL: i32 = 3;
/// Block size of a compressing file system: btrfs always, ZFS by default.
const RECORD: u64 = 128 << 10;
/// Records that are sampled.
const RECORDS: u64 = 32;
/// Longest time of a sample, or [`SHARE`] of the fill's time if that is longer: a slow network
/// makes it slow.
const LONGEST: Duration = Duration::from_secs(10);
/// A sample may take the fill's time divided by this.
const SHARE: u32 = 10;

/// A table's sample, as read and compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// Its rows as pg_dump writes them: COPY's text, compressed as one stream.
    pub rows: Compressed,
    /// Its blocks as a compressing file system sees them, with headers and free space: each 128 KiB
    /// compressed alone. None if SQL cannot read blocks, which needs the extension pageinspect in
    /// the database, and a superuser.
    pub blocks: Option<Compressed>,
}

/// Bytes before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compressed {
    /// Size before compression, bytes.
    pub plain: u64,
    /// Size after zstd at level 3, bytes.
    pub compressed: u64,
}

impl Compressed {
    /// Ratio of the original to the compressed size.
    pub fn ratio(self) -> f64 {
        self.plain as f64 / self.compressed as f64
    }

    /// Counts more bytes.
    pub(crate) fn add(&mut self, other: Self) {
        self.plain += other.plain;
        self.compressed += other.compressed;
    }
}

impl Compression {
    /// Samples a table by its quoted name, after a fill that took so long, by two sessions. None if it holds no rows,
    /// or if the sample takes too long.
    ///
    /// # Errors
    /// If a query fails.
    pub async fn sample(clients: [&Client; 2], table: &str, filled: Duration) -> Result<Option<Self>, Error> {
        let deadline = Instant::now() + LONGEST.max(filled / SHARE);
        for client in clients {
            client.batch_execute(include_str!("../../sql/as_pg_dump.sql")).await?;
        }
        let sample = async {
            let Some(rows) = dump::rows(clients, table, deadline).await? else { return Ok(None) };
            Ok(Some(Self { rows, blocks: blocks(clients[0], table, deadline).await? }))
        };
        let sample = sample.await;
        for client in clients {
            client.batch_execute("ROLLBACK").await?;
        }
        sample
    }
}

/// Blocks of the table, or of the largest leaf of a partitioned one; none if they take too long.
async fn blocks(client: &Client, table: &str, deadline: Instant) -> Result<Option<Compressed>, Error> {
    let found = client.query_one(include_str!("../../sql/pageinspect.sql"), &[]).await?;
    let Some(get_raw_page) = found.get::<_, Option<String>>("get_raw_page") else { return Ok(None) };
    let leaf = Leaf::largest(client, table).await?;
    let query = format!(
        "SELECT {get_raw_page}($1, 'main', block) AS page FROM generate_series($2::int, $3::int) AS block"
    );
    let block_size: i32 = found.get("block_size");
    let per_record = RECORD / u64::from(block_size.unsigned_abs());
    let last = (leaf.blocks / per_record).saturating_sub(1);
    let records = RECORDS.min(last + 1);
    let mut sum = Compressed::default();
    for index in 0..records {
        if Instant::now() > deadline {
            return Ok(None);
        }
        let start = index * last / records.saturating_sub(1).max(1) * per_record;
        let end = (start + per_record).min(leaf.blocks) - 1;
        let number = |block: u64| i32::try_from(block).unwrap_or(i32::MAX);
        let rows = client.query(&query, &[&leaf.name, &number(start), &number(end)]).await?;
        let record: Vec<u8> = rows.iter().flat_map(|row| row.get::<_, &[u8]>("page")).copied().collect();
        let compressed = zstd::bulk::compress(&record, LEVEL).expect("memory can be compressed into memory");
        sum.add(Compressed { plain: record.len() as u64, compressed: compressed.len() as u64 });
    }
    Ok(Some(sum))
}
