//! Lookups beside backups: the latency that clients of the database would see, in an open loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use server::Session;
use server::quote::{identifier, literal, qualified};
use tokio::task::JoinHandle;

use crate::beside::{Beside, Lookups};
use crate::request::Request;
use crate::run::source::Source;
use crate::run::step::{Measured, Trouble};

/// Lookups each second.
const RATE: f64 = 50.0;
/// Duration of the baseline before each backup.
const BASELINE: Duration = Duration::from_secs(1);
/// Interval of looks at locks.
const LOOK: Duration = Duration::from_millis(250);
/// Time after a backup in which lookups that wait may still end.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(10);
/// The choice of keys waits no longer. The snapshot's session keeps its locks meanwhile, so a session that waits to lock a table, and pgrig behind it, would
/// wait for ever.
const CHOICE: &str = "SET lock_timeout = '5s'";
/// Tables whose rows are looked up, the largest ones; keys of each; pages that are read for them.
const TABLES: i64 = 8;
const KEYS: i64 = 200;
const PAGES: f64 = 50.0;

/// Looks up rows by their keys, until it is dropped.
pub(crate) struct Prober {
    seen: Arc<Mutex<Seen>>,
    began: Instant,
    task: JoinHandle<()>,
    pid: i32,
}

/// All lookups so far.
#[derive(Default)]
struct Seen {
    /// Scheduled start, and latency.
    done: Vec<(Duration, Duration)>,
    /// Scheduled start of failed ones.
    failed: Vec<Duration>,
    /// The end of the connection, if it is lost.
    lost: Option<String>,
}

/// Does the work of a backup, beside lookups if there are any.
pub(crate) async fn beside(
    prober: Option<&Prober>,
    target: &Target,
    source: &Source,
    work: impl Future<Output = Result<Measured, Trouble>>,
) -> Result<(Measured, Option<Beside>), Trouble> {
    match prober {
        None => Ok((work.await?, None)),
        Some(prober) => {
            let (measured, beside) = prober.during(target, source, work).await?;
            Ok((measured, Some(beside)))
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Prober {
    /// Begins, if the request wants it; otherwise there may be a note why not.
    pub(crate) async fn if_asked(
        request: &Request,
        target: &Target,
    ) -> Result<(Option<Self>, Option<String>), ConnectError> {
        if !request.probe {
            return Ok((None, None));
        }
        Ok(match Self::start(target).await? {
            Ok(prober) => (Some(prober), None),
            Err(why) => (None, Some(format!("no lookups ran beside the backups: {why}"))),
        })
    }

    /// Chooses keys and begins. The inner error says why there is nothing to look up.
    async fn start(target: &Target) -> Result<Result<Self, String>, ConnectError> {
        let session = Session::open(target).await?;
        session.run("SET default_transaction_read_only = on").await?;
        session.run(CHOICE).await?;
        let pid = session.pid().await?;
        let queries = queries(&session).await;
        // The lookups wait as those of other sessions do.
        session.run("SET lock_timeout = 0").await?;
        let queries = match queries {
            Ok(queries) => queries,
            Err(error) => return Ok(Err(format!("keys cannot be read: {error}"))),
        };
        if queries.is_empty() {
            session.close().await;
            let why = "no table that this role may read, and that no session locks, has both rows and a primary key";
            return Ok(Err(why.to_owned()));
        }
        let seen = Arc::new(Mutex::new(Seen::default()));
        let began = Instant::now();
        let task = tokio::spawn(look_up(session, queries, began, Arc::clone(&seen)));
        Ok(Ok(Self { seen, began, task, pid }))
    }

    /// Does the work of a backup, with a baseline before it, and looks at the locks that it holds.
    async fn during(
        &self,
        target: &Target,
        source: &Source,
        work: impl Future<Output = Result<Measured, Trouble>>,
    ) -> Result<(Measured, Beside), Trouble> {
        let begin = Instant::now();
        tokio::time::sleep(BASELINE).await;
        let from = Instant::now();
        let mut held = BTreeMap::new();
        let session = Session::open(target).await?;
        let before = transactions(&session).await?;
        let others = [self.pid, source.pid, session.pid().await?];
        let started = Instant::now();
        // A look at a silent server takes as long as it likes: the work goes on beside it, and ends both.
        let looks = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Err(error) = look_at_locks(&session, &others, &mut held).await {
                    return error;
                }
            }
        };
        let measured = tokio::select! {
            biased;
            done = work => done?,
            error = looks => return Err(error.into()),
        };
        let to = Instant::now();
        let after = transactions(&session).await?;
        session.close().await;
        let wait = Instant::now();
        while wait.elapsed() < PATIENCE && !self.has_reached(to) {
            tokio::time::sleep(AGAIN).await;
        }
        let beside = Beside {
            baseline: self.between(begin, from),
            during: self.between(started, to),
            locks: held,
            transactions: u64::try_from(after - before).unwrap_or_default(),
        };
        Ok((measured, beside))
    }

    fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether all lookups that were scheduled before have ended.
    fn has_reached(&self, at: Instant) -> bool {
        let wanted = at.saturating_duration_since(self.began).saturating_sub(interval());
        self.seen(|seen| seen.lost.is_some() || seen.last().is_some_and(|last| last >= wanted))
    }

    fn between(&self, from: Instant, to: Instant) -> Lookups {
        let [from, to] = [from, to].map(|at| at.saturating_duration_since(self.began));
        let now = self.began.elapsed();
        self.seen(|seen| seen.between(from, to, now))
    }
}

impl Seen {
    /// Scheduled start of the last lookup that has ended.
    fn last(&self) -> Option<Duration> {
        let done = self.done.last().map(|(at, _)| *at);
        done.max(self.failed.last().copied())
    }

    /// Lookups that were scheduled between. Those that have not ended count with the time that they have waited so far.
    fn between(&self, from: Duration, to: Duration, now: Duration) -> Lookups {
        let is_within = |at: Duration| from <= at && at < to;
        let mut found = Lookups::default();
        for (_, latency) in self.done.iter().filter(|(at, _)| is_within(*at)) {
            found.latencies.record(*latency);
        }
        if self.lost.is_none() {
            let mut next = self.last().map_or(Duration::ZERO, |last| last + interval());
            while next < to {
                if is_within(next) {
                    found.latencies.record(now.saturating_sub(next));
                    found.waiting += 1;
                }
                next += interval();
            }
        }
        found.failed = self.failed.iter().filter(|at| is_within(**at)).count() as u64;
        found
    }
}

fn interval() -> Duration {
    Duration::from_secs_f64(1.0 / RATE)
}

async fn look_up(session: Session, queries: Vec<String>, began: Instant, seen: Arc<Mutex<Seen>>) {
    let mut scheduled = Duration::ZERO;
    for query in queries.iter().cycle() {
        tokio::time::sleep_until((began + scheduled).into()).await;
        let answer = session.connection.client.simple_query(query).await;
        let latency = began.elapsed().saturating_sub(scheduled);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(_) => seen.done.push((scheduled, latency)),
            Err(error) => {
                seen.failed.push(scheduled);
                if session.connection.client.is_closed() {
                    seen.lost = Some(error.to_string());
                    return;
                }
            }
        }
        drop(seen);
        scheduled += interval();
    }
}

/// Queries for rows of the largest tables by primary key, in turn. Each table's keys come from a sample of its pages.
async fn queries(session: &Session) -> Result<Vec<String>, ConnectError> {
    let mut of_tables: Vec<Vec<String>> = Vec::new();
    for row in session.rows(include_str!("../sql/keys.sql"), &[&TABLES]).await? {
        let table = qualified(row.get("schema"), row.get("name"));
        let columns: Vec<String> = row.get("columns");
        let columns: Vec<String> = columns.iter().map(|column| identifier(column)).collect();
        let percent = (100.0 * PAGES / f64::from(row.get::<_, i32>("pages").max(1))).min(100.0);
        let texts: Vec<String> = columns.iter().map(|column| format!("{column}::text")).collect();
        let query = format!(
            "SELECT ARRAY[{}] AS key FROM ONLY {table} TABLESAMPLE SYSTEM ({percent}) LIMIT {KEYS}",
            texts.join(", ")
        );
        let keys = session.rows(&query, &[]).await?;
        let lookup = |key: Vec<String>| {
            let conditions =
                columns.iter().zip(&key).map(|(column, value)| format!("{column} = {}", literal(value)));
            format!("SELECT * FROM ONLY {table} WHERE {}", conditions.collect::<Vec<_>>().join(" AND "))
        };
        of_tables.push(keys.iter().map(|row| lookup(row.get("key"))).collect());
    }
    let most = of_tables.iter().map(Vec::len).max().unwrap_or_default();
    Ok((0..most)
        .flat_map(|number| of_tables.iter().filter_map(move |keys| keys.get(number).cloned()))
        .collect())
}

/// The number of the next transaction.
async fn transactions(session: &Session) -> Result<i64, ConnectError> {
    let query = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next";
    Ok(session.row(query, &[]).await?.get("next"))
}

/// Adds the locks on tables that pgrig's programs hold: for each mode the most tables.
async fn look_at_locks(
    session: &Session,
    others: &[i32],
    held: &mut BTreeMap<String, u64>,
) -> Result<(), ConnectError> {
    for row in session.rows(include_str!("../sql/held.sql"), &[&others]).await? {
        let tables = u64::try_from(row.get::<_, i64>("tables")).unwrap_or_default();
        let most = held.entry(row.get("mode")).or_default();
        *most = tables.max(*most);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::{RELEASES, block_on, shared, until_async};

    use super::*;

    /// The snapshot's session holds a lock for which the other session waits, and a look at the table would wait behind that one.
    #[test]
    fn a_table_that_a_session_waits_to_lock_is_left_out_at_once() {
        block_on(async {
            let database = shared(RELEASES[0]).database().await;
            let open = async || Session::open(&database.target).await.unwrap();
            let (snapshot, other, own) = (open().await, open().await, open().await);
            for table in ["free", "wanted"] {
                snapshot.run(&format!("CREATE TABLE public.{table} AS SELECT 1 AS id")).await.unwrap();
                snapshot.run(&format!("ALTER TABLE public.{table} ADD PRIMARY KEY (id)")).await.unwrap();
            }
            snapshot.run("BEGIN").await.unwrap();
            snapshot.run("LOCK TABLE public.wanted IN ACCESS SHARE MODE").await.unwrap();
            own.run(CHOICE).await.unwrap();
            let chosen = async {
                let query = "SELECT count(*) AS waiting FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                             WHERE NOT l.granted AND d.datname = current_database()";
                until_async("the other session waits", async || {
                    snapshot.row(query, &[]).await.unwrap().get::<_, i64>("waiting") > 0
                })
                .await;
                let chosen = queries(&own).await.unwrap();
                snapshot.run("COMMIT").await.unwrap();
                chosen
            };
            let altered = other.run("ALTER TABLE public.wanted ADD more int");
            let (altered, chosen) = tokio::join!(altered, chosen);
            altered.unwrap();
            assert_eq!(chosen, ["SELECT * FROM ONLY \"public\".\"free\" WHERE \"id\" = '1'"]);
        });
    }

    #[test]
    fn lookups_that_wait_count_with_the_time_that_they_wait() {
        let at = |number: u32| interval() * number;
        let mut seen = Seen {
            done: (0..100).map(|number| (at(number), Duration::from_millis(1))).collect(),
            ..Seen::default()
        };
        let found = seen.between(at(90), at(120), at(200));
        assert_eq!((found.latencies.count(), found.waiting, found.failed), (30, 20, 0));
        let longest = found.latencies.max().unwrap();
        assert!(longest >= at(100) && longest < at(100).mul_f64(1.001), "{found:?}");
        assert_eq!(seen.between(at(50), at(100), at(200)).waiting, 0);
        seen.failed = vec![at(100)];
        seen.lost = Some("gone".to_owned());
        let found = seen.between(at(90), at(120), at(200));
        assert_eq!((found.latencies.count(), found.waiting, found.failed), (10, 0, 1));
    }
}
