//! The plans are carried out: tables created, then filled, one after the other or side by side; foreign keys that were
//! postponed are made as soon as the tables at both their ends are filled.

use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use failure::{Class, Classified};
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared, join_all};

use super::limits::{Clock, SchemaLimits};
use super::outcome::{FilledTable, SchemaOutcome};
use super::plan::{LANES, PlannedTable, SchemaPlan};
use super::record;
use super::task_queue::{Task, TaskQueue};
use super::views::{self, Views};
use crate::error::{BegunError, FillError};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::remains::StartOver;
use crate::request::InitStep;
use crate::run::direct::resources;
use crate::run::{Conduct, Member, Observer, Stage, Unwatched, run_cycle, run_stage, take_in_hand};
use connect::{ConnectError, SqlState, Target};
use server::interruption::{Ended, until_stopped};
use server::quote::qualified;
use server::{Session, Sessions, Survey};

/// Observer of a schema fill's progress.
pub trait SchemaObserver {
    /// A step that belongs to no single table begins, before the tables are begun or after all of them: a phrase for people.
    fn step(&self, text: &str);
    /// A table is begun. Returns the observer of its fill.
    fn table_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o>;
    /// A foreign key of a table that is filled is about to be made. Returns the observer of that step.
    fn foreign_key_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o>;
    /// This part waits for other parts of the fill: called again as long as it lasts. The phrase follows the word "waiting".
    fn waiting(&self, phrase: &str);
}

impl SchemaObserver for Unwatched {
    fn step(&self, _: &str) {}

    fn table_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        Box::new(*self)
    }

    fn foreign_key_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        Box::new(*self)
    }

    fn waiting(&self, _: &str) {}
}

/// Carries the plan out, within the limits. `interrupt` resolves when the user wants to stop. `records` is the directory for records of
/// files that are written past the server.
///
/// # Errors
/// If a table cannot be filled, or the fill is interrupted: the same request completes it.
pub fn run_schema<'a>(
    target: &'a Target,
    plan: &'a SchemaPlan,
    limits: SchemaLimits<'a>,
    records: Option<PathBuf>,
    observer: &'a dyn SchemaObserver,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<SchemaOutcome, FillError>> {
    Box::pin(async move {
        let arrival = limits.arrival;
        let run = SchemaRun {
            target,
            sessions: Sessions::new(target),
            plan,
            survey: limits.survey,
            clock: Clock::new(limits.limits, limits.survey),
            records,
            observer,
            interrupt: interrupt.shared(),
            task_queue: TaskQueue::of(plan),
            has_rows: false,
        };
        match plan.part() {
            Some(part) => Box::pin(run.of_part(part, arrival)).await,
            None => run.alone().await,
        }
    })
}

/// A schema fill that is being carried out.
pub(super) struct SchemaRun<'a> {
    pub(super) target: &'a Target,
    pub(super) sessions: Sessions<'a>,
    pub(super) plan: &'a SchemaPlan,
    pub(super) survey: &'a Survey,
    pub(super) clock: Clock<'a>,
    pub(super) records: Option<PathBuf>,
    pub(super) observer: &'a dyn SchemaObserver,
    pub(super) interrupt: Shared<LocalBoxFuture<'a, ()>>,
    pub(super) task_queue: TaskQueue,
    /// Whether parts have loaded all rows, so that the later steps are left.
    pub(super) has_rows: bool,
}

/// The results of a lane, or of all.
#[derive(Default)]
struct Done {
    tables: Vec<FilledTable>,
    /// Time of foreign keys.
    foreign_keys: Duration,
    /// The first error.
    failure: Option<FillError>,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.foreign_keys += other.foreign_keys;
        // An interruption may be no more than the end of the lanes beside one that failed.
        let is_more = |failure: &FillError| {
            self.failure.as_ref().is_none_or(|known| known.class() == Class::Interrupted)
                && (self.failure.is_none() || failure.class() != Class::Interrupted)
        };
        if let Some(failure) = other.failure.filter(is_more) {
            self.failure = Some(failure);
        }
    }
}

impl SchemaRun<'_> {
    /// Carries out the plan in one process.
    async fn alone(&self) -> Result<SchemaOutcome, FillError> {
        let started = Instant::now();
        let session = self.sessions.open().await?;
        self.observer.step(if self.plan.create.is_empty() {
            "preparing the fill"
        } else {
            "creating the tables"
        });
        self.interruptible(begin(&session, self.plan)).await?;
        let outcome = self.tasks(&session).await?;
        Ok(SchemaOutcome { elapsed: started.elapsed(), ..outcome })
    }

    /// Does all tasks and, if they are done, the end.
    pub(super) async fn tasks(&self, session: &Session) -> Result<SchemaOutcome, FillError> {
        // Without rows to load, no table needs the keys of another one.
        let lanes = if self.has_rows { LANES } else { self.plan.lanes() };
        let lanes = join_all((0..lanes).map(|_| self.lane())).await;
        let mut done = Done::default();
        for of_lane in lanes {
            done.add(of_lane);
        }
        let Done { mut tables, foreign_keys, failure } = done;
        let stopped = self.clock.stopped().filter(|_| !self.task_queue.is_done());
        if let Some(failure) =
            failure.filter(|failure| stopped.is_none() || failure.class() != Class::Interrupted)
        {
            return Err(failure);
        }
        tables.sort_by_key(|table| table.place);
        let Views { refreshed, unpopulated } = match stopped {
            Some(_) => Views::default(),
            None => self.interruptible(end(session, self.plan, self.observer)).await?,
        };
        Ok(SchemaOutcome {
            tables,
            foreign_keys,
            stopped,
            refreshed,
            unpopulated,
            ..SchemaOutcome::default()
        })
    }

    /// Does one task after the other, as long as there is time. Once a task has failed, no lane begins another one, and
    /// running tasks are interrupted.
    async fn lane(&self) -> Done {
        let mut done = Done::default();
        self.clock.begin();
        while self.clock.stopped().is_none()
            && let Some(task) = self.task_queue.next().await
        {
            let ended = match &task {
                Task::Tables { places } => self.tables(places).await.map(|tables| done.tables.extend(tables)),
                Task::ForeignKey { place, number, .. } => {
                    let started = Instant::now();
                    let made = self.foreign_key(*place, *number).await;
                    done.foreign_keys += started.elapsed();
                    made
                }
            };
            self.task_queue.end(&task, ended.is_ok());
            if let Err(failure) = ended {
                done.failure = Some(failure);
            }
        }
        done
    }

    /// Fills the tables at these places.
    async fn tables(&self, places: &[usize]) -> Result<Vec<FilledTable>, FillError> {
        let is_in_cycle = |place: &usize| self.plan.tables[*place].recorded.cycle.is_some();
        if places.iter().any(is_in_cycle) {
            return self.cycle(places).await;
        }
        let mut filled = Vec::with_capacity(places.len());
        for &place in places {
            let table = &self.plan.tables[place];
            let Some(plan) = table.plan() else { continue };
            let told = self.observer.table_started(place, table);
            filled.push(FilledTable { place, outcome: self.fill(place, plan, &*told).await? });
        }
        Ok(filled)
    }

    /// Fills the tables at these places, whose rows one transaction loads.
    async fn cycle(&self, places: &[usize]) -> Result<Vec<FilledTable>, FillError> {
        let to_fill: Vec<(usize, &PlannedTable, &Plan)> = places
            .iter()
            .filter_map(|&place| {
                let table = &self.plan.tables[place];
                Some((place, table, table.plan()?))
            })
            .collect();
        let told: Vec<_> =
            to_fill.iter().map(|(place, table, _)| self.observer.table_started(*place, table)).collect();
        let mut members = Vec::with_capacity(to_fill.len());
        for ((place, table, plan), observer) in to_fill.iter().zip(&told) {
            let later = table.recorded.cycle.as_ref().map_or(&[][..], |cycle| &cycle.later);
            members.push(Member {
                plan,
                conduct: self.conduct(*place, plan).await?,
                observer: &**observer,
                later,
            });
        }
        let outcomes = run_cycle(self.target, members, self.stop().boxed_local()).await;
        let outcomes = outcomes
            .map_err(|(at, source)| failed(self.plan, (to_fill[at].0, self.task_queue.filled()), source))?;
        let filled = to_fill.iter().zip(outcomes);
        Ok(filled.map(|((place, ..), outcome)| FilledTable { place: *place, outcome }).collect())
    }

    /// Makes a foreign key of the table at this place.
    async fn foreign_key(&self, place: usize, number: usize) -> Result<(), FillError> {
        let table = &self.plan.tables[place];
        let key = &table.recorded.postponed.foreign_keys[number];
        let told = self.observer.foreign_key_started(place, table);
        told.step_started(InitStep::ForeignKeys);
        let work = async {
            let session = self.sessions.open().await?;
            session.run("BEGIN").await?;
            session.run(&resources()).await?;
            session.run(&key.makes).await?;
            Ok(session.run("COMMIT").await?)
        };
        let started = Instant::now();
        let made = self.interruptible(work).await;
        told.step_finished(InitStep::ForeignKeys, started.elapsed());
        made.map_err(|source| match source {
            source @ FillError::SchemaInterrupted { .. } => source,
            source => failed(self.plan, (place, self.task_queue.filled()), source),
        })
    }

    /// Resolves when the user wants to stop, or when another lane has failed.
    pub(super) fn stop(&self) -> impl Future<Output = ()> {
        let interrupt = self.interrupt.clone();
        async move {
            tokio::select! {
                () = interrupt => {}
                () = self.task_queue.failed() => {}
            }
        }
    }

    /// Fills the table at this place.
    async fn fill(&self, place: usize, plan: &Plan, observer: &dyn Observer) -> Result<Outcome, FillError> {
        let until = self.until(place, plan).await?;
        let plan = until.as_ref().unwrap_or(plan);
        let conduct = self.conduct(place, plan).await?;
        let stage = if self.has_rows { Stage::Steps } else { Stage::All };
        let stop = self.stop().boxed_local();
        let filled = run_stage(self.target, plan, conduct, stage, observer, stop).await;
        self.clock.told(filled.as_ref().map_or(&[], |outcome| &outcome.events));
        filled.map_err(|source| failed(self.plan, (place, self.task_queue.filled()), source))
    }

    /// The conduct of a table's fill.
    pub(super) async fn conduct(&self, place: usize, plan: &Plan) -> Result<Conduct, FillError> {
        let session = self.sessions.open().await?;
        let (limits, volume_monitor) = self.clock.of_table(&session.connection, plan).await?;
        let recorded = &self.plan.tables[place].recorded;
        let mark = record::mark(&self.plan.record_schema, place);
        let at_end: Vec<String> = recorded.fillfactors.iter().cloned().chain([mark]).collect();
        Ok(Conduct {
            limits,
            volume_monitor,
            must_complete: true,
            records: self.records.clone(),
            is_unsampled: true,
            makes: recorded.postponed.makes.clone(),
            at_end: Some(at_end.join(";\n")),
            ..Conduct::default()
        })
    }

    /// The plan of a table that ends when all tables have their size, now that the others are filled.
    async fn until(&self, place: usize, plan: &Plan) -> Result<Option<Plan>, FillError> {
        let table = &self.plan.tables[place];
        let Some(all) = table.recorded.until.filter(|_| plan.until_size.is_none()) else { return Ok(None) };
        let session = self.sessions.open().await?;
        let name = |table: &PlannedTable| qualified(&table.schema, &table.name);
        let others = self.plan.tables.iter().enumerate().filter(|(other, _)| *other != place);
        let others: Vec<String> = others.map(|(_, table)| name(table)).collect();
        let query = include_str!("../sql/schema_bytes.sql");
        let others: i64 = session.row(query, &[&others]).await?.get("bytes");
        let present: i64 = session.row(query, &[&vec![name(table)]]).await?.get("bytes");
        let [others, present] = [others, present].map(|bytes| u64::try_from(bytes).unwrap_or_default());
        // Not so few rows that the table is no longer a picture of the plan.
        let size = all.saturating_sub(others).max(present + table.predicted / 2);
        Ok(Some(Plan { until_size: Some(size), ..plan.clone() }))
    }

    /// Does work that belongs to no single table, unless the user wants to stop.
    pub(super) async fn interruptible<T>(
        &self,
        work: impl Future<Output = Result<T, FillError>>,
    ) -> Result<T, FillError> {
        match until_stopped(self.target, self.stop(), pin!(work), || {}).await {
            Ended::Done(result) | Ended::Stopped(Some(result @ Ok(_))) => result,
            // Cancelled statements end with an error of their own.
            Ended::Stopped(_) => {
                let (filled, of) = (self.task_queue.filled(), self.plan.tables.len());
                Err(FillError::SchemaInterrupted { filled, of })
            }
        }
    }
}

/// Makes sure that no other session runs this fill and that nothing has changed since it was
/// planned. Creates the tables and the record in one transaction.
///
/// # Errors
/// If there is such a session, or something has changed.
async fn begin(session: &Session, plan: &SchemaPlan) -> Result<(), FillError> {
    take_in_hand(session, &record::name(&plan.record_schema), false).await?;
    if record::filled(record::find(&session.connection, &plan.request).await?.as_ref()) != plan.filled_before
    {
        return Err(BegunError::SchemaChanged.into());
    }
    if plan.is_resumed {
        return Ok(());
    }
    session.run("BEGIN").await?;
    create(session, plan).await?;
    session.run("COMMIT").await?;
    Ok(())
}

/// Creates the tables and the record in the session's transaction.
///
/// # Errors
/// If a table that must be empty has rows.
pub(super) async fn create(session: &Session, plan: &SchemaPlan) -> Result<(), FillError> {
    let recorded: Vec<_> = plan.tables.iter().map(|table| table.recorded.clone()).collect();
    session.run_all(&plan.create).await.map_err(of_creation)?;
    let any =
        |table: &PlannedTable| format!("EXISTS (SELECT FROM {})", qualified(&table.schema, &table.name));
    let any: Vec<String> = plan.tables.iter().filter(|_| plan.must_be_empty()).map(any).collect();
    if !any.is_empty() {
        let row = session.row(&format!("SELECT {} AS have_rows", any.join(" OR ")), &[]).await?;
        if row.get("have_rows") {
            return Err(BegunError::SchemaChanged.into());
        }
    }
    Ok(session.run_all(&record::create(&plan.record_schema, &plan.request, &recorded)).await?)
}

/// The error of statements that ran when the fill was planned: what exists now, another session has created meanwhile.
fn of_creation(error: ConnectError) -> FillError {
    let exists = [
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::DUPLICATE_FUNCTION,
        SqlState::DUPLICATE_SCHEMA,
        // In the catalogs: both sessions created it at once.
        SqlState::UNIQUE_VIOLATION,
    ];
    if error.sqlstate().is_some_and(|state| exists.contains(state)) {
        BegunError::SchemaChanged.into()
    } else {
        error.into()
    }
}

/// Refreshes the materialized views, and removes the record.
async fn end(
    session: &Session,
    plan: &SchemaPlan,
    observer: &dyn SchemaObserver,
) -> Result<Views, FillError> {
    let views = views::refresh(session, plan, observer).await?;
    session.run(&record::drop(&plan.record_schema)).await?;
    Ok(views)
}

/// The failure of the table at a place, while so many tables are filled.
pub(super) fn failed(plan: &SchemaPlan, (place, filled): (usize, usize), mut source: FillError) -> FillError {
    let table = &plan.tables[place];
    if let FillError::Step { remains, .. } | FillError::Interrupted { remains, .. } = &mut source {
        remains.with_others();
    }
    let start_over = match plan.request.ddl {
        Some(_) => StartOver::Drop,
        None if plan.request.append => StartOver::Replace,
        None => StartOver::Empty,
    };
    FillError::OfTable {
        table: format!("{}.{}", table.schema, table.name),
        filled,
        of: plan.tables.len(),
        start_over,
        source: Box::new(source),
    }
}
