//! The request.

use std::path::PathBuf;

use serde::Serialize;

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// The backup to check.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// File or directory; `-` for standard input.
    pub path: PathBuf,
    /// A directory with WAL that the backup itself does not have.
    pub wal: Option<PathBuf>,
}

impl Request {
    /// Whether the backup comes from standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == STDIN
    }
}
