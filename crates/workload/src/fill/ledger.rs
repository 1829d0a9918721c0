//! The ledger: which chunks are loaded, recorded in the very transactions that load them.
//!
//! A table beside the filled ones, as long as the fill lasts. It is unlogged if they are: when crash
//! recovery empties them it empties the ledger too, so the two never disagree. Its comment holds the
//! request, which lives in the catalog and so survives a crash.

use std::collections::HashSet;

use rowgen::Table;
use serde::{Deserialize, Serialize};
use tokio_postgres::SimpleQueryMessage;

use super::chunks::Chunking;
use super::plan::Plan;
use super::request::{Persistence, Request, Subject};
use super::session::Session;
use super::target::Target;
use crate::connect::ConnectError;
use crate::quote::{identifier, literal, qualified};

/// Bytes of the longest identifier: NAMEDATALEN less the final zero.
const NAME_BYTES: usize = 63;

/// What a fill must keep to if it is to be completed later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Charter {
    /// The request as it was given.
    pub request: Request,
    /// pgbench's scale.
    pub scale: u64,
    /// Branches that were there before.
    pub scale_before: u64,
    /// See [`Chunking`].
    pub first_row: u64,
    /// See [`Chunking`].
    pub rows: Option<u64>,
    /// See [`Chunking`].
    pub chunk_rows: u64,
    /// The rows of a table of the user's, as they were described when the fill began: what is
    /// there decides over them, and more is there now.
    pub described: Option<Table>,
    /// Whether those can be sent in binary.
    pub binary: bool,
    /// Bytes that such a table shall take in the end.
    pub until_size: Option<u64>,
}

/// A fill that was begun and is not complete.
#[derive(Clone, Debug)]
pub struct Unfinished {
    pub(super) charter: Charter,
    /// Numbers of the chunks that are loaded.
    pub(super) done: HashSet<u64>,
    /// Their rows.
    pub(super) rows: u64,
}

impl Unfinished {
    /// The rows that it was to load, all told.
    pub(super) fn target(&self) -> Target {
        let Charter { scale, scale_before, first_row, rows, .. } = self.charter;
        Target { first_row, rows, scale, scale_before }
    }
}

/// The table that records chunks.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    name: String,
}

impl Ledger {
    pub(super) fn of(plan: &Plan, bulk: &str) -> Self {
        Self { name: qualified(&plan.schema, &name(bulk)) }
    }

    /// The statements that create it.
    pub(super) fn create(&self, plan: &Plan) -> Vec<String> {
        let unlogged = match plan.persistence {
            Persistence::Logged => "",
            Persistence::Unlogged => "UNLOGGED ",
        };
        let Chunking { first_row, rows, chunk_rows, .. } = plan.chunking;
        let charter = Charter {
            request: plan.request.clone(),
            scale: plan.scale,
            scale_before: plan.scale_before,
            first_row,
            rows,
            chunk_rows,
            described: plan.described.as_ref().map(|rows| rows.table.clone()),
            binary: plan.described.as_ref().is_some_and(|rows| rows.binary),
            until_size: plan.until_size,
        };
        let charter = serde_json::to_string(&charter).expect("plain data");
        vec![
            format!(
                "CREATE {unlogged}TABLE {} (chunk bigint PRIMARY KEY, rows bigint NOT NULL DEFAULT 0)",
                self.name
            ),
            format!("COMMENT ON TABLE {} IS {}", self.name, literal(&charter)),
        ]
    }

    /// Begins the transaction that will load a chunk, and claims it: see [`Self::claim`].
    ///
    /// # Errors
    /// `Ok(false)` if it is loaded already.
    pub(super) async fn begin(&self, session: &Session, chunk: u64) -> Result<bool, ConnectError> {
        self.claimed(session, &format!("BEGIN; {}", self.insert(chunk))).await
    }

    /// Claims a chunk within the transaction that will load it. If another session has it in hand,
    /// waits for that one to end.
    ///
    /// # Errors
    /// `Ok(false)` if it is loaded already.
    pub(super) async fn claim(&self, session: &Session, chunk: u64) -> Result<bool, ConnectError> {
        self.claimed(session, &self.insert(chunk)).await
    }

    fn insert(&self, chunk: u64) -> String {
        format!("INSERT INTO {} (chunk) VALUES ({chunk}) ON CONFLICT DO NOTHING", self.name)
    }

    async fn claimed(&self, session: &Session, sql: &str) -> Result<bool, ConnectError> {
        match session.connection.client.simple_query(sql).await {
            Ok(messages) => {
                Ok(messages.iter().any(|message| matches!(message, SimpleQueryMessage::CommandComplete(1))))
            }
            Err(error) => Err(session.connection.explain(error).await),
        }
    }

    /// The statement that records how many rows a claimed chunk has.
    pub(super) fn record(&self, chunk: u64, rows: u64) -> String {
        format!("UPDATE {} SET rows = {rows} WHERE chunk = {chunk}", self.name)
    }

    /// The statement that ends it: the fill is complete.
    pub(super) fn drop(&self) -> String {
        format!("DROP TABLE {}", self.name)
    }
}

/// The ledger's unquoted name beside a bulk table of that name.
pub(super) fn name(bulk: &str) -> String {
    name_beside("pgrig_chunks", bulk)
}

/// The unquoted name of a table of pgrig's own beside a bulk table.
pub(super) fn name_beside(prefix: &str, bulk: &str) -> String {
    let mut name = format!("{prefix}_{bulk}");
    while name.len() > NAME_BYTES {
        name.pop();
    }
    name
}

/// Reads a ledger. `comment` is its comment.
///
/// # Errors
/// If the server cannot be asked. `Ok(None)` if it is none that this pgrig understands.
pub(super) async fn read(
    client: &tokio_postgres::Client,
    schema: &str,
    bulk: &str,
    comment: Option<&str>,
) -> Result<Option<Unfinished>, tokio_postgres::Error> {
    let Some(charter) = comment.and_then(|comment| serde_json::from_str(comment).ok()) else {
        return Ok(None);
    };
    let query = format!("SELECT chunk, rows FROM {}.{}", identifier(schema), identifier(&name(bulk)));
    let rows = client.query(&query, &[]).await?;
    let number = |row: &tokio_postgres::Row, column: &str| {
        u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
    };
    Ok(Some(Unfinished {
        charter,
        done: rows.iter().map(|row| number(row, "chunk")).collect(),
        rows: rows.iter().map(|row| number(row, "rows")).sum(),
    }))
}

/// The table that an unfinished fill with this subject creates and fills, as SQL names it; none if there
/// is no such fill.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn table_begun(
    client: &tokio_postgres::Client,
    subject: &Subject,
) -> Result<Option<String>, tokio_postgres::Error> {
    let rows = client.query(include_str!("../sql/ledgers.sql"), &[]).await?;
    Ok(rows.iter().find_map(|row| {
        let charter: Charter = serde_json::from_str(row.get("comment")).ok()?;
        let table = charter.described.filter(|_| charter.request.subject == *subject)?;
        Some(qualified(row.get("schema"), &table.name))
    }))
}
