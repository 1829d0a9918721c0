//! Checks that the rows that an interrupted fill recorded as loaded, and the rows from before it,
//! are still there.
//!
//! Between two runs somebody may have emptied, replaced or altered the tables, and a crash may have
//! emptied unlogged ones. Without this check, the rows that the ledger marks as loaded would be
//! missing silently, or loaded twice.

use super::Observer;
use crate::error::{BegunError, FillError};
use crate::ledger::relations::{Destination, Relation, Relations};
use crate::ledger::{self, Ledger, LedgerHeader, Records, Unfinished};
use crate::plan::chunks::Spread;
use crate::plan::tables::key;
use crate::plan::{Method, Plan};
use crate::request::{InitStep, Persistence, Subject};
use connect::Connection;
use measure::human::{counted, grouped};
use rowgen::pgbench::TELLERS_PER_SCALE;
use server::Session;
use server::quote::identifier;

/// A fault of a table.
type Problem = (String, String);

/// Refuses to complete a fill whose tables are not those that it began with.
///
/// # Errors
/// [`BegunError::NotAsLeft`] names the table and says how to start over.
pub(crate) fn same_tables(now: Option<&Relations>, begun: &Unfinished) -> Result<(), FillError> {
    let before = &begun.header.relations;
    let gone =
        || (before.name.clone(), "or another table of that fill was dropped after it began".to_owned());
    let problem = now.map_or_else(|| Some(gone()), |now| now.change_since(before));
    problem.map_or(Ok(()), |problem| Err(refusal(begun, problem).into()))
}

fn refusal(begun: &Unfinished, (table, problem): Problem) -> BegunError {
    let LedgerHeader { request, relations, .. } = &begun.header;
    let bulk = &relations.name;
    let creates = request.steps.include(InitStep::Create);
    let remedy = match (&request.subject, request.append) {
        (Subject::Table(_), true) => {
            "To add to the present rows, give --no-resume (and --rows or SIZE for the missing rows)"
                .to_owned()
        }
        (Subject::Table(_), false) if creates => {
            format!("To start over, drop {bulk} and give --no-resume")
        }
        (Subject::Table(_), false) => format!("To start over, run TRUNCATE {bulk} and give --no-resume"),
        (_, true) => {
            "To fill all tables again, give --drop and the whole amount instead of --append".to_owned()
        }
        (_, false) if creates => "To drop the tables and start over, give --no-resume --drop".to_owned(),
        (_, false) => "To start over, run TRUNCATE on pgbench's tables and give --no-resume".to_owned(),
    };
    BegunError::NotAsLeft { table, problem, remedy }
}

/// Compares all rows with the records, and returns the ledger to continue with.
///
/// # Errors
/// If rows are missing, or if there are rows that the fill did not load.
pub(crate) async fn resume(
    session: &Session,
    plan: &Plan,
    begun: &Unfinished,
    observer: &dyn Observer,
) -> Result<Ledger, FillError> {
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let now = Relations::of(&session.connection, plan).await?;
    same_tables(now.as_ref(), begun)?;
    let Some(now) = now else { unreachable!("refused: a table is missing") };
    // Another session may have been at it since the plan was made.
    let relations = &begun.header.relations;
    let records = ledger::records(&session.connection, &plan.schema, plan.bulk_name(), relations).await?;
    let begun = Unfinished { header: begun.header.clone(), records };
    if begun.rows() > 0 {
        observer.checking_rows(begun.rows());
    }
    let look = Look { connection: &session.connection, plan, now: &now, before: &begun.header.relations };
    if let Some(problem) = look.problem(&begun.records).await? {
        return Err(refusal(&begun, problem).into());
    }
    session.run("COMMIT").await?;
    Ok(Ledger::resume(session, plan, &begun, now).await?)
}

/// Returns the ledger of a fill that other parts prepared: they have compared the rows with the records.
///
/// # Errors
/// If tables were replaced.
pub(crate) async fn join(session: &Session, plan: &Plan, begun: &Unfinished) -> Result<Ledger, FillError> {
    let now = Relations::of(&session.connection, plan).await?;
    same_tables(now.as_ref(), begun)?;
    let Some(now) = now else { unreachable!("refused: a table is missing") };
    Ok(Ledger::resume(session, plan, begun, now).await?)
}

struct Look<'a> {
    connection: &'a Connection,
    plan: &'a Plan,
    now: &'a Relations,
    before: &'a Relations,
}

/// The rows that were found.
#[derive(Default)]
struct FoundRows {
    /// Number of rows that the fill can have loaded.
    rows: u64,
    /// Ids of the first and the last of them.
    ends: Option<(u64, u64)>,
    /// Whether rows from before the fill are there.
    has_old: bool,
}

impl Look<'_> {
    async fn problem(&self, records: &Records) -> Result<Option<Problem>, FillError> {
        for (to, leaves) in self.now.destinations() {
            // Records are by the persistence that relations had.
            let recorded = self.recorded(records, to);
            let mut found = FoundRows::default();
            for leaf in &leaves {
                let there = self.leaf(leaf).await?;
                if !there.has_old && self.had_rows(leaf) {
                    return Ok(Some(lost(leaf, "all rows from before this fill")));
                }
                found.rows += there.rows;
                found.ends = match (found.ends, there.ends) {
                    (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                    (ends, None) | (None, ends) => ends,
                };
            }
            let name = if leaves.len() > 1 { self.now.name.clone() } else { leaves[0].name.clone() };
            if let Some(problem) = self.compare(&leaves, &found, recorded) {
                return Ok(Some((name, problem)));
            }
        }
        match &self.now.small {
            Some(_) => self.small(records).await,
            None => Ok(None),
        }
    }

    /// Whether rows were there before the fill.
    fn had_rows(&self, relation: &Relation) -> bool {
        self.before.all().any(|before| before.oid == relation.oid && before.had_rows)
    }

    /// Rows and chunks that are recorded of a destination.
    fn recorded(&self, records: &Records, to: Destination) -> (u64, Vec<u64>) {
        let chunks = records
            .iter()
            .filter(|(then, _)| self.now.destination_now(**then) == Some(to))
            .flat_map(|(_, chunks)| chunks);
        let (mut rows, mut numbers) = (0, Vec::new());
        for (number, loaded) in chunks {
            rows += loaded;
            numbers.push(*number);
        }
        (rows, numbers)
    }

    fn compare(&self, leaves: &[&Relation], found: &FoundRows, recorded: (u64, Vec<u64>)) -> Option<String> {
        let (rows, chunks) = recorded;
        if leaves.iter().any(|leaf| !leaf.may_select) {
            // Only whether there are any can be told.
            return (rows > 0 && found.rows == 0)
                .then(|| format!("is empty, but pgrig recorded {} as loaded", counted(rows, "row")));
        }
        if found.rows < rows {
            return Some(format!(
                "has {} of {} that pgrig recorded as loaded: another session deleted or truncated them, or a crash of the \
                 server emptied unlogged tables",
                grouped(found.rows),
                counted(rows, "row")
            ));
        }
        // Rows that others add to a table of the user's are theirs, unless records of ours can be lost.
        let moved = leaves.iter().any(|leaf| {
            self.before.all().any(|before| before.oid == leaf.oid && before.persistence != leaf.persistence)
        });
        let others = self.plan.is_own_table() && self.plan.append && !moved;
        if found.rows > rows && !others {
            return Some(format!(
                "has {}, but pgrig recorded {} as loaded: another session inserted rows, or a crash of the server emptied \
                 the record",
                counted(found.rows, "row"),
                grouped(rows)
            ));
        }
        let (first, last) = found.ends?;
        let ends = self.expected_ends(&chunks)?;
        ((first, last) != ends).then(|| {
            format!("has ids {first} to {last}, but pgrig recorded {} to {} as loaded", ends.0, ends.1)
        })
    }

    /// Ids of the first and the last row of these chunks, where they follow from their numbers.
    fn expected_ends(&self, chunks: &[u64]) -> Option<(u64, u64)> {
        let plan = self.plan;
        let is_known = !plan.is_own_table() && !matches!(plan.chunking.spread, Spread::Hash { .. });
        // Only some rows of a chunk go to one destination.
        let is_whole = !self.now.routes || self.now.of_leaves().len() == 1;
        if !is_known || !is_whole || plan.method == Method::Reinsert {
            return None;
        }
        let rows = chunks
            .iter()
            .filter(|number| **number < plan.chunks())
            .map(|number| plan.chunking.chunk(*number).rows);
        let (first, last) =
            rows.fold((u64::MAX, 0), |(first, last), rows| (first.min(rows.start + 1), last.max(rows.end)));
        (last > 0).then_some((first, last))
    }

    async fn leaf(&self, leaf: &Relation) -> Result<FoundRows, FillError> {
        let (name, first_row) = (&leaf.name, self.plan.chunking.first_row);
        if !leaf.may_select {
            let query = format!("SELECT pg_relation_size({}) AS bytes", leaf.oid);
            let bytes = self.row(&query).await?.get::<_, i64>("bytes").unsigned_abs();
            return Ok(FoundRows { rows: bytes, ends: None, has_old: bytes > 0 });
        }
        let tables = &self.plan.tables;
        let key = key(&tables.bulk).filter(|_| !self.plan.is_own_table()).map(|key| identifier(&key.name));
        let query = match (&key, self.plan.append) {
            (None, _) => format!(
                "SELECT count(*) AS rows, NULL::bigint AS first, NULL::bigint AS last, count(*) > 0 AS has_old FROM {name}"
            ),
            (Some(key), false) => format!(
                "SELECT count(*) AS rows, min({key})::bigint AS first, max({key})::bigint AS last, false AS has_old FROM {name}"
            ),
            // With an index on the id none of these reads the whole table.
            (Some(key), true) => format!(
                "SELECT (SELECT count(*) FROM {name} WHERE {key} > {first_row}) AS rows, \
                        (SELECT min({key})::bigint FROM {name} WHERE {key} > {first_row}) AS first, \
                        (SELECT max({key})::bigint FROM {name} WHERE {key} > {first_row}) AS last, \
                        EXISTS (SELECT FROM {name} WHERE {key} <= {first_row}) AS has_old"
            ),
        };
        let row = self.row(&query).await?;
        let number = |column| row.get::<_, Option<i64>>(column).map(i64::unsigned_abs);
        Ok(FoundRows {
            rows: number("rows").unwrap_or_default(),
            ends: number("first").zip(number("last")),
            has_old: row.get("has_old"),
        })
    }

    /// pgbench's small tables.
    async fn small(&self, records: &Records) -> Result<Option<Problem>, FillError> {
        let Some(small) = &self.now.small else { return Ok(None) };
        let scale = self.plan.scale_before;
        for (relation, key, before) in
            [(&small.branches, "bid", scale), (&small.tellers, "tid", scale * TELLERS_PER_SCALE)]
        {
            let query = format!(
                "SELECT count(*) FILTER (WHERE {key} <= {before}) AS old, count(*) FILTER (WHERE {key} > {before}) AS new \
                   FROM {}",
                relation.name
            );
            let row = self.row(&query).await?;
            let number = |column| row.get::<_, i64>(column).unsigned_abs();
            let (recorded, _) =
                self.recorded(records, Destination { oid: relation.oid, persistence: relation.persistence });
            if number("old") != before {
                let missing = format!(
                    "{} of {} from before this fill",
                    grouped(before.saturating_sub(number("old"))),
                    counted(before, "row")
                );
                return Ok(Some(lost(relation, &missing)));
            }
            if number("new") != recorded {
                let problem = format!(
                    "has {}, but pgrig recorded {} as loaded",
                    counted(number("new"), "row"),
                    grouped(recorded)
                );
                return Ok(Some((relation.name.clone(), problem)));
            }
        }
        // pgbench itself truncates its history: only a crash matters.
        let history = &small.history;
        if history.persistence == Persistence::Unlogged && self.had_rows(history) {
            let query = format!("SELECT EXISTS (SELECT FROM {})", history.name);
            if !self.row(&query).await?.get::<_, bool>(0) {
                return Ok(Some(lost(history, "all rows from before this fill")));
            }
        }
        Ok(None)
    }

    async fn row(&self, query: &str) -> Result<tokio_postgres::Row, FillError> {
        Ok(server::ask(self.connection, query, &[]).await?)
    }
}

fn lost(relation: &Relation, rows: &str) -> Problem {
    let why = match relation.persistence {
        Persistence::Unlogged => ": it is unlogged, and a crash of the server empties unlogged tables",
        Persistence::Logged => "",
    };
    (relation.name.clone(), format!("has lost {rows}{why}"))
}
