//! Probes: one query at growing sizes of the table, so that one sees where the table falls out of
//! memory.
//!
//! ```text
//! Prober::new ─▶ check (after CREATE TABLE) ─▶ while filling: due? ─▶ run ─▶ ProbePoint ─▶ series
//!                                                                               └──────▶ turning_point
//! ```
//!
//! A point takes at least a few executions; a budget of time limits the rest. Each execution goes
//! to another random place, and none is discarded as a warm-up: the cache holds the blocks that the
//! fill and the earlier executions left there. Only the plan is warm, because a point begins with executions
//! under EXPLAIN (ANALYZE, BUFFERS), which are not timed and tell where blocks came from. (The
//! server's I/O statistics are not suitable: they lag, and include other sessions.)

mod error;
mod kind;
mod point;
mod turn;

use futures_util::future::LocalBoxFuture;
use std::time::{Duration, Instant};

use fastrand::Rng;
use page::Geometry;
use serde_json::Value;
use tokio_postgres::{Client, Error};

pub use error::ProbeError;
pub use kind::{ProbeKind, UnknownProbe};
pub use point::{Latency, ProbePoint};
pub use turn::{TurningPoint, turning_point};

use self::kind::Statements;
use self::point::Latencies;
use crate::leaf::Leaf;

/// The table's size at the first point, bytes; each further one comes at twice the size.
const FIRST: u64 = 16 << 20;
/// Least number of timed executions of one point, unless each is slower than [`QUICK`] and the
/// budget is used up.
const FEW: u64 = 3;
/// An execution that is this quick is repeated [`FEW`] times regardless of the budget.
const QUICK: Duration = Duration::from_millis(5);
/// Most timed executions of one point: ten are then above the 99th percentile.
const MANY: u64 = 1000;
/// Most explained executions of one point.
const EXPLAINED: u64 = 50;
/// The share of a point's budget that explained executions may take.
const EXPLAINED_SHARE: f64 = 0.25;
/// The share of the fill's time that probes may take. It leaves room below 2 % for the few
/// executions that a point always gets (2 ms for lookups, some tens for scans).
const SHARE: f64 = 0.01;
/// Name of the prepared statement. SQL's own PREPARE rather than the protocol's, as only that can be
/// explained.
const PREPARED: &str = "pgrig_probe";
/// The first release that scans a range of ctid without going through the whole table.
const SCANS_RANGES: u32 = 14;

/// The table that is probed while it is filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTable {
    /// Its name, quoted and qualified.
    pub name: String,
    /// Its key: smallint, integer or bigint, ascending by one from row to row.
    pub key: String,
    /// The key of the first row.
    pub first_key: i64,
}

/// Runs a probe at growing sizes of a table.
pub struct Prober {
    kind: ProbeKind,
    table: ProbeTable,
    geometry: Geometry,
    scans_ranges: bool,
    random: Rng,
    /// The size at which the next point is due, bytes.
    next: u64,
    spent: Duration,
    points: Vec<ProbePoint>,
}

impl Prober {
    /// A prober for a server of this major version and block size. The same seed probes the same
    /// places.
    pub fn new(kind: ProbeKind, table: ProbeTable, geometry: Geometry, major: u32, seed: u64) -> Self {
        Self {
            kind,
            table,
            geometry,
            scans_ranges: major >= SCANS_RANGES,
            random: Rng::with_seed(seed),
            next: FIRST,
            spent: Duration::ZERO,
            points: Vec::new(),
        }
    }

    /// Whether the table has grown enough for another point.
    pub fn due(&self, table_bytes: u64) -> bool {
        table_bytes >= self.next
    }

    /// Whether the finished table needs a point of its own: not if it had one at this size.
    pub fn due_at_end(&self, table_bytes: u64) -> bool {
        self.points.last().is_none_or(|last| last.table_bytes < table_bytes)
    }

    /// The time that a point may take, after a fill that has lasted `filling`.
    pub fn budget(&self, filling: Duration) -> Duration {
        filling.mul_f64(SHARE).saturating_sub(self.spent)
    }

    /// The time of all points so far.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// The points so far.
    pub fn points(&self) -> &[ProbePoint] {
        &self.points
    }

    /// Refuses, before anything is loaded, a probe that cannot be run. The table has to exist, and
    /// may be empty.
    ///
    /// # Errors
    /// If the user's query is wrong or writes; if a lookup would have no index to use.
    pub async fn check(&self, client: &Client) -> Result<(), ProbeError> {
        if self.kind.needs_index() {
            let query = include_str!("../sql/probe_index.sql");
            let row = client.query_one(query, &[&self.table.name, &self.table.key]).await?;
            if !row.get::<_, bool>("indexed") {
                return Err(ProbeError::NoIndex {
                    probe: self.kind.name(),
                    table: self.table.name.clone(),
                    key: self.table.key.clone(),
                });
            }
        }
        if let ProbeKind::Sql(_) = self.kind {
            let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE {PREPARED} ({}, 1)", self.table.first_key);
            self.prepare(client).await?;
            let plan = client.query_one(&explain, &[]).await;
            self.deallocate(client).await;
            if let Some(node) = writes(&plan?.try_get::<_, Value>(0)?) {
                return Err(ProbeError::Writes { node });
            }
        }
        Ok(())
    }

    /// Makes a point: of a table that takes `table_bytes`, and whose first `rows` keys exist and
    /// are visible to `client`. The point keeps to its budget, except for a few executions at least
    /// (one, if that alone exceeds the budget).
    ///
    /// The session may be in the transaction that fills the table, which an error then aborts. Its
    /// `plan_cache_mode` is reset.
    ///
    /// # Errors
    /// If a query fails.
    pub fn run<'a>(
        &'a mut self,
        client: &'a Client,
        rows: u64,
        table_bytes: u64,
        budget: Duration,
    ) -> LocalBoxFuture<'a, Result<ProbePoint, Error>> {
        Box::pin(async move {
            let started = Instant::now();
            // Planned anew for each size: for an empty table the server would plan to read all of it.
            self.prepare(client).await?;
            let observed = self.observe(client, rows, budget).await;
            self.deallocate(client).await;
            self.spent += started.elapsed();
            let (blocks, latencies) = observed?;
            let point = ProbePoint {
                table_bytes,
                rows,
                executions: latencies.count(),
                latency: latencies.summary(),
                hits: blocks.hits,
                reads: blocks.reads,
                bytes: (blocks.hits + blocks.reads) * f64::from(self.geometry.block_size()),
            };
            self.points.push(point);
            while self.due(table_bytes) {
                self.next *= 2;
            }
            Ok(point)
        })
    }

    async fn observe(
        &mut self,
        client: &Client,
        rows: u64,
        budget: Duration,
    ) -> Result<(Blocks, Latencies), Error> {
        let started = Instant::now();
        let leaf = Leaf::largest(client, &self.table.name).await?;
        let statements = Statements {
            kind: &self.kind,
            table: &self.table,
            geometry: self.geometry,
            rows,
            leaf: &leaf,
            scans_ranges: self.scans_ranges,
        };
        let blocks = explain(client, &statements, &mut self.random, budget.mul_f64(EXPLAINED_SHARE)).await?;
        let left = budget.saturating_sub(started.elapsed());
        let latencies = time(client, &statements, &mut self.random, left).await?;
        Ok((blocks, latencies))
    }

    async fn prepare(&self, client: &Client) -> Result<(), Error> {
        let Some(query) = self.kind.prepared(&self.table) else { return Ok(()) };
        // In the extended protocol the server takes one statement only: a query with a second one
        // behind a semicolon is refused.
        client.execute(&format!("PREPARE {PREPARED} {query}"), &[]).await?;
        if self.kind.needs_index() {
            // Else the first five executions are planned one by one.
            client.batch_execute("SET plan_cache_mode = force_generic_plan").await?;
        }
        Ok(())
    }

    /// Deallocates the prepared statement. Errors are ignored: then the session is gone or its
    /// transaction is aborted, and an earlier call has reported that.
    async fn deallocate(&self, client: &Client) {
        if self.kind.prepared(&self.table).is_some() {
            let _ = client.batch_execute(&format!("DEALLOCATE {PREPARED}; RESET plan_cache_mode")).await;
        }
    }
}

/// Blocks of one execution.
struct Blocks {
    hits: f64,
    reads: f64,
}

/// Runs the query under EXPLAIN: once, and again as long as the budget lasts.
async fn explain(
    client: &Client,
    statements: &Statements<'_>,
    random: &mut Rng,
    budget: Duration,
) -> Result<Blocks, Error> {
    let started = Instant::now();
    let mut sum = Blocks { hits: 0.0, reads: 0.0 };
    let mut executions = 0;
    while executions == 0 || executions < EXPLAINED && started.elapsed() < budget {
        let statement = statements.next(random);
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}");
        let plan = client.query_one(&explain, &[]).await?.try_get::<_, Value>(0)?;
        // Of the topmost node: those below it are counted in it.
        let blocks = |name| plan[0]["Plan"][name].as_f64().unwrap_or_default();
        sum.hits += blocks("Shared Hit Blocks");
        sum.reads += blocks("Shared Read Blocks");
        executions += 1;
    }
    let executions = executions as f64;
    Ok(Blocks { hits: sum.hits / executions, reads: sum.reads / executions })
}

/// Runs and times the query: a few times (once, if that exceeds the budget), and again as long as
/// the budget lasts.
async fn time(
    client: &Client,
    statements: &Statements<'_>,
    random: &mut Rng,
    budget: Duration,
) -> Result<Latencies, Error> {
    let mut latencies = Latencies::new();
    let mut spent = Duration::ZERO;
    loop {
        let statement = statements.next(random);
        let started = Instant::now();
        client.batch_execute(&statement).await?;
        let elapsed = started.elapsed();
        latencies.record(elapsed);
        spent += elapsed;
        let few = latencies.count() < FEW && elapsed < budget.max(QUICK);
        if latencies.count() >= MANY || spent >= budget && !few {
            return Ok(latencies);
        }
    }
}

/// The node of a plan, as EXPLAIN (FORMAT JSON) gives it, that writes or locks rows.
fn writes(plan: &Value) -> Option<String> {
    match plan {
        Value::Object(node) => match node.get("Node Type").and_then(Value::as_str) {
            Some(name @ ("ModifyTable" | "LockRows")) => Some(name.to_owned()),
            _ => node.values().find_map(writes),
        },
        Value::Array(nodes) => nodes.iter().find_map(writes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prober() -> Prober {
        let table = ProbeTable { name: "\"t\"".into(), key: "id".into(), first_key: 1 };
        Prober::new(ProbeKind::Scan, table, Geometry::new(8192), 18, 1)
    }

    #[test]
    fn points_are_due_at_16_mb_first() {
        assert!(!prober().due(FIRST - 1) && prober().due(FIRST) && prober().due_at_end(0));
    }

    #[test]
    fn the_budget_is_a_share_of_the_time_less_what_was_spent() {
        let mut prober = prober();
        assert_eq!(prober.budget(Duration::from_secs(100)), Duration::from_secs(1));
        prober.spent = Duration::from_millis(1200);
        assert_eq!(prober.budget(Duration::from_secs(100)), Duration::ZERO);
        assert_eq!(prober.budget(Duration::from_secs(200)), Duration::from_millis(800));
    }
}
