//! Why a migration cannot be measured.

use catalog::CatalogError;
use connect::{ConnectError, SqlState};
use failure::{Class, Classified};
use fill::FillError;
use measure::human::bytes;
use server::SurveyError;
use server::fault::Panicked;
use server::quote::shell_word;

use crate::outcome::Failed;
use crate::schema::Schema;

/// Statements that an error names.
const NAMED: usize = 8;

/// Why a migration cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DdlError {
    /// The SQL of the schema cannot be used.
    #[error("{origin}: {error}")]
    Schema {
        /// Its origin.
        origin: String,
        /// The reason.
        error: Box<FillError>,
    },
    /// The server or pgrig refuses SQL of the schema.
    #[error("{option}: {problem}")]
    Sql {
        /// The option that gives the schema, with its value; or the database.
        option: String,
        /// The problem, with the remedy.
        problem: String,
        /// The reason.
        error: Box<FillError>,
    },
    /// The SQL of the schema would connect pgrig's databases with another server.
    #[error(
        "{origin}, line {line}: {command} would connect each of pgrig's databases with another server: make the file with pg_dump --schema-only \
         --no-subscriptions, or remove the statement"
    )]
    Subscription {
        /// Its origin.
        origin: String,
        /// Line of the statement.
        line: u64,
        /// Its first words.
        command: String,
    },
    /// The schema cannot be created twice on a server.
    #[error(
        "a DO statement of the schema creates roles ({roles}). pgrig runs it several times on one server, so the statement fails the \
         second time: let it create a role only if the role is not in pg_roles; or remove the DO statement, and create the roles on the server for the measurement"
    )]
    SchemaRoles {
        /// The roles.
        roles: String,
    },
    /// The copy of the original's tables lacks an object that they use.
    #[error(
        "{origin}: {problem}. pgrig copies the functions that the tables use, but not the objects that these functions use. To measure with all objects, \
         give --schema-file with the output of pg_dump --schema-only{}",
        if *.has_extensions { "; if it is an object of an extension, install that on the server that measures" } else { "" }
    )]
    Incomplete {
        /// The database or the model.
        origin: String,
        /// The server's message.
        problem: String,
        /// Whether the tables use extensions, which the server that measures may lack.
        has_extensions: bool,
    },
    /// Texts of the original are not UTF-8.
    #[error(
        "database {database} has values in statistics, or definitions, that are not UTF-8 ({problem}), as only a database with the encoding SQL_ASCII can have \
         them. Give its tables as a file in UTF-8: pg_dump --schema-only --encoding=SQL_ASCII {} | iconv -f LATIN1 -t UTF-8 > schema.sql, with the encoding \
         of the texts in place of LATIN1; then --schema-file schema.sql",
        shell_word(database)
    )]
    NotUtf8 {
        /// The database.
        database: String,
        /// The server's message.
        problem: String,
    },
    /// The original database cannot be read.
    #[error(transparent)]
    Original(Box<CatalogError>),
    /// The tables cannot be filled.
    #[error("cannot fill the tables for the measurement: {0}")]
    Fill(Box<FillError>),
    /// An option names a table that is not there.
    #[error("{option} {table}: pgrig fills no such table; give one of {tables}")]
    NoSuchTable {
        /// The option.
        option: &'static str,
        /// The name.
        table: String,
        /// Names of tables.
        tables: String,
    },
    /// An option names a table that several schemas have.
    #[error("{option} {table}: several schemas have such a table: give one of {tables}")]
    SeveralTables {
        /// The option.
        option: &'static str,
        /// The name.
        table: String,
        /// The tables.
        tables: String,
    },
    /// A statement that the server refuses whatever rows there are.
    #[error(
        "statement {number} ({place}) fails even on empty tables: {}{}{}",
        failed.message,
        failed.remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}")),
        later(others)
    )]
    Statement {
        /// Its number.
        number: usize,
        /// Its file and line.
        place: String,
        /// The failure.
        failed: Failed,
        /// Later statements that fail, too: a phrase for each.
        others: Vec<String>,
    },
    /// The user's reader or writer fails whatever rows there are.
    #[error("{option} fails even on empty tables: {why}")]
    Probing {
        /// The option.
        option: &'static str,
        /// The reason.
        why: String,
    },
    /// The user's reader or writer keeps its locks.
    #[error(
        "{option} leaves its transaction open, so the migration would wait forever: end its script with COMMIT"
    )]
    ProbeOpen {
        /// The option.
        option: &'static str,
    },
    /// A server on which WAL would not be measured.
    #[error(
        "the server runs with wal_level = minimal. There, new indexes and rewritten tables write no WAL, so the figures \
         would not hold on other servers. Run ALTER SYSTEM SET wal_level = replica, and restart the server"
    )]
    WalLevel,
    /// The server does not start again after the fill.
    #[error("pgrig cannot restart the server with the settings for the measurement: {why}")]
    Restart {
        /// The reason.
        why: String,
    },
    /// The disk has no room for the measurement.
    #[error("{}", no_room(*needed, [*filled, *copy, *new, *wal], (mount, *free), *up_to))]
    Disk {
        /// At the peak, bytes.
        needed: u64,
        /// Databases that are filled, bytes.
        filled: u64,
        /// A copy of the largest, bytes.
        copy: u64,
        /// New files of the migration, bytes.
        new: u64,
        /// WAL, bytes.
        wal: u64,
        /// On the volume, bytes.
        free: u64,
        /// The volume's mount point.
        mount: String,
        /// An `--up-to` that fits, if pgrig knows one.
        up_to: Option<u64>,
    },
    /// The server found its disk full.
    #[error("the disk of the server is full: give a smaller --up-to, or free some space: {0}")]
    DiskFull(ConnectError),
    /// The fill found the disk full.
    #[error(
        "pgrig cannot fill {} for the measurement: {lack}. Give a smaller --up-to, or free some space",
        table.as_deref().unwrap_or("the tables")
    )]
    FillFull {
        /// The table; none if it is not known.
        table: Option<String>,
        /// The lack of space.
        lack: String,
    },
    /// The server lacks the locale for which the user asks.
    #[error("--locale {0}: the server that measures lacks it ({1}): install it there, or give another one")]
    Locale(String, String),
    /// The server is not fit for tables.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// The role may not create databases.
    #[error("{0}, or leave out --scratch")]
    CreateDatabase(SurveyError),
    /// The server could not be reached or asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Databases of this run could not be dropped.
    #[error(
        "pgrig could not drop databases that it created: {database} ({why}). The next pgrig ddl on this server tries again{}",
        before(ended.as_deref())
    )]
    NotDropped {
        /// Their names, with commas between them.
        database: String,
        /// The reason of the first.
        why: String,
        /// The error that had ended the run before, if any.
        ended: Option<Box<DdlError>>,
    },
    /// pgrig panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The user wanted it to stop.
    #[error("interrupted: pgrig dropped its databases")]
    Interrupted,
}

impl From<FillError> for DdlError {
    /// Leaves out the fill's sentence on the tables that remain: `ddl` drops the database.
    fn from(error: FillError) -> Self {
        match error {
            FillError::OfTable { table, source, .. } => Self::Schema { origin: table, error: source },
            FillError::Connect(error) => Self::Connect(error),
            FillError::Unfit(error) => Self::Unfit(error),
            FillError::Disk { needed, total, wal, free, mount, .. } => {
                Self::Disk { needed, filled: total, copy: 0, new: 0, wal, free, mount, up_to: None }
            }
            error => Self::Fill(Box::new(error)),
        }
    }
}

impl DdlError {
    /// The error of a schema's second creation, if roles that the first one made are the reason.
    pub(crate) fn of_roles(self, made: &[String]) -> Self {
        match self {
            Self::Fill(error) if !made.is_empty() && is_duplicate(&error) => {
                Self::SchemaRoles { roles: made.join(", ") }
            }
            error => error,
        }
    }

    /// The error of reading a database, if texts there are not UTF-8: the server checks those of `SQL_ASCII` when it sends them (mbutils.c: `pg_server_to_any`).
    pub(crate) fn of_encoding(self, database: &str) -> Self {
        match self {
            Self::Connect(ConnectError::Query { error, .. })
                if error.code == SqlState::CHARACTER_NOT_IN_REPERTOIRE =>
            {
                Self::NotUtf8 { database: database.to_owned(), problem: error.message.clone() }
            }
            error => error,
        }
    }

    /// The error with the remedies that the schema has: of tables that reference each other, statements to add to its SQL; for objects that a copy lacks,
    /// the whole schema.
    pub(crate) fn of_schema(self, schema: &Schema) -> Self {
        let missing = match &self {
            Self::Fill(error) | Self::Schema { error, .. } if schema.is_copy() => error.missing_object(),
            _ => None,
        };
        if let Some(problem) = missing {
            let (origin, has_extensions) = (schema.option(), schema.sql.contains("CREATE EXTENSION "));
            return Self::Incomplete { origin, problem, has_extensions };
        }
        let problem = match &self {
            Self::Fill(error) => error.cycle().map(|cycle| cycle.in_sql(schema.sql_origin())),
            _ => None,
        };
        match (self, problem) {
            (Self::Fill(error), Some(problem)) => Self::Sql { option: schema.option(), problem, error },
            (error, _) => error.of_sql(schema.option()),
        }
    }

    /// The error with the remedy for a full disk, if that is the cause.
    pub(crate) fn of_full_disk(self) -> Self {
        match self {
            Self::Connect(error) if error.sqlstate() == Some(&SqlState::DISK_FULL) => Self::DiskFull(error),
            Self::Schema { origin, error } => match error.lack_of_space() {
                Some(lack) => Self::FillFull { table: Some(origin), lack },
                None => Self::Schema { origin, error },
            },
            Self::Fill(error) => match error.lack_of_space() {
                Some(lack) => Self::FillFull { table: None, lack },
                None => Self::Fill(error),
            },
            error => error,
        }
    }

    /// The error of the schema's SQL, named by the option that gives it.
    pub(crate) fn of_sql(self, option: String) -> Self {
        match self {
            Self::Fill(error) => match error.of_sql() {
                Some(problem) => Self::Sql { option, problem: with_search_path(problem), error },
                None => Self::Fill(error),
            },
            error => error,
        }
    }
}

/// The problem of SQL, with the remedy if the server knows no schema for new tables (namespace.c: `RangeVarGetCreationNamespace`).
fn with_search_path(problem: String) -> String {
    if !problem.contains("no schema has been selected to create in") {
        return problem;
    }
    problem
        + ". The search_path of the role or the database names no schema that exists: begin the SQL with SET search_path = public, or \
           connect as another role"
}

/// A sentence on the later statements that fail, too; nothing if there are none.
fn later(others: &[String]) -> String {
    let more = others.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let first = others.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    if others.is_empty() {
        String::new()
    } else {
        format!(". Later statements fail, too, perhaps because of it: {first}{more}")
    }
}

/// The error that had ended the run before, as a sentence; nothing if there is none, or the user interrupted it.
fn before(ended: Option<&DdlError>) -> String {
    let ended = ended.filter(|ended| !ended.is_interrupt());
    ended.map_or(String::new(), |ended| format!(". Before that, the measurement failed: {ended}"))
}

/// The lack of disk space, with its parts and the remedy.
fn no_room(needed: u64, parts: [u64; 4], (mount, free): (&str, u64), up_to: Option<u64>) -> String {
    let purposes = ["filled tables", "a copy of the largest", "new files of the migration", "WAL"];
    let named = purposes.iter().zip(parts).filter(|(_, part)| *part > 0);
    let parts: Vec<String> = named.map(|(name, part)| format!("{name} {}", bytes(part))).collect();
    let remedy = match up_to {
        Some(up_to) => format!("--up-to {}", bytes(up_to).replace(' ', "")),
        None => "a smaller --up-to".to_owned(),
    };
    format!(
        "the measurement needs about {} of disk space ({}), and {mount} has {} free: give {remedy}, or free some space",
        bytes(needed),
        parts.join(", "),
        bytes(free)
    )
}

/// Whether SQL of the user's creates an object that is there; tables and functions are not meant.
fn is_duplicate(error: &FillError) -> bool {
    matches!(error, FillError::Ddl { sqlstate: Some(state), .. } if *state == SqlState::DUPLICATE_OBJECT)
}

impl Classified for DdlError {
    fn class(&self) -> Class {
        match self {
            Self::Schema { error, .. } | Self::Sql { error, .. } | Self::Fill(error) => error.class(),
            Self::Original(error) => error.class(),
            Self::WalLevel
            | Self::Subscription { .. }
            | Self::Incomplete { .. }
            | Self::SchemaRoles { .. }
            | Self::Locale(..)
            | Self::NotUtf8 { .. }
            | Self::NoSuchTable { .. }
            | Self::SeveralTables { .. }
            | Self::Probing { .. }
            | Self::ProbeOpen { .. }
            | Self::Statement { .. } => Class::Request,
            Self::Unfit(error) | Self::CreateDatabase(error) => error.class(),
            Self::Connect(error) | Self::DiskFull(error) => error.class(),
            Self::NotDropped { ended: Some(ended), .. } if ended.is_interrupt() => Class::Interrupted,
            Self::Disk { .. }
            | Self::FillFull { .. }
            | Self::Restart { .. }
            | Self::NotDropped { .. }
            | Self::Panicked(_) => Class::Machine,
            Self::Interrupted => Class::Interrupted,
        }
    }

    fn is_lost_server(&self) -> bool {
        matches!(self, Self::Connect(error) | Self::DiskFull(error) if error.is_lost_server())
    }

    fn is_explained_by_log(&self) -> bool {
        match self {
            Self::Schema { error, .. } | Self::Sql { error, .. } | Self::Fill(error) => {
                error.is_explained_by_log()
            }
            _ => false,
        }
    }
}
