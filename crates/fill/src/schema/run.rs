//! The plans are carried out: tables created, then filled one after the other.

use std::path::PathBuf;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::outcome::{FilledTable, SchemaOutcome};
use super::plan::{PlannedTable, SchemaPlan};
use super::record;
use crate::error::FillError;
use crate::run::{Conduct, Observer, run};
use connect::Target;
use server::{Session, Sessions};

/// Told of a schema fill's progress.
pub trait SchemaObserver {
    /// A table is begun; tells who is told of its progress.
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
        let interrupt = interrupt.shared();
        let sessions = Sessions::new(target);
        let session = sessions.open().await?;
        if !plan.is_resumed {
            begin(&session, plan).await?;
        }
        let mut tables = Vec::with_capacity(plan.tables.len());
        for (place, table) in plan.tables.iter().enumerate() {
            let Some(of_table) = table.plan() else { continue };
            let conduct = Conduct { records: records.clone(), is_unsampled: true, ..Conduct::default() };
            let told = observer.table_started(place, table);
            let filled = run(target, of_table, conduct, &*told, interrupt.clone().boxed_local()).await;
            drop(told);
            let outcome = filled.map_err(|source| failed(plan, place, source))?;
            record::mark(&session, &plan.record_schema, place).await?;
            tables.push(FilledTable { place, outcome });
        }
        let refreshed = refresh(&session, plan).await?;
        session.run(&record::drop(&plan.record_schema)).await?;
        Ok(SchemaOutcome { tables, elapsed: started.elapsed(), refreshed })
    })
}

/// Creates the tables and the record, in one transaction.
async fn begin(session: &Session, plan: &SchemaPlan) -> Result<(), FillError> {
    let recorded: Vec<_> = plan.tables.iter().map(|table| table.recorded.clone()).collect();
    session.run("BEGIN").await?;
    session.run_all(&plan.create).await?;
    session.run_all(&record::create(&plan.record_schema, &plan.request, &recorded)).await?;
    session.run("COMMIT").await?;
    Ok(())
}

/// Fills materialized views that refer to the tables, if the SQL created them.
async fn refresh(session: &Session, plan: &SchemaPlan) -> Result<Vec<String>, FillError> {
    if plan.request.ddl.is_none() {
        return Ok(Vec::new());
    }
    let tables: Vec<String> =
        plan.tables.iter().map(|table| server::quote::qualified(&table.schema, &table.name)).collect();
    let rows = session.rows(include_str!("../sql/schema_views.sql"), &[&tables]).await?;
    let names: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
    for name in &names {
        session.run(&format!("REFRESH MATERIALIZED VIEW {name}")).await?;
    }
    Ok(names)
}

fn failed(plan: &SchemaPlan, place: usize, source: FillError) -> FillError {
    let table = &plan.tables[place];
    FillError::OfTable {
        table: format!("{}.{}", table.schema, table.name),
        filled: place,
        of: plan.tables.len(),
        source: Box::new(source),
    }
}
