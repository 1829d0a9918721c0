//! Facts that the check finds and that a restore needs.

use super::format::compression::Method;
use super::format::manifest::WalRange;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Recipe {
    /// The form; none if the backup is too damaged to tell.
    pub(super) form: Option<Form>,
    /// Compression of the whole file.
    pub(super) packed: Method,
    /// Encoding of a dump.
    pub(super) encoding: Option<String>,
    /// Whether a restore would write to other places than its data directory.
    pub(super) has_tablespaces: bool,
    /// Whether its WAL creates a tablespace: the replay would do so in the directory of the original.
    pub(super) creates_tablespaces: bool,
    /// The first segment of its WAL that the check has not read, if no manifest lists the WAL.
    pub(super) unread_wal: Option<String>,
    /// A link among the files, outside of the tablespaces: a server would write to the place to which it leads.
    pub(super) link: Option<String>,
    /// Whether it needs an earlier base backup.
    pub(super) is_incremental: bool,
    /// Bytes of the files in the manifest.
    pub(super) bytes: Option<u64>,
    /// WAL that a base backup needs.
    pub(super) wal: Vec<WalRange>,
}

/// The form of a backup, which decides how it is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// SQL, for psql.
    Sql,
    /// Custom or directory format, for pg_restore.
    Archive,
    /// Tar format, for pg_restore, which reads it with one job.
    TarArchive,
    /// Plain files of a server.
    Base,
    /// Its files in several tar files.
    BaseTar,
    /// All its files in one tar file.
    OneTar,
}
