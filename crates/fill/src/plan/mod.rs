//! Makes a plan from a request and a server. Every fill takes the same path, whether or not pgrig makes its tables:
//!
//! 1. the [`facts`] of the server: existing tables, obstacles, and the chunks of an interrupted fill
//!    ([`pgrig_tables`] for pgbench's tables, [`own_table`] for a table of the user's);
//! 2. the rows of the [`bulk`] table: their number and their size ([`sizes`]);
//! 3. the [`rules`], which resolve method, streams, chunks, steps, reasons and warnings, with the [`forecast`] of
//!    the disk that is needed;
//! 4. the [`Plan`]: data that `--explain` prints and that the run obeys.
//!
//! Nothing is changed meanwhile. Requests that cannot be met are refused at the first of these that can tell.

mod bulk;
pub(crate) mod chunks;
mod data;
mod existing;
mod facts;
mod forecast;
mod leaves;
mod method;
pub(crate) mod own_table;
mod pgrig_tables;
pub(crate) mod row_range;
mod rules;
mod sample;
pub(crate) mod sizes;
mod splits;
pub(crate) mod tables;

use connect::Connection;
use futures_util::future::LocalBoxFuture;
use measure::Disk;
use server::volume::Volumes;
use server::{Survey, refuse_odd_name};

pub(crate) use bulk::ForeignKeys;
pub use chunks::{Chunking, Spread};
pub use data::Plan;
pub(crate) use data::RowKey;
pub use method::{IndexBuild, Method};
pub(crate) use own_table::DescribedTable;
pub(crate) use rules::needs_chunks;
pub(crate) use sample::{IndexGrowth, Sample};
pub use sizes::{Calculation, Prediction, Sizes};
pub(crate) use splits::{Splits, entry_size};

use crate::error::FillError;
use crate::limits::{Limits, SpaceRule, VolumeMonitor, WalFacts, refuse_without_volumes};
use crate::request::{Amount, Request, Subject};
use crate::run::direct::{DataDirectory, NotDirect};
use catalog::TableInfo;

/// Plans the request for this server, or refuses it. Nothing is touched. With `resume` a fill of the
/// same request that was interrupted is completed. The caller has checked the request ([`Request::check`]), before it
/// reached the server.
///
/// # Errors
/// If the request cannot be met: see [`FillError`].
pub fn plan<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a Request,
    resume: bool,
) -> LocalBoxFuture<'a, Result<Plan, FillError>> {
    Box::pin(async move {
        let (plan, space) = plan_and_space(survey, connection, request, resume).await?;
        space.map(|()| plan)
    })
}

/// A plan, and the error of a disk that lacks room for it.
type AndSpace = (Plan, Result<(), FillError>);

/// As [`plan`], but with the error of a disk that lacks room beside the plan.
///
/// # Errors
/// If the request cannot be met, whatever room the disk has.
pub fn plan_and_space<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    request: &'a Request,
    resume: bool,
) -> LocalBoxFuture<'a, Result<AndSpace, FillError>> {
    Box::pin(async move {
        if let Some(schema) = &request.schema {
            refuse_odd_name(schema)?;
        }
        let data_directory = data_directory(survey, connection).await?;
        let facts = match &request.subject {
            Subject::Table(own) => {
                let may_write_pages = rules::may_write_pages(survey, &data_directory, request);
                own_table::look(survey, connection, request, own, resume, may_write_pages).await?
            }
            Subject::Pgbench | Subject::Series => pgrig_tables::look(connection, request, resume).await?,
        };
        let plan = rules::resolve(survey, &data_directory, facts)?;
        if plan.emptied {
            pgrig_tables::refuse_other_shape(connection, &plan).await?;
        }
        // Of an interrupted fill some is there already, and has its space.
        let disk = survey.environment.data_volume.as_ref().filter(|_| plan.unfinished.is_none());
        let space = disk.map_or(Ok(()), |disk| refuse_too_little(disk, request, &plan));
        Ok((plan, space))
    })
}

/// Plans the fill of a table whose rows are described already, and of which no fill has begun.
///
/// # Errors
/// As [`plan`].
pub(crate) async fn plan_described(
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    data_directory: &Result<DataDirectory, NotDirect>,
    (info, rows): (TableInfo, DescribedTable),
) -> Result<Plan, FillError> {
    let facts = own_table::look_at_described(survey, connection, request, info, rows).await?;
    rules::resolve(survey, data_directory, facts)
}

/// The data directory, or why pages cannot be written into it.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn data_directory(
    survey: &Survey,
    connection: &Connection,
) -> Result<Result<DataDirectory, NotDirect>, FillError> {
    let directory = survey.data_directory.as_deref();
    match DataDirectory::of(&connection.client, &survey.server, directory).await {
        Ok(data_directory) => Ok(data_directory),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}

fn refuse_too_little(disk: &Disk, request: &Request, plan: &Plan) -> Result<(), FillError> {
    // A table that grows until it has its size is predicted chunk by chunk.
    let predicted = match request.amount {
        Amount::Size(size) if plan.until_size.is_some() => Prediction {
            sizes: Sizes { heap: size, index: 0 },
            wal: if plan.predicted.wal > 0 { size } else { 0 },
            temporary: 0,
        },
        _ => plan.predicted,
    };
    // Dropped tables are truncated at the commit of the drop, so their space comes back in time.
    let free = disk.free + plan.dropped_bytes;
    if predicted.peak() <= free {
        return Ok(());
    }
    Err(FillError::Disk {
        needed: predicted.peak(),
        total: predicted.sizes.total(),
        wal: predicted.wal,
        temporary: predicted.temporary,
        free,
        mount: disk.mount.clone(),
    })
}

/// Monitor of the volumes that the plan fills; none for a remote server.
///
/// # Errors
/// If the server cannot be asked, or if `limits` need a view of volumes that pgrig does not have.
pub fn volume_monitor<'a>(
    survey: &'a Survey,
    connection: &'a Connection,
    plan: &'a Plan,
    limits: &'a Limits,
) -> LocalBoxFuture<'a, Result<Option<VolumeMonitor>, FillError>> {
    Box::pin(async move {
        let Some(directory) = &survey.data_directory else {
            refuse_without_volumes(limits, survey.restricted_role())?;
            return Ok(None);
        };
        let look = async {
            let (tables, indexes) = (plan.tablespace.as_deref(), plan.index_tablespace.as_deref());
            let Some(volumes) = Volumes::of(&connection.client, directory, tables, indexes).await? else {
                return Ok(None);
            };
            let facts = WalFacts::ask(&connection.client).await?;
            Ok(Some(VolumeMonitor::new(&volumes, SpaceRule::new(&volumes, &facts, plan.wal_use()))))
        };
        match look.await {
            Ok(volume_monitor) => Ok(volume_monitor),
            Err(error) => Err(connection.explain(error).await.into()),
        }
    })
}
