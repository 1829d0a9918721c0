//! A running server, as the caller holds it.

use crate::lock::InUse;
use crate::postmaster::Postmaster;
use crate::record::{Config, ServerRecord};
use crate::{Error, Events, Instance, Profile, Result, Version, diagnose, process};
use std::fmt;
use std::path::PathBuf;

/// Parameters to connect to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Directory of the Unix socket; libpq takes it as `host`.
    pub socket_dir: PathBuf,
    /// Part of the socket's name, and the TCP port.
    pub port: u16,
    /// The superuser, which needs no password through the socket.
    pub user: &'static str,
    /// A database that is always there.
    pub database: &'static str,
    /// The TCP address, if TCP was asked for.
    pub tcp: Option<Tcp>,
}

/// Address of a server over TCP.
#[derive(Clone, PartialEq, Eq)]
pub struct Tcp {
    /// The host: `127.0.0.1`.
    pub host: &'static str,
    /// Port, the same as the socket's.
    pub port: u16,
    /// Password of the superuser. `Debug` does not show it.
    pub password: String,
}

impl fmt::Debug for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tcp");
        shown.field("host", &self.host).field("port", &self.port);
        shown.finish_non_exhaustive()
    }
}

impl Connection {
    /// URL through the socket: `postgresql://postgres@/postgres?host=%2F…&port=5432`.
    pub fn url(&self) -> String {
        self.url_of(self.database)
    }

    /// URL of this database, through the socket.
    pub fn url_of(&self, database: &str) -> String {
        let Self { user, port, .. } = self;
        let host = percent_encoded(self.socket_dir.as_os_str().as_encoded_bytes());
        let database = percent_encoded(database.as_bytes());
        format!("postgresql://{user}@/{database}?host={host}&port={port}")
    }

    /// URL through TCP, with the password.
    pub fn tcp_url(&self) -> Option<String> {
        self.tcp_url_of(self.database)
    }

    /// URL of this database through TCP, with the password.
    pub fn tcp_url_of(&self, database: &str) -> Option<String> {
        let Tcp { host, port, password } = self.tcp.as_ref()?;
        let database = percent_encoded(database.as_bytes());
        Some(format!("postgresql://{}:{password}@{host}:{port}/{database}", self.user))
    }
}

fn percent_encoded(bytes: &[u8]) -> String {
    let encode = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}

/// A server that accepts connections. If this process started it, it is stopped by [`Running::stop`]
/// or on drop; if not, it is left as it was found.
#[derive(Debug)]
pub struct Running {
    pub(crate) dir: PathBuf,
    pub(crate) pid: u32,
    pub(crate) connection: Connection,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) config: Config,
    /// Whether this start has created the data directory.
    pub(crate) is_new: bool,
    /// None if this process must not stop the server.
    pub(crate) owned: Option<(Postmaster, InUse)>,
    /// The instance, if it goes with the server.
    pub(crate) doomed: Option<Instance>,
}

impl Running {
    /// Parameters to connect to it.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The settings of `pgrig.conf`, name and value in the order of the file. SHOW prints the
    /// profile's values exactly like this, but may convert the units of the user's. Empty if the
    /// server was not started by pgrig.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Version of the running binaries.
    pub fn version(&self) -> &Version {
        &self.config.version
    }

    /// The profile with which it was started.
    pub fn profile(&self) -> Profile {
        self.config.profile
    }

    /// The server's log: its standard error.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// PGDATA.
    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The postmaster's process id.
    pub fn server_pid(&self) -> u32 {
        self.pid
    }

    /// Whether it was running before, and will be left running.
    pub fn leaves_running(&self) -> bool {
        self.owned.is_none()
    }

    /// Whether the server still runs: to tell a lost connection from a lost server.
    pub fn is_alive(&mut self) -> bool {
        match &mut self.owned {
            Some((postmaster, _)) => postmaster.exited().is_none(),
            None => process::serves(self.pid, &self.dir.join("data")),
        }
    }

    /// Stops the server, if this process started it, and waits for its end.
    ///
    /// # Errors
    /// [`Error::Died`] if it had ended by itself, [`Error::Stop`] if it does not end.
    pub fn stop(self) -> Result<()> {
        self.stop_telling(&|_| ())
    }

    /// Like [`Running::stop`], with news if that takes long.
    ///
    /// # Errors
    /// As for [`Running::stop`].
    pub fn stop_telling(mut self, events: Events) -> Result<()> {
        self.end(events).map(drop)
    }

    /// Whether this process has created the instance with this start.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// From now on, the drop of this value deletes the instance with all data, too, if this process started the server. For an
    /// instance that this process has created and does not keep.
    pub fn delete_at_end(&mut self, instance: &Instance) {
        self.doomed = Some(instance.clone());
    }

    /// Ends the server, if this process started it, without a checkpoint: its data are deleted next. After
    /// [`Running::delete_at_end`], they are deleted here, and no other process can take the instance meanwhile.
    ///
    /// # Errors
    /// [`Error::Stop`] if it does not end, or if something cannot be deleted.
    pub fn discard(mut self) -> Result<()> {
        self.quit_and_delete()
    }

    fn quit_and_delete(&mut self) -> Result<()> {
        match (self.quit()?, self.doomed.take()) {
            (Some(_lock), Some(instance)) => instance.remove_directory(),
            _ => Ok(()),
        }
    }

    /// Ends the server, if this process started it, without a checkpoint. The caller still holds the instance through the
    /// returned lock.
    fn quit(&mut self) -> Result<Option<InUse>> {
        let Some((mut postmaster, lock)) = self.owned.take() else { return Ok(None) };
        postmaster.quit(&self.dir)?;
        crate::launch::clear_leftovers(&self.dir, &|_| ())?;
        ServerRecord::remove(&self.dir);
        Ok(Some(lock))
    }

    /// Ends the server, if this process started it. The caller still holds the instance through the
    /// returned lock.
    pub(crate) fn end(&mut self, events: Events) -> Result<Option<InUse>> {
        let Some((mut postmaster, lock)) = self.owned.take() else {
            return Ok(None);
        };
        let ended = postmaster.stop(&self.dir, events)?;
        crate::launch::clear_leftovers(&self.dir, events)?;
        ServerRecord::remove(&self.dir);
        if ended.success() { Ok(Some(lock)) } else { Err(self.died(&postmaster, &ended.to_string())) }
    }

    fn died(&self, postmaster: &Postmaster, how: &str) -> Error {
        let words = diagnose::last_words(&postmaster.log().text());
        let instance = crate::files::name_of(&self.dir);
        let cause = words.unwrap_or_else(|| "its log is empty".to_owned());
        Error::Died {
            remedy: diagnose::remedy_of_end(&cause, &instance),
            instance,
            how: how.to_owned(),
            cause,
            log: self.log_path(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = match self.doomed {
            Some(_) => self.quit_and_delete(),
            None => self.end(&|_| ()).map(drop),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let mut connection = Connection {
            socket_dir: PathBuf::from("/a b/ü"),
            port: 5433,
            user: "postgres",
            database: "postgres",
            tcp: None,
        };
        let url = "postgresql://postgres@/postgres?host=%2Fa%20b%2F%C3%BC&port=5433";
        assert_eq!(connection.url(), url);
        assert_eq!(connection.tcp_url(), None);
        connection.tcp = Some(Tcp { host: "127.0.0.1", port: 5433, password: "secret".to_owned() });
        let url = "postgresql://postgres:secret@127.0.0.1:5433/postgres";
        assert_eq!(connection.tcp_url().as_deref(), Some(url));
        assert!(!format!("{connection:?}").contains("secret"));
    }
}
