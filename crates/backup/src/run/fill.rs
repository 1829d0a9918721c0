//! Data of a size, in a server of pgrig's own.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connect::Target;
use fill::limits::Limits;
use fill::{
    Amount, Conduct, FillError, FillSteps, InitSteps, MethodChoice, Request, SchemaLimits, SchemaRequest,
    Unwatched, plan_schema, run_schema, triggers_of_schema,
};
use server::{DataDirectory, Session, Steps, Survey};

use crate::error::BackupError;
use crate::shape::Shape;

/// Interval of checks whether the user wants the run to end.
const LOOK: Duration = Duration::from_millis(50);

/// Fills an empty database, so that its tables with their indexes take so many bytes, and writes all of it to disk. Returns its
/// server.
pub(super) async fn fill(
    target: &Target,
    directory: &DataDirectory,
    pgrig: &str,
    (shape, bytes): (&Shape, u64),
    stop: &AtomicBool,
    steps: Steps<'_>,
) -> Result<Survey, BackupError> {
    let session = Session::open(target).await?;
    let survey = Survey::for_tables(&session.connection, directory, pgrig).await?;
    let filled = if let Some(request) = shape.schema_request(bytes) {
        fill_schema(target, (&session, &survey), request, stop, steps).await
    } else {
        fill_pgbench(target, &session, &survey, bytes, stop).await
    };
    if stop.load(Ordering::Relaxed) {
        return Err(BackupError::Interrupted);
    }
    filled.map_err(|error| BackupError::Fill {
        origin: shape.origin.clone(),
        size: bytes,
        error: Box::new(shape.explained(error)),
    })?;
    steps("writing the data to disk");
    session.run("CHECKPOINT").await?;
    session.close().await;
    Ok(survey)
}

/// Fills the tables of a schema. Its triggers do not run for the rows.
async fn fill_schema(
    target: &Target,
    (session, survey): (&Session, &Survey),
    mut request: SchemaRequest,
    stop: &AtomicBool,
    steps: Steps<'_>,
) -> Result<(), FillError> {
    let triggers = triggers_of_schema(survey, &session.connection, &request, steps).await?;
    request.ddl = request.ddl.map(|sql| triggers.disabled_after(&sql));
    let plan = plan_schema(survey, &session.connection, &request, None, false, steps).await?;
    let plan = plan.ok_or(FillError::NothingToFill)?;
    let limits = SchemaLimits { limits: Limits::default(), survey, arrival: None };
    run_schema(target, &plan, limits, None, &FillSteps::new(&plan, steps), stopped(stop)).await?;
    Ok(session.run(&triggers.enable()).await?)
}

async fn fill_pgbench(
    target: &Target,
    session: &Session,
    survey: &Survey,
    bytes: u64,
    stop: &AtomicBool,
) -> Result<(), FillError> {
    let request = Request::new(Amount::Size(bytes), InitSteps::whole());
    let request = Request { method: MethodChoice::Copy, ..request };
    let plan = fill::plan(survey, &session.connection, &request, false).await?;
    fill::run(target, &plan, Conduct::default(), &Unwatched, stopped(stop)).await.map(drop)
}

/// Resolves when the user wants the run to end.
fn stopped(stop: &AtomicBool) -> Pin<Box<dyn Future<Output = ()> + '_>> {
    Box::pin(async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    })
}
