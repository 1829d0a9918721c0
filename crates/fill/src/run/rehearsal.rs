//! The steps before the rows, run on empty tables in a transaction that is rolled back. A conflict that flags or
//! catalogs hold (a probe without its index, a view on a table to be dropped, a tablespace that takes no index,
//! a file that cannot be opened) shows here, while the old tables are still there.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::Observer;
use crate::cause::Cause;
use crate::error::FillError;
use crate::ledger::{self, Ledger};
use crate::limits::{Event, RemainingSpace};
use crate::plan::Method;
use crate::plan::tables::leaves;
use crate::probe::{ProbeError, ProbePoint};
use crate::request::{InitStep, Subject};
use crate::run::ballast::BALLAST;
use crate::run::filler::Filler;
use crate::sql::ddl::{self, FOREIGN_KEYS};
use connect::ConnectError;
use server::Session;
use server::quote::{literal, qualified};

/// Whether the rehearsal took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearsed {
    /// It found no conflict.
    Yes,
    /// Another session holds a lock on a table that is to be dropped.
    Locked,
}

/// Lock timeout of a rehearsal that is not followed by the fill.
const LOCK_WAIT: &str = "1s";

impl Filler<'_> {
    /// Rehearses before a fill that would drop or change existing tables: waits for locks, and
    /// reports the waiting.
    pub(crate) async fn rehearse(&self, session: &Session) -> Result<(), FillError> {
        let has_probe = self.prober.lock().await.is_some();
        if self.plan.dropped.is_empty() && !has_probe {
            return Ok(());
        }
        if !self.plan.dropped.is_empty() && self.plan.unfinished.is_none() {
            // The message about the holder of a lock appears during this step.
            self.observer.step_started(InitStep::Drop);
        }
        self.rehearse_within(session, None).await.map(|_| ())
    }

    /// Rehearses without a fill: gives up soon if another session holds a lock.
    pub(crate) async fn rehearse_alone(&self) -> Result<Rehearsed, FillError> {
        let session = self.open_loader().await?;
        self.rehearse_within(&session, Some(LOCK_WAIT)).await
    }

    async fn rehearse_within(&self, session: &Session, wait: Option<&str>) -> Result<Rehearsed, FillError> {
        let plan = self.plan;
        if plan.is_created() || !plan.includes(InitStep::Create) {
            // Keys of a table that has rows are too much for a rehearsal: such a probe is checked once they are built.
            if !plan.steps.order(InitStep::PrimaryKeys, InitStep::Generate) {
                self.check_probe(session).await?;
            }
            return Ok(Rehearsed::Yes);
        }
        session.run("BEGIN").await?;
        let result = self.steps_on_empty_tables(session, wait).await;
        match result {
            Ok(()) => session.run("ROLLBACK").await?,
            Err(FillError::Rehearsal(error)) if wait.is_some() && is_lock_timeout(&error) => {
                session.run("ROLLBACK").await?;
                return Ok(Rehearsed::Locked);
            }
            Err(error) => {
                // The first error counts; without a session there is nothing to roll back.
                let _ = session.run("ROLLBACK").await;
                return Err(error);
            }
        }
        Ok(Rehearsed::Yes)
    }

    async fn steps_on_empty_tables(&self, session: &Session, wait: Option<&str>) -> Result<(), FillError> {
        let plan = self.plan;
        if let Some(wait) = wait {
            run(session, &format!("SET LOCAL lock_timeout = '{wait}'")).await?;
        }
        if plan.stale_ledger {
            run(session, &ledger::remove(&plan.schema, &self.plan.tables.bulk.name)).await?;
        }
        if plan.includes(InitStep::Drop) && !plan.dropped.is_empty() {
            self.refuse_full(session).await?;
            self.watched(session, &ddl::drop_tables(plan)).await.map_err(not_dropped)?;
        }
        run_all(session, &ddl::create(plan)).await?;
        if plan.method == Method::CreateTableAs {
            let empty = rowgen::Table { rows: 0, ..self.plan.tables.bulk.clone() };
            return run(session, &ddl::create_table_as(plan, &empty)).await;
        }
        if plan.has_ledger() {
            Ledger::begin(session, plan).await.map_err(FillError::Rehearsal)?;
        }
        let keys = plan.includes(InitStep::PrimaryKeys);
        let keys_early = plan.steps.order(InitStep::PrimaryKeys, InitStep::Generate);
        if keys_early {
            self.keys_of_empty_tables(session).await?;
        }
        self.check_probe(session).await?;
        if plan.includes(InitStep::Generate) {
            self.rehearse_direct(session).await?;
        }
        if keys && !keys_early {
            self.keys_of_empty_tables(session).await?;
        }
        if plan.includes(InitStep::ForeignKeys) && plan.subject == Subject::Pgbench {
            for key in &FOREIGN_KEYS {
                run(session, &key.add(plan)).await?;
            }
        }
        Ok(())
    }

    /// Refuses a fill that has no room for its first chunk, even after the old tables are dropped.
    async fn refuse_full(&self, session: &Session) -> Result<(), FillError> {
        let Some(control) = self.control.as_ref().filter(|_| !self.plan.may_be_full()) else {
            return Ok(());
        };
        // To ask for sizes waits for locks, so it is watched, and the answer is kept in a setting of the transaction.
        let measure = include_str!("../sql/dropped_bytes.sql");
        let dropped = self.plan.dropped.iter();
        let names: Vec<String> = dropped.map(|name| literal(&qualified(&self.plan.schema, name))).collect();
        let measure = measure.replace("$names", &names.join(", "));
        self.watched(session, &measure).await.map_err(FillError::Rehearsal)?;
        let row = session.row("SELECT current_setting('pgrig.dropped_bytes')::bigint", &[]).await;
        let dropped: i64 = row.map_err(FillError::Rehearsal)?.get(0);
        let ballast = if self.plan.stale_ledger { BALLAST } else { 0 };
        let freed = u64::try_from(dropped).unwrap_or_default() + ballast;
        Ok(control.refuse_full(self.plan.first_space(), freed)?)
    }

    async fn keys_of_empty_tables(&self, session: &Session) -> Result<(), FillError> {
        for table in self.plan.tables.all() {
            let Some(statement) = ddl::add_index(self.plan, table) else { continue };
            if !self.has_index(session, &table.name).await.map_err(FillError::Rehearsal)? {
                run(session, &statement).await?;
            }
        }
        Ok(())
    }

    /// Examines the relation that pages are to be written into: one leaf stands for all.
    async fn rehearse_direct(&self, session: &Session) -> Result<(), FillError> {
        let (Some(direct), Some(leaf)) =
            (self.direct(), leaves(&self.plan.tables.bulk, self.plan.partitions).into_iter().next())
        else {
            return Ok(());
        };
        if self.plan.writes_key() {
            run_all(session, &ddl::add_key(self.plan, &leaf)).await?;
        }
        let rehearsed = direct.rehearse(session, &qualified(&self.plan.schema, &leaf)).await;
        match rehearsed.map_err(Cause::from) {
            Ok(()) => Ok(()),
            Err(Cause::Server(error)) => Err(FillError::Rehearsal(error)),
            Err(cause) => Err(FillError::Pages(Box::new(cause))),
        }
    }

    /// Refuses a probe that cannot be run on the tables as they are now.
    pub(crate) async fn check_probe(&self, session: &Session) -> Result<(), FillError> {
        let prober = self.prober.lock().await;
        let Some(prober) = prober.as_ref() else { return Ok(()) };
        match prober.check(&session.connection.client).await {
            Ok(()) => Ok(()),
            Err(ProbeError::Query(error)) => {
                Err(FillError::ProbeQuery(session.connection.explain(error).await))
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn run(session: &Session, sql: &str) -> Result<(), FillError> {
    session.run(sql).await.map_err(FillError::Rehearsal)
}

async fn run_all(session: &Session, statements: &[String]) -> Result<(), FillError> {
    session.run_all(statements).await.map_err(FillError::Rehearsal)
}

/// The error of tables that cannot be dropped.
fn not_dropped(error: ConnectError) -> FillError {
    if error.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return FillError::Combination(format!(
            "{error}. Nothing was changed. To drop the tables, connect as their owner (-U); or give another --schema"
        ));
    }
    FillError::Rehearsal(error)
}

fn is_lock_timeout(error: &ConnectError) -> bool {
    error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// An observer for fills that nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Observer for Unwatched {
    fn checking_rows(&self, _: u64) {}
    fn step_started(&self, _: InitStep) {}
    fn rows_sent(&self, _: u64) {}
    fn fraction_done(&self, _: f64) {}
    fn event(&self, _: &Event) {}
    fn remaining_space(&self, _: RemainingSpace) {}
    fn probed(&self, _: &ProbePoint) {}
    fn waiting(&self, _: &str) {}
    fn step_finished(&self, _: InitStep, _: Duration) {}
}
