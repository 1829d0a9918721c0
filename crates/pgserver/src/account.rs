//! The account of the server. PostgreSQL refuses to run as root, so for root pgrig uses an unprivileged account.

use crate::error::OnPath;
use crate::{Error, Result};
use nix::unistd::{Gid, Uid, User, fchown};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The account under which initdb and the server run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
    name: String,
    /// Whether this process is root and must change to the account.
    lent: bool,
}

impl Account {
    /// For a new data directory: ourselves, or for root `postgres`, else `nobody`.
    pub(crate) fn choose() -> Result<Self> {
        let me = Uid::effective();
        if !me.is_root() {
            return Ok(Self::new(me.as_raw(), Gid::effective().as_raw(), false));
        }
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| User::from_name(name).ok().flatten())
            .filter(|user| !user.uid.is_root())
            .map(|user| Self { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name, lent: true })
            .ok_or(Error::NoAccount)
    }

    /// For an existing data directory: its owner, if we are root.
    pub(crate) fn of_data(data: &Path) -> Result<Self> {
        match fs::metadata(data) {
            Ok(meta) if Uid::effective().is_root() && meta.uid() != 0 => {
                Ok(Self::new(meta.uid(), meta.gid(), true))
            }
            _ => Self::choose(),
        }
    }

    fn new(uid: u32, gid: u32, lent: bool) -> Self {
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
        let name = user.map_or_else(|| format!("uid {uid}"), |user| user.name);
        Self { uid, gid, name, lent }
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is another account than that of this process.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }

    /// Makes the command run under the account. Std drops root's supplementary groups with that.
    pub(crate) fn apply(&self, command: &mut Command) {
        if self.lent {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Makes the account the owner of a directory or file of ours.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        if self.lent {
            std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid)).on("chown", path)?;
        }
        Ok(())
    }

    /// The same for an open file; `path` is for the message.
    pub(crate) fn give_file(&self, file: &File, path: &Path) -> Result<()> {
        if self.lent {
            let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
            fchown(file, Some(uid), Some(gid)).on("chown", path)?;
        }
        Ok(())
    }

    /// The first directory on the way to `path` (itself included, if it is one) that the account
    /// cannot enter. Goes by the permission bits; access control lists are not looked at.
    pub(crate) fn barrier(&self, path: &Path) -> Option<PathBuf> {
        if !self.lent {
            return None;
        }
        let mut way: Vec<_> = path.ancestors().collect();
        way.reverse();
        way.into_iter()
            .find(|dir| fs::metadata(dir).is_ok_and(|meta| !self.may_execute(&meta)))
            .map(Path::to_owned)
    }

    fn may_execute(&self, meta: &Metadata) -> bool {
        let mode = meta.permissions().mode();
        let bit = if meta.uid() == self.uid {
            0o100
        } else if meta.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        mode & bit != 0
    }
}
