//! The databases that a bench creates, and how they are dropped.
//!
//! The first database, the anchor, is empty, and its comment names the bench; all others are named
//! after it. The leading session is connected to it as long as the bench lives; until the anchor
//! exists, the session that creates it has the anchor's name as its application name. So the next
//! bench knows the databases of a killed one, including one that the server was still creating then (an anchor
//! without a comment), and does not touch databases of a bench that lives.

use std::time::{Duration, Instant};

use crate::bench::error::BenchError;
use crate::clone::{Strategy, clone};
use connect::Target;
use server::Session;
use server::interruption::Stopped;
use server::marked::{self, drop_database};
use server::quote::{identifier, literal};

/// Prefix of all names. As in `testdb_bench_left.sql`.
const PREFIX: &str = "pgrig_testdb_bench_";
/// The anchor's comment.
const MARK: &str = "made by pgrig testdb bench, whose next run drops it and all databases named after it";
/// Time to wait for a session that a killed pgrig left behind. It ends by itself after its current
/// statement.
const IN_USE_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two checks.
const IN_USE_INTERVAL: Duration = Duration::from_millis(100);

/// Databases of one bench on one server.
pub(crate) struct Databases {
    /// The database of the user's connection; the last connection of a bench goes to it.
    pub(crate) outside: Target,
    /// The anchor, for sessions that must not keep a database from being copied.
    pub(crate) anchor: String,
    /// Session that is connected to the anchor, and so keeps no database from being copied.
    pub(crate) lead: Session,
}

impl Databases {
    /// Drops the databases of killed benches, and creates the anchor. It is not interrupted half-way,
    /// because the anchor would be left behind then.
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

    /// The target of one of the databases.
    pub(crate) fn at(&self, name: &str) -> Target {
        self.outside.clone().with_database(name)
    }

    /// Drops all of the databases, ending their sessions.
    pub(crate) async fn finish(self) -> Result<(), BenchError> {
        let Self { outside, anchor, lead } = self;
        // It may be in the middle of a statement, which is ended with its session.
        drop(lead);
        let last = Session::open(&outside).await?;
        let others = "SELECT ARRAY(SELECT datname::text FROM pg_database \
                      WHERE starts_with(datname::text, $1 || '_') AND datconnlimit IN ($2, -2))";
        end_sessions(&last, &anchor).await?;
        let others: Vec<String> = last.row(others, &[&anchor, &marked::NUMBER]).await?.get(0);
        for name in others.iter().chain([&anchor]) {
            drop_database(&last, name).await?;
        }
        last.close().await;
        Ok(())
    }
}

/// Drops the databases of benches that no longer run. Waits for sessions that are about to end.
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
        if !some_are_used || stopped.is_told() || began.elapsed() > IN_USE_DEADLINE {
            return Ok(());
        }
        tokio::time::sleep(IN_USE_INTERVAL).await;
    }
}

/// Ends the leading session of a database, and waits for its end. A CREATE DATABASE that is under
/// way then creates nothing.
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
