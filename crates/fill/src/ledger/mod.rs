//! The ledger: which chunks are loaded, recorded in the very transactions that load them.
//!
//! It is one table, or two, beside the filled ones, as long as the fill lasts. A chunk has a *part* for each relation
//! that it writes to ([`relations`]). Each part is inserted into the ledger first, within the transaction that loads
//! it: a second session that claims the same part waits until the first commits or aborts, then sees whether it is
//! loaded.
//!
//! There is a ledger table for each persistence among the relations, so crash recovery empties an unlogged relation
//! and its records together, and only the parts that are lost are loaded again. The comment of the first table holds
//! the request and the relations (and the description of rows of a user's table). It lives in the catalog and so
//! survives a crash. The same request finds it and completes the fill; at the end the ledger is dropped.
//!
//! If several processes share the fill, each also records that it has loaded its chunks ([`Ledger::report`]).
//!
//! `plan/` reads the ledger of an interrupted fill, `run/` writes it.

pub(crate) mod relations;

use std::collections::{BTreeMap, HashMap, HashSet};

use rowgen::Table;
use serde::{Deserialize, Serialize};
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::SqlState;

use crate::ledger::relations::{ChunkPart, Destination, Relations};
use crate::plan::Plan;
use crate::plan::chunks::{Chunk, Chunking};
use crate::plan::row_range::RowRange;
use crate::request::{Part, Persistence, Request, Subject};
use connect::{ConnectError, Connection};
use server::Session;
use server::quote::{literal, qualified};

/// The relation under which processes record that they have loaded their chunks: no relation has this oid.
const NO_RELATION: u32 = 0;
/// Bits of the number of a part in such a record.
const PART_BITS: u32 = 14;
/// Bytes of the longest identifier: NAMEDATALEN less the final zero.
const NAME_BYTES: usize = 63;

/// Parameters that a later run must keep to complete the fill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LedgerHeader {
    /// The request of the user.
    pub request: Request,
    /// The relations that rows go to, as they were when the fill began or was last resumed.
    #[serde(rename = "roster")]
    pub relations: Relations,
    /// Scale of pgbench's tables.
    pub scale: u64,
    /// Branches that were there before.
    pub(crate) scale_before: u64,
    /// Number of the first row; see [`Chunking`].
    pub first_row: u64,
    /// Rows in all; see [`Chunking`].
    pub rows: Option<u64>,
    /// Rows of a chunk; see [`Chunking`].
    pub chunk_rows: u64,
    /// Description of the rows of a user's table, as it was made when the fill began. It depended
    /// on the rows that the table had then.
    pub described: Option<Table>,
    /// Whether these rows can be sent in binary.
    pub binary: bool,
    /// Bytes that the user's table shall take in the end.
    pub until_size: Option<u64>,
}

/// Number of rows of each loaded chunk, by destination and number of the chunk.
pub(crate) type Records = HashMap<Destination, BTreeMap<u64, u64>>;

impl LedgerHeader {
    /// Whether a comment is a ledger's.
    pub(crate) fn is_one(comment: &str) -> bool {
        serde_json::from_str::<Self>(comment).is_ok()
    }
}

/// A fill that was begun and is not complete.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    pub(crate) header: LedgerHeader,
    /// The chunks that are recorded as loaded.
    pub(crate) records: Records,
}

impl Unfinished {
    /// All rows that the fill was to load.
    pub(crate) fn range(&self) -> RowRange {
        let LedgerHeader { scale, scale_before, first_row, rows, .. } = self.header;
        RowRange { first_row, rows, scale, scale_before }
    }

    /// Records of the bulk table.
    fn of_bulk(&self) -> impl Iterator<Item = (&u64, &u64)> {
        let Relations { root, leaves, .. } = &self.header.relations;
        let is_bulk = |oid: u32| oid == *root || leaves.iter().any(|leaf| leaf.oid == oid);
        self.records.iter().filter(move |(to, _)| is_bulk(to.oid)).flat_map(|(_, chunks)| chunks)
    }

    /// Number of chunks that are loaded, as a whole or in part.
    pub(crate) fn chunks(&self) -> u64 {
        self.of_bulk().map(|(chunk, _)| chunk).collect::<HashSet<_>>().len() as u64
    }

    /// The bulk table's rows that are loaded.
    pub(crate) fn rows(&self) -> u64 {
        self.of_bulk().map(|(_, rows)| rows).sum()
    }
}

/// The tables that record chunks.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// The ledger of all relations, if they have one persistence; else of the logged ones.
    first: String,
    /// The ledger of the unlogged relations, if there are both kinds.
    second: String,
    pub(crate) relations: Relations,
    /// The records of earlier runs.
    records: Records,
}

impl Ledger {
    fn new(plan: &Plan, relations: Relations, records: Records) -> Self {
        let [first, second] = names(plan.bulk_name()).map(|name| qualified(&plan.schema, &name));
        Self { first, second, relations, records }
    }

    /// Creates the tables, in the transaction that the session is in if it is in one.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn begin(session: &Session, plan: &Plan) -> Result<Self, ConnectError> {
        let relations =
            Relations::of(&session.connection, plan).await?.expect("tables that were found or created");
        let ledger = Self::new(plan, relations, Records::new());
        session.run_all(&ledger.create(plan)).await?;
        Ok(ledger)
    }

    /// The ledger of a fill that an earlier run began. If relations have changed their persistence
    /// since, their records move to the table of the new persistence, so that a crash empties both
    /// or neither.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn resume(
        session: &Session,
        plan: &Plan,
        begun: &Unfinished,
        now: Relations,
    ) -> Result<Self, ConnectError> {
        let moved = |(to, chunks): (&Destination, &BTreeMap<u64, u64>)| {
            Some((now.destination_now(*to)?, chunks.clone()))
        };
        let records: Records = begun.records.iter().filter_map(moved).collect();
        let persistence_of = |relations: &Relations| {
            relations.all().map(|relation| (relation.oid, relation.persistence)).collect::<HashMap<_, _>>()
        };
        let same = persistence_of(&now) == persistence_of(&begun.header.relations);
        let ledger = Self::new(plan, now.with_rows_of(&begun.header.relations), records);
        if !same {
            session.run("BEGIN").await?;
            session.run(&drop_both([&ledger.first, &ledger.second])).await?;
            session.run_all(&ledger.create(plan)).await?;
            session.run_all(&ledger.insert_all()).await?;
            session.run("COMMIT").await?;
        }
        Ok(ledger)
    }

    /// Its first table, quoted, which exists as long as the fill lasts.
    pub(crate) fn table_name(&self) -> &str {
        &self.first
    }

    fn is_split(&self) -> bool {
        self.relations.persistences().len() > 1
    }

    /// The table for relations of this persistence.
    fn table(&self, persistence: Persistence) -> &str {
        match persistence {
            Persistence::Unlogged if self.is_split() => &self.second,
            Persistence::Unlogged | Persistence::Logged => &self.first,
        }
    }

    /// The statements that create the tables.
    fn create(&self, plan: &Plan) -> Vec<String> {
        let Chunking { first_row, rows, chunk_rows, .. } = plan.chunking;
        let header = LedgerHeader {
            request: plan.request.whole(),
            relations: self.relations.clone(),
            scale: plan.scale,
            scale_before: plan.scale_before,
            first_row,
            rows,
            chunk_rows,
            described: plan.is_own_table().then(|| plan.tables.bulk.clone()),
            binary: plan.binary,
            until_size: plan.until_size,
        };
        let header = serde_json::to_string(&header).expect("plain data");
        let table = |persistence| {
            let unlogged = match persistence {
                Persistence::Logged => "",
                Persistence::Unlogged => "UNLOGGED ",
            };
            format!(
                "CREATE {unlogged}TABLE {} (relation oid, chunk bigint, rows bigint NOT NULL DEFAULT 0, \
                 PRIMARY KEY (relation, chunk))",
                self.table(persistence)
            )
        };
        // Without the first table the second one is nobody's.
        let remove = format!("DROP TABLE IF EXISTS {}", self.second);
        let comment = format!("COMMENT ON TABLE {} IS {}", self.first, literal(&header));
        let tables = self.relations.persistences().into_iter().map(table);
        [remove].into_iter().chain(tables).chain([comment]).collect()
    }

    /// The statements that insert the earlier records.
    fn insert_all(&self) -> Vec<String> {
        let of = |(to, chunks): (&Destination, &BTreeMap<u64, u64>)| {
            let records: Vec<String> =
                chunks.iter().map(|(chunk, rows)| format!("({}, {chunk}, {rows})", to.oid)).collect();
            format!("INSERT INTO {} VALUES {}", self.table(to.persistence), records.join(", "))
        };
        self.records.iter().filter(|(_, chunks)| !chunks.is_empty()).map(of).collect()
    }

    /// Begins the transaction that will load a chunk, and claims these parts of it. Returns for
    /// each part whether it still has to be loaded. A second session that claims a part waits until
    /// the first commits or aborts.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn begin_chunk(
        &self,
        session: &Session,
        chunk: u64,
        parts: Vec<ChunkPart>,
    ) -> Result<Vec<ChunkPart>, ConnectError> {
        let claims: Vec<String> = parts.iter().map(|part| self.insert(part.destination, chunk)).collect();
        let claimed = Self::claimed(session, &format!("BEGIN; {}", claims.join("; "))).await?;
        let claimed = claimed.into_iter().skip(1).chain(std::iter::repeat(false));
        Ok(parts.into_iter().zip(claimed).filter_map(|(part, claimed)| claimed.then_some(part)).collect())
    }

    /// Claims a chunk for one destination. Returns whether it had not been recorded.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn claim(
        &self,
        session: &Session,
        to: Destination,
        chunk: u64,
    ) -> Result<bool, ConnectError> {
        Ok(Self::claimed(session, &self.insert(to, chunk)).await?.contains(&true))
    }

    fn insert(&self, to: Destination, chunk: u64) -> String {
        let table = self.table(to.persistence);
        format!("INSERT INTO {table} (relation, chunk) VALUES ({}, {chunk}) ON CONFLICT DO NOTHING", to.oid)
    }

    /// Runs the statements, and returns for each whether it inserted a row.
    async fn claimed(session: &Session, sql: &str) -> Result<Vec<bool>, ConnectError> {
        match session.connection.client.simple_query(sql).await {
            Ok(messages) => {
                let rows = |message| match message {
                    SimpleQueryMessage::CommandComplete(rows) => Some(rows == 1),
                    _ => None,
                };
                Ok(messages.into_iter().filter_map(rows).collect())
            }
            Err(error) => Err(session.connection.explain(error).await),
        }
    }

    /// The statement that records how many rows a claimed chunk has brought to a destination.
    pub(crate) fn record(&self, to: Destination, chunk: u64, rows: u64) -> String {
        let table = self.table(to.persistence);
        format!("UPDATE {table} SET rows = {rows} WHERE relation = {} AND chunk = {chunk}", to.oid)
    }

    /// Whether this was recorded before this run.
    pub(crate) fn has(&self, to: Destination, chunk: u64) -> bool {
        self.records.get(&to).is_some_and(|chunks| chunks.contains_key(&chunk))
    }

    /// Whether nothing of a chunk is left to load, as far as was recorded before this run.
    pub(crate) fn is_loaded(&self, plan: &Plan, chunk: &Chunk) -> bool {
        !self.records.is_empty()
            && self.relations.parts(plan, chunk).iter().all(|part| self.has(part.destination, chunk.number))
    }

    /// Records that this part has loaded its chunks.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn report(&self, session: &Session, part: Part) -> Result<(), ConnectError> {
        let report = format!(
            "INSERT INTO {} (relation, chunk) VALUES ({NO_RELATION}, {}) ON CONFLICT DO NOTHING",
            self.first,
            of_part(part)
        );
        session.run(&report).await
    }

    /// The ledger as it is now; none if it has been dropped.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(crate) async fn now(&self, session: &Session, plan: &Plan) -> Result<Option<Self>, ConnectError> {
        let found = records(&session.connection, &plan.schema, plan.bulk_name(), &self.relations).await;
        match found {
            Ok(records) => Ok(Some(Self { records, ..self.clone() })),
            Err(error) if error.sqlstate() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The parts that have not recorded that they have loaded their chunks.
    pub(crate) fn without_report(&self, part: Part) -> Vec<u32> {
        let reports = self.records.iter().filter(|(to, _)| to.oid == NO_RELATION);
        let reports: HashSet<u64> = reports.flat_map(|(_, all)| all.keys().copied()).collect();
        part.all().filter(|each| !reports.contains(&of_part(*each))).map(|each| each.number).collect()
    }

    /// The statement that drops the ledger once the fill is complete.
    pub(crate) fn drop(&self) -> String {
        drop_both([&self.first, &self.second])
    }
}

/// The number under which a part is recorded.
fn of_part(part: Part) -> u64 {
    u64::from(part.of) << PART_BITS | u64::from(part.number)
}

/// The statement that drops both tables, or the one that exists.
fn drop_both(tables: [&str; 2]) -> String {
    format!("DROP TABLE IF EXISTS {}", tables.join(", "))
}

/// The statement that drops the ledger beside a bulk table.
pub(crate) fn remove(schema: &str, bulk: &str) -> String {
    let [first, second] = names(bulk).map(|name| qualified(schema, &name));
    drop_both([&first, &second])
}

/// The unquoted names of the tables of the ledger beside a bulk table of that name.
pub(crate) fn names(bulk: &str) -> [String; 2] {
    [name(bulk), name_beside("pgrig_unlogged_chunks", bulk)]
}

/// The unquoted name of the ledger's first table beside a bulk table of that name.
pub(crate) fn name(bulk: &str) -> String {
    name_beside("pgrig_chunks", bulk)
}

/// The unquoted name of a table of pgrig's own beside a bulk table.
pub(crate) fn name_beside(prefix: &str, bulk: &str) -> String {
    let mut name = format!("{prefix}_{bulk}");
    while name.len() > NAME_BYTES {
        name.pop();
    }
    name
}

/// Reads a ledger. `comment` is its comment.
///
/// # Errors
/// If the server cannot be asked. Returns `Ok(None)` if this pgrig does not understand the ledger.
pub(crate) async fn read(
    connection: &Connection,
    schema: &str,
    bulk: &str,
    comment: Option<&str>,
) -> Result<Option<Unfinished>, ConnectError> {
    let header: Option<LedgerHeader> = comment.and_then(|comment| serde_json::from_str(comment).ok());
    let Some(header) = header else { return Ok(None) };
    let records = records(connection, schema, bulk, &header.relations).await?;
    Ok(Some(Unfinished { header, records }))
}

/// The records of relations whose persistence was as in `relations`.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn records(
    connection: &Connection,
    schema: &str,
    bulk: &str,
    relations: &Relations,
) -> Result<Records, ConnectError> {
    let [first, second] = names(bulk).map(|name| qualified(schema, &name));
    let persistences = relations.persistences();
    let tables: Vec<(Persistence, &str)> = match persistences.len() {
        2 => vec![(Persistence::Logged, &first), (Persistence::Unlogged, &second)],
        _ => persistences.into_iter().map(|persistence| (persistence, first.as_str())).collect(),
    };
    let mut records = Records::new();
    for (persistence, table) in tables {
        let query = format!("SELECT relation, chunk, rows FROM {table}");
        let rows = match connection.client.query(&query, &[]).await {
            Ok(rows) => rows,
            Err(error) => return Err(connection.explain(error).await),
        };
        for row in rows {
            let number = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
            let to = Destination { oid: row.get("relation"), persistence };
            records.entry(to).or_default().insert(number("chunk"), number("rows"));
        }
    }
    Ok(records)
}

/// The table that an unfinished fill with this subject creates and fills, as SQL names it; none if there
/// is no such fill.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn table_begun(
    client: &tokio_postgres::Client,
    subject: &Subject,
) -> Result<Option<String>, tokio_postgres::Error> {
    let rows = client.query(include_str!("../sql/ledgers.sql"), &[]).await?;
    Ok(rows.iter().find_map(|row| {
        let header: LedgerHeader = serde_json::from_str(row.get("comment")).ok()?;
        let table = header.described.filter(|_| header.request.subject == *subject)?;
        Some(qualified(row.get("schema"), &table.name))
    }))
}
