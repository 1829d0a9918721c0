//! The facts and settings of a server: asked once, before anything is planned.

use connect::{ConnectError, Connection};
use measure::Setting;
use page::Geometry;
use tokio_postgres::{Client, Error};

use crate::error::SurveyError;

/// The oldest major version that pgrig works with. `pgserver::Major::OLDEST` is the same: the program does not compile
/// otherwise.
pub const OLDEST_MAJOR: u16 = 13;

/// A server's build and settings.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// `version()`.
    pub version: String,
    /// `server_version_num`, e.g. 180006.
    pub version_num: u32,
    /// Block arithmetic for its block size.
    pub geometry: Geometry,
    /// The database connected to.
    pub database: String,
    /// The role connected as.
    pub role: String,
    /// Whether this session's transactions are read-only by default.
    pub read_only: bool,
    /// Whether the client's options make it so: those of the connection string, or else PGOPTIONS.
    pub(crate) read_only_by_client: bool,
    /// Whether it is a standby, or otherwise in recovery: then it is read-only.
    pub in_recovery: bool,
    /// `wal_level`.
    pub wal_level: String,
    /// `maintenance_work_mem` of this session, bytes.
    pub maintenance_work_mem: u64,
    /// `shared_buffers`, bytes.
    pub shared_buffers: u64,
    /// `max_connections`.
    pub max_connections: u32,
    /// `data_directory`, where the role may see it.
    pub data_directory: Option<String>,
    /// Every setting that is not at its built-in default.
    pub settings: Vec<Setting>,
}

impl ServerInfo {
    /// Asks the server.
    ///
    /// # Errors
    /// If a query fails.
    pub async fn ask(connection: &Connection) -> Result<Self, ConnectError> {
        match Self::read(&connection.client).await {
            Ok(server) => Ok(server),
            Err(error) => Err(connection.explain(error).await),
        }
    }

    async fn read(client: &Client) -> Result<Self, Error> {
        let row = client.query_one(include_str!("sql/server.sql"), &[]).await?;
        let number = |column: &str| u32::try_from(row.get::<_, i32>(column)).unwrap_or_default();
        let bytes = |column: &str| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        Ok(Self {
            version: row.get("version"),
            version_num: number("version_num"),
            geometry: Geometry::new(number("block_size")),
            database: row.get("database"),
            role: row.get("role"),
            read_only: row.get("read_only"),
            read_only_by_client: row.get("read_only_by_client"),
            in_recovery: row.get("in_recovery"),
            wal_level: row.get("wal_level"),
            maintenance_work_mem: bytes("maintenance_work_mem"),
            shared_buffers: bytes("shared_buffers"),
            max_connections: number("max_connections"),
            data_directory: row.get("data_directory"),
            settings: settings(client).await?,
        })
    }

    /// Refuses a server on which pgrig does not work.
    ///
    /// # Errors
    /// If the server is too old.
    pub(crate) fn check_version(&self) -> Result<(), SurveyError> {
        if self.major() < u32::from(OLDEST_MAJOR) {
            return Err(SurveyError::TooOld { version: self.version.clone() });
        }
        Ok(())
    }

    /// Refuses a server, or a session of it, in which nothing can be made.
    ///
    /// # Errors
    /// If the server is too old or in recovery, or if the session is read-only.
    pub fn check_writable(&self) -> Result<(), SurveyError> {
        self.check_version()?;
        if self.in_recovery {
            return Err(SurveyError::InRecovery);
        }
        if self.read_only {
            return Err(SurveyError::ReadOnly { by_client: self.read_only_by_client });
        }
        Ok(())
    }

    /// The major version, e.g. 18.
    pub fn major(&self) -> u32 {
        self.version_num / 10_000
    }

    /// The part of a run document that describes the server.
    pub fn record(&self) -> measure::Server {
        measure::Server {
            version: self.version.clone(),
            version_num: self.version_num,
            block_size: self.geometry.block_size(),
            settings: self.settings.clone(),
        }
    }

    /// Whether tables made in the transaction that fills them are fsynced instead of logged
    /// (documentation, "Disable WAL Archival and Streaming Replication").
    pub fn skips_wal(&self) -> bool {
        self.wal_level == "minimal"
    }
}

async fn settings(client: &Client) -> Result<Vec<Setting>, Error> {
    let rows = client.query(include_str!("sql/settings.sql"), &[]).await?;
    let setting = |row: &tokio_postgres::Row| Setting {
        name: row.get("name"),
        value: row.get("value"),
        source: row.get("source"),
    };
    Ok(rows.iter().map(setting).collect())
}

/// How to remove the value that a setting has in this session, as an imperative: `run ALTER ROLE app RESET work_mem`.
///
/// # Errors
/// If the query fails, or the server has no such setting.
pub async fn removal(client: &Client, name: &str) -> Result<String, Error> {
    Ok(client.query_one(include_str!("sql/setting_source.sql"), &[&name]).await?.get("remedy"))
}

/// A setting that does not have the value that the server was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingSetting {
    /// Name of the setting.
    pub name: String,
    /// Value at the server's start.
    pub expected: String,
    /// Value that SHOW gives.
    pub active: String,
    /// How to remove the active value, as an imperative.
    pub remedy: String,
}

/// Checks with SHOW that each setting has the value it was started with, and returns those that do not.
///
/// Values are compared as the server itself reads them: through the unit and spelling that
/// pg_settings gives them, so `4GB` and `4096MB`, `on` and `true` are equal.
///
/// # Errors
/// If a query fails.
pub async fn differing_settings(
    client: &Client,
    expected: &[(String, String)],
) -> Result<Vec<DifferingSetting>, Error> {
    let mut differing = Vec::new();
    for (name, value) in expected {
        let row = client.query_opt(include_str!("sql/setting_source.sql"), &[name]).await?;
        let Some(row) = row else {
            differing.push(DifferingSetting {
                name: name.clone(),
                expected: value.clone(),
                active: "unknown to this server".to_owned(),
                remedy: "leave it out".to_owned(),
            });
            continue;
        };
        let active: String = row.get("value");
        let from_pgrig_conf: bool = row.get("from_pgrig_conf");
        if !from_pgrig_conf && !active.eq_ignore_ascii_case(value) {
            let remedy = row.get("remedy");
            differing.push(DifferingSetting { name: name.clone(), expected: value.clone(), active, remedy });
        }
    }
    Ok(differing)
}
