//! The settings with which the migration runs, and the server's memory.

use connect::Target;
use server::{Session, Survey};

use super::databases::Databases;
use super::original::{self, TakenOver};
use super::{Observer, Site};
use crate::error::DdlError;
use crate::forecast::{Checkpoints, Memory};
use crate::request::Request;

/// Settings by name.
pub(crate) type Settings = Vec<(String, String)>;

/// With less shared_buffers, a scan may keep so few blocks at once that I/O workers read them one by one (bufmgr.c:
/// GetPinLimit); with 4 MB, the time of the same scan varied by a factor of four.
const FEW_BUFFERS: u64 = 64 << 20;

/// With less `maintenance_work_mem`, the build of an index has no worker: the worker and the process of the statement need 32 MB each
/// (planner.c: `plan_create_index_workers`).
const PARALLEL_SORT: u64 = 64 << 20;

/// Settings and memory of the server that measures, and warnings about them.
pub(crate) struct Conditions {
    /// Those of the original that the sessions get.
    pub(crate) settings: Settings,
    /// Those of the original with which the server runs while pgrig measures. A restart must name them again.
    pub(crate) of_server: Settings,
    pub(crate) memory: Memory,
    pub(crate) checkpoints: Checkpoints,
    /// Bytes of a table, without its indexes, from which on the build of an index has parallel workers; none if it never has.
    pub(crate) parallel_from: Option<u64>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// Takes over the settings of the original that differ on this server, as far as possible, and reads the memory. Refuses a server on which
/// WAL would not be measured.
pub(crate) async fn take_over(
    site: &Site<'_>,
    request: &Request,
    databases: &mut Databases,
    observer: &mut dyn Observer,
) -> Result<Conditions, DdlError> {
    let target = databases.outside().clone();
    let before = survey(site, &target).await?;
    if before.server.wal_level == "minimal" {
        return Err(DdlError::WalLevel);
    }
    let TakenOver { settings, of_server, mut warnings } =
        original::take_over(site, &request.schema.settings, (databases, &before), observer).await?;
    let survey = if of_server.is_empty() { before } else { survey(site, &target).await? };
    warnings.extend(other_version(request.schema.major, survey.server.version_num / 10_000));

    let session = Session::open(&with(&target, &settings)).await?;
    let query = "SELECT pg_catalog.pg_size_bytes(current_setting('maintenance_work_mem')) AS sort, \
                 pg_catalog.pg_size_bytes(current_setting('max_wal_size')) AS wal, \
                 pg_catalog.pg_size_bytes(current_setting('wal_segment_size')) AS segment, \
                 current_setting('checkpoint_completion_target')::float8 AS completion, \
                 (SELECT setting::float8 FROM pg_catalog.pg_settings WHERE name = 'checkpoint_timeout') AS timeout, \
                 coalesce(current_setting('io_method', true) = 'worker', false) AS has_workers, \
                 least(current_setting('max_parallel_maintenance_workers')::int, \
                       current_setting('max_parallel_workers')::int, \
                       current_setting('max_worker_processes')::int) AS workers, \
                 pg_catalog.pg_size_bytes(current_setting('min_parallel_table_scan_size')) AS parallel";
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
    let has_parallel = row.get::<_, i32>("workers") > 0 && memory.maintenance_work_mem >= PARALLEL_SORT;
    let parallel_from = has_parallel.then(|| whole("parallel"));
    let wal = (memory.max_wal_size, whole("segment"));
    let checkpoints = Checkpoints::of(wal, row.get("completion"), row.get("timeout"));
    let is_few = row.get::<_, bool>("has_workers") && memory.shared_buffers < FEW_BUFFERS;
    warnings.extend(is_few.then(|| {
        "shared_buffers is less than 64 MB: with io_method = worker, the seconds of scans vary widely from run to run: set \
         shared_buffers to the value of your server"
            .to_owned()
    }));
    Ok(Conditions { settings, of_server, memory, checkpoints, parallel_from, warnings })
}

/// A warning if pgrig does not know at which size the tables no longer fit in the machine's memory, though it forecasts seconds.
pub(crate) fn unknown_machine(memory: Memory, has_forecasts: bool) -> Option<String> {
    (has_forecasts && memory.machine == 0).then(|| {
        "pgrig does not know how much memory the server's machine has: if the tables do not fit in it at the size of the forecast, the forecast \
         seconds are too low"
            .to_owned()
    })
}

pub(crate) async fn survey(site: &Site<'_>, target: &Target) -> Result<Survey, DdlError> {
    let session = Session::open(target).await?;
    let survey = Survey::for_tables(&session.connection, site.directory, site.pgrig).await?;
    session.close().await;
    Ok(survey)
}

/// A warning if the original has another major version than the server that measures.
fn other_version(original: Option<u32>, own: u32) -> Option<String> {
    let original = original.filter(|original| *original != own)?;
    Some(format!(
        "the original has PostgreSQL {original}, and the server that measures has {own}: classes, locks and times may differ. Give --pg-version {original} \
         --instance ddl{original}, or --scratch with a server of that version"
    ))
}

/// Sessions of the target with these settings.
pub(crate) fn with(target: &Target, settings: &[(String, String)]) -> Target {
    settings.iter().fold(target.clone(), |target, (name, value)| target.with_setting(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forecasts_need_the_memory_of_the_machine() {
        let (known, unknown) = (Memory { machine: 1 << 30, ..Memory::default() }, Memory::default());
        assert_eq!(unknown_machine(known, true), None);
        assert_eq!(unknown_machine(unknown, false), None);
        assert!(unknown_machine(unknown, true).unwrap().contains("does not know how much memory"));
    }
}
