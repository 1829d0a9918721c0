//! The transaction that `--blocker` asks for: it has read the tables and views of the migration, and stays open for a time.
//!
//! It begins anew before each transaction of the migration that waits for it. So the queue behind each of these is that of a transaction which is open for the whole
//! time, also if earlier statements have taken longer.

use std::time::Duration;

use connect::{ConnectError, Target};
use tokio::task::JoinHandle;

use super::patient;
use crate::edge::Edge;
use crate::find::LockMode;
use crate::outcome::StatementOutcome;
use crate::run::failure;

/// See the module.
pub(super) struct Holder<'a> {
    target: &'a Target,
    /// OIDs of the tables and views.
    oids: Vec<u32>,
    held: Duration,
    task: JoinHandle<()>,
}

impl<'a> Holder<'a> {
    /// Opens the transaction.
    pub(super) async fn begin(
        target: &'a Target,
        oids: Vec<u32>,
        held: Duration,
    ) -> Result<Self, ConnectError> {
        let task = hold(target, &oids, held).await?;
        Ok(Self { target, oids, held, task })
    }

    /// Opens another one in its place.
    pub(super) async fn begin_anew(&mut self) -> Result<(), ConnectError> {
        self.task.abort();
        self.task = hold(self.target, &self.oids, self.held).await?;
        Ok(())
    }

    pub(super) fn end(self) {
        self.task.abort();
    }
}

/// Opens a transaction that has read these relations, whatever their names are now, and ends it after this time.
async fn hold(target: &Target, oids: &[u32], held: Duration) -> Result<JoinHandle<()>, ConnectError> {
    let session = patient(target).await?;
    session.run("BEGIN").await?;
    let query = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind IN ('v', 'm') AS is_view \
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.oid = ANY ($1) ORDER BY c.oid";
    for row in session.rows(query, &[&oids]).await? {
        let (name, is_view): (String, bool) = (row.get("name"), row.get("is_view"));
        // The query of a view may take long, and a materialized view may not be populated. A plan locks the same relations.
        let read = if is_view {
            format!("EXPLAIN SELECT FROM {name}")
        } else {
            format!("SELECT 1 FROM {name} LIMIT 1")
        };
        let read = session.run(&format!("SAVEPOINT reading; {read}")).await;
        if failure::refused(read)?.is_err() {
            session.run("ROLLBACK TO reading").await?;
        }
    }
    Ok(tokio::spawn(async move {
        tokio::time::sleep(held).await;
        session.close().await;
    }))
}

/// Whether the first of these statements, or the transaction of which it is the first, takes a lock for which readers wait. So it waits for readers.
pub(super) fn waits_for_readers(statements: &[StatementOutcome], is_in_transaction: bool) -> bool {
    let edge = |one: &StatementOutcome| Edge::of(&one.statement);
    let is_whole = is_in_transaction || statements.first().is_some_and(|one| edge(one) == Some(Edge::Begins));
    let end = |one: &StatementOutcome| edge(one).is_some_and(|edge| edge.ends());
    let length = if is_whole { statements.iter().position(end).unwrap_or(statements.len()) } else { 1 };
    let waits = |one: &StatementOutcome| {
        let mut taken = one.found.iter().flat_map(|found| found.taken.values()).flatten();
        taken.any(|mode| mode.conflicts_with(LockMode::AccessShare))
    };
    statements.iter().take(length).any(waits)
}

/// The number of transactions of the migration that wait for readers: for each, another open transaction begins.
pub(crate) fn waiting_transactions(statements: &[StatementOutcome]) -> u32 {
    let (mut is_in_transaction, mut has_locks, mut waiting) = (false, false, 0);
    for (place, one) in statements.iter().enumerate().filter(|(_, one)| one.failed.is_none()) {
        if !has_locks && waits_for_readers(&statements[place..], is_in_transaction) {
            waiting += 1;
        }
        let edge = Edge::of(&one.statement);
        let ends = edge.as_ref().is_some_and(Edge::ends);
        if let Some(edge) = edge {
            is_in_transaction = !ends || edge == Edge::Chains;
        }
        has_locks = is_in_transaction && !ends;
    }
    waiting
}
