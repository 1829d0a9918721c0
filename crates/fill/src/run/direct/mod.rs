//! `--method direct`: direct pages written straight into a new table's files, past the server.
//!
//! The table is created in the transaction that fills it, so no other session can see it before the
//! commit, and the server removes its files if the transaction does not commit. All requirements
//! are proved before the first byte is written ([`data_directory`], [`relation`]). Before the
//! commit the written pages are read through the server.
//!
//! - Before: [`data_directory`] proves the server's format and rights, [`relation`] with [`form`] the table, and [`indexes`]
//!   its indexes, in its transaction. A [`record`] of the files is on disk before the first page; [`abandoned`] removes the files that a
//!   crash of the server left.
//! - [`partitions`] sort rows out to the leaves of a partitioned table, each of which is then written as a table of its own.
//! - [`threads`] take [`pieces`] of rows, make their tuples, place them on pages ([`heap`]) and write those ([`fork`]).
//!   Pieces are made side by side and placed in turn: the last, open page of a piece goes on to the next one, so the
//!   heap is the same however many threads there are. One more thread builds each B-tree over a column of fixed length
//!   ([`index`], [`sorted`]); the server builds the others.
//! - After: [`checks`] has the server test CHECK constraints, [`foreign_keys`] foreign keys: the ACCESS EXCLUSIVE lock on the
//!   table makes that hold, since whoever deletes a referenced row has to look into this table, and waits there until the
//!   rows are committed, or has done so before the lock was granted; [`statistics`] are those that ANALYZE would compute.
//!
//! Facts of PostgreSQL's source that this rests on: a relation's size is asked of the file system
//! (`mdnblocks` in `md.c`); on rollback all segments of all forks are removed (`smgrDoPendingDeletes`);
//! with wal_level = minimal a permanent relation made in a transaction is not logged but synced at its
//! commit (`smgrDoPendingSyncs` in `storage.c`).

mod abandoned;
mod checks;
mod data_directory;
mod error;
mod fork;
mod form;
mod heap;
mod index;
mod indexes;
mod partitions;
mod pieces;
mod placing;
mod record;
mod refusal;
mod relation;
mod sorted;
mod statistics;
mod threads;
mod toast;
mod write_behind;
mod written;

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};

use page::{TUPLE_HEADER, TupleId};
use rowgen::{Table, TupleEncoder, Tuples};

pub use self::abandoned::{Abandoned, remove_abandoned};

pub(crate) use self::data_directory::DataDirectory;
pub use self::error::Failure;
pub(crate) use self::indexes::IndexFound;
pub(crate) use self::partitions::{PartitionsFound, ROW_NUMBER};
pub(crate) use self::record::Recorded;
pub use self::refusal::NotDirect;
pub(crate) use self::relation::{Relation, refuse};
pub(crate) use self::sorted::available as memory;
pub(crate) use self::statistics::{ColumnStatistics, of as statistics};

use self::fork::Fork;
use self::heap::{Heap, PIECE, Places};
use self::index::{Index, IndexFile, Keys};
use self::pieces::{InTurn, Pieces};
use self::record::Record;
use self::threads::{Task, Threads};
use self::toast::{Toast, ToastTable};
use self::written::{Blocks, Written, finish};
use crate::request::{Persistence, Triggers};
use crate::run::foreign_keys::{self, Broken, ForeignKey};
use crate::run::rows::{Batch, RowSource};
use server::{Session, Sessions};

/// Number of rows whose length predicts that of the others.
const SAMPLE: u64 = 1000;

/// Memory for an index build and for the hash table of a proof, at least, kB.
const MEMORY: u32 = 256 << 10;
/// Processes that help with an index build or a proof, at most.
const WORKERS: usize = 8;

/// Writes pages of one table.
pub(super) struct Direct<'a> {
    pub(super) data_directory: &'a DataDirectory,
    pub(super) table: &'a Table,
    pub(super) persistence: Persistence,
    /// Whether the table's triggers are to be left out; otherwise it must have none.
    pub(super) triggers: Triggers,
    /// Fillfactor, percent.
    pub(super) fillfactor: u8,
    /// Whether it gets the free space map that a vacuum makes.
    pub(super) vacuum: bool,
    /// Threads that make and write pages.
    pub(super) writers: u16,
    /// Whether a TRUNCATE has just given table and indexes new files.
    pub(super) is_truncated: bool,
    /// Directory in which files are recorded before they are written.
    pub(super) records: Option<&'a Path>,
    pub(super) sessions: &'a Sessions<'a>,
}

impl Direct<'_> {
    /// Fills the empty relation of this qualified name, which the session's transaction has
    /// created, with its indexes, and returns the number of rows. `sent` is called with the
    /// number of rows as they are written. The caller proves the foreign keys, commits, and then closes the record of the
    /// files.
    pub(super) async fn load(
        &self,
        session: &Session,
        relation: &str,
        rows: RowSource,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Loaded, Failure> {
        if rows.left() == 0 {
            return Ok(Loaded::default());
        }
        if partitions::has_some(session, relation).await? {
            self.load_partitions(session, relation, rows, sent).await
        } else {
            self.load_one(session, relation, rows, sent).await
        }
    }

    /// As [`Self::load`], for a table without partitions.
    async fn load_one(
        &self,
        session: &Session,
        relation: &str,
        rows: RowSource,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Loaded, Failure> {
        if rows.left() == 0 {
            return Ok(Loaded::default());
        }
        fork::allow_many_files();
        let Opened { found, encoder, fork, toast, direct, built } =
            self.open(session, relation, rows.left()).await?;
        let mut recorded = self.record(session).await?;
        let write = self.write(encoder, (fork, toast), direct, rows, sent);
        // Without the session there is no transaction any more that the files could belong to.
        let written = tokio::select! {
            written = write => written?,
            lost = session.connection.ending() => return Err(lost.into()),
        };
        session.run(&resources()).await?;
        for name in &built {
            session.run(&format!("REINDEX INDEX {name}")).await?;
            // Its files are new ones.
            let before = std::mem::replace(&mut recorded, self.record(session).await?);
            close(before)?;
        }
        self.look(session, relation, &written).await?;
        unique(session, relation, &written.indexes).await?;
        if found.has_oids() {
            // The server looks types and labels up by the OIDs that rows hold: with a wrong one, this fails.
            let query = format!("SELECT count(t::text) FROM (SELECT * FROM {relation} LIMIT 1000) t");
            session.row(&query, &[]).await?;
        }
        checks::kept(session, relation, &found).await?;
        let table = relation.to_owned();
        let unproved = vec![Unproved { table, rows: written.rows, keys: found.foreign_keys }];
        Ok(Loaded { rows: written.rows, recorded, unproved })
    }

    /// Checks the relation that pages are to be written into, and changes nothing. One leaf stands
    /// for all.
    pub(super) async fn rehearse(&self, session: &Session, relation: &str) -> Result<(), Failure> {
        if partitions::has_some(session, relation).await? {
            return self.rehearse_partitions(session, relation).await;
        }
        self.open(session, relation, 0).await?.leave();
        Ok(())
    }

    /// Records all files that the session's transaction has created. The transaction's number is
    /// then in WAL on disk, so that no transaction after a crash gets the same number.
    async fn record(&self, session: &Session) -> Result<Option<Recorded>, Failure> {
        let Some(directory) = self.records else { return Ok(None) };
        let rows = session.rows(include_str!("../../sql/direct_files.sql"), &[]).await?;
        let Some(record) = Record::of(&rows, &self.data_directory.path) else { return Ok(None) };
        let recorded = Recorded::begin(directory, record)
            .map_err(|source| Failure::File { path: directory.display().to_string(), source })?;
        if rows.first().is_some_and(|row| row.get("may_flush")) {
            session.run("SELECT pg_logical_emit_message(false, 'pgrig', '', true)").await?;
        } else {
            let flush = "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'pgrig', ''); COMMIT";
            self.sessions.open().await?.run(flush).await?;
        }
        Ok(Some(recorded))
    }

    /// Locks the empty relation of this qualified name, which the session's transaction has made, looks at it, and
    /// opens its files and its indexes'. `rows` is how many it gets.
    pub(super) async fn open(&self, session: &Session, relation: &str, rows: u64) -> Result<Opened, Failure> {
        session.run(&format!("LOCK TABLE {relation} IN ACCESS EXCLUSIVE MODE")).await?;
        let (found, fork) = relation::heap(
            session,
            self.data_directory,
            relation,
            self.table,
            (self.persistence, self.triggers),
        )
        .await?;
        let encoder = TupleEncoder::with_formulas(&found.with_oids(self.table), &found.formulas())
            .map_err(|error| NotDirect::Column(error.to_string()))?;
        let toast = if TUPLE_HEADER + encoder.longest() > self.data_directory.geometry.toast_threshold() {
            Some(self.toast(session, (relation, &found), rows).await?)
        } else {
            None
        };
        let (mut direct, mut built) = (Vec::new(), Vec::new());
        let mut memory = sorted::memory();
        for index in indexes::all(session, relation).await? {
            let key = index.key(self.table).map(Keys::Single);
            let key = key.or_else(|| index.composite_key(self.table).map(Keys::Composite));
            let sorted = || {
                let key = index.sorted_key(self.table, self.data_directory.geometry.block_size())?;
                memory = memory.checked_sub(key.memory().saturating_mul(rows))?;
                Some(Keys::Sorted(key))
            };
            match key.or_else(sorted) {
                Some(key) => direct.push(self.index(session, index, key).await?),
                None => built.push(index.name),
            }
        }
        Ok(Opened { found, encoder, fork, toast, direct, built })
    }

    async fn index(&self, session: &Session, found: IndexFound, key: Keys) -> Result<Index, Failure> {
        let file = self.index_file(session, found.name, found.fillfactor).await?;
        Ok(Index { file, key, repeated: OnceLock::new() })
    }

    async fn index_file(
        &self,
        session: &Session,
        name: String,
        fillfactor: u8,
    ) -> Result<IndexFile, Failure> {
        if !self.is_truncated {
            // The server may hold the first page of the empty index in its cache: to plan a query it reads that (to
            // validate a foreign key, say). New files have no pages there.
            session.run(&format!("REINDEX INDEX {name}")).await?;
        }
        let fork = indexes::file(session, self.data_directory, &name).await?;
        Ok(IndexFile::new(name, self.data_directory.clone(), fork, fillfactor))
    }

    /// Has threads write heap, TOAST table and indexes side by side, then the maps.
    async fn write(
        &self,
        encoder: TupleEncoder,
        (fork, toast): (Fork, Option<Toast>),
        indexes: Vec<Index>,
        rows: RowSource,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Written, Failure> {
        let (tell, pages): (Vec<_>, Vec<_>) = indexes.iter().map(|_| channel()).unzip();
        let (tell_chunks, chunks) = toast
            .as_ref()
            .and_then(|toast| toast.table.as_ref())
            .map(|table| {
                let (tell, chunks) = channel();
                (tell, (Arc::clone(&table.index), table.shares_equal, chunks))
            })
            .unzip();
        let piece = self.rows_of(&encoder, &rows, PIECE);
        let heap = Arc::new(Heap {
            data_directory: self.data_directory.clone(),
            fork,
            encoder,
            fillfactor: self.fillfactor,
            toast,
            pieces: Pieces::new(rows.clone(), piece),
            places: InTurn::new(Places::new(tell, tell_chunks)),
        });
        let indexes: Vec<Arc<Index>> = indexes.into_iter().map(Arc::new).collect();
        let mut tasks: Vec<Task> = Vec::new();
        for _ in 0..self.writers {
            let heap = Arc::clone(&heap);
            tasks.push(Box::new(move |stop, tell| heap.work(stop, tell)));
        }
        for (index, pages) in indexes.iter().zip(pages) {
            let (index, rows) = (Arc::clone(index), rows.clone());
            tasks.push(Box::new(move |stop, _| index.work(rows, &pages, stop)));
        }
        if let Some((index, shares_equal, chunks)) = chunks {
            tasks.push(Box::new(move |stop, _| index.work_chunks(shares_equal, &chunks, stop)));
        }
        Threads::start(tasks).finish(sent).await?;
        let (rows, of_heap, of_toast) = heap.places.look(|places| {
            let Places { heap, chunks, .. } = places;
            (heap.tuples(), heap.blocks(), chunks.blocks())
        });
        let toast = heap.toast.as_ref().and_then(|toast| toast.table.as_ref());
        let toast = toast.map(|table| (table.name.clone(), self.blocks(of_toast), Arc::clone(&table.index)));
        let written = Written { rows, heap: self.blocks(of_heap), toast, indexes };
        let to_finish = written.clone();
        let finish: Task = Box::new(move |_, _| finish(&heap, &to_finish));
        Threads::start(vec![finish]).finish(sent).await?;
        Ok(written)
    }

    /// Approximate number of rows in `bytes` bytes of heap, estimated from the first rows.
    fn rows_of(&self, encoder: &TupleEncoder, rows: &RowSource, bytes: u64) -> u64 {
        let mut sample = Tuples::new();
        match rows.clone().take(SAMPLE) {
            Some(Batch::Range(range)) => encoder.encode(range, &mut sample),
            Some(Batch::Listed(rows)) => encoder.encode_rows(&rows, &mut sample),
            None => return 1,
        }
        let geometry = self.data_directory.geometry;
        let body = u32::try_from(sample.bytes() / sample.len()).unwrap_or(u32::MAX);
        let tuple = TUPLE_HEADER.saturating_add(body);
        if tuple > geometry.toast_threshold() {
            return (bytes / u64::from(tuple)).max(1);
        }
        let per_page = geometry.rows_per_page(tuple, self.fillfactor);
        (bytes / u64::from(geometry.block_size()) * u64::from(per_page)).max(1)
    }

    /// Number of blocks of a heap and of its maps.
    fn blocks(&self, main: u32) -> Blocks {
        let (geometry, heap_blocks) = (self.data_directory.geometry, u64::from(main));
        let free = if self.vacuum { geometry.free_space_map_blocks(heap_blocks) } else { 0 };
        let [visible, free] = [geometry.visibility_map_blocks(heap_blocks), free]
            .map(|blocks| u32::try_from(blocks).expect("there are hardly more than heap blocks"));
        Blocks { main, visible, free }
    }

    /// Makes the server read the written files: the sizes, and the last row by way of its buffers,
    /// which verify the page's checksum, and of the first index.
    async fn look(&self, session: &Session, relation: &str, written: &Written) -> Result<(), Failure> {
        let block_size = u64::from(self.data_directory.geometry.block_size());
        let of_toast = written.toast.iter().flat_map(|(name, blocks, index)| {
            blocks.forks(name).into_iter().chain([(&*index.name, "main", index.blocks())])
        });
        let of_indexes = written.indexes.iter().map(|index| (&*index.file.name, "main", index.file.blocks()));
        for (name, fork, blocks) in written.heap.forks(relation).into_iter().chain(of_toast).chain(of_indexes)
        {
            let row =
                session.row("SELECT pg_relation_size(to_regclass($1), $2) AS bytes", &[&name, &fork]).await?;
            let found = row.get::<_, i64>("bytes").unsigned_abs();
            let written = u64::from(blocks) * block_size;
            if found != written {
                return Err(Failure::Unseen { relation: format!("{name} ({fork})"), found, written });
            }
        }
        if let Some(last) = written.heap.main.checked_sub(1) {
            let query = format!("SELECT count(*) AS rows FROM {relation} WHERE ctid = '({last},1)'");
            let found: i64 = session.row(&query, &[]).await?.get("rows");
            if found != 1 {
                return Err(Failure::Unseen {
                    relation: format!("{relation} (last page)"),
                    found: 0,
                    written: block_size,
                });
            }
        }
        Ok(())
    }
}

/// Checks foreign keys of rows that the session's transaction has written.
pub(super) async fn prove(session: &Session, unproved: &[Unproved]) -> Result<(), Failure> {
    for Unproved { table, rows, keys } in unproved {
        let rows = foreign_keys::RowsToCheck { table, condition: "true", count: *rows };
        if let Some(Broken { constraint, row }) = foreign_keys::broken(session, &rows, keys).await? {
            return Err(Failure::Broken { table: table.clone(), constraints: constraint, row });
        }
    }
    Ok(())
}

/// Whether keys of unique indexes are all different.
async fn unique(session: &Session, relation: &str, indexes: &[Arc<Index>]) -> Result<(), Failure> {
    for index in indexes {
        let Some(TupleId { block, offset }) = index.repeated.get() else { continue };
        let query =
            format!("SELECT ROW(t.*)::text AS row FROM {relation} t WHERE ctid = '({block},{offset})'");
        let row = session.row(&query, &[]).await?.get("row");
        let name = index.file.name.clone();
        let columns: Vec<String> =
            session.row(include_str!("../../sql/direct_key_columns.sql"), &[&name]).await?.get("columns");
        return Err(Failure::Duplicate { index: name, columns: columns.into(), row });
    }
    Ok(())
}

/// Settings for the rest of the transaction: parallel workers, and memory in which hash tables and
/// sorts of a few million rows fit.
pub(crate) fn resources() -> String {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS);
    format!(
        "SET LOCAL max_parallel_workers_per_gather = {workers}; \
         SET LOCAL max_parallel_maintenance_workers = {workers}; \
         SELECT set_config(name, greatest(setting::bigint, {MEMORY})::text || 'kB', true) \
           FROM pg_settings WHERE name IN ('work_mem', 'maintenance_work_mem')"
    )
}

/// Rows in a table, the record of its files, and the foreign keys that are not proved yet.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) rows: u64,
    pub(super) recorded: Option<Recorded>,
    pub(super) unproved: Vec<Unproved>,
}

/// Foreign keys of rows that have been written.
pub(super) struct Unproved {
    /// Qualified and quoted.
    table: String,
    /// Number of its rows.
    rows: u64,
    keys: Vec<ForeignKey>,
}

/// A relation that can be written.
pub(super) struct Opened {
    found: Relation,
    encoder: TupleEncoder,
    fork: Fork,
    /// The handling of rows that are too long; none if no row is.
    toast: Option<Toast>,
    /// Indexes that are written with it.
    direct: Vec<Index>,
    /// Indexes that the server builds.
    built: Vec<String>,
}

impl Opened {
    /// Closes the files as the server made them.
    pub(super) fn leave(&self) {
        let of_indexes = self.direct.iter().map(|index| &index.file.fork);
        let of_toast = self.toast.iter().filter_map(|toast| toast.table.as_ref());
        let of_toast = of_toast.flat_map(|ToastTable { fork, index, .. }| [fork, &index.fork]);
        of_indexes.chain(of_toast).chain([&self.fork]).for_each(Fork::keep);
    }
}

/// Closes a record whose files the server knows.
pub(super) fn close(recorded: Option<Recorded>) -> Result<(), Failure> {
    let Some(recorded) = recorded else { return Ok(()) };
    let path = recorded.path.display().to_string();
    recorded.close().map_err(|source| Failure::File { path, source })
}
