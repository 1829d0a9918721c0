//! The plan: which relations are made, how their size relates to the server's memory, and the
//! resources that they need.

use futures_util::future::LocalBoxFuture;
use serde::Serialize;

use crate::error::{BlockioError, Needed};
use crate::reference::{Published, published};
use crate::request::{Mode, Request};
use crate::run::evict::Eviction;
use crate::step::{Step, steps};
use connect::Connection;
use server::Survey;
use server::volume::Volumes;
use server::{ask, refuse_odd_name, schema_for_tables};

/// The schema of pgrig's own.
pub const SCHEMA: &str = "pgrig_blockio";
/// The table that lists the objects that pgrig has made beside it.
pub(super) const JOURNAL: &str = "pgrig_blockio";
/// The comment on all objects that are made.
pub(super) const MARK: &str = "made by pgrig blockio, whose next run drops it";
/// The table whose rows are multiplied to fill the others.
pub(super) const SETTINGS: &str = "pgrig_blockio_settings";
/// Number of rows of one copy of the settings, and their size in a table, bytes.
const COPY_ROWS: u64 = 352;
const COPY_BYTES: u64 = 11 * 8192;
/// Size of an index entry: a tuple identifier of 6 bytes in a posting list, and its share of the list's key and of
/// the page (nbtree, "Deduplication"); measured.
const INDEX_BYTES_PER_ROW: f64 = 7.4;
/// The server's other sessions: the leading one, one to spare, and those kept for superusers.
const OTHER_SESSIONS: u32 = 5;

/// The plan of a run, as data: printed by `--explain`, stored in the run document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The request that this plan carries out.
    pub request: Request,
    /// Schema of the tables.
    pub schema: String,
    /// Whether the schema is new.
    pub create_schema: bool,
    /// Each client's table and index.
    pub tables: Vec<Names>,
    /// Number of copies of the settings in each table.
    pub copies: u64,
    /// Rows of each table.
    pub rows: u64,
    /// Predicted sizes of each client's relations.
    pub predicted: Predicted,
    /// Space that is needed on the volumes at the peak.
    pub needed: Needed,
    /// `shared_buffers`, bytes.
    pub shared_buffers: u64,
    /// Memory of the server's machine, bytes, where it is known.
    pub memory: Option<u64>,
    /// Means to evict a table from shared_buffers.
    pub eviction: Eviction,
    /// Names of the steps, in order.
    pub steps: Vec<&'static str>,
    /// Published machines with their figures for these steps.
    pub published: Vec<Published>,
}

/// A client's relations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Names {
    /// The table's name, without the schema.
    pub table: String,
    /// Its index, on the settings' names.
    pub index: String,
}

/// Bytes of one client's relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// Bytes of the table's main fork.
    pub heap: u64,
    /// Bytes of the index's main fork.
    pub index: u64,
}

impl Names {
    fn of(mode: Mode, client: u16) -> Self {
        match mode {
            Mode::Own => Self {
                table: format!("pgrig_blockio_{client}"),
                index: format!("pgrig_blockio_{client}_name"),
            },
            Mode::Compat => Self { table: "settings_loop".to_owned(), index: "by_name".to_owned() },
        }
    }
}

/// A plan, and the error of a disk that lacks room for it.
type AndSpace = (Plan, Result<(), BlockioError>);

impl Plan {
    /// Plans the request for this server, or refuses it. Nothing is touched. The caller has checked the request
    /// ([`Request::check`]), before it reached the server.
    ///
    /// # Errors
    /// If the request cannot be met: see [`BlockioError`].
    pub fn new<'a>(
        connection: &'a Connection,
        survey: &'a Survey,
        request: &'a Request,
    ) -> LocalBoxFuture<'a, Result<Self, BlockioError>> {
        Box::pin(async move {
            let (plan, space) = Self::and_space(connection, survey, request).await?;
            space.map(|()| plan)
        })
    }

    /// As [`Self::new`], but with the error of a disk that lacks room beside the plan.
    ///
    /// # Errors
    /// If the request cannot be met, whatever room the disk has.
    pub fn and_space<'a>(
        connection: &'a Connection,
        survey: &'a Survey,
        request: &'a Request,
    ) -> LocalBoxFuture<'a, Result<AndSpace, BlockioError>> {
        Box::pin(async move {
            let most = survey.server.max_connections.saturating_sub(OTHER_SESSIONS).max(1);
            if u32::from(request.clients) > most {
                return Err(BlockioError::Clients { clients: request.clients, most });
            }
            let schema = request.schema.clone().unwrap_or_else(|| SCHEMA.to_owned());
            refuse_odd_name(&schema)?;
            let exists = schema_for_tables(connection, Some(&schema)).await?.exists;
            if !exists && request.schema.is_some() {
                return Err(BlockioError::NoSchema { schema });
            }
            let tables: Vec<Names> =
                (1..=request.clients).map(|client| Names::of(request.mode, client)).collect();
            if exists {
                refuse_taken(connection, &schema, &tables).await?;
            }
            let room = ask(connection, include_str!("sql/room.sql"), &[]).await?;
            let number = |column| u64::try_from(room.get::<_, i64>(column)).unwrap_or_default();
            let (copies, copy_rows, heap) = match request.mode {
                Mode::Own => {
                    let copies = request.size.div_ceil(COPY_BYTES);
                    (copies, COPY_ROWS, copies * COPY_BYTES)
                }
                Mode::Compat => {
                    let copies = published_copies(request.size);
                    (copies, number("copy_rows"), copies * number("copy_bytes"))
                }
            };
            let rows = copies * copy_rows;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in bytes")]
            let index = (rows as f64 * INDEX_BYTES_PER_ROW) as u64;
            let predicted = Predicted { heap, index };
            let needed = needed(request, predicted, survey, number("max_wal_size"));
            let space = refuse_too_little(connection, survey, needed).await?;
            let plan = Self {
                schema,
                create_schema: !exists,
                tables,
                copies,
                rows,
                predicted,
                needed,
                shared_buffers: survey.server.shared_buffers,
                memory: request.memory.or(survey.site.memory),
                eviction: Eviction::ask(connection, survey, request.mode).await?,
                steps: steps(request.mode).iter().map(|step| step.name).collect(),
                published: published(request.mode),
                request: request.clone(),
            };
            Ok((plan, space))
        })
    }

    /// The steps, in order.
    pub fn script(&self) -> &'static [Step] {
        steps(self.request.mode)
    }

    /// Heap of all tables, bytes, as predicted.
    pub fn data(&self) -> u64 {
        self.predicted.heap * u64::from(self.request.clients)
    }
}

/// `generate_series(0, SIZEGB * 12500)`.
fn published_copies(size: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 30,000 × 12,500")]
    let loops = (size as f64 / 1e9 * 12_500.0) as u64;
    loops + 1
}

/// Refuses names that other relations have, and tables that another role left.
async fn refuse_taken(connection: &Connection, schema: &str, tables: &[Names]) -> Result<(), BlockioError> {
    let mut names: Vec<&str> = vec![JOURNAL, SETTINGS];
    names.extend(tables.iter().flat_map(|names| [names.table.as_str(), names.index.as_str()]));
    let query = include_str!("sql/names.sql");
    let row = ask(connection, query, &[&schema, &names, &JOURNAL, &MARK]).await?;
    let (schema, role): (String, String) = (schema.to_owned(), row.get("role"));
    if row.get::<_, Option<bool>>("may_use") != Some(true) {
        return Err(BlockioError::Usage { role, schema });
    }
    let taken: Vec<String> = row.get("taken");
    match row.get::<_, Option<String>>("journal_owner") {
        // pgrig's own journal lists the objects to be dropped first.
        Some(owner) if owner == role => Ok(()),
        Some(owner) => Err(BlockioError::LeftByAnother { schema, owner }),
        None if taken.is_empty() => Ok(()),
        None => Err(BlockioError::Taken { schema, names: taken }),
    }
}

fn needed(request: &Request, predicted: Predicted, survey: &Survey, max_wal_size: u64) -> Needed {
    let clients = u64::from(request.clients);
    let one = predicted.heap + predicted.index;
    let sorts = predicted.heap > survey.server.maintenance_work_mem;
    // Logged once each: create, what VACUUM freezes (whole pages after a checkpoint), CLUSTER. WAL may grow
    // some way beyond its soft limit.
    let logged = clients * 3 * one;
    Needed {
        tables: clients * 2 * one,
        sorting: if sorts { clients * predicted.heap } else { 0 },
        wal: logged.min(max_wal_size / 10 * 13),
    }
}

/// Refuses tables that do not fit their volume, if pgrig can see it: the inner error. The outer one is that of the server.
async fn refuse_too_little(
    connection: &Connection,
    survey: &Survey,
    needed: Needed,
) -> Result<Result<(), BlockioError>, BlockioError> {
    let Some(directory) = &survey.data_directory else { return Ok(Ok(())) };
    let volumes = match Volumes::of(&connection.client, directory, None, None).await {
        Ok(volumes) => volumes,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    let Some(volumes) = volumes else { return Ok(Ok(())) };
    let Ok(space) = volumes.heap.space() else { return Ok(Ok(())) };
    let is_here = |volume: Option<&server::volume::Volume>| {
        volume.is_none_or(|volume| volume.is_same_as(&volumes.heap))
    };
    let needed = Needed {
        sorting: if is_here(volumes.temporary.as_ref()) { needed.sorting } else { 0 },
        wal: if is_here(volumes.wal.as_ref()) { needed.wal } else { 0 },
        ..needed
    };
    if needed.total() <= space.free {
        return Ok(Ok(()));
    }
    Ok(Err(BlockioError::Disk { needed, free: space.free, mount: volumes.heap.mount().to_owned() }))
}
