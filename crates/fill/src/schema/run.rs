//! The plans are carried out: tables created, then filled one after the other.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared};

use super::outcome::{FilledTable, SchemaOutcome};
use super::plan::{PlannedTable, SchemaPlan};
use super::record;
use crate::error::FillError;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::remains::Anew;
use crate::run::{Conduct, Observer, run, take_in_hand};
use connect::Target;
use server::interruption::{Ended, until_stopped};
use server::quote::qualified;
use server::{Session, Sessions};

/// Told of a schema fill's progress.
pub trait SchemaObserver {
    /// A table is begun. Returns the observer of its fill.
    fn table_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o>;
}

/// Carries the plan out. `interrupt` resolves when the user wants to stop. `records` is the directory for records of
/// files that are written past the server.
///
/// # Errors
/// If a table cannot be filled, or the fill is interrupted: the same request completes it.
pub fn run_schema<'a>(
    target: &'a Target,
    plan: &'a SchemaPlan,
    records: Option<PathBuf>,
    observer: &'a dyn SchemaObserver,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<SchemaOutcome, FillError>> {
    Box::pin(async move {
        let started = Instant::now();
        let run = SchemaRun { target, plan, interrupt: interrupt.shared() };
        let sessions = Sessions::new(target);
        let session = sessions.open().await?;
        run.interruptible(begin(&session, plan), 0).await?;
        let mut tables = Vec::with_capacity(plan.tables.len());
        for (place, table) in plan.tables.iter().enumerate() {
            let Some(of_table) = table.plan() else { continue };
            let told = observer.table_started(place, table);
            let outcome = run.fill(place, of_table, records.clone(), &*told).await?;
            tables.push(FilledTable { place, outcome });
        }
        let refreshed = run.interruptible(end(&session, plan), plan.tables.len()).await?;
        Ok(SchemaOutcome { tables, elapsed: started.elapsed(), refreshed })
    })
}

/// A schema fill that is being carried out.
struct SchemaRun<'a> {
    target: &'a Target,
    plan: &'a SchemaPlan,
    interrupt: Shared<LocalBoxFuture<'a, ()>>,
}

impl SchemaRun<'_> {
    /// Fills the table at this place.
    async fn fill(
        &self,
        place: usize,
        plan: &Plan,
        records: Option<PathBuf>,
        observer: &dyn Observer,
    ) -> Result<Outcome, FillError> {
        let conduct = Conduct {
            records,
            is_unsampled: true,
            makes: self.plan.tables[place].recorded.postponed.makes.clone(),
            at_end: Some(record::mark(&self.plan.record_schema, place)),
            ..Conduct::default()
        };
        let interrupt = self.interrupt.clone().boxed_local();
        let filled = run(self.target, plan, conduct, observer, interrupt).await;
        filled.map_err(|source| failed(self.plan, place, source))
    }

    /// Does work between tables, of which so many are filled, unless the user wants to stop.
    async fn interruptible<T>(
        &self,
        work: impl Future<Output = Result<T, FillError>>,
        filled: usize,
    ) -> Result<T, FillError> {
        match until_stopped(self.target, self.interrupt.clone(), pin!(work), || {}).await {
            Ended::Done(result) | Ended::Stopped(Some(result @ Ok(_))) => result,
            // Cancelled statements end with an error of their own.
            Ended::Stopped(_) => Err(FillError::SchemaInterrupted { filled, of: self.plan.tables.len() }),
        }
    }
}

/// Makes sure that no other session is at this fill and that nothing has changed since it was planned, and creates the
/// tables and the record in one transaction.
///
/// # Errors
/// If there is such a session, or something has changed.
async fn begin(session: &Session, plan: &SchemaPlan) -> Result<(), FillError> {
    take_in_hand(session, &record::name(&plan.record_schema)).await?;
    if record::filled(record::find(&session.connection, &plan.request).await?.as_ref()) != plan.filled_before
    {
        return Err(FillError::SchemaChanged);
    }
    if plan.is_resumed {
        return Ok(());
    }
    let recorded: Vec<_> = plan.tables.iter().map(|table| table.recorded.clone()).collect();
    session.run("BEGIN").await?;
    session.run_all(&plan.create).await?;
    for table in plan.tables.iter().filter(|_| plan.must_be_empty()) {
        let name = qualified(&table.schema, &table.name);
        let row = session.row(&format!("SELECT EXISTS (SELECT FROM {name}) AS has_rows"), &[]).await?;
        if row.get("has_rows") {
            return Err(FillError::SchemaChanged);
        }
    }
    session.run_all(&record::create(&plan.record_schema, &plan.request, &recorded)).await?;
    session.run("COMMIT").await?;
    Ok(())
}

/// Fills materialized views that refer to the tables, if the SQL created them, and removes the record.
async fn end(session: &Session, plan: &SchemaPlan) -> Result<Vec<String>, FillError> {
    let created = plan.tables.iter().filter(|_| plan.request.ddl.is_some());
    let tables: Vec<String> = created.map(|table| qualified(&table.schema, &table.name)).collect();
    let rows = session.rows(include_str!("../sql/schema_views.sql"), &[&tables]).await?;
    let names: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
    for name in &names {
        session.run(&format!("REFRESH MATERIALIZED VIEW {name}")).await?;
    }
    session.run(&record::drop(&plan.record_schema)).await?;
    Ok(names)
}

fn failed(plan: &SchemaPlan, place: usize, mut source: FillError) -> FillError {
    let table = &plan.tables[place];
    if let FillError::Step { remains, .. } | FillError::Interrupted { remains, .. } = &mut source {
        remains.with_others();
    }
    let anew = match plan.request.ddl {
        Some(_) => Anew::Drop,
        None if plan.request.append => Anew::Replace,
        None => Anew::Empty,
    };
    FillError::OfTable {
        table: format!("{}.{}", table.schema, table.name),
        filled: place,
        of: plan.tables.len(),
        anew,
        source: Box::new(source),
    }
}
