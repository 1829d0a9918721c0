//! Tables that reference each other in a cycle, and were there before the fill: one transaction loads all of them, and their
//! foreign keys hold when it commits.
//!
//! Pages and rows by COPY with triggers off are proved at the end, once all tables have their rows. Where the server checks
//! the rows that COPY loads, it checks the keys that close the cycle at the end: a key that is not deferrable is made so,
//! within the transaction only. The other steps of each table come after the commit.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::future::LocalBoxFuture;
use measure::Unit;

use super::by_set::BySet;
use super::filler::{Filler, InCycle};
use super::load_chunk::LoadedParts;
use super::rate::RateMeter;
use super::{Conduct, Observer, admission_control, direct, failed};
use crate::cause::Cause;
use crate::error::FillError;
use crate::limits::Event;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::request::InitStep;
use connect::Target;
use server::Session;
use server::interruption::{Ended, until_stopped};
use server::quote::identifier;

/// A table of a cycle.
pub(crate) struct Member<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) conduct: Conduct,
    pub(crate) observer: &'a dyn Observer,
    /// Names of its foreign keys to members that come after it.
    pub(crate) later: &'a [String],
}

/// Fills the tables of a cycle. `interrupt` resolves when the user wants to stop.
///
/// # Errors
/// The place of the table that cannot be filled, with the reason.
pub(crate) fn run_cycle<'a>(
    target: &'a Target,
    members: Vec<Member<'a>>,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Vec<Outcome>, (usize, FillError)>> {
    Box::pin(async move {
        let observers: Vec<_> = members.iter().map(|member| member.observer).collect();
        let tells: Vec<_> =
            observers.iter().map(|observer| move |event: &Event| observer.event(event)).collect();
        let mut fillers = Vec::with_capacity(members.len());
        for (at, (Member { plan, conduct, observer, later }, tell)) in
            members.into_iter().zip(&tells).enumerate()
        {
            let control = admission_control(plan, conduct.limits, conduct.volume_monitor, tell)
                .map_err(|error| (at, error))?;
            let mut filler = Filler::new(target, plan, control, None, false, conduct.records, observer);
            filler.is_unsampled = conduct.is_unsampled;
            filler.makes = conduct.makes;
            filler.at_end = conduct.at_end;
            filler.must_complete = conduct.must_complete;
            fillers.push((filler, later));
        }
        let cycle = Cycle { members: fillers, at: AtomicUsize::new(0) };
        let stop = || cycle.members.iter().for_each(|(filler, _)| filler.stop());
        let result = match until_stopped(target, interrupt, pin!(cycle.fill()), stop).await {
            Ended::Done(result) => Some(result),
            Ended::Stopped(Some(Ok(Ok(outcomes)))) => return Ok(outcomes),
            // Cancelled statements end with an error of their own.
            Ended::Stopped(_) => None,
        };
        let at = cycle.at.load(Ordering::Relaxed);
        match result {
            Some(Ok(Ok(outcomes))) => Ok(outcomes),
            Some(Err(refused)) => Err((at, refused)),
            Some(Ok(Err(cause))) => Err((at, failed(&cycle.members[at].0, Some(cause)).await)),
            None => Err((at, failed(&cycle.members[at].0, None).await)),
        }
    })
}

struct Cycle<'a> {
    members: Vec<(Filler<'a>, &'a [String])>,
    /// The member that is being worked on.
    at: AtomicUsize,
}

impl<'a> Cycle<'a> {
    /// The members one after the other.
    fn each(&self) -> impl Iterator<Item = (&Filler<'a>, &'a [String])> {
        self.members.iter().enumerate().map(|(at, (filler, later))| {
            self.at.store(at, Ordering::Relaxed);
            (filler, *later)
        })
    }

    async fn fill(&self) -> Result<Result<Vec<Outcome>, Cause>, FillError> {
        let mut sessions = Vec::with_capacity(self.members.len());
        for (filler, _) in self.each() {
            sessions.push(filler.begin().await?);
        }
        Ok(self.steps(sessions).await)
    }

    async fn steps(&self, sessions: Vec<Session>) -> Result<Vec<Outcome>, Cause> {
        let mut started = Vec::with_capacity(sessions.len());
        for ((filler, _), session) in self.each().zip(sessions) {
            let start = filler.begin_steps(&session).await?;
            if filler.ledger.get().is_none() {
                filler.begin_ledger(&session).await?;
            }
            started.push((session, start));
        }
        self.load().await?;
        let mut outcomes = Vec::with_capacity(started.len());
        for ((filler, _), (session, start)) in self.each().zip(started) {
            outcomes.push(filler.execute_from(session, start).await?);
        }
        Ok(outcomes)
    }

    /// Loads all rows in one transaction, unless an earlier run has done so.
    async fn load(&self) -> Result<(), Cause> {
        let is_loaded = |filler: &Filler<'_>| {
            let (plan, ledger) = (filler.plan, filler.ledger.get().expect("begun"));
            (0..plan.chunks()).all(|number| ledger.is_loaded(plan, &plan.chunking.chunk(number)))
        };
        let Some((first, _)) = self.members.iter().find(|(filler, _)| !is_loaded(filler)) else {
            return Ok(());
        };
        let session = first.open_loader().await?;
        session.run("BEGIN").await?;
        let mut loading = Loading::default();
        for (filler, _) in self.each().filter(|(filler, _)| !is_loaded(filler)) {
            if let Some(control) = &filler.control {
                control.begin()?;
            }
            if filler.plan.method.is_frozen() {
                loading.truncated.extend(filler.plan.truncated());
            }
        }
        loading.truncated.sort_unstable();
        loading.truncated.dedup();
        if !loading.truncated.is_empty() {
            first.refuse_others_rows(&session, &loading.truncated).await?;
            session.run(&format!("TRUNCATE {}", loading.truncated.join(", "))).await?;
        }
        let mut rows = Vec::with_capacity(self.members.len());
        for (filler, later) in self.each().filter(|(filler, _)| !is_loaded(filler)) {
            if filler.is_stopped() {
                return Err(Cause::Interrupted);
            }
            filler.observer.step_started(InitStep::Generate);
            rows.push((filler, loading.load(filler, later, &session).await?));
        }
        loading.commit(&session).await?;
        for (filler, in_cycle) in rows {
            filler.progress.commit_rows(in_cycle.rows);
            filler.look_at_volumes();
            filler.in_cycle.set(in_cycle).expect("it is loaded once");
        }
        Ok(())
    }
}

/// The transaction that loads a cycle.
#[derive(Default)]
struct Loading {
    /// Tables that it truncates, qualified and quoted.
    truncated: Vec<String>,
    /// Rows that came without triggers, with their table and number.
    by_set: Vec<(BySet, String, u64)>,
    /// Statements that make foreign keys not deferrable again.
    restores: Vec<String>,
    loaded: Vec<LoadedParts>,
}

impl Loading {
    /// Loads the rows of a table. Its keys `later` reference tables that are loaded after it.
    async fn load(
        &mut self,
        filler: &Filler<'_>,
        later: &[String],
        session: &Session,
    ) -> Result<InCycle, Cause> {
        let (plan, started) = (filler.plan, Instant::now());
        let table = plan.bulk_qualified();
        let meter = RateMeter::start("rows-sent", Unit::Rows);
        let work = filler.chunk_loop(filler.ledger.get().expect("begun"), &meter);
        let chunk = plan.chunking.chunk(0);
        let parts = work.ledger.relations.parts(plan, &chunk);
        for part in &parts {
            work.ledger.claim(session, part.destination, chunk.number).await?;
        }
        let by_set =
            if plan.turns_triggers_off() { BySet::begin(filler, session, &table).await? } else { None };
        if by_set.is_none() && plan.method.copies() {
            for key in later {
                self.restores.extend(defer(session, &table, key).await?);
            }
        }
        let loaded = tokio::select! {
            loaded = work.parts(session, &chunk, &parts) => loaded?,
            never = meter.run() => match never {},
        };
        drop(work);
        filler.generated().rate = Some(meter.finish());
        if let Some(by_set) = by_set {
            session.run("SET LOCAL session_replication_role = origin").await?;
            self.by_set.push((by_set, table, loaded.rows));
        }
        let rows = loaded.rows;
        self.loaded.push(loaded);
        Ok(InCycle { rows, elapsed: started.elapsed() })
    }

    /// Checks all foreign keys, and commits.
    async fn commit(self, session: &Session) -> Result<(), Cause> {
        for loaded in &self.loaded {
            direct::prove(session, &loaded.unproved).await?;
        }
        for (by_set, table, rows) in self.by_set {
            by_set.prove(session, &table, rows).await?;
        }
        if !self.restores.is_empty() {
            session.run("SET CONSTRAINTS ALL IMMEDIATE").await?;
            session.run_all(&self.restores).await?;
        }
        let records: Vec<String> = self.loaded.iter().flat_map(|loaded| loaded.records.clone()).collect();
        session.run(&format!("{}; COMMIT", records.join("; "))).await?;
        for LoadedParts { recorded, .. } in self.loaded {
            direct::close(recorded)?;
        }
        Ok(())
    }
}

/// Has the server check a foreign key of a table after all rows of the transaction. Returns the statement that makes the key
/// as it was, if that is necessary.
async fn defer(session: &Session, table: &str, key: &str) -> Result<Option<String>, Cause> {
    let Some(row) = session.rows(include_str!("../sql/may_defer.sql"), &[&table, &key]).await?.pop() else {
        return Ok(None);
    };
    if row.get("is_deferrable") {
        session.run("SET CONSTRAINTS ALL DEFERRED").await?;
        return Ok(None);
    }
    let alter = format!("ALTER TABLE {table} ALTER CONSTRAINT {}", identifier(key));
    session.run(&format!("{alter} DEFERRABLE INITIALLY DEFERRED")).await?;
    Ok(Some(format!("{alter} NOT DEFERRABLE")))
}
