//! The settings with which the migration runs, and the server's memory.

use connect::Target;
use server::{Session, Survey};

use super::Site;
use crate::error::DdlError;
use crate::forecast::Memory;
use crate::request::Request;

/// Settings by name.
pub(crate) type Settings = Vec<(String, String)>;

/// With less shared_buffers, a scan may keep so few blocks at once that I/O workers read them one by one (bufmgr.c:
/// GetPinLimit); with 4 MB, the time of the same scan varied by a factor of four.
const FEW_BUFFERS: u64 = 64 << 20;

/// Settings and memory of the server that measures, and a warning about them.
pub(crate) struct Conditions {
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    /// A warning for the user.
    pub(crate) warning: Option<String>,
}

/// The settings of the original that this server knows, and the server's memory. Refuses a server on which WAL would not be
/// measured.
pub(crate) async fn read(
    site: &Site<'_>,
    request: &Request,
    target: &Target,
) -> Result<Conditions, DdlError> {
    let session = Session::open(target).await?;
    let survey = Survey::for_tables(&session.connection, site.directory, site.pgrig).await?;
    if survey.server.wal_level == "minimal" {
        return Err(DdlError::WalLevel);
    }
    let original = &request.schema.settings;
    let known: Vec<&String> = original.keys().collect();
    let query = "SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1)";
    let known: Vec<String> =
        session.rows(query, &[&known]).await?.iter().map(|row| row.get("name")).collect();
    session.close().await;
    let known = original.iter().filter(|(name, _)| known.contains(name));
    let settings: Settings = known.map(|(name, value)| (name.clone(), value.clone())).collect();

    let session = Session::open(&with(target, &settings)).await?;
    let query = "SELECT pg_catalog.pg_size_bytes(current_setting('maintenance_work_mem')) AS sort, \
                 pg_catalog.pg_size_bytes(current_setting('max_wal_size')) AS wal, \
                 coalesce(current_setting('io_method', true) = 'worker', false) AS has_workers";
    let row = session.row(query, &[]).await?;
    session.close().await;
    let whole = |name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
    let is_here = survey.environment.server_is_local == Some(true);
    let memory = Memory {
        shared_buffers: survey.server.shared_buffers,
        maintenance_work_mem: whole("sort"),
        max_wal_size: whole("wal"),
        machine: if is_here { survey.environment.client.memory } else { 0 },
    };
    let is_few = row.get::<_, bool>("has_workers") && memory.shared_buffers < FEW_BUFFERS;
    let warning = is_few.then(|| {
        "shared_buffers is less than 64 MB: with io_method = worker, the seconds of scans vary widely from run to run; set it to the \
         value of the server for which you want to know"
            .to_owned()
    });
    Ok(Conditions { settings, memory, warning })
}

/// Sessions of the target with these settings.
pub(crate) fn with(target: &Target, settings: &[(String, String)]) -> Target {
    settings.iter().fold(target.clone(), |target, (name, value)| target.with_setting(name, value))
}
