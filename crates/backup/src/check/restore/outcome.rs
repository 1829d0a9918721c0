//! The restored content, and all errors.

use serde::Serialize;

/// Most failures that are kept one by one.
const MOST: usize = 1000;

/// The restored content, and all errors.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Restored {
    /// Version of the scratch server.
    pub server: String,
    /// Seconds of the restore, until the data are loaded or the server accepts connections.
    pub seconds: f64,
    /// Databases that were read.
    pub databases: u64,
    /// Tables that were read to their end.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
    /// Valid constraints. Those of a base backup were checked again.
    pub constraints: u64,
    /// Sound B-tree indexes; none if the server has no amcheck.
    pub indexes: Option<u64>,
    /// B-tree indexes that were not checked, because this machine has their collation in another version.
    pub other_order: u64,
    /// Indexes of other kinds, which nothing checks.
    pub other_indexes: u64,
    /// Roles that a dump names and does not contain.
    pub missing_roles: Vec<String>,
    /// Tablespaces of the same kind.
    pub missing_tablespaces: Vec<String>,
    /// Errors of the restore, and damage in the restored server; the first thousand of them.
    pub failures: Vec<String>,
    /// Further failures.
    pub more: u64,
}

impl Restored {
    /// Whether the restore had no errors, apart from roles and tablespaces that no dump contains.
    pub fn is_sound(&self) -> bool {
        self.failures.is_empty()
    }

    pub(crate) fn fail(&mut self, failure: impl Into<String>) {
        if self.failures.len() == MOST {
            self.more += 1;
        } else {
            self.failures.push(failure.into());
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.failures.len() as u64 + self.more
    }
}
