//! The databases that a bench makes, and how all of them go again.
//!
//! The first one, the anchor, is empty, and its comment says whose it is; all others are named after it. The leading
//! session is connected to it as long as the bench lives; the one that makes it bears its name until then. So the next
//! bench knows what a killed one left, even what the server was still making then (an anchor without a comment), and
//! leaves alone what belongs to one that lives.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::bench::error::BenchError;
use crate::clone::{self, Strategy, clone, drop_database};
use connect::Target;
use server::Session;
use server::quote::{identifier, literal};

/// Prefix of all names. As in `testdb_bench_left.sql`.
const PREFIX: &str = "pgrig_testdb_bench_";
/// The anchor's comment.
const MARK: &str = "made by pgrig testdb bench, whose next run drops it and all databases named after it";
/// A session that a killed pgrig left behind ends by itself, once it has done what it is at.
const IN_USE_DEADLINE: Duration = Duration::from_secs(10);
/// Between two looks.
const IN_USE_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the user wants to stop.
pub(crate) type Stopped = watch::Receiver<bool>;

/// Databases of one bench on one server.
pub(crate) struct Databases {
    /// The database that the server was named with: the last connection is to that one.
    pub(crate) outside: Target,
    /// For sessions that must be in the way of no copy.
    pub(crate) anchor: String,
    /// Connected to the anchor, so that it is in the way of no copy.
    pub(crate) lead: Session,
}

impl Databases {
    /// Drops what killed benches have left, and makes the anchor. Whoever wants to stop waits for that: dropped
    /// half-way it would be left.
    pub(crate) async fn begin(outside: &Target, stopped: &Stopped) -> Result<Self, BenchError> {
        let anchor = format!("{PREFIX}{:016x}", fastrand::u64(..));
        let first = Session::open(&outside.clone().with_application_name(&anchor)).await?;
        sweep(&first, stopped).await?;
        clone(&first, "template0", &anchor, Strategy::Default).await?;
        let marked = async {
            let lead = Session::open(&outside.clone().with_database(&anchor)).await?;
            lead.run(&format!("COMMENT ON DATABASE {} IS {}", identifier(&anchor), literal(MARK))).await?;
            Ok(lead)
        };
        match marked.await {
            Ok(lead) => {
                first.close().await;
                Ok(Self { outside: outside.clone(), anchor, lead })
            }
            Err(error) => {
                drop_database(&first, &anchor).await?;
                Err(error)
            }
        }
    }

    /// A name for a further database.
    pub(crate) fn name(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.anchor)
    }

    /// One of the databases.
    pub(crate) fn at(&self, name: &str) -> Target {
        self.outside.clone().with_database(name)
    }

    /// Drops all of them, whoever is connected.
    pub(crate) async fn finish(self) -> Result<(), BenchError> {
        let Self { outside, anchor, lead } = self;
        // It may be in the middle of a statement, which is ended with its session.
        drop(lead);
        let last = Session::open(&outside).await?;
        let others = "SELECT ARRAY(SELECT datname::text FROM pg_database \
                      WHERE starts_with(datname::text, $1 || '_') AND datconnlimit IN ($2, -2))";
        end_sessions(&last, &anchor).await?;
        let others: Vec<String> = last.row(others, &[&anchor, &clone::MARK]).await?.get(0);
        for name in others.iter().chain([&anchor]) {
            drop_database(&last, name).await?;
        }
        last.close().await;
        Ok(())
    }
}

/// Drops what benches that are no more have left. Of one whose session is about to end it waits for that.
async fn sweep(session: &Session, stopped: &Stopped) -> Result<(), BenchError> {
    let began = Instant::now();
    loop {
        let left = session.rows(include_str!("../../sql/bench_left.sql"), &[&MARK]).await?;
        for row in left.iter().filter(|row| !row.get::<_, bool>("is_used")) {
            let (anchor, others): (String, Vec<String>) = (row.get("anchor"), row.get("others"));
            for name in others.iter().chain([&anchor]) {
                drop_database(session, name).await?;
            }
        }
        let some_are_used = left.iter().any(|row| row.get("is_used"));
        if !some_are_used || *stopped.borrow() || began.elapsed() > IN_USE_DEADLINE {
            return Ok(());
        }
        tokio::time::sleep(IN_USE_INTERVAL).await;
    }
}

/// Ends what leads there, and waits for its end: a CREATE DATABASE that is under way makes nothing then.
async fn end_sessions(session: &Session, database: &str) -> Result<(), BenchError> {
    // Others may be autovacuum's, which not every role may end. DROP DATABASE sees to them.
    let query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE datname = $1 AND backend_type = 'client backend' AND pg_has_role(usesysid, 'USAGE')";
    let began = Instant::now();
    while session.row(query, &[&database]).await?.get::<_, i64>(0) > 0 && began.elapsed() < IN_USE_DEADLINE {
        tokio::time::sleep(IN_USE_INTERVAL).await;
    }
    Ok(())
}
