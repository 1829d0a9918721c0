//! How compressible the data is: what backups, and volumes that compress, will make of it.

use futures_util::TryStreamExt;
use serde::Serialize;
use tokio_postgres::{Client, Error};

use super::leaf::Leaf;

/// zstd's level: its own default and that of `pg_dump --compress=zstd`.
const LEVEL: i32 = 3;
/// What is sampled of a table, bytes of blocks: some times zstd's window of 2 MB at that level.
const SAMPLE: u64 = 8 << 20;
/// What a file system that compresses takes at once: btrfs always, ZFS by default.
const RECORD: u64 = 128 << 10;
/// Records that are sampled.
const RECORDS: u64 = 32;

/// A table's sample, as read and compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compression {
    /// Its rows as pg_dump writes them: COPY's text, compressed as one stream.
    pub rows: Compressed,
    /// Its blocks as a compressed volume sees them, with their headers and the air between rows:
    /// each 128 KiB alone. None where blocks cannot be had through SQL: that takes the extension
    /// pageinspect in the database, and a superuser.
    pub blocks: Option<Compressed>,
}

/// Bytes before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compressed {
    /// As they were, bytes.
    pub plain: u64,
    /// By zstd at level 3, bytes.
    pub compressed: u64,
}

impl Compressed {
    /// How many times smaller it became.
    pub fn ratio(self) -> f64 {
        self.plain as f64 / self.compressed as f64
    }
}

impl Compression {
    /// Samples a table by its quoted name, or the largest leaf of a partitioned one: about 8 MB of
    /// blocks taken from all over it. None if that holds no rows.
    ///
    /// # Errors
    /// If a query fails.
    pub async fn sample(client: &Client, table: &str) -> Result<Option<Self>, Error> {
        let leaf = Leaf::largest(client, table).await?;
        let rows = rows(client, &leaf).await?;
        if rows.plain == 0 {
            return Ok(None);
        }
        Ok(Some(Self { rows, blocks: blocks(client, &leaf).await? }))
    }
}

async fn rows(client: &Client, leaf: &Leaf) -> Result<Compressed, Error> {
    let percent = (100.0 * SAMPLE as f64 / leaf.bytes.max(1) as f64).min(100.0);
    let copy =
        format!("COPY (SELECT * FROM {} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)) TO STDOUT", leaf.name);
    let mut stream = std::pin::pin!(client.copy_out(&copy).await?);
    let mut plain = Vec::new();
    while let Some(data) = stream.try_next().await? {
        plain.extend_from_slice(&data);
    }
    Ok(compress(&plain))
}

async fn blocks(client: &Client, leaf: &Leaf) -> Result<Option<Compressed>, Error> {
    let found = client.query_one(include_str!("../sql/pageinspect.sql"), &[]).await?;
    let Some(get_raw_page) = found.get::<_, Option<String>>("get_raw_page") else { return Ok(None) };
    let query = format!(
        "SELECT {get_raw_page}($1, 'main', block) AS page FROM generate_series($2::int, $3::int) AS block"
    );
    let block_size: i32 = found.get("block_size");
    let per_record = RECORD / u64::from(block_size.unsigned_abs());
    let last = (leaf.blocks / per_record).saturating_sub(1);
    let records = RECORDS.min(last + 1);
    let mut sum = Compressed::default();
    for index in 0..records {
        let start = index * last / records.saturating_sub(1).max(1) * per_record;
        let end = (start + per_record).min(leaf.blocks) - 1;
        let number = |block: u64| i32::try_from(block).unwrap_or(i32::MAX);
        let rows = client.query(&query, &[&leaf.name, &number(start), &number(end)]).await?;
        let record: Vec<u8> = rows.iter().flat_map(|row| row.get::<_, &[u8]>("page")).copied().collect();
        let Compressed { plain, compressed } = compress(&record);
        sum.plain += plain;
        sum.compressed += compressed;
    }
    Ok(Some(sum))
}

fn compress(plain: &[u8]) -> Compressed {
    let compressed = zstd::bulk::compress(plain, LEVEL).expect("memory can be compressed into memory");
    Compressed { plain: plain.len() as u64, compressed: compressed.len() as u64 }
}
