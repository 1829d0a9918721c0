//! A server and where it runs, as far as that can be seen: what run documents say of it.

use std::path::{Path, PathBuf};

use measure::Environment;

use crate::connect::{ConnectError, Connection};
use crate::machine;
use crate::server::ServerInfo;

/// A server and where it runs.
pub struct Surroundings {
    /// Its build and settings.
    pub server: ServerInfo,
    /// The run document's part about all this.
    pub environment: Environment,
    /// Where the server's files are, if they can be seen and are proved to be its.
    pub data_directory: Option<PathBuf>,
}

impl Surroundings {
    /// Looks at any server, a standby too; `own` is where pgrig's own has its data.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn of(connection: &Connection, own: Option<PathBuf>) -> Result<Self, ConnectError> {
        let server = match ServerInfo::ask(&connection.client).await {
            Ok(server) => server,
            Err(error) => return Err(connection.explain(error).await),
        };
        let data_directory = match own {
            Some(own) => Some(own),
            None => machine::data_directory(connection, &server).await,
        };
        let environment = environment(connection, &server, data_directory.as_deref());
        Ok(Self { server, environment, data_directory })
    }
}

/// The run document's environment. A server whose files are here runs here, whatever the transport.
pub(crate) fn environment(
    connection: &Connection,
    server: &ServerInfo,
    data_directory: Option<&Path>,
) -> Environment {
    Environment {
        pgrig: env!("CARGO_PKG_VERSION").to_owned(),
        server: server.record(),
        database: server.database.clone(),
        role: server.role.clone(),
        transport: connection.transport.to_string(),
        client: machine::this_machine(),
        server_is_local: data_directory.map(|_| true).or(machine::is_local(connection)),
        data_volume: data_directory.and_then(machine::volume_of),
    }
}
