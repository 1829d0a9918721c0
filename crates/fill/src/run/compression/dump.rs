//! Compression of a table's dump by zstd, from ranges of its rows.
//!
//! A range is contiguous, because consecutive ids compress better than ids of scattered pages. It
//! is longer than zstd's window: the text after a gap has nothing before it to refer to, so only
//! the text after a whole window is counted. All ranges are compressed as one stream from the
//! beginning of the table, as a dump is. On pgbench_accounts the matches that zstd has found
//! influence for tens of megabytes which ones it finds next, and streams that begin in the middle
//! of the table come out up to 9 % too large.

use std::io::Write;
use std::ops::Range;
use std::pin::pin;
use std::time::Instant;

use futures_util::TryStreamExt;
use futures_util::future::try_join;
use tokio_postgres::{Client, Error};
use zstd::stream::write::Encoder;

use crate::run::compression::{Compressed, LEVEL};

/// Ranges, one in each eighth of the table.
const RANGES: u64 = 8;
/// zstd's window at this level, bytes: this much text before the counted part of a range is not
/// counted.
const WINDOW: u64 = 2 << 20;
/// Least length of the counted part of a range, bytes.
const COUNTED: u64 = 1 << 20;
/// Blocks that a range may have: 64 MB, for tables that hold little but dead rows.
const MOST_BLOCKS: u64 = 8192;

/// A table, or a leaf of one.
struct Leaf {
    name: String,
    columns: String,
    /// Greatest number of line pointers of a page.
    lines: i32,
    /// Its blocks, counted through all leaves.
    blocks: Range<u64>,
}

/// Reads blocks of a table as text.
struct Reader<'a> {
    client: &'a Client,
    leaves: Vec<Leaf>,
    /// PostgreSQL 13 would read all of the table to find blocks by a range of row addresses.
    has_tid_ranges: bool,
    /// Blocks that were read so far.
    blocks: u64,
    rows: u64,
    text: u64,
}

/// Text of a range of rows.
struct Text {
    text: Vec<u8>,
    /// Whether the text reaches the end of its part of the table.
    is_whole: bool,
}

/// Text on its way through zstd.
struct Stream {
    encoder: Encoder<'static, Counter>,
    text: u64,
    /// Position in the text: the text between the last gap and here is not counted.
    window: u64,
    /// Start of counting.
    counting: Option<Compressed>,
    counted: Compressed,
}

/// Counts the bytes that are written to it.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        self.0 += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const IN_MEMORY: &str = "counting cannot fail";

impl Stream {
    fn new() -> Self {
        let encoder = Encoder::new(Counter(0), LEVEL).expect("zstd has this level");
        Self { encoder, text: 0, window: WINDOW, counting: None, counted: Compressed::default() }
    }

    fn write(&mut self, text: &[u8]) {
        // Counting begins where the window ends.
        let uncounted = if self.counting.is_some() { 0 } else { self.window.saturating_sub(self.text) };
        let (before, after) = text.split_at(text.len().min(usize::try_from(uncounted).unwrap_or(usize::MAX)));
        self.compress(before);
        if self.counting.is_none() && self.text >= self.window {
            self.counting = Some(self.so_far());
        }
        self.compress(after);
    }

    fn compress(&mut self, text: &[u8]) {
        self.encoder.write_all(text).expect(IN_MEMORY);
        self.text += text.len() as u64;
    }

    /// To be called where rows have been skipped.
    fn gap(&mut self) {
        let now = self.so_far();
        if let Some(from) = self.counting.take() {
            self.counted.plain += now.plain - from.plain;
            self.counted.compressed += now.compressed - from.compressed;
        }
        self.window = self.text + WINDOW;
    }

    fn so_far(&mut self) -> Compressed {
        self.encoder.flush().expect(IN_MEMORY);
        Compressed { plain: self.text, compressed: self.encoder.get_ref().0 }
    }
}

/// Samples the rows of the table of this quoted name, as pg_dump writes them, by two sessions at once. None if there are
/// none, or the deadline passes first.
pub(crate) async fn rows(
    clients: [&Client; 2],
    table: &str,
    deadline: Instant,
) -> Result<Option<Compressed>, Error> {
    let [mut even, mut odd] =
        [Reader::open(clients[0], table).await?, Reader::open(clients[1], table).await?];
    let total = even.leaves.last().map_or(0, |leaf| leaf.blocks.end);
    let part = |number: u64| number * total / RANGES..(number + 1) * total / RANGES;
    let mut stream = Stream::new();
    let mut has_gaps = false;
    for number in (0..RANGES).step_by(2) {
        let ranges = try_join(even.range(part(number), deadline), odd.range(part(number + 1), deadline));
        let (Some(first), Some(second)) = ranges.await? else { return Ok(None) };
        for Text { text, is_whole } in [first, second] {
            stream.write(&text);
            // If a part was read to its end, the next range continues it without a gap.
            if !is_whole {
                has_gaps = true;
                stream.gap();
            }
        }
    }
    let sum = if has_gaps {
        stream.gap();
        stream.counted
    } else {
        stream.so_far()
    };
    Ok((sum.plain > 0).then_some(sum))
}

impl<'a> Reader<'a> {
    async fn open(client: &'a Client, table: &str) -> Result<Self, Error> {
        let version = "SELECT current_setting('server_version_num')::int >= 140000";
        let has_tid_ranges = client.query_one(version, &[]).await?.get(0);
        let rows = client.query(include_str!("../../sql/dumped_leaves.sql"), &[&table]).await?;
        let mut start = 0;
        let mut leaves = Vec::new();
        for row in rows {
            let blocks = u64::try_from(row.get::<_, i64>("blocks")).unwrap_or_default();
            // A table may have no column that pg_dump writes.
            let Some(columns) = row.get("columns") else { continue };
            let (name, lines) = (row.get("name"), row.get("lines"));
            leaves.push(Leaf { name, columns, lines, blocks: start..start + blocks });
            start += blocks;
        }
        Ok(Self { client, leaves, has_tid_ranges, blocks: 0, rows: 0, text: 0 })
    }

    /// Reads a range of the part of the table that has these blocks. None if the deadline passes.
    async fn range(&mut self, part: Range<u64>, deadline: Instant) -> Result<Option<Text>, Error> {
        let end = part.end.min(part.start + MOST_BLOCKS);
        let mut at = part.start;
        let mut text = Vec::new();
        while at < end && (text.len() as u64) < WINDOW + COUNTED {
            if Instant::now() > deadline {
                return Ok(None);
            }
            let wanted = WINDOW + COUNTED - text.len() as u64;
            at = self.read(at..end, wanted, &mut text).await?;
        }
        Ok(Some(Text { text, is_whole: at == part.end }))
    }

    /// Reads blocks from the beginning of `blocks`, about as many as hold `text` bytes of text, all
    /// of one leaf. Returns the first block that it has not read.
    async fn read(&mut self, blocks: Range<u64>, text: u64, out: &mut Vec<u8>) -> Result<u64, Error> {
        let leaf = self.leaves.iter().find(|leaf| leaf.blocks.contains(&blocks.start));
        let leaf = leaf.expect("all blocks are some leaf's");
        // The first block tells how much a block holds, rows that are stored out of line too. Blocks without
        // rows tell nothing.
        let likely = (text * self.blocks).checked_div(self.text).unwrap_or(2 * self.blocks) + 1;
        let end = blocks.end.min(leaf.blocks.end).min(blocks.start + likely);
        let (from, to) = (blocks.start - leaf.blocks.start, end - leaf.blocks.start);
        // Asking for twice as many rows as blocks have on average misses few, and takes a tenth of asking for all.
        let dense = (2 * self.rows).checked_div(self.blocks).map_or(i64::MAX, |rows| rows.cast_signed() + 8);
        let lines = if self.rows == 0 { i64::from(leaf.lines) } else { dense.min(leaf.lines.into()) };
        let rows = if self.has_tid_ranges {
            format!("ctid >= '({from},0)' AND ctid < '({to},0)'")
        } else {
            format!(
                "ctid = ANY (ARRAY(SELECT format('(%s,%s)', block, line)::tid \
                 FROM generate_series({from}, {to} - 1) AS block, generate_series(1, {lines}) AS line))"
            )
        };
        let copy = format!("COPY (SELECT {} FROM ONLY {} WHERE {rows}) TO STDOUT", leaf.columns, leaf.name);
        let before = out.len();
        let mut lines = pin!(self.client.copy_out(&copy).await?);
        while let Some(line) = lines.try_next().await? {
            out.extend_from_slice(&line);
            self.rows += 1;
        }
        self.blocks += end - blocks.start;
        self.text += (out.len() - before) as u64;
        Ok(end)
    }
}
