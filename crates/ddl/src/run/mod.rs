//! Carries a measurement out: fills a database, looks at each statement in one copy of it, times them in another.

mod blockers;
mod cost;
mod databases;
mod failure;
mod look;
mod watch;

use std::pin::pin;

use connect::Target;
use fill::limits::Limits;
use fill::{
    InitStep, InitSteps, MethodChoice, Persistence, PlannedTable, SchemaLimits, SchemaObserver,
    SchemaRequest, Triggers, Unwatched, plan_schema, run_schema,
};
use futures_util::future::LocalBoxFuture;
use server::fault::caught;
use server::interruption::{Ended, until_stopped};
use server::{DataDirectory, Session, Survey};
use tokio::sync::watch as channel;

use self::databases::Databases;
use self::look::{Look, Looked};
use crate::error::DdlError;
use crate::outcome::{Outcome, StatementOutcome};
use crate::plan::Plan;
use crate::request::{Amount, Request};

/// The server on which is measured.
pub struct Site<'a> {
    /// The server; databases of pgrig's own are made beside the one that it names.
    pub target: &'a Target,
    /// Its data directory.
    pub directory: &'a DataDirectory,
    /// pgrig's version.
    pub pgrig: &'a str,
}

/// Is told of progress, in order.
pub trait Observer {
    /// The tables that are going to be filled.
    fn planned(&mut self, plan: &Plan);
    /// A stage begins: a phrase for people.
    fn stage(&mut self, text: &str);
    /// A statement begins to be looked at, of so many.
    fn statement(&mut self, number: usize, of: usize);
}

/// Measures a migration. `interrupt` resolves when the user wants to stop. In any case the databases that it makes are
/// dropped; those that a killed run left, too.
///
/// # Errors
/// If the server fails, the tables cannot be filled, or the user interrupts it. A statement that the server refuses is no
/// error: the outcome has it.
pub fn run<'a>(
    site: &'a Site<'a>,
    request: &'a Request,
    observer: &'a mut dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Outcome, DdlError>> {
    Box::pin(async move {
        let name = Databases::name();
        // Its statements are cancelled, and not those of other sessions on the same server.
        let target = site.target.clone().apart();
        let (stop, stopped) = channel::channel(false);
        let measurement = Measurement { site, request, target: &target, stopped };
        let work = pin!(caught(measurement.run(&name, observer)));
        let ended = until_stopped(&target, interrupt, work, || {
            stop.send_replace(true);
        });
        let result = match ended.await {
            Ended::Done(result) => result,
            Ended::Stopped(_) => Err(DdlError::Interrupted),
        };
        match (databases::finish(&target.clone().apart(), &name).await, result) {
            (Ok(()), result) => result,
            // A lost server explains both.
            (Err(_), Err(error @ DdlError::Connect(_))) => Err(error),
            (Err((database, why)), result) => {
                Err(DdlError::NotDropped { database, why, ended: result.err().map(Box::new) })
            }
        }
    })
}

struct Measurement<'a> {
    site: &'a Site<'a>,
    request: &'a Request,
    target: &'a Target,
    stopped: channel::Receiver<bool>,
}

/// Shows nothing.
struct Silent;

impl SchemaObserver for Silent {
    fn table_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn fill::Observer + 'o> {
        Box::new(Unwatched)
    }

    fn foreign_key_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn fill::Observer + 'o> {
        Box::new(Unwatched)
    }
}

impl Measurement<'_> {
    async fn run(&self, name: &str, observer: &mut dyn Observer) -> Result<Outcome, DdlError> {
        let databases = Databases::begin(self.target, name.to_owned()).await?;
        let (settings, bytes) = self.fill(&databases.filled(), observer).await?;
        let statements = self.request.script.statements.iter().zip(1..);
        let outcome = |(statement, number): (&crate::script::Statement, usize)| StatementOutcome {
            number,
            statement: statement.clone(),
            found: None,
            failed: None,
            cost: None,
        };
        let mut outcome = Outcome { statements: statements.map(outcome).collect(), bytes };
        observer.stage("looking at each statement");
        let copy = databases.copy("look").await?;
        let ran = look(&copy, &with_settings(&copy, &settings), &mut outcome, observer).await?;
        databases.drop_copy(&copy).await?;
        observer.stage("measuring each statement");
        let copy = databases.copy("cost").await?;
        let statements = outcome.statements.iter_mut().take(ran);
        cost::measure(&copy, &with_settings(&copy, &settings), statements).await?;
        databases.drop_copy(&copy).await?;
        Ok(outcome)
    }

    /// Creates and fills the tables. Returns the settings of the migration's sessions, and the bytes of the tables.
    async fn fill(
        &self,
        target: &Target,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<(String, String)>, u64), DdlError> {
        let session = Session::open(target).await?;
        let survey = Survey::for_tables(&session.connection, self.site.directory, self.site.pgrig).await?;
        if survey.server.wal_level == "minimal" {
            return Err(DdlError::WalLevel);
        }
        let known: Vec<&String> = self.request.schema.settings.keys().collect();
        let query = "SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1)";
        let known: Vec<String> =
            session.rows(query, &[&known]).await?.iter().map(|row| row.get("name")).collect();
        let settings: Vec<_> = self
            .request
            .schema
            .settings
            .iter()
            .filter(|(name, _)| known.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let request = schema_request(self.request);
        let plan = plan_schema(&survey, &session.connection, &request, None, false).await?;
        let Some(plan) = plan else { return Ok((settings, 0)) };
        observer.planned(&Plan::of(&plan, settings.clone()));
        let mut stopped = self.stopped.clone();
        let interrupt = Box::pin(async move {
            // The sender outlives this.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
        let limits = SchemaLimits { limits: Limits::default(), survey: &survey };
        run_schema(target, &plan, limits, None, &Silent, interrupt).await?;
        let query = "SELECT coalesce(sum(pg_catalog.pg_total_relation_size(oid)), 0)::int8 AS bytes \
                     FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384";
        let bytes: i64 = session.row(query, &[]).await?.get("bytes");
        // Nobody may be connected to a database that is copied.
        session.close().await;
        Ok((settings, u64::try_from(bytes).unwrap_or_default()))
    }
}

/// Looks at the statements, up to the first that fails. Returns how many ran.
async fn look(
    copy: &Target,
    migrating: &Target,
    outcome: &mut Outcome,
    observer: &mut dyn Observer,
) -> Result<usize, DdlError> {
    let mut look = Look::begin(copy, migrating).await?;
    let of = outcome.statements.len();
    let mut ran = 0;
    for one in &mut outcome.statements {
        observer.statement(one.number, of);
        match look.statement(&one.statement).await? {
            Looked::Ran(found) => one.found = found,
            Looked::Failed(failed) => {
                one.failed = Some(failed);
                break;
            }
        }
        ran += 1;
    }
    look.end().await;
    Ok(ran)
}

fn with_settings(target: &Target, settings: &[(String, String)]) -> Target {
    settings.iter().fold(target.clone(), |target, (name, value)| target.with_setting(name, value))
}

/// The fill of the tables.
fn schema_request(request: &Request) -> SchemaRequest {
    let (amount, mut rules) = request.amount.for_fill();
    let most = if let Amount::Rows(rows) = request.amount { Some(rows) } else { None };
    rules.extend(request.schema.rules(most));
    SchemaRequest {
        ddl: Some(request.schema.sql.clone()),
        create_roles: false,
        schema: None,
        exclude: Vec::new(),
        empty: request.schema.empty(),
        amount,
        rules,
        scale: 1.0,
        columns: request.columns.clone(),
        modelled: request.schema.modelled.clone(),
        modelled_types: Vec::new(),
        append: false,
        persistence: Persistence::Logged,
        // In pages, foreign keys and the like would have rules of their own; the tables are small.
        method: MethodChoice::Copy,
        streams: None,
        format: None,
        chunk: None,
        in_chunks: false,
        seed: request.seed,
        plain: false,
        triggers: Triggers::default(),
        steps: InitSteps::whole().without(InitStep::PrimaryKeys).without(InitStep::Create),
    }
}
