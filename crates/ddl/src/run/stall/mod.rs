//! The longest wait of readers and writers that use the tables while the migration runs.
//!
//! Each probe is a session with a schedule: a statement is due every 2 ms, whether or not the one before has been answered (an
//! open loop). The session sends it when the one before has been answered.
//! A statement or script of the user may take longer than that. pgrig then sends it less often, so that it keeps its schedule while
//! nothing blocks it.
//! A wait counts from the scheduled time, so that whoever would have come meanwhile counts too. The migration begins after
//! a baseline. Before a statement outside of a transaction, the probes leave out what they are late with: else the stall of that statement would
//! be the backlog of the one before.

mod asked;
mod carry;
pub(crate) mod check;
mod deadlocks;
mod holder;
mod met;
mod probe;
mod unprobed;
mod watch;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use server::Session;
use tokio::task::JoinSet;

use self::asked::asked;
pub(crate) use self::holder::waiting_transactions;
use self::holder::{Holder, waits_for_readers};
use self::met::{Met, Owners, Span, Uses, met};
use self::probe::{Answer, Log, Probe, interval};
use self::unprobed::unprobed;
use self::watch::{Queue, Waiting};
use super::Observer;
use super::databases::Databases;
use super::failure;
use super::rehearse::Tables;
use crate::edge::Edge;
use crate::open::Open;
use crate::outcome::{Baseline, ProbeKind, Probed, Stall, StatementOutcome, Stopped, TableAt, Wait};
use crate::request::Probes;

/// Time between the scheduled starts of a probe.
pub(crate) const INTERVAL: Duration = Duration::from_millis(2);
/// Time before the migration.
const BASELINE: Duration = Duration::from_secs(1);
/// Most tables that are probed, the largest first.
const TABLES: usize = 4;
/// Longest wait until the probes have caught up.
const CALM: Duration = Duration::from_secs(10);

/// Results of the probes.
pub(crate) struct ProbeResults {
    pub(crate) probed: Probed,
    /// The stall of each statement that ran, by its place.
    pub(crate) stalls: Vec<Option<Stall>>,
}

/// Tables to probe, with their sizes.
pub(crate) struct Candidates<'a> {
    pub(crate) tables: &'a Tables,
    /// OIDs of the tables, the largest first.
    oids: Vec<u32>,
    /// OIDs of the views and materialized views.
    views: Vec<u32>,
    /// The tables as they were filled.
    filled: &'a [TableAt],
}

impl<'a> Candidates<'a> {
    /// Of these tables and views, with the tables that were filled.
    pub(crate) fn of(
        tables: &'a Tables,
        (mut oids, views): (Vec<u32>, Vec<u32>),
        filled: &'a [TableAt],
    ) -> Self {
        let none = Self { tables, oids: Vec::new(), views, filled };
        oids.sort_by_cached_key(|oid| Reverse(none.sum(*oid, |table| table.bytes)));
        Self { oids, ..none }
    }

    /// OIDs of the tables and views.
    fn all(&self) -> Vec<u32> {
        [self.oids.as_slice(), &self.views].concat()
    }

    fn rows(&self, oid: u32) -> u64 {
        self.sum(oid, |table| table.rows)
    }

    /// The sum of a table, or of the partitions in which its rows are.
    fn sum(&self, oid: u32, of: impl Fn(&TableAt) -> u64) -> u64 {
        self.filled.iter().filter(|table| table.root == oid).map(of).sum()
    }
}

/// Runs the migration in a copy while probes use the tables. Its session and those of the probes are of the target `migrating`, with the settings
/// of the original. With `blocker`, a transaction that has read the tables is open for so long, from before the migration and before each of its transactions that
/// waits for it.
pub(crate) async fn measure(
    databases: &Databases,
    (target, migrating): (&Target, &Target),
    statements: &[StatementOutcome],
    candidates: &Candidates<'_>,
    probes: &Probes,
    (blocker, seed): (Option<Duration>, u64),
    observer: &mut dyn Observer,
) -> Result<ProbeResults, ConnectError> {
    observer.step("choosing the keys that readers and writers use");
    let (asked, without) = asked(target, candidates, probes, seed).await?;
    let mut log = Vec::new();
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    let mut pids = Vec::new();
    for mut asked in asked {
        let session = patient(migrating).await?;
        let pid = session.pid().await?;
        pids.push(pid);
        let interval = interval(&mut asked, &session).await;
        let probe = Arc::new(Probe::new(pid, asked, interval));
        log.push(Arc::clone(&probe));
        tasks.spawn(async move {
            probe.run(session, began).await;
        });
    }
    let waiting = Arc::new(Waiting::default());
    let looking = Session::open(target).await?;
    let watched = Arc::clone(&waiting);
    tasks.spawn(async move {
        watched.watch(&looking, &pids, began).await;
        looking.close().await;
    });
    tokio::time::sleep(BASELINE).await;
    let session = Session::open(migrating).await?;
    let migrating_pid = session.pid().await?;
    // As in the runs that are timed: catalogs are in the session's caches.
    let owners = Owners::of(&session.rows(include_str!("../../sql/relations.sql"), &[]).await?);
    let mut holder = match blocker {
        Some(held) => Some(Holder::begin(target, candidates.all(), held).await?),
        None => None,
    };
    let migration_began = began.elapsed();
    section(&log, migration_began);
    let migration = migrate((&session, databases), statements, &log, holder.as_mut(), began, observer);
    let spans = migration.await?;
    // Its locks end with it, and the blocker's too. What was scheduled before that is answered.
    session.close().await;
    if let Some(holder) = holder {
        holder.end();
    }
    calm(&log, began).await;
    for probe in &log {
        probe.stop();
    }
    waiting.stop();
    while tasks.join_next().await.is_some() {}

    let logs: Vec<(&Probe, Log)> = log.iter().map(|probe| (&**probe, probe.log())).collect();
    let queue = waiting.found();
    let counted: Vec<Counted<'_>> =
        logs.iter().flat_map(|log| counted(log, &spans, &queue, (candidates.tables, &owners))).collect();
    let stall = |(place, one): (usize, &StatementOutcome)| {
        let stall = stall(&spans, place, &counted, &queue)?;
        let span = spans[place].as_ref()?;
        let has_kept = one.found.as_ref().is_some_and(|found| !found.inherited.is_empty());
        let longest = stall.longest().map_or(0.0, |wait| wait.seconds);
        let earlier = if has_kept { earlier(&spans, place, &counted, longest) } else { None };
        let counts_for = earlier.map(|place| statements[place].number);
        let deadlocks = deadlocks::lost((&spans, migrating_pid), place, &logs);
        let unprobed = unprobed(one, span, candidates.tables, &logs);
        Some(Stall { unprobed, counts_for, deadlocks, ..stall })
    };
    let stalls = statements.iter().enumerate().map(stall).collect();
    let baseline = |kind: ProbeKind| {
        let of_kind = logs.iter().filter(|(probe, _)| probe.asked.kind == kind);
        let before =
            of_kind.flat_map(|(_, log)| log.answers.iter().filter(|one| one.scheduled < migration_began));
        before.map(|one| one.waited().as_secs_f64()).reduce(f64::max)
    };
    let stopped = logs.iter().filter_map(|(probe, log)| {
        let (at, message) = log.stopped.as_ref()?;
        let number = spans.iter().rposition(|span| span.as_ref().is_some_and(|span| span.start <= *at));
        Some(Stopped {
            name: probe.asked.name.clone(),
            kind: probe.asked.kind,
            number: number.map(|place| place + 1),
            message: message.clone(),
        })
    });
    let meanwhile = Probed {
        names: logs
            .iter()
            .map(|(probe, _)| format!("{} {}", probe.asked.kind.name(), probe.asked.name))
            .collect(),
        unprobed: without,
        per_second: logs.iter().map(|(probe, _)| 1.0 / probe.interval.as_secs_f64()).collect(),
        baseline: Baseline { read: baseline(ProbeKind::Read), write: baseline(ProbeKind::Write) },
        stopped: stopped.collect(),
    };
    Ok(ProbeResults { probed: meanwhile, stalls })
}

/// An answer of a probe, with the statement for which its wait counts.
struct Counted<'a> {
    probe: &'a Probe,
    answer: &'a Answer,
    met: Option<Met>,
}

/// The answers of a probe, each with the statement for which its wait counts.
fn counted<'a>(
    (probe, log): &'a (&Probe, Log),
    spans: &[Option<Span>],
    queue: &Queue,
    (tables, owners): (&Tables, &Owners),
) -> Vec<Counted<'a>> {
    let uses = Uses::of(&probe.asked, tables);
    let counted = |answer: &'a Answer| {
        let waits_on = queue.first(probe.pid, answer.scheduled, answer.answered);
        let waits_on = waits_on.map(|waits_on| owners.on_table(waits_on));
        Counted { probe, answer, met: met(spans, &uses, waits_on, answer) }
    };
    log.answers.iter().map(counted).collect()
}

/// Runs the statements; each outside of a transaction, or the first of one, when all probes have caught up.
async fn migrate(
    (session, databases): (&Session, &Databases),
    statements: &[StatementOutcome],
    probes: &[Arc<Probe>],
    mut holder: Option<&mut Holder<'_>>,
    began: Instant,
    observer: &mut dyn Observer,
) -> Result<Vec<Option<Span>>, ConnectError> {
    let mut spans = Vec::with_capacity(statements.len());
    let (mut is_in_transaction, mut has_locks) = (false, false);
    let mut is_failed = false;
    let mut since = Duration::ZERO;
    let mut open = Open::new();
    for one in statements {
        let edge = Edge::of(&one.statement);
        let ends = edge.as_ref().is_some_and(Edge::ends);
        let chains = edge == Some(Edge::Chains);
        if one.failed.is_some() || is_failed && !ends {
            spans.push(None);
            continue;
        }
        observer.step(&format!("running statement {} of {}", one.number, statements.len()));
        if !has_locks {
            since = calm(probes, began).await;
            let place = spans.len();
            if let Some(holder) = holder.as_mut()
                && place > 0
                && waits_for_readers(&statements[place..], is_in_transaction)
            {
                holder.begin_anew().await?;
            }
        }
        section(probes, began.elapsed());
        let start = began.elapsed();
        let ran = match (is_failed, chains) {
            (false, _) => databases.run(session, &one.statement, is_in_transaction).await,
            (true, false) => session.run("ROLLBACK").await,
            (true, true) => session.run("ROLLBACK AND CHAIN").await,
        };
        let ran = failure::refused(ran)?;
        let end = began.elapsed();
        section(probes, end);
        let failed = ran.err().map(|error| failure::of(&error).message);
        if edge.is_some() {
            is_in_transaction = !ends || chains && failed.is_none();
        }
        is_failed = is_in_transaction && (is_failed && !ends || failed.is_some());
        has_locks = is_in_transaction && !ends;
        let blocks = one.found.as_ref().is_some_and(|found| found.blocking().is_some());
        let locks = one.found.as_ref().map(|found| found.taken.clone()).unwrap_or_default();
        spans.push(Some(Span { start, end, since, until: end, locks, blocks, failed }));
        let ended = open.add(spans.len() - 1, edge, is_in_transaction);
        release(&mut spans, &ended, end);
    }
    release(&mut spans, &open.rest(), began.elapsed());
    Ok(spans)
}

/// The locks of the statements at these places end.
fn release(spans: &mut [Option<Span>], places: &[usize], now: Duration) {
    for place in places {
        if let Some(span) = &mut spans[*place] {
            span.until = now;
        }
    }
}

/// A statement of the migration begins or ends.
fn section(probes: &[Arc<Probe>], now: Duration) {
    for probe in probes {
        probe.begin_section(now);
    }
}

/// All probes leave out what they are late with, and are on time again. Of what waits for one statement, the first that was due waits for
/// the longest time, and it is answered first. Returns the time before which nothing counts for the next statement.
async fn calm(probes: &[Arc<Probe>], began: Instant) -> Duration {
    let now = began.elapsed();
    for probe in probes {
        probe.skip_to(now);
    }
    caught_up(probes, now).await;
    now
}

/// Waits until all probes that run have answered something that was due after `now`, at most [`CALM`].
async fn caught_up(probes: &[Arc<Probe>], now: Duration) {
    let deadline = Instant::now() + CALM;
    while probes.iter().any(|probe| probe.is_behind(now)) && Instant::now() < deadline {
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The longest waits that count for the statement at this place; none if it did not run.
fn stall(spans: &[Option<Span>], place: usize, counted: &[Counted<'_>], queue: &Queue) -> Option<Stall> {
    let span = spans[place].as_ref()?;
    let longest = |kind: ProbeKind| {
        let is_meant = |one: &&Counted<'_>| {
            one.probe.asked.kind == kind && one.met.is_some_and(|met| met.place == place)
        };
        let Counted { probe, answer, .. } =
            counted.iter().filter(is_meant).max_by_key(|one| one.answer.waited())?;
        Some(Wait {
            seconds: answer.waited().as_secs_f64(),
            lock: queue.locked(probe.pid, answer.scheduled, answer.answered).as_secs_f64(),
            name: probe.asked.name.clone(),
            is_failed: answer.is_error,
        })
    };
    Some(Stall {
        read: longest(ProbeKind::Read),
        write: longest(ProbeKind::Write),
        seconds: span.end.saturating_sub(span.start).as_secs_f64(),
        unprobed: Vec::new(),
        counts_for: None,
        deadlocks: Vec::new(),
        failed: span.failed.clone(),
    })
}

/// The place of the earlier statement for which the longest wait counts that went on while the statement at this place ran, if it may be for a lock
/// of the earlier one, and is longer than `longest`, seconds.
fn earlier(spans: &[Option<Span>], place: usize, counted: &[Counted<'_>], longest: f64) -> Option<usize> {
    let span = spans[place].as_ref()?;
    let waits = counted.iter().filter(|one| span.meets_itself(one.answer)).filter_map(|one| {
        let met = one.met.filter(|met| met.place < place && met.is_blocked)?;
        Some((met.place, one.answer.waited()))
    });
    let (at, waited) = waits.max_by_key(|(_, waited)| *waited)?;
    (waited.as_secs_f64() > longest).then_some(at)
}

/// A session whose waits for locks have no limit, whatever the role or database has as its default.
async fn patient(target: &Target) -> Result<Session, ConnectError> {
    let session = Session::open(target).await?;
    session.run("SET lock_timeout = 0").await?;
    Ok(session)
}
