//! Trials: all steps one after the other, at all clients at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::try_join_all;

use crate::error::BlockioError;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::run::Observer;
use crate::run::client::Client;
use crate::run::counters::Counting;
use crate::run::scratch;
use crate::run::trial::Trial;
use connect::{ConnectError, Target};
use server::disturbance::Checkpoints;
use server::fault;
use server::{Session, Sessions};
use server::{Survey, settle};

/// The leading session, which reads counters and cleans up. Workers are connected for each trial.
pub(crate) struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) survey: &'a Survey,
    pub(crate) counting: Counting,
    pub(crate) lead: Session,
    pub(crate) sessions: Sessions<'a>,
    observer: &'a dyn Observer,
    in_hand: AtomicBool,
    step: Mutex<&'static str>,
}

impl<'a> Bench<'a> {
    pub(crate) async fn open(
        target: &'a Target,
        survey: &'a Survey,
        plan: &'a Plan,
        observer: &'a dyn Observer,
    ) -> Result<Self, BlockioError> {
        let sessions = Sessions::new(target);
        let lead = sessions.open().await?;
        let counting = Counting { major: survey.server.major() };
        let (in_hand, step) = (AtomicBool::new(false), Mutex::new("the beginning"));
        Ok(Self { plan, survey, counting, lead, sessions, observer, in_hand, step })
    }

    /// The step that is being done.
    pub(crate) fn step(&self) -> &'static str {
        *self.step.lock().expect("nobody panics holding this")
    }

    /// Creates the objects that all trials need.
    pub(crate) async fn begin(&self) -> Result<(), BlockioError> {
        scratch::take_in_hand(&self.lead, &self.plan.schema).await?;
        self.in_hand.store(true, Ordering::Relaxed);
        Ok(scratch::prepare(&self.lead, self.plan).await?)
    }

    /// Drops everything, unless the run keeps it.
    pub(crate) async fn clear(&self) -> Result<(), ConnectError> {
        if !self.in_hand.load(Ordering::Relaxed) {
            return Ok(());
        }
        scratch::clear(&self.lead, &self.plan.schema).await
    }

    /// Runs one trial, from the creation of tables on.
    pub(crate) async fn trial(&self, number: u16) -> Result<Outcome, BlockioError> {
        scratch::drop_tables(&self.lead, self.plan).await?;
        let before = Checkpoints::so_far(&self.lead.connection.client).await;
        let is_local = self.survey.environment.server_is_local == Some(true);
        let settled = settle(&self.lead.connection, is_local).await?;
        let clients =
            try_join_all(self.plan.tables.iter().map(|names| Client::open(&self.sessions, self.plan, names)))
                .await?;
        let mut trial = Trial::new(self, clients);
        for step in self.plan.script() {
            *self.step.lock().expect("nobody panics holding this") = step.title;
            self.observer.step_started(number, step);
            fault::point("blockio");
            trial.step(step).await?;
            self.observer.step_finished();
        }
        let mut notes = trial.notes();
        let now = Checkpoints::so_far(&self.lead.connection.client).await;
        let ran = now.zip(before).map_or(0, |(now, before)| now.since(before));
        let others = ran.saturating_sub(trial.own_checkpoints() + u64::from(settled));
        if others > 0 {
            let plural = if others == 1 { "checkpoint" } else { "checkpoints" };
            notes.push(format!(
                "trial {number}: {others} {plural} began during the trial and took a part of the time"
            ));
        }
        if trial.was_autovacuumed().await? {
            notes.push(format!("trial {number}: autovacuum worked on the table and took a part of the time"));
        }
        Ok(trial.finish(notes).await)
    }
}
