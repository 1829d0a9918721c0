//! Data of a size, in a server of pgrig's own.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connect::Target;
use fill::limits::Limits;
use fill::{
    Amount, Conduct, FillError, InitSteps, MethodChoice, PlannedTable, Request, SchemaLimits, SchemaObserver,
    Unwatched, plan_schema, run_schema,
};
use server::{DataDirectory, Session, Survey};

use crate::error::BackupError;
use crate::shape::Shape;

/// Interval of checks whether the user wants the run to end.
const LOOK: Duration = Duration::from_millis(50);

/// Shows nothing.
struct Silent;

impl SchemaObserver for Silent {
    fn table_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn fill::Observer + 'o> {
        Box::new(Unwatched)
    }

    fn foreign_key_started<'o>(&'o self, _: usize, _: &'o PlannedTable) -> Box<dyn fill::Observer + 'o> {
        Box::new(Unwatched)
    }

    fn waiting(&self, _: &str) {}
}

/// Fills an empty database, so that its tables with their indexes take so many bytes, and writes all of it to disk. Returns its
/// server.
pub(super) async fn fill(
    target: &Target,
    directory: &DataDirectory,
    pgrig: &str,
    (shape, bytes): (&Shape, u64),
    stop: &AtomicBool,
) -> Result<Survey, BackupError> {
    let session = Session::open(target).await?;
    let survey = Survey::for_tables(&session.connection, directory, pgrig).await?;
    let filled = match shape.schema_request(bytes) {
        Some(request) => match plan_schema(&survey, &session.connection, &request, None, false).await {
            Ok(Some(plan)) => {
                let limits = SchemaLimits { limits: Limits::default(), survey: &survey, arrival: None };
                run_schema(target, &plan, limits, None, &Silent, stopped(stop)).await.map(drop)
            }
            Ok(None) => Err(FillError::NothingToFill),
            Err(error) => Err(error),
        },
        None => {
            let request = Request {
                method: MethodChoice::Copy,
                ..Request::new(Amount::Size(bytes), InitSteps::whole())
            };
            match fill::plan(&survey, &session.connection, &request, false).await {
                Ok(plan) => {
                    fill::run(target, &plan, Conduct::default(), &Unwatched, stopped(stop)).await.map(drop)
                }
                Err(error) => Err(error),
            }
        }
    };
    if stop.load(Ordering::Relaxed) {
        return Err(BackupError::Interrupted);
    }
    filled.map_err(|error| BackupError::Fill {
        origin: shape.origin.clone(),
        size: bytes,
        error: Box::new(error),
    })?;
    session.run("CHECKPOINT").await?;
    session.close().await;
    Ok(survey)
}

/// Resolves when the user wants the run to end.
fn stopped(stop: &AtomicBool) -> Pin<Box<dyn Future<Output = ()> + '_>> {
    Box::pin(async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    })
}
