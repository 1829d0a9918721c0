//! Makes a plan for each table from a request and a server.
//!
//! All of it happens in one transaction that is rolled back. The tables that the SQL creates exist
//! only within it.
//!
//! 1. [`tables`] reads the tables, [`order`] puts them in order ([`pairs`] where they reference each other by columns of keys),
//!    [`cycles`] has some foreign keys created later, [`amounts`] gives each its share of the rows;
//! 2. [`design`] describes the rows of each, in that order, so that keys of tables before are known; [`copies`] gives paired rows
//!    the same values;
//! 3. for a size, [`Sample`](crate::plan::Sample) loads some rows into temporary tables and measures the space that
//!    they and their indexes take, and the rows are described again for the numbers that follow ([`sized`]). Before that, if the
//!    [`bloat`] of a model's original is kept, such samples tell the fillfactors for it;
//! 4. each table gets a [`Plan`] of its own, and keys and indexes that can be made after its rows are [`postponed`].
//!    Then COPY may load tables [`whole`], side by side.

mod amounts;
mod bloat;
mod copies;
mod cycles;
mod design;
mod different;
mod modelled;
mod order;
mod pairs;
mod postponed;
mod resumed;
mod row_bytes;
mod sized;
mod tables;
mod whole;

use connect::Connection;
use futures_util::future::LocalBoxFuture;
use serde::Serialize;
use server::quote::literal;
use server::{Steps, Survey, ask, run_sql, schema_for_tables};
use tokio::sync::OnceCell;

pub use self::amounts::is_name_of;
use self::design::{Design, Designed};
pub use self::modelled::OF_MODEL;
use self::postponed::Schedule;
pub(super) use self::postponed::{Postponed, PostponedKey};
pub(super) use self::whole::LANES;
use super::record::{self, Begun, FoundRecord, RecordedTable};
use super::request::{SchemaAmount, SchemaRequest};
use super::triggers::SchemaTriggers;
use crate::error::{BegunError, FillError};
use crate::ledger;
use crate::plan::{DescribedTable, Plan, data_directory, plan_described};
use crate::request::{Part, Persistence, Subject};
use crate::run::direct::{DataDirectory, NotDirect};
use crate::sql::absent::{Skipped, adapted};
use crate::sql::ddl;

/// The plan of a schema.
#[derive(Clone, Debug, Serialize)]
pub struct SchemaPlan {
    /// The request, for the record.
    #[serde(skip)]
    pub(super) request: SchemaRequest,
    /// Statements that create the tables, in the transaction that creates the record.
    #[serde(skip)]
    pub(super) create: Vec<String>,
    /// Schema of the record.
    #[serde(skip)]
    pub(super) record_schema: String,
    /// Whether an interrupted fill is completed.
    pub is_resumed: bool,
    /// Tables that a record of the request marked as filled when this was planned; none without a record.
    #[serde(skip)]
    pub(super) filled_before: Option<usize>,
    /// Bytes that were asked for, if a size was.
    pub size: Option<u64>,
    /// The tables, each after those that it references.
    pub tables: Vec<PlannedTable>,
    /// Statements of the SQL that are left out.
    #[serde(skip)]
    pub skipped: Vec<Skipped>,
    /// Other warnings for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// The plan of a table.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedTable {
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// Rows that it gets.
    pub rows: u64,
    /// The reason for this number.
    pub why: String,
    /// Approximate size of the rows with their indexes, bytes.
    pub predicted: u64,
    /// Whether the table is filled already; else its plan.
    pub state: TableState,
    /// The record of this table.
    #[serde(skip)]
    pub(super) recorded: RecordedTable,
}

/// The work left for a table.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableState {
    /// Nothing: an interrupted run has filled it.
    Filled,
    /// Its plan is carried out.
    ToFill(Box<Plan>),
}

impl SchemaPlan {
    /// Whether tables with rows are refused.
    pub(super) fn must_be_empty(&self) -> bool {
        self.request.ddl.is_none() && !self.request.append
    }

    /// The part of the fill that this process loads; none if it loads all.
    pub fn part(&self) -> Option<Part> {
        self.request.part
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Tables that are filled side by side.
    pub(crate) fn lanes(&self) -> usize {
        // A table that is not loaded whole may have foreign keys, which tables before it must keep.
        let are_whole = self.tables.iter().filter_map(PlannedTable::plan).all(whole::is_whole);
        if are_whole { whole::LANES } else { 1 }
    }

    /// Bytes that all tables and indexes will take, about.
    pub fn predicted(&self) -> u64 {
        self.tables.iter().map(|table| table.predicted).sum()
    }
}

impl PlannedTable {
    /// Its plan, if there is something left to do.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.state {
            TableState::Filled => None,
            TableState::ToFill(plan) => Some(plan),
        }
    }
}

/// Plans the request for this server, or refuses it. Nothing is touched. With `resume` a fill of the same request that
/// was interrupted is completed. None if the SQL creates a single table without materialized views, or a fill of a `single` table was interrupted:
/// that is planned as such. The caller has checked the request ([`SchemaRequest::check`]), before it reached the server.
/// Calls `steps` as each step begins.
///
/// # Errors
/// If the request cannot be met: see [`FillError`].
pub fn plan_schema<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a SchemaRequest,
    single: Option<&'a Subject>,
    resume: bool,
    steps: Steps<'a>,
) -> LocalBoxFuture<'a, Result<Option<SchemaPlan>, FillError>> {
    Box::pin(async move {
        match plan_schema_and_space(survey, connection, request, single, resume, steps).await? {
            Some((plan, space)) => space.map(|()| Some(plan)),
            None => Ok(None),
        }
    })
}

/// A plan with the error of a disk that lacks room.
type WithSpace = (SchemaPlan, Result<(), FillError>);

/// As [`plan_schema`], but with the error of a disk that lacks room beside the plan.
///
/// # Errors
/// If the request cannot be met, whatever room the disk has.
pub fn plan_schema_and_space<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a SchemaRequest,
    single: Option<&'a Subject>,
    resume: bool,
    steps: Steps<'a>,
) -> LocalBoxFuture<'a, Result<Option<WithSpace>, FillError>> {
    Box::pin(async move {
        let planner = Planner::new(survey, connection, request, steps);
        // The fill of a single table knows no tables to leave out.
        let single = single.filter(|_| request.exclude.is_empty());
        let found = record::find(connection, request).await?;
        let filled_before = record::filled(found.as_ref());
        match found {
            Some(FoundRecord::Same(begun)) if resume => {
                return Ok(Some((planner.resumed(begun).await?, Ok(()))));
            }
            Some(FoundRecord::Other(schema)) if resume => {
                return Err(BegunError::UnfinishedSchema { schema }.into());
            }
            Some(FoundRecord::Same(Begun { schema, .. }) | FoundRecord::Other(schema)) => {
                let unmade = record::unmade(connection, &schema).await?;
                if !unmade.is_empty() {
                    return Err(BegunError::Unmade { tables: unmade.join(", ") }.into());
                }
            }
            None => {}
        }
        if let Some(subject) = single.filter(|_| resume) {
            match ledger::table_begun(&connection.client, subject).await {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(None),
                Err(error) => return Err(connection.explain(error).await.into()),
            }
        }
        planner.run("BEGIN").await?;
        let plan = planner.plan(single.is_some()).await;
        planner.run("ROLLBACK").await?;
        let Some(plan) = plan? else { return Ok(None) };
        let space = planner.refuse_too_little(&plan);
        Ok(Some((SchemaPlan { filled_before, ..plan }, space)))
    })
}

/// The triggers of the tables that the request's SQL creates, and its event triggers. Nothing is touched.
///
/// # Errors
/// If the server refuses the SQL.
pub fn triggers_of_schema<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a SchemaRequest,
    steps: Steps<'a>,
) -> LocalBoxFuture<'a, Result<SchemaTriggers, FillError>> {
    Box::pin(async move {
        let planner = Planner::new(survey, connection, request, steps);
        planner.run("BEGIN").await?;
        let triggers = planner.triggers().await;
        planner.run("ROLLBACK").await?;
        triggers
    })
}

/// Refuses tables that several processes cannot fill.
fn divisible<'a>(tables: impl Iterator<Item = &'a RecordedTable>) -> Result<(), FillError> {
    let mut in_cycle = Vec::new();
    for table in tables {
        if table.until.is_some() {
            return Err(FillError::Combination(
                "--part: one process began this fill, which ends when the tables have their size: complete it without --part"
                    .to_owned(),
            ));
        }
        in_cycle.extend(table.cycle.as_ref().map(|_| table.described.name.as_str()));
    }
    if in_cycle.is_empty() {
        return Ok(());
    }
    Err(FillError::Combination(format!(
        "--part: {} reference each other, so one transaction loads them: leave out --part, or leave these tables out (--exclude-table) \
         and fill them before the parts start",
        in_cycle.join(", ")
    )))
}

/// The input of the plan.
struct Planner<'a> {
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a SchemaRequest,
    steps: Steps<'a>,
    /// The same for all tables; asked for once the tables are created, since the SQL may choose an access method.
    data_directory: OnceCell<Result<DataDirectory, NotDirect>>,
}

impl<'a> Planner<'a> {
    fn new(
        survey: &'a Survey,
        connection: &'a Connection,
        request: &'a SchemaRequest,
        steps: Steps<'a>,
    ) -> Self {
        Self { survey, connection, request, steps, data_directory: OnceCell::new() }
    }

    /// Tells of a step that is about the table at this place of so many.
    fn step(&self, doing: &str, table: &catalog::TableInfo, (place, of): (usize, usize)) {
        (self.steps)(&format!("{doing} {}, table {} of {of}", table.shown(), place + 1));
    }

    async fn plan(&self, may_be_single: bool) -> Result<Option<SchemaPlan>, FillError> {
        let (create, skipped) = self.create_statements().await?;
        self.create(&create).await?;
        let names = self.names().await?;
        if names.is_empty() && self.request.ddl.is_some() {
            return Err(FillError::no_table_created());
        }
        if may_be_single && names.len() == 1 && !self.has_views(&names[0]).await? {
            return Ok(None);
        }
        let (mut tables, mut warnings) = self.tables(&names).await?;
        let order = order::order(&tables, self.request)?;
        let cycles = self.cycles(&mut tables, &order).await?;
        let wanted = amounts::shares(&tables, &order, self.request)?;
        let mut create = create;
        create.extend_from_slice(&cycles.drops);
        if self.request.persistence == Persistence::Unlogged {
            create.extend(self.unlogged(&tables, &order).await?);
        }
        let record_schema = match (&self.request.schema, order.first()) {
            (Some(schema), _) => schema.clone(),
            (None, Some(first)) => tables[first.table].schema.clone(),
            (None, None) => return Err(FillError::NothingToFill),
        };
        let design = Design::new(self, &tables, &order, &wanted);
        let sparse = match self.keep_bloat(&design).await {
            Ok(sparse) => sparse,
            Err(error) => return Err(self.with_remedy(error).await),
        };
        create.extend(sparse.iter().flat_map(|table| table.sets.iter().cloned()));
        let designed = match self.request.amount {
            SchemaAmount::Size(size) => design.for_size(size).await,
            SchemaAmount::Rows(_) | SchemaAmount::Rules => {
                design.for_base(amounts::BASE * self.request.scale).await
            }
        };
        let designed = match designed {
            Ok(designed) => designed,
            Err(error) => return Err(self.with_remedy(error).await),
        };
        let mut planned = Vec::with_capacity(designed.len());
        for (at, (designed, wanted)) in designed.iter().zip(&wanted).enumerate() {
            self.step("planning the fill of", designed.info, (at, order.len()));
            planned.push(self.planned((at, designed), &wanted.why, design.together(at)).await?);
            warnings.extend(designed.warnings());
        }
        if self.request.part.is_some() {
            divisible(planned.iter().map(|table| &table.recorded))?;
        }
        self.in_one_transaction(&design, &designed, &mut planned).await?;
        let drops = self.postpone(&mut planned).await?;
        self.load_whole(&tables, &mut planned, &drops).await?;
        create.extend(drops);
        cycles.plan(&mut planned);
        bloat::announce(&mut planned, sparse, self.request);
        different::announce(&mut planned, self.request);
        let size = match self.request.amount {
            SchemaAmount::Size(size) => Some(size),
            SchemaAmount::Rows(_) | SchemaAmount::Rules => None,
        };
        Ok(Some(SchemaPlan {
            request: self.request.clone(),
            create,
            record_schema,
            is_resumed: false,
            filled_before: None,
            size,
            tables: planned,
            skipped,
            warnings,
        }))
    }

    /// Moves the creation of keys, indexes and foreign keys after the rows where possible. Returns
    /// the statements that drop them before.
    async fn postpone(&self, planned: &mut [PlannedTable]) -> Result<Vec<String>, FillError> {
        if self.request.ddl.is_none() {
            return Ok(Vec::new());
        }
        (self.steps)("reading the keys and indexes of the tables");
        // Definitions are written for the search path, and run with another one.
        let path: String = ask(self.connection, "SELECT current_setting('search_path')", &[]).await?.get(0);
        self.run("SET LOCAL search_path = ''").await?;
        let mut candidates = Vec::with_capacity(planned.len());
        for table in &*planned {
            candidates.push(match table.plan() {
                Some(plan) => self.candidates(plan).await?,
                None => Vec::new(),
            });
        }
        self.run(&format!("SELECT set_config('search_path', {}, true)", literal(&path))).await?;
        let Schedule { drops, tables } = Schedule::of(&candidates);
        for (table, postponed) in planned.iter_mut().zip(tables) {
            if let TableState::ToFill(plan) = &mut table.state {
                postponed::announce(plan, &postponed);
            }
            table.recorded.postponed = postponed;
        }
        Ok(drops)
    }

    /// A table with its plan.
    async fn planned(
        &self,
        (at, designed): (usize, &Designed<'_>),
        why: &str,
        together: Vec<String>,
    ) -> Result<PlannedTable, FillError> {
        let place = u32::try_from(at).unwrap_or(u32::MAX);
        let recorded = RecordedTable { place, ..designed.recorded(designed.why(why)) };
        let plan = self.plan_of(designed.info.clone(), &recorded, together).await?;
        let predicted = designed.bytes().unwrap_or_else(|| plan.predicted.sizes.total());
        Ok(PlannedTable {
            schema: recorded.schema.clone(),
            name: designed.info.name.clone(),
            rows: designed.rows,
            why: recorded.why.clone(),
            predicted,
            state: TableState::ToFill(Box::new(plan)),
            recorded: RecordedTable { predicted, ..recorded },
        })
    }

    /// The plan of a table that no fill has begun.
    async fn plan_of(
        &self,
        info: catalog::TableInfo,
        recorded: &RecordedTable,
        together: Vec<String>,
    ) -> Result<Plan, FillError> {
        let request = tables::request_for(self.request, recorded, together);
        let RecordedTable { described: table, first_row, binary, sequences, .. } = recorded.clone();
        let rows = DescribedTable { table, first_row, binary, sequences, warnings: Vec::new() };
        let (survey, connection) = (self.survey, self.connection);
        let data_directory =
            self.data_directory.get_or_try_init(|| data_directory(survey, connection)).await?;
        plan_described(survey, connection, &request, data_directory, (info, rows)).await
    }

    fn refuse_too_little(&self, plan: &SchemaPlan) -> Result<(), FillError> {
        let Some(disk) = &self.survey.environment.data_volume else { return Ok(()) };
        let wal: u64 = plan.tables.iter().filter_map(PlannedTable::plan).map(|plan| plan.predicted.wal).sum();
        let (total, free) = (plan.predicted(), disk.free);
        if total.saturating_add(wal) <= free {
            return Ok(());
        }
        let mount = disk.mount.clone();
        Err(FillError::Disk { needed: total.saturating_add(wal), total, wal, temporary: 0, free, mount })
    }

    /// The triggers in the database once the tables are created.
    async fn triggers(&self) -> Result<SchemaTriggers, FillError> {
        let (create, _) = self.create_statements().await?;
        self.create(&create).await?;
        Ok(SchemaTriggers::read(self.connection).await?)
    }

    /// The statements that create the tables, and those of the SQL that are left out.
    async fn create_statements(&self) -> Result<(Vec<String>, Vec<Skipped>), FillError> {
        let Some(sql) = &self.request.ddl else { return Ok((Vec::new(), Vec::new())) };
        let schema = self.request.schema.as_deref();
        let create_schema = match schema {
            Some(schema) => !schema_for_tables(self.connection, Some(schema)).await?.exists,
            None => false,
        };
        let script = adapted(self.connection, sql, self.request.create_roles).await?;
        Ok((ddl::of_script(schema, create_schema, &script), script.skipped))
    }

    async fn run(&self, sql: &str) -> Result<(), FillError> {
        Ok(run_sql(self.connection, sql).await?)
    }
}
