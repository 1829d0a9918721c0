//! Runs trial after trial, and restores everything afterwards.

use std::cell::Cell as Mutable;
use std::path::Path;
use tokio_postgres::error::SqlState;

use crate::matrix::cell::Cell;
use crate::matrix::error::MatrixError;
use crate::matrix::plan::MatrixPlan;
use crate::{End, Outcome, Plan, TpsError};
use connect::{ConnectError, Connection, Target};
use server::fault::caught;
use server::interruption::{Stopped, stop, told_to_stop};
use server::settings::{Changer, Effect, SYNC_BY_HAND, ServerRef, SettingsError};
use server::{DifferingSetting, Restarter, differing_settings};
use server::{Session, Sessions};

/// States of a server that refuses a setting of a session.
const REFUSED: [SqlState; 3] =
    [SqlState::INVALID_PARAMETER_VALUE, SqlState::UNDEFINED_OBJECT, SqlState::CANT_CHANGE_RUNTIME_PARAM];

/// Server and journals of a matrix.
pub struct Site<'a> {
    /// Target of the server.
    pub target: &'a Target,
    /// The server's name in the journal.
    pub place: ServerRef,
    /// Directory of the journals.
    pub journals: &'a Path,
    /// Restarts the server; none if it cannot be restarted.
    pub restarter: Option<&'a dyn Restarter>,
}

/// Receives the events between trials.
pub trait MatrixObserver: Sync {
    /// The server is being prepared for this trial (from 1).
    fn preparing(&self, number: usize, cell: &Cell);
    /// Settings and tables are being restored.
    fn putting_back(&self);
    /// A warning that does not stop the run.
    fn warn(&self, text: &str);
}

/// A trial whose server is ready.
pub struct ReadyTrial<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The cell that the trial measures.
    pub cell: &'a Cell,
    /// The server as its clients reach it.
    pub target: &'a Target,
    /// The plan of their transactions; its tables are prepared.
    pub plan: &'a Plan,
    stopped: Stopped,
}

impl ReadyTrial<'_> {
    /// Resolves when the user wants to stop.
    pub fn interrupted(&self) -> impl Future<Output = ()> + use<> {
        self.stopped.told()
    }
}

/// Prepares the server for each trial, and calls `measure`, which carries the trial out with
/// [`crate::run`]. `interrupt` resolves when the user wants to stop. In any case settings and
/// tables are restored.
///
/// # Errors
/// If a trial fails or is interrupted, or something could not be restored.
pub async fn run(
    site: &Site<'_>,
    plan: &MatrixPlan,
    observer: &dyn MatrixObserver,
    interrupt: impl Future<Output = ()>,
    measure: impl AsyncFnMut(ReadyTrial<'_>) -> Result<Outcome, TpsError>,
) -> Result<(), MatrixError> {
    let (stop, stopped) = stop();
    let mut bench = Bench::begin(site, plan, observer, stopped).await?;
    let result = told_to_stop(interrupt, &stop, caught(bench.trials(measure))).await;
    bench.finish(result).await
}

/// A server on which trials run.
struct Bench<'a> {
    site: &'a Site<'a>,
    plan: &'a MatrixPlan,
    observer: &'a dyn MatrixObserver,
    stopped: Stopped,
    /// Set if anything is changed that has to be restored.
    changer: Option<Changer>,
    /// Settings with which the server was started last, in addition to its own.
    started_with: Vec<(String, String)>,
    may_checkpoint: Mutable<bool>,
}

impl<'a> Bench<'a> {
    async fn begin(
        site: &'a Site<'a>,
        plan: &'a MatrixPlan,
        observer: &'a dyn MatrixObserver,
        stopped: Stopped,
    ) -> Result<Self, MatrixError> {
        let is_journalled = !plan.looked.tables.is_empty() || !plan.varied(Effect::Reload).is_empty();
        let changer = if is_journalled {
            Some(Changer::begin(site.target, site.place.clone(), site.journals, &plan.to_change).await?)
        } else {
            None
        };
        Ok(Self {
            site,
            plan,
            observer,
            stopped,
            changer,
            started_with: Vec::new(),
            may_checkpoint: Mutable::new(true),
        })
    }

    async fn trials(
        &mut self,
        mut measure: impl AsyncFnMut(ReadyTrial<'_>) -> Result<Outcome, TpsError>,
    ) -> Result<(), MatrixError> {
        let plan = self.plan;
        let trials = plan.trials();
        self.unless_stopped(1, async |bench| bench.try_values().await).await?;
        for (number, cell) in plan.rounds.iter().flatten().map(|cell| &plan.cells[*cell]).enumerate() {
            let number = number + 1;
            self.observer.preparing(number, cell);
            let (target, ready) =
                self.unless_stopped(number, async |bench| bench.prepare(number, cell).await).await?;
            let stopped = self.stopped.clone();
            let trial = ReadyTrial { number, cell, target: &target, plan: &ready, stopped };
            let outcome = measure(trial).await?;
            match outcome.end {
                End::Complete => {}
                End::Interrupted => return Err(MatrixError::Interrupted { trial: number, trials }),
                // A cell is no part of a run: see Request.
                End::Lost | End::Parted => {
                    let why = outcome.lost.first().map_or("clients were lost", |lost| &lost.why).to_owned();
                    let class = outcome.class_of_loss();
                    return Err(MatrixError::Lost { trial: number, cell: cell.name(), why, class });
                }
            }
        }
        Ok(())
    }

    /// Does work that may be interrupted. Statements of interrupted work are ended before
    /// everything is restored.
    async fn unless_stopped<T>(
        &mut self,
        trial: usize,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, MatrixError>,
    ) -> Result<T, MatrixError> {
        let (stopped, trials) = (self.stopped.clone(), self.plan.trials());
        stopped.unless_told(work(self)).await.unwrap_or(Err(MatrixError::Interrupted { trial, trials }))
    }

    /// Makes the server check all values before anything is measured.
    async fn try_values(&self) -> Result<(), MatrixError> {
        if let Some(changer) = &self.changer {
            changer.try_values(&self.values(Effect::Reload)).await?;
        }
        for (name, value) in self.values(Effect::Session) {
            match self.site.target.clone().with_setting(&name, &value).connect().await {
                Ok(connection) => connection.close().await,
                Err(error) if error.sqlstate().is_some_and(|code| REFUSED.contains(code)) => {
                    let error = Box::new(without_remedy(error));
                    return Err(SettingsError::Value { name, value, error }.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// All values of varied settings with this effect.
    fn values(&self, effect: Effect) -> Vec<(String, String)> {
        let mut values = Vec::new();
        for setting in self.plan.cells.iter().flat_map(|cell| self.plan.settings(cell, effect)) {
            if !values.contains(&setting) {
                values.push(setting);
            }
        }
        values
    }

    /// The server as the cell's clients reach it.
    fn client_target(&self, cell: &Cell) -> Target {
        let settings = self.plan.settings(cell, Effect::Session);
        settings
            .iter()
            .fold(self.site.target.clone(), |target, (name, value)| target.with_setting(name, value))
    }

    /// Sets the cell's settings, checks them, and brings the server into the same state before each
    /// trial.
    async fn prepare(&mut self, number: usize, cell: &Cell) -> Result<(Target, Plan), MatrixError> {
        self.restart_for(cell).await?;
        if let Some(changer) = &self.changer {
            changer.set(&self.plan.settings(cell, Effect::Reload)).await?;
            changer.set_unlogged(cell.is_unlogged()).await?;
        }
        let target = self.client_target(cell);
        let connection = target.connect().await?;
        self.assert_in_force(cell, &connection).await?;
        let ready = Plan::new(&connection, cell.request(&self.plan.base).of_trial(number)).await?;
        for failure in ready.prepare(&connection).await? {
            self.observer.warn(&failure);
        }
        connection.close().await;
        self.settle().await?;
        Ok((target, ready))
    }

    /// Restarts the server if the cell needs other settings at the start.
    async fn restart_for(&mut self, cell: &Cell) -> Result<(), MatrixError> {
        let settings = self.plan.settings(cell, Effect::Restart);
        let Some(restarter) = self.site.restarter.filter(|_| settings != self.started_with) else {
            return Ok(());
        };
        let result = tokio::task::block_in_place(|| restarter.restart(&settings));
        if let Some(changer) = &mut self.changer {
            changer.reconnect().await?;
        }
        if let Err(why) = result {
            let with: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            return Err(MatrixError::Restart { with: format!(" with {}", with.join(" ")), why });
        }
        self.started_with = settings;
        Ok(())
    }

    /// Checks settings with SHOW in a session like the clients'. Settings of the whole server have
    /// been checked before.
    async fn assert_in_force(&self, cell: &Cell, connection: &Connection) -> Result<(), MatrixError> {
        let explain = async |error| MatrixError::from(connection.explain(error).await);
        let started = self.plan.settings(cell, Effect::Restart);
        let differing = match differing_settings(&connection.client, &started).await {
            Ok(differing) => differing,
            Err(error) => return Err(explain(error).await),
        };
        if let Some(found) = differing.into_iter().next() {
            let DifferingSetting { name, expected: wanted, active: shown, remedy } = found;
            return Err(MatrixError::NotInForce { name, wanted, shown, remedy });
        }
        for (name, wanted) in self.plan.settings(cell, Effect::Session) {
            let query = "SELECT current_setting(name), source FROM pg_settings WHERE name = lower($1)";
            let row = match connection.client.query_one(query, &[&name]).await {
                Ok(row) => row,
                Err(error) => return Err(explain(error).await),
            };
            if row.get::<_, &str>(1) != "client" {
                let remedy = "connect to the server directly, not through a pooler".to_owned();
                return Err(MatrixError::NotInForce { name, wanted, shown: row.get(0), remedy });
            }
        }
        Ok(())
    }

    /// Vacuums the tables that the last trial wrote, and makes the server write out its buffers.
    async fn settle(&self) -> Result<(), MatrixError> {
        let named = match &self.changer {
            Some(changer) => changer.target().clone(),
            None => self.site.target.clone(),
        };
        let session = Sessions::new(&named).open().await?;
        if self.plan.base.vacuum {
            for table in &self.plan.tables {
                session.run(&format!("VACUUM {}", table.name)).await?;
            }
        }
        self.checkpoint(&session).await?;
        session.connection.close().await;
        Ok(())
    }

    async fn checkpoint(&self, session: &Session) -> Result<(), MatrixError> {
        if !self.may_checkpoint.get() {
            return Ok(());
        }
        match session.run("CHECKPOINT").await {
            Ok(()) => Ok(()),
            Err(ConnectError::Query { .. }) => {
                self.may_checkpoint.set(false);
                let role = session.role().await?;
                self.observer.warn(&format!(
                    "role {role} may not run CHECKPOINT, so dirty pages of earlier work remain in shared_buffers when a trial \
                     begins: connect as a superuser, or (PostgreSQL 15 or later) run GRANT pg_checkpoint TO {role}"
                ));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Restores settings and tables.
    async fn finish(self, result: Result<(), MatrixError>) -> Result<(), MatrixError> {
        let Some(changer) = self.changer else { return result };
        self.observer.putting_back();
        let (record, path) = (Box::new(changer.record().clone()), changer.journal_path().to_owned());
        match changer.finish().await {
            Ok(done) => {
                if done.wants_sync {
                    self.observer.warn(SYNC_BY_HAND);
                }
                result
            }
            Err(error) => Err(MatrixError::NotPutBack {
                error: error.into(),
                ended: result.err().map(Box::new),
                record,
                path,
            }),
        }
    }
}

/// The refusal of a setting without the remedy, which is that for settings from other places than the matrix.
fn without_remedy(mut error: ConnectError) -> ConnectError {
    match &mut error {
        ConnectError::Rejected { remedy, .. } => remedy.clear(),
        ConnectError::AllFailed(errors) => {
            *errors = std::mem::take(errors).into_iter().map(without_remedy).collect();
        }
        _ => {}
    }
    error
}
