//! Decides whether a user's table can be filled with direct pages, with how many rows, and the
//! space that they take.

use std::collections::BTreeSet;

use page::{Geometry, LINE_POINTER, TUPLE_HEADER};
use rowgen::{Table, TupleEncoder, Unstorable};

use super::rows::{DescribedRows, INDEX_ENTRY};
use crate::error::FillError;
use crate::plan::bulk::ForeignKeys;
use crate::plan::sizes::{MAX_BLOCKS, Sizes, nearest};
use crate::request::{Amount, InitStep, OwnTable, Persistence, Request, Triggers};
use crate::run::direct::{IndexFound, NotDirect, PartitionsFound, ROW_NUMBER, Relation, memory};
use catalog::TableInfo;
use connect::Connection;
use server::ask;
use server::quote::qualified;

/// Blocks of the empty index of a TOAST table.
const TOAST_INDEX: u64 = 1;

/// The first major version that finds the rows of a chunk by their place.
const READS_BY_PLACE: u32 = 14;
/// The first major version in which a role that is not a superuser can be allowed to set
/// `session_replication_role`.
const GRANTS_PARAMETERS: u32 = 15;

/// The table's files and indexes, as they are.
pub(super) struct StoredTable {
    relation: Relation,
    indexes: Vec<IndexFound>,
    /// Why its rows cannot be loaded with triggers off; none if they can.
    needs_triggers: Option<String>,
    triggers: Triggers,
    partitions: Option<StoredPartitions>,
}

/// Partitions of a table.
struct StoredPartitions {
    found: PartitionsFound,
    /// The partitions that hold rows themselves.
    leaves: Vec<Relation>,
}

/// The pages to write.
pub(in crate::plan) struct Pages {
    pub(in crate::plan) rows: u64,
    pub(in crate::plan) sizes: Sizes,
    /// Tables that are truncated with the table.
    pub(in crate::plan) truncated_with: Vec<String>,
}

impl StoredTable {
    /// Asks the server for these facts.
    pub(super) async fn of(
        connection: &Connection,
        info: &TableInfo,
        own: &OwnTable,
        major: u32,
    ) -> Result<Self, FillError> {
        let name = qualified(&info.schema, &info.name);
        let OwnTable { together, triggers, in_cycle, .. } = own;
        let triggers = *triggers;
        let relation = Relation::of(&ask(connection, Relation::QUERY, &[&name, &together]).await?);
        let is_asked = triggers == Triggers::Off && !relation.triggers.is_empty();
        let needs_triggers = match relation.loads_without_triggers(triggers, *in_cycle) {
            Ok(()) if relation.foreign_keys.is_empty() && !is_asked => None,
            Ok(()) if major < READS_BY_PLACE && !is_asked && !in_cycle => Some(format!(
                "PostgreSQL before {READS_BY_PLACE} cannot scan the rows of a chunk by TID range"
            )),
            Ok(()) => refuses_triggers_off(connection, major).await?,
            Err(why) => Some(why),
        };
        match connection.client.query(IndexFound::QUERY, &[&name]).await {
            Ok(rows) => {
                let indexes = rows.iter().map(IndexFound::of).collect();
                let partitions = if relation.is_partitioned() {
                    Some(StoredPartitions::of(connection, &name).await?)
                } else {
                    None
                };
                Ok(Self { relation, indexes, needs_triggers, triggers, partitions })
            }
            Err(error) => Err(connection.explain(error).await.into()),
        }
    }

    /// Number of indexes.
    pub(super) fn indexes(&self) -> u64 {
        self.indexes.len() as u64
    }

    /// Check of its foreign keys for rows by COPY.
    pub(super) fn foreign_keys(&self) -> ForeignKeys {
        match &self.needs_triggers {
            _ if self.relation.foreign_keys.is_empty() => ForeignKeys::None,
            Some(why) => ForeignKeys::RowByRow(why.clone()),
            None => ForeignKeys::BySet,
        }
    }

    /// Triggers that do not run for the rows because the request turns them off.
    pub(super) fn silenced(&self) -> Vec<String> {
        match self.triggers {
            Triggers::On => Vec::new(),
            Triggers::Off => {
                let leaves = self.partitions.iter().flat_map(|partitions| &partitions.leaves);
                let all = leaves.chain([&self.relation]).flat_map(|relation| &relation.triggers);
                all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
            }
        }
    }

    /// Why COPY cannot load rows without triggers, if the request asks for that and it is not
    /// possible.
    pub(super) fn refuses_triggers_off(&self) -> Option<&str> {
        self.needs_triggers.as_deref().filter(|_| !self.silenced().is_empty())
    }

    /// The pages of these rows. `begun` is the number of rows if an interrupted fill has decided
    /// it.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub(super) fn pages(
        &self,
        request: &Request,
        geometry: Geometry,
        described: &DescribedRows,
        begun: Option<u64>,
    ) -> Result<Pages, NotDirect> {
        if let Some(why) = &described.refused {
            return Err(why.clone());
        }
        self.relation.takes(&described.table, self.triggers)?;
        self.refuse_files(request)?;
        let encoder = match &self.partitions {
            None => encoder(&self.relation, &described.table, geometry)?,
            Some(partitions) => {
                partitions.encoder(&described.table, geometry, (request.persistence, self.triggers))?
            }
        };
        // If the sizes differ, their average.
        let about = || u32::try_from(described.width).unwrap_or(u32::MAX).saturating_sub(LINE_POINTER);
        let threshold = geometry.toast_threshold();
        let fixed =
            encoder.fixed_length().map(|body| TUPLE_HEADER + body).filter(|tuple| *tuple <= threshold);
        let tuple = fixed.unwrap_or_else(about);
        let layout = self.layout(request, geometry, described, tuple);
        if let (None, Amount::Size(_), Some((rows, sizes))) = (begun, request.amount, described.measured) {
            return Ok(Pages { rows, sizes, truncated_with: self.relation.truncated_with().to_vec() });
        }
        let rows = match (begun, request.amount) {
            (Some(rows), _) | (None, Amount::Rows(rows)) => rows,
            (None, Amount::Size(size)) if fixed.is_some() && self.partitions.is_none() => {
                let most = described.most.as_ref().map_or(u64::MAX, |(most, _)| *most);
                layout.rows_for(size, most).ok_or(NotDirect::Size)?
            }
            (None, _) => return Err(NotDirect::Size),
        };
        if self.partitions.is_some() && rows.saturating_mul(ROW_NUMBER) > memory() {
            return Err(NotDirect::TooMany(
                "pgrig sorts the rows of a partitioned table in memory, and these are too many",
            ));
        }
        let truncated_with = self.relation.truncated_with().to_vec();
        Ok(Pages { rows, sizes: layout.sizes(rows), truncated_with })
    }

    fn layout<'a>(
        &'a self,
        request: &Request,
        geometry: Geometry,
        described: &'a DescribedRows,
        tuple: u32,
    ) -> Layout<'a> {
        Layout {
            stored: self,
            geometry,
            tuple,
            fillfactor: request.fillfactor,
            unlogged: request.persistence == Persistence::Unlogged,
            vacuum: request.steps.include(InitStep::Vacuum),
            table: &described.table,
            first_row: described.first_row,
        }
    }

    /// Bytes that partitions take in addition to the same rows in one table.
    pub(super) fn beside(&self, request: &Request, geometry: Geometry) -> Sizes {
        let Some(partitions) = &self.partitions else { return Sizes::default() };
        let block = u64::from(geometry.block_size());
        let init_fork = u64::from(request.persistence == Persistence::Unlogged);
        let maps =
            1 + if request.steps.include(InitStep::Vacuum) { geometry.free_space_map_blocks(1) } else { 0 };
        let of_toast = |leaf: &Relation| if leaf.has_toast { TOAST_INDEX + init_fork } else { 0 };
        let toast: u64 = partitions.leaves.iter().map(of_toast).sum();
        let leaves = partitions.leaves.len() as u64;
        // The last pages are half full, on average.
        let heap = (leaves * maps + toast) * block + leaves * block / 2;
        let index = self.indexes() * leaves * (block + block / 2 + init_fork * block);
        Sizes { heap, index }
    }

    /// Refuses existing files that cannot be replaced by new ones, and new files that are not
    /// empty.
    fn refuse_files(&self, request: &Request) -> Result<(), NotDirect> {
        if !request.steps.include(InitStep::Create) {
            self.relation.can_begin_anew()?;
            return match self.relation.refuses_reindex() {
                Some(problem) if !self.indexes.is_empty() => Err(NotDirect::Truncate(problem)),
                _ => Ok(()),
            };
        }
        if !self.relation.is_new {
            let text = "--ddl creates the table in a subtransaction (a block with EXCEPTION)";
            return Err(NotDirect::Ddl(text.to_owned()));
        }
        if self.relation.bytes > 0 {
            return Err(NotDirect::Ddl("--ddl inserts rows into the table".to_owned()));
        }
        Ok(())
    }
}

impl StoredPartitions {
    async fn of(connection: &Connection, name: &str) -> Result<Self, FillError> {
        let found = match connection.client.query(PartitionsFound::QUERY, &[&name]).await {
            Ok(rows) => PartitionsFound::of(&rows),
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        let mut leaves = Vec::new();
        for leaf in found.leaves() {
            let row = ask(connection, Relation::QUERY, &[&leaf.name, &Relation::NOTHING]).await?;
            leaves.push(Relation::of(&row));
        }
        Ok(Self { found, leaves })
    }

    /// Encoder of the rows of one of the relations, once all relations have been found to be able
    /// to hold them.
    ///
    /// # Errors
    /// The reason why one of them cannot.
    fn encoder(
        &self,
        table: &Table,
        geometry: Geometry,
        (persistence, triggers): (Persistence, Triggers),
    ) -> Result<TupleEncoder, NotDirect> {
        self.found.suit(table)?;
        let mut last = Err(NotDirect::Duties("the table has no partition".to_owned()));
        for (leaf, relation) in self.found.leaves().zip(&self.leaves) {
            let partition = |why| NotDirect::Partition { name: leaf.name.clone(), why: Box::new(why) };
            if leaf.persistence != persistence {
                let text =
                    "some partitions are unlogged, others are not: make all of them logged or all unlogged";
                return Err(NotDirect::Duties(text.to_owned()));
            }
            if let Some(problem) = relation.refuses_reindex() {
                return Err(partition(NotDirect::Truncate(problem)));
            }
            let table = relation.in_order(table);
            relation.takes(&table, triggers).map_err(partition)?;
            last = Ok(encoder(relation, &table, geometry).map_err(partition)?);
        }
        last
    }
}

/// Encoder of a table's rows.
///
/// # Errors
/// The reason why rows cannot be encoded, or why the relation cannot hold them.
fn encoder(relation: &Relation, table: &Table, geometry: Geometry) -> Result<TupleEncoder, NotDirect> {
    let encoder = TupleEncoder::with_formulas(table, &relation.formulas()).map_err(|why| refusal(&why))?;
    if TUPLE_HEADER + encoder.longest() > geometry.toast_threshold() {
        relation.can_toast()?;
    }
    Ok(encoder)
}

/// Why this role cannot turn triggers off on a server of this release.
async fn refuses_triggers_off(connection: &Connection, major: u32) -> Result<Option<String>, FillError> {
    let query = if major < GRANTS_PARAMETERS {
        "SELECT rolsuper AS may_set FROM pg_roles WHERE rolname = current_user"
    } else {
        include_str!("../../sql/may_set_role.sql")
    };
    if ask(connection, query, &[]).await?.get("may_set") {
        return Ok(None);
    }
    let role: String = ask(connection, "SELECT quote_ident(current_user) AS role", &[]).await?.get("role");
    let remedy = match major {
        ..GRANTS_PARAMETERS => "connect as a superuser".to_owned(),
        _ => format!("run GRANT SET ON PARAMETER session_replication_role TO {role}"),
    };
    Ok(Some(format!("role {role} may not set session_replication_role: {remedy}")))
}

fn refusal(why: &Unstorable) -> NotDirect {
    let remedy = match why {
        Unstorable::Server { column } => {
            format!(": if the column is not generated, give --column {column}=serial")
        }
        _ => String::new(),
    };
    NotDirect::Column(format!("{why}{remedy}"))
}

/// Layout of rows in blocks.
struct Layout<'a> {
    stored: &'a StoredTable,
    geometry: Geometry,
    /// Length of a tuple, bytes.
    tuple: u32,
    /// Percent.
    fillfactor: u8,
    /// Whether indexes have an init fork.
    unlogged: bool,
    /// Whether there is a free space map.
    vacuum: bool,
    table: &'a Table,
    first_row: u64,
}

impl Layout<'_> {
    /// Sizes of table and indexes. For indexes that the server builds, and for partitions, they are estimates.
    fn sizes(&self, rows: u64) -> Sizes {
        match &self.stored.partitions {
            None => self.of_one(rows, &self.stored.relation),
            Some(StoredPartitions { leaves, .. }) => {
                let Some(leaf) = leaves.first() else { return Sizes::default() };
                let count = leaves.len() as u64;
                let Sizes { heap, index } = self.of_one(rows.div_ceil(count), leaf);
                Sizes { heap: heap.saturating_mul(count), index: index.saturating_mul(count) }
            }
        }
    }

    /// Sizes of one table.
    fn of_one(&self, rows: u64, relation: &Relation) -> Sizes {
        let block = u64::from(self.geometry.block_size());
        let init_fork = u64::from(self.unlogged);
        let main = if self.tuple > self.geometry.toast_threshold() {
            // Rows and the values that were moved out.
            rows.saturating_mul(self.tuple.into()).div_ceil(block)
        } else {
            self.geometry.heap_blocks(rows, self.tuple, self.fillfactor)
        };
        let toast = if relation.has_toast { TOAST_INDEX + init_fork } else { 0 };
        let table = self.with(rows);
        let index = self.stored.indexes.iter().map(|index| match index.key(&table) {
            Some(key) => {
                let blocks = self.geometry.btree_blocks(rows, key.kind.length(), index.fillfactor);
                blocks.saturating_add(init_fork).saturating_mul(block)
            }
            None => rows.saturating_mul(INDEX_ENTRY),
        });
        let free = if self.vacuum { self.geometry.free_space_map_blocks(main) } else { 0 };
        Sizes {
            heap: [self.geometry.visibility_map_blocks(main), free, toast]
                .into_iter()
                .fold(main, u64::saturating_add)
                .saturating_mul(block),
            index: index.fold(0, u64::saturating_add),
        }
    }

    /// The number of rows, at most `most`, that comes closest to a size. None if the size depends
    /// also on indexes that the server builds.
    fn rows_for(&self, size: u64, most: u64) -> Option<u64> {
        let per_page = u64::from(self.geometry.rows_per_page(self.tuple, self.fillfactor));
        let most = most.min(MAX_BLOCKS * per_page).max(1);
        let rows = nearest(size, most, |rows| self.sizes(rows).total());
        let table = self.with(rows);
        self.stored.indexes.iter().all(|index| index.key(&table).is_some()).then_some(rows)
    }

    /// The same table with `rows` rows.
    fn with(&self, rows: u64) -> Table {
        Table { rows: self.first_row.saturating_add(rows), ..self.table.clone() }
    }
}
