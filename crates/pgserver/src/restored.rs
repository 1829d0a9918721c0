//! An instance whose data are those of a restored base backup.

use crate::account::Account;
use crate::error::OnPath;
use crate::files::{create_dirs, replace};
use crate::{Instance, Result, config_file, control};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directory into which the backup is unpacked, below the instance's.
const UNPACKED: &str = ".restored";
/// Files of the server that was backed up. They would make this one a replica, or apply its ALTER SYSTEM settings.
const FOREIGN: [&str; 5] =
    ["standby.signal", RECOVERY_SIGNAL, "postgresql.auto.conf", "postmaster.pid", "postmaster.opts"];
/// Makes the server recover from an archive, and then work as a primary.
const RECOVERY_SIGNAL: &str = "recovery.signal";
/// Only this machine's accounts that can enter the directory of the socket can connect.
const HBA: &str = "# written by pgrig for a restored backup\nlocal all all trust\n";
/// Megabytes of a WAL segment, unless initdb was told otherwise.
const USUAL_SEGMENT: u64 = 16;

impl Instance {
    /// An empty directory for [`Instance::adopt_restored`]. Files of an earlier one are removed.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn place_for_restored(&self) -> Result<PathBuf> {
        let account = Account::choose()?;
        self.home.prepare(&account)?;
        create_dirs(&self.dir, if account.is_lent() { 0o711 } else { 0o700 })?;
        self.home.open(&self.dir, &account)?;
        let place = self.dir.join(UNPACKED);
        if place.exists() {
            fs::remove_dir_all(&place).on("delete", &place)?;
        }
        create_dirs(&place, 0o700)?;
        Ok(place)
    }

    /// Makes the data directory in that place the instance's own. All configuration of the server that was backed up is replaced:
    /// no archiving, no replication, no preloaded libraries, and only local connections.
    ///
    /// # Errors
    /// If its files cannot be changed, or if the instance has data.
    pub fn adopt_restored(&self) -> Result<()> {
        self.adopt(&[])
    }

    /// The same, but at its first start the server recovers from an archive, as the spec's settings `restore_command` and
    /// `recovery_target_…` say.
    ///
    /// # Errors
    /// As for [`Instance::adopt_restored`].
    pub fn adopt_restored_for_recovery(&self) -> Result<()> {
        self.adopt(&[RECOVERY_SIGNAL])
    }

    /// `signals` are empty files that tell the server how to start.
    fn adopt(&self, signals: &[&str]) -> Result<()> {
        let account = Account::choose()?;
        let place = self.dir.join(UNPACKED);
        for name in FOREIGN {
            let path = place.join(name);
            if path.exists() {
                fs::remove_file(&path).on("delete", &path)?;
            }
        }
        for name in signals {
            replace(&place.join(name), b"", 0o600, Some(&account))?;
        }
        let settings = control::segment_size(&place).map(of_segments).unwrap_or_default();
        replace(&place.join("postgresql.conf"), settings.as_bytes(), 0o600, Some(&account))?;
        replace(&place.join("pg_hba.conf"), HBA.as_bytes(), 0o600, Some(&account))?;
        replace(&place.join("pg_ident.conf"), b"", 0o600, Some(&account))?;
        config_file::include(&place, &account)?;
        give_all(&place, &account)?;
        fs::set_permissions(&place, Permissions::from_mode(0o700)).on("chmod", &place)?;
        let data = self.data();
        fs::rename(&place, &data).on("create", &data)
    }
}

/// Settings for WAL segments of that many bytes, as initdb chooses them. The server's defaults are for those of 16 MB: it refuses to
/// start if `min_wal_size` is less than two segments.
fn of_segments(bytes: u32) -> String {
    let megabytes = u64::from(bytes >> 20);
    if megabytes <= USUAL_SEGMENT {
        return String::new();
    }
    format!("min_wal_size = '{}MB'\nmax_wal_size = '{}MB'\n", 5 * megabytes, 64 * megabytes)
}

/// Makes the account the owner of a directory tree. Symbolic links are not followed.
fn give_all(path: &Path, account: &Account) -> Result<()> {
    account.give(path)?;
    if fs::symlink_metadata(path).on("read", path)?.is_dir() {
        for entry in fs::read_dir(path).on("read", path)? {
            give_all(&entry.on("read", path)?.path(), account)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_segments_need_larger_limits() {
        assert_eq!(of_segments(64 << 20), "min_wal_size = '320MB'\nmax_wal_size = '4096MB'\n");
        assert_eq!(of_segments(16 << 20), "");
        assert_eq!(of_segments(1 << 20), "");
    }
}
