//! The settings with which the migration runs, and the server's memory.

use std::collections::BTreeMap;

use connect::{ConnectError, Target};
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
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// The settings of the original that differ on this server and that its sessions can have, and the server's memory. Refuses a server on which WAL would not be
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
    let (settings, mut warnings) = taken_over(&session, &request.schema.settings).await?;
    warnings.extend(other_version(request.schema.major, survey.server.version_num / 10_000));
    session.close().await;

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
    warnings.extend(is_few.then(|| {
        "shared_buffers is less than 64 MB: with io_method = worker, the seconds of scans vary widely from run to run; set it to the \
         value of the server for which you want to know"
            .to_owned()
    }));
    Ok(Conditions { settings, memory, warnings })
}

/// A warning if the original has another major version than the server that measures.
fn other_version(original: Option<u32>, own: u32) -> Option<String> {
    let original = original.filter(|original| *original != own)?;
    Some(format!(
        "the original has PostgreSQL {original}, and the server that measures has {own}: classes, locks and times may differ. Give --pg-version {original} \
         --instance ddl{original}, or --scratch with a server of that version"
    ))
}

/// The settings of the original that have another value on this server, and warnings about those that the role may not set.
async fn taken_over(
    session: &Session,
    original: &BTreeMap<String, String>,
) -> Result<(Settings, Vec<String>), ConnectError> {
    let names: Vec<&String> = original.keys().collect();
    let (mut settings, mut warnings) = (Vec::new(), Vec::new());
    for row in session.rows(include_str!("../sql/taken_over.sql"), &[&names]).await? {
        let (name, own): (String, String) = (row.get("name"), row.get("value"));
        let Some(value) = original.get(&name).filter(|value| **value != own) else { continue };
        if row.get("may_set") {
            settings.push((name, value.clone()));
        } else {
            warnings.push(format!(
                "{name} is {own} on the server that measures, and {value} in the original: the role may not set it. Set it on the server"
            ));
        }
    }
    Ok((settings, warnings))
}

/// Sessions of the target with these settings.
pub(crate) fn with(target: &Target, settings: &[(String, String)]) -> Target {
    settings.iter().fold(target.clone(), |target, (name, value)| target.with_setting(name, value))
}
