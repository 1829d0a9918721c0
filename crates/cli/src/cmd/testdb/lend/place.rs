//! Which keeper it is, and where it is to be found.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pgserver::Home;
use workload::connect::resolve;
use workload::testdb::lend::KeeperId;

use crate::args::ServerChoice;
use crate::target::{Meant, meant, options};

/// `PGRIG_HOME/testdb/<keeper>/`: the keeper's own socket, its log, and the lock that it holds as long as it runs.
pub(super) struct Place {
    pub(super) keeper: KeeperId,
    pub(super) home: Home,
    directory: PathBuf,
}

impl Place {
    /// Of the keeper of this server. A server that is named in another way has another keeper; they do not touch what
    /// the other one has.
    pub(super) fn of(choice: &ServerChoice) -> anyhow::Result<Self> {
        let home = Home::locate()?;
        let server = match meant(choice)? {
            Meant::Own => format!("own {}", choice.embedded.instance.as_deref().unwrap_or("default")),
            Meant::Named => {
                let target = resolve(&options(choice), &|name| std::env::var(name).ok())?;
                target.with_database("").to_string()
            }
        };
        let keeper = KeeperId::of(&[&machine(), &home.root().to_string_lossy(), &server]);
        let directory = home.root().join("testdb").join(keeper.to_string());
        Ok(Self { keeper, home, directory })
    }

    /// Makes the directory, for its owner alone.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.with_context(|| format!("cannot make {}", self.directory.display()))
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The lock's file; see [`File::try_lock`].
    pub(super) fn lock(&self) -> anyhow::Result<File> {
        let path = self.directory.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        file.with_context(|| format!("cannot open {}", path.display()))
    }
}

/// What tells machines that share a server apart.
fn machine() -> String {
    let read = |path| fs::read_to_string(Path::new(path)).ok().map(|text| text.trim().to_owned());
    let id = read("/etc/machine-id").filter(|id| !id.is_empty());
    id.or_else(|| read("/proc/sys/kernel/hostname")).unwrap_or_default()
}
