//! What has to be known, and what is refused, before a fill is planned.

use std::path::Path;

use measure::{Disk, Environment};
use tokio_postgres::Client;

use super::error::FillError;
use super::plan::Plan;
use super::planner::{Found, Site};
use super::predict::tables;
use super::request::Request;
use crate::connect::{Connection, Transport};
use crate::machine;
use crate::server::{OLDEST_VERSION, ServerInfo};

/// A server seen with a fill in mind.
pub struct Survey {
    /// Its build and settings.
    pub server: ServerInfo,
    /// Where it runs.
    pub site: Site,
    /// The run document's part about all this.
    pub environment: Environment,
}

impl Survey {
    /// Looks at the server. `data_directory` is known for an embedded server; for others it is
    /// asked, and believed only when proved to be on this machine.
    ///
    /// # Errors
    /// If the server cannot be asked or cannot be filled at all.
    pub async fn of(connection: &Connection, data_directory: Option<&Path>) -> Result<Self, FillError> {
        let server = match ServerInfo::ask(&connection.client).await {
            Ok(server) => server,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        if server.version_num < OLDEST_VERSION {
            return Err(FillError::TooOld { version: server.version });
        }
        if server.in_recovery {
            return Err(FillError::InRecovery);
        }
        if server.read_only {
            return Err(FillError::ReadOnly);
        }
        let client = machine::this_machine();
        let directory = match data_directory {
            Some(directory) => Some(directory.to_owned()),
            None => machine::data_directory(connection, &server).await,
        };
        // A server whose files are here runs here, whatever the transport.
        let server_is_local = directory.as_ref().map(|_| true).or(machine::is_local(connection));
        let local = server_is_local == Some(true);
        let site = Site {
            cores: local.then_some(client.cores),
            memory: local.then_some(client.memory),
            remote: !local && !is_loopback(&connection.transport),
            own: data_directory.is_some(),
        };
        let environment = Environment {
            pgrig: env!("CARGO_PKG_VERSION").to_owned(),
            server: server.record(),
            database: server.database.clone(),
            role: server.role.clone(),
            transport: connection.transport.to_string(),
            client,
            server_is_local,
            data_volume: directory.as_deref().and_then(machine::volume_of),
        };
        Ok(Self { server, site, environment })
    }

    /// Plans the request for this server, or refuses it. Nothing is touched.
    ///
    /// # Errors
    /// If the request cannot be met: see [`FillError`].
    pub async fn plan(&self, connection: &Connection, request: &Request) -> Result<Plan, FillError> {
        if let Some(schema) = &request.schema {
            refuse_odd_name(schema)?;
        }
        let found = match find(&connection.client, request).await {
            Ok(found) => found?,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        let plan = Plan::new(request, &self.server, self.site, found)?;
        if let Some(disk) = &self.environment.data_volume {
            refuse_too_little(disk, &plan)?;
        }
        Ok(plan)
    }
}

/// Names that CREATE SCHEMA would refuse, or cut short.
fn refuse_odd_name(schema: &str) -> Result<(), FillError> {
    // NAMEDATALEN less the final zero byte.
    let fits = (1..=63).contains(&schema.len());
    if fits && !schema.starts_with("pg_") && schema != "information_schema" {
        return Ok(());
    }
    Err(FillError::SchemaName { schema: schema.to_owned() })
}

fn is_loopback(transport: &Transport) -> bool {
    match transport {
        Transport::UnixSocket { .. } => true,
        Transport::Tcp { host, .. } => {
            host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
    }
}

fn refuse_too_little(disk: &Disk, plan: &Plan) -> Result<(), FillError> {
    let predicted = plan.predicted;
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

/// Looks for the schema and for what is in the way.
async fn find(client: &Client, request: &Request) -> Result<Result<Found, FillError>, tokio_postgres::Error> {
    let tables = tables(1, 1);
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let row = client.query_one(include_str!("../sql/schema.sql"), &[&request.schema, &names]).await?;
    let role: String = row.get("role");
    let Some(schema) = row.get::<_, Option<String>>("schema") else {
        return Ok(Err(FillError::NoSchema));
    };
    let schema_exists: bool = row.get("schema_exists");
    if !schema_exists && !row.get::<_, bool>("may_create_schema") {
        let database = row.get("database");
        return Ok(Err(FillError::CreateSchemaPrivilege { role, schema, database }));
    }
    if schema_exists && !row.get::<_, bool>("may_create_tables") {
        return Ok(Err(FillError::SchemaPrivilege { role, schema }));
    }
    let tables: Vec<String> = row.get("taken");
    if !tables.is_empty() && !request.steps.drop {
        return Ok(Err(FillError::TablesExist { schema, tables }));
    }
    if let Some(name) = row.get::<_, Vec<String>>("taken_by_others").pop() {
        return Ok(Err(FillError::NotATable { schema, name }));
    }
    let bytes = u64::try_from(row.get::<_, i64>("taken_bytes")).unwrap_or_default();
    Ok(Ok(Found { schema, schema_exists, tables, bytes }))
}
