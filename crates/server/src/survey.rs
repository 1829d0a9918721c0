//! A server and where it runs, as far as that can be seen: asked once, before anything is planned.

use futures_util::future::LocalBoxFuture;
use std::path::{Path, PathBuf};

use connect::Connection;
use measure::Environment;

use crate::error::SurveyError;
use crate::info::ServerInfo;
use crate::machine;

/// pgrig's knowledge of the server's data directory.
#[derive(Clone, Debug)]
pub enum DataDirectory {
    /// It is the directory of pgrig's own server.
    Own(PathBuf),
    /// The user says that this machine sees it here. pgrig still has to prove it.
    Named(PathBuf),
    /// pgrig asks the server, and believes it only if the directory is proved to be on this
    /// machine.
    Asked,
}

/// The machine of a server, and the connection to it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Processors of the server's machine, where it is this one.
    pub cores: Option<u32>,
    /// Memory of the server's machine in bytes, where it is this one.
    pub memory: Option<u64>,
    /// Whether COPY data crosses a network.
    pub remote: bool,
    /// Whether it is pgrig's own server, used by nobody else.
    pub own: bool,
}

impl Site {
    /// Processors; two where they cannot be counted.
    pub fn cores(self) -> u16 {
        self.cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(2)
    }
}

/// A server and where it runs.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Its build and settings.
    pub server: ServerInfo,
    /// Its machine, and the way there.
    pub site: Site,
    /// The run document's part about all this.
    pub environment: Environment,
    /// The server's data directory, if pgrig can see it and it is proved to be the server's.
    pub data_directory: Option<PathBuf>,
}

impl Survey {
    /// The role, if only its rights hide the server's disk, as far as pgrig can tell: the server seems to run on this
    /// machine, and the role may not read `data_directory`.
    pub fn restricted_role(&self) -> Option<&str> {
        let is_hidden =
            self.data_directory.is_none() && self.server.data_directory.is_none() && !self.site.remote;
        is_hidden.then_some(self.server.role.as_str())
    }

    /// Looks at any server, a standby too. `pgrig` is pgrig's own version, for the run document.
    ///
    /// # Errors
    /// If the server cannot be asked, or if the directory that was named is not its.
    pub fn of<'a>(
        connection: &'a Connection,
        directory: &'a DataDirectory,
        pgrig: &'a str,
    ) -> LocalBoxFuture<'a, Result<Self, SurveyError>> {
        Box::pin(async move {
            let server = ServerInfo::ask(connection).await?;
            let data_directory = match directory {
                DataDirectory::Own(directory) => Some(directory.clone()),
                DataDirectory::Named(directory) => Some(named(connection, directory).await?),
                DataDirectory::Asked => machine::data_directory(connection, &server).await,
            };
            let environment = environment(connection, &server, data_directory.as_deref(), pgrig);
            let local = environment.server_is_local == Some(true);
            let site = Site {
                cores: local.then_some(environment.client.cores),
                memory: local.then_some(environment.client.memory),
                remote: !local && !machine::is_loopback(&connection.transport),
                own: matches!(directory, DataDirectory::Own(_)),
            };
            Ok(Self { server, site, environment, data_directory })
        })
    }

    /// Looks at a server in which the verb makes nothing, and refuses one that is too old.
    ///
    /// # Errors
    /// As [`Survey::of`], or if the server is too old.
    pub fn for_reading<'a>(
        connection: &'a Connection,
        directory: &'a DataDirectory,
        pgrig: &'a str,
    ) -> LocalBoxFuture<'a, Result<Self, SurveyError>> {
        Box::pin(async move {
            let survey = Self::of(connection, directory, pgrig).await?;
            survey.server.check_version()?;
            Ok(survey)
        })
    }

    /// Looks at a server in which the verb is going to make tables, and refuses one that is too old or read-only.
    ///
    /// # Errors
    /// As [`Survey::of`], or if no tables can be made there.
    pub fn for_tables<'a>(
        connection: &'a Connection,
        directory: &'a DataDirectory,
        pgrig: &'a str,
    ) -> LocalBoxFuture<'a, Result<Self, SurveyError>> {
        Box::pin(async move {
            let survey = Self::of(connection, directory, pgrig).await?;
            survey.server.check_writable()?;
            Ok(survey)
        })
    }
}

/// The directory that the user named, if it is the server's.
async fn named(connection: &Connection, directory: &Path) -> Result<PathBuf, SurveyError> {
    let problem = match machine::is_data_directory(connection, directory).await {
        Ok(Ok(true)) => return Ok(directory.to_owned()),
        Ok(Ok(false)) => "it belongs to another server (its system identifier differs)".to_owned(),
        Ok(Err(error)) => format!("its global/pg_control cannot be read ({error})"),
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    Err(SurveyError::DataDirectory { path: directory.display().to_string(), problem })
}

/// The run document's environment. A server whose files are here runs here, whatever the transport.
fn environment(
    connection: &Connection,
    server: &ServerInfo,
    data_directory: Option<&Path>,
    pgrig: &str,
) -> Environment {
    Environment {
        pgrig: pgrig.to_owned(),
        server: server.record(),
        database: server.database.clone(),
        role: server.role.clone(),
        transport: connection.transport.to_string(),
        client: machine::this_machine(),
        server_is_local: data_directory.map(|_| true).or(machine::is_local(connection)),
        data_volume: data_directory.and_then(machine::volume_of),
    }
}
