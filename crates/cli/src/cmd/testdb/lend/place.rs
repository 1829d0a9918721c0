//! The id of the keeper, and the paths of its files.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use connect::Target;
use pgserver::{Home, Instance, LockFile};
use server::process::host;
use testdb::lend::KeeperId;

use crate::app::args::{EmbeddedArgs, ServerAddress, ServerChoice};
use crate::app::failure::{Context, Failure};
use crate::app::target::{self, ServerKind, server_kind};

/// `PGRIG_HOME/testdb/<keeper>/`: directory of the keeper's own socket, its log, and the lock that
/// it holds as long as it runs.
pub(crate) struct KeeperPlace {
    pub(crate) keeper: KeeperId,
    pub(crate) home: Home,
    /// The server. pgrig's own is identified by its name, however the user named it.
    pub(crate) server: ServerChoice,
    directory: PathBuf,
}

impl KeeperPlace {
    /// The place of the keeper of this server. If the same server is named in another way, it has
    /// another keeper; they do not touch each other's databases.
    pub(crate) fn of(choice: &ServerChoice) -> Result<Self, Failure> {
        let home = Home::locate()?;
        let mut server = choice.clone();
        let mut named = None;
        if server_kind(choice)? == ServerKind::Named {
            let target = target::named(choice)?.with_database("");
            match own_instance(&home, &target) {
                // The environment of a database that was lent names the server.
                Some(name) => {
                    let embedded = EmbeddedArgs { instance: Some(name), ..EmbeddedArgs::default() };
                    server = ServerChoice {
                        address: ServerAddress { embedded, ..ServerAddress::default() },
                        ..ServerChoice::default()
                    };
                }
                None => named = Some(target.to_string()),
            }
        }
        let own = || format!("own {}", server.address.embedded.instance.as_deref().unwrap_or("default"));
        let spelt = named.unwrap_or_else(own);
        let keeper = KeeperId::of(&[&machine(), &home.root().to_string_lossy(), &spelt]);
        let directory = home.root().join("testdb").join(keeper.to_string());
        Ok(Self { keeper, home, server, directory })
    }

    /// Creates the directory, accessible only to its owner.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.with_context(|| format!("cannot make {}", self.directory.display()))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The lock's file.
    pub(crate) fn lock(&self) -> Result<LockFile, Failure> {
        let path = self.directory.join("lock");
        LockFile::open(&path).with_context(|| format!("cannot open {}", path.display()))
    }
}

/// The instance of pgrig's own that this socket and role belong to.
fn own_instance(home: &Home, target: &Target) -> Option<String> {
    let (host, port) = (target.host_list(), target.port_list());
    let instances = Instance::list(home).unwrap_or_default();
    let found = instances.iter().find(|instance| {
        let there = instance.connection().or_else(|_| instance.resting_connection());
        there.is_ok_and(|there| {
            there.socket_dir == Path::new(&host)
                && there.port.to_string() == port
                && there.user == target.user()
        })
    });
    found.map(|instance| instance.name().to_owned())
}

/// A text that distinguishes machines and containers that share a server. (Containers of one image
/// have the same machine-id, and often the same paths.)
fn machine() -> String {
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", host(), space.display())
}
