//! Client programs of PostgreSQL 17.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::cache;
use crate::program::does;

/// The release of [`clients`].
pub const CLIENTS_RELEASE: u16 = 17;

/// Directory of client programs of PostgreSQL 17 with lz4 and zstd, which are fetched if need be. [`crate::Need::Clients17`] says
/// whether they are there.
pub fn clients() -> PathBuf {
    static READY: LazyLock<PathBuf> = LazyLock::new(|| {
        let directory = cache().join("clients-17");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/clients");
        // Without a network there are none.
        let _ = Command::new(script).arg(&directory).status();
        directory.join("bin")
    });
    READY.clone()
}

pub(crate) fn are_there() -> bool {
    ["pg_basebackup", "pg_combinebackup", "pg_dump"]
        .iter()
        .all(|name| does(&clients().join(name).display().to_string(), &["--version"]))
}
