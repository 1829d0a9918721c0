//! Why rows cannot be written as pages.

use thiserror::Error;

/// Why a table's pages cannot be written straight into its files. Each message names a remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotDirect {
    /// The server is on another machine, or pgrig may not read its data directory.
    #[error(
        "pgrig cannot see the server's data directory: run pgrig on the server's machine, as the server's \
         operating system user or root, and as a superuser or a member of pg_read_all_settings; if the directory \
         has another path for pgrig (a container's volume, for example), give --data-directory PATH"
    )]
    Unseen,
    /// A file that the server has just made is not in the directory.
    #[error(
        "{path} is not as the server reports it: the directory is a copy of its data directory, or a tablespace \
         has another path here. Nothing was written. Give --data-directory with the path of the server's own data \
         directory"
    )]
    Copy {
        /// The file that is missing or differs.
        path: String,
    },
    /// pgrig may not write the server's files.
    #[error("this operating system user may not write {path}: run pgrig as the server's user, or as root")]
    ReadOnly {
        /// The data directory.
        path: String,
    },
    /// The server has a format that pgrig does not know.
    #[error("the server's {what} is {found}, and pgrig writes pages for {known} only")]
    Format {
        /// The part of the format.
        what: &'static str,
        /// The server's value.
        found: String,
        /// The value that pgrig writes.
        known: &'static str,
    },
    /// The database's encoding is not one that pgrig's texts can be stored in.
    #[error("the database's encoding is {encoding}, and pgrig makes text in UTF8")]
    Encoding {
        /// `server_encoding` of the database.
        encoding: String,
    },
    /// WAL must have the rows, for replicas and backups.
    #[error(
        "wal_level is {level}, so PostgreSQL must log every row of a permanent table: give --unlogged, or set \
         wal_level = minimal and max_wal_senders = 0 (as on pgrig's own server with --profile bulk)"
    )]
    WalLevel {
        /// `wal_level` of the server.
        level: String,
    },
    /// The table has another access method than heap.
    #[error("the tables' access method is {found}, and pgrig writes pages for heap only")]
    AccessMethod {
        /// Name of the table's access method (`pg_am.amname`).
        found: String,
    },
    /// Rows cannot be loaded in one transaction.
    #[error("pgrig writes pages for a whole table at a time, and {0}")]
    InChunks(&'static str),
    /// The tables have rows.
    #[error("it fills only new or empty tables, and {0}")]
    Append(&'static str),
    /// There are more rows than pgrig can write as pages.
    #[error("{0}: give fewer rows")]
    TooMany(&'static str),
    /// A column cannot be written.
    #[error("{0}")]
    Column(String),
    /// Rows may be so long that the server would compress values with another method than pglz.
    #[error(
        "column {column} uses a compression that this PostgreSQL lacks, and its values may be so long that they are \
         compressed: run ALTER TABLE {table} ALTER {column} SET COMPRESSION pglz, or ALTER TABLE {table} ALTER {column} SET \
         STORAGE EXTERNAL"
    )]
    Compression {
        /// Qualified name, for people.
        table: String,
        /// Its name, for people.
        column: String,
    },
    /// The server has to see each row, e.g. because of triggers.
    #[error("{0}")]
    Duties(String),
    /// One of its partitions cannot be written.
    #[error("partition {name}: {why}")]
    Partition {
        /// Qualified and quoted.
        name: String,
        /// Why the partition cannot be written.
        why: Box<NotDirect>,
    },
    /// An existing table cannot be given new files.
    #[error("pgrig cannot truncate the table, because {0}")]
    Truncate(String),
    /// The SQL of --ddl does more than create an empty table.
    #[error("{0}")]
    Ddl(String),
    /// The number of rows of a size is known only after the load.
    #[error("pgrig cannot compute in advance how many rows of this table fill a SIZE: give --rows instead")]
    Size,
    /// The relation is not as it should be in the transaction that fills it.
    #[error("{relation} is not as expected: {problem}. Nothing was written")]
    Relation {
        /// Name of the relation.
        relation: String,
        /// The property that is not as expected.
        problem: String,
    },
}
