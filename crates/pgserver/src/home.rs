//! The directories of pgrig, and of the server where its account cannot reach them.

use crate::account::Account;
use crate::error::OnPath;
use crate::files::{canonical, create_dirs, path_hash, text};
use crate::libc::Libc;
use crate::record::refuse_newer;
use crate::{Error, Major, Result};
use nix::unistd::{Uid, User};
use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Home of root, and the place of root's servers if PGRIG_HOME cannot hold them.
const SYSTEM_HOME: &str = "/var/lib/pgrig";

/// Names the format of the whole home, for a pgrig that arranges it anew. Without this file it is 1.
const FORMAT_FILE: &str = "home.json";
/// The format of a home that this pgrig knows.
const FORMAT_VERSION: u32 = 1;

/// The directory that holds everything of pgrig's.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
    server_root: PathBuf,
    cache: Option<PathBuf>,
    fetch: bool,
}

impl Home {
    /// The home that the environment names: `PGRIG_HOME`, or by default `pgrig` in the XDG data
    /// directory, for root `/var/lib/pgrig`. Also reads `PGRIG_POSTGRESQL_CACHE` and `PGRIG_FETCH`.
    /// Creates nothing.
    ///
    /// # Errors
    /// If no home can be determined, or it is not absolute or not UTF-8.
    pub fn locate() -> Result<Self> {
        let mut home = match set("PGRIG_HOME") {
            Some(path) => Self::at(&path)?,
            None => Self::at(&default_root()?)?,
        };
        if let Some(dir) = set("PGRIG_POSTGRESQL_CACHE") {
            home = home.with_postgresql_cache(&dir);
        }
        match set("PGRIG_FETCH") {
            None => {}
            Some(value) if value.as_os_str() == "never" => home = home.without_fetching(),
            Some(value) => return Err(Error::FetchValue(value.display().to_string())),
        }
        Ok(home)
    }

    /// The home at this path, whatever the environment says. Creates nothing.
    ///
    /// # Errors
    /// If the path is not absolute or not UTF-8, a newer pgrig has made the home, or as root if there is no account for
    /// the server.
    pub fn at(root: &Path) -> Result<Self> {
        text(root)?;
        if !root.is_absolute() {
            let shown = root.display();
            return Err(Error::Home(format!("home {shown} is not an absolute path")));
        }
        if root.exists() && !root.is_dir() {
            return Err(Error::Home(format!("home {} is not a directory", root.display())));
        }
        let root = canonical(root);
        text(&root)?;
        let format = root.join(FORMAT_FILE);
        if format.is_file() {
            refuse_newer(&format, FORMAT_VERSION)?;
        }
        // pgrig does not change directories above the home; prepare() opens the home itself.
        let above = root.parent().unwrap_or(&root);
        let server_root = match Account::choose()?.barrier(above) {
            None => root.clone(),
            Some(_) => canonical(Path::new(SYSTEM_HOME)).join(format!("home-{}", path_hash(&root))),
        };
        Ok(Self { root, server_root, cache: None, fetch: true })
    }

    /// Whether other homes may use the downloaded versions, too.
    pub(crate) fn shares_postgresql(&self) -> bool {
        self.cache.is_some()
    }

    /// Keeps fetched binaries in `dir`, which several homes may share (tests, CI caches), rather than
    /// in `<server_root>/postgresql`. The server's account must be able to enter it.
    #[must_use]
    pub fn with_postgresql_cache(mut self, dir: &Path) -> Self {
        self.cache = Some(canonical(dir));
        self
    }

    /// A second home in the directory `parent`, which may be world-writable: always the same one
    /// for this home, with its fetched binaries. For servers that end with their home. Creates
    /// nothing.
    ///
    /// # Errors
    /// If its path is not valid for a home, or another user has created it.
    pub fn twin(&self, parent: &Path) -> Result<Self> {
        let root = parent.join(format!("pgrig-{}", path_hash(&self.root)));
        if let Ok(found) = fs::symlink_metadata(&root)
            && (!found.is_dir() || found.uid() != Uid::effective().as_raw())
        {
            return Err(Error::Home(format!("{} is not a directory of this user", root.display())));
        }
        let twin = Self::at(&root)?.with_postgresql_cache(&self.postgresql_dir());
        Ok(Self { fetch: self.fetch, ..twin })
    }

    /// The same home without network access: fetching a version that is not there is an error.
    #[must_use]
    pub fn without_fetching(mut self) -> Self {
        self.fetch = false;
        self
    }

    /// PGRIG_HOME itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Directory of binaries and instances: [`Home::root`], unless the server's account cannot get there.
    pub fn server_root(&self) -> &Path {
        &self.server_root
    }

    /// [`Home::server_root`], if it differs from the home, so that the user can be told.
    pub fn relocated(&self) -> Option<&Path> {
        (self.server_root != self.root).then_some(&*self.server_root)
    }

    /// Directory of fetched binaries.
    pub fn postgresql_dir(&self) -> PathBuf {
        let own = || self.server_root.join("postgresql");
        self.cache.clone().unwrap_or_else(own)
    }

    /// Directory of a fetched version for this machine.
    pub(crate) fn version_dir(&self, major: Major) -> PathBuf {
        let suffix = Libc::of_host().map_or("", Libc::directory_suffix);
        self.postgresql_dir().join(format!("{}{suffix}", major.pinned()))
    }

    pub(crate) fn may_fetch(&self) -> bool {
        self.fetch
    }

    pub(crate) fn instances_dir(&self) -> PathBuf {
        self.server_root.join("instances")
    }

    /// Creates the home, and the directories of its servers.
    ///
    /// # Errors
    /// If a directory cannot be created or opened to the server's account, or as root if there is no such account.
    pub fn create(&self) -> Result<()> {
        self.prepare(&Account::choose()?)?;
        create_dirs(&self.root, 0o700)
    }

    /// Creates the directories of the server so that its account can enter them. Only root needs
    /// that.
    pub(crate) fn prepare(&self, account: &Account) -> Result<()> {
        let mode = if account.is_lent() { 0o711 } else { 0o700 };
        for dir in [&self.server_root, &self.instances_dir()] {
            create_dirs(dir, mode)?;
            self.open(dir, account)?;
        }
        Ok(())
    }

    /// Makes this directory accessible for the account. It may be a directory of ours that is
    /// closed by an umask, by `mktemp -d`, or because a pgrig was killed right after creating it.
    pub(crate) fn open(&self, dir: &Path, account: &Account) -> Result<()> {
        while let Some(barrier) = account.barrier(dir) {
            self.open_up(&barrier, account)?;
        }
        Ok(())
    }

    /// Lets others enter a directory, if it is one of ours.
    fn open_up(&self, dir: &Path, account: &Account) -> Result<()> {
        if !dir.starts_with(&self.server_root) {
            return Err(Error::AccountCannot {
                account: account.name().to_owned(),
                access: "enter",
                path: dir.to_owned(),
                remedy: "set PGRIG_HOME to a path that it can enter".to_owned(),
            });
        }
        let mode = fs::metadata(dir).on("read", dir)?.permissions().mode();
        fs::set_permissions(dir, Permissions::from_mode(mode & 0o7777 | 0o111)).on("chmod", dir)
    }
}

/// An environment variable that is set to something.
fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn default_root() -> Result<PathBuf> {
    let me = Uid::effective();
    if me.is_root() {
        return Ok(PathBuf::from(SYSTEM_HOME));
    }
    // The XDG specification: a relative path is invalid and to be ignored.
    if let Some(data) = set("XDG_DATA_HOME").filter(|dir| dir.is_absolute()) {
        return Ok(data.join("pgrig"));
    }
    set("HOME")
        .or_else(|| User::from_uid(me).ok().flatten().map(|user| user.dir))
        .map(|home| home.join(".local/share/pgrig"))
        .ok_or_else(|| Error::Home("your home directory is unknown".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_of_a_newer_pgrig_is_refused_whatever_else_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join(FORMAT_FILE), text).unwrap();
        write(r#"{ "format_version": 1 }"#);
        Home::at(dir.path()).unwrap();
        write(r#"{ "format_version": 2, "rooms": ["of a later time"] }"#);
        let error = Home::at(dir.path()).unwrap_err().to_string();
        assert!(error.contains("a newer pgrig wrote") && error.contains("PGRIG_HOME"), "{error}");
        write("{");
        assert!(Home::at(dir.path()).unwrap_err().to_string().contains("home.json"));
    }

    #[test]
    fn a_twin_is_always_the_same_and_nobody_elses() {
        let [here, there] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let home = Home::at(here.path()).unwrap().without_fetching();
        let twin = home.twin(there.path()).unwrap();
        assert!(twin.root().starts_with(canonical(there.path())) && !twin.root().exists());
        assert_eq!(twin.postgresql_dir(), home.postgresql_dir());
        assert!(!twin.may_fetch());
        assert_eq!(home.twin(there.path()).unwrap().root(), twin.root());
        std::os::unix::fs::symlink("/", twin.root()).unwrap();
        assert!(home.twin(there.path()).unwrap_err().to_string().contains("not a directory of this user"));
    }
}
