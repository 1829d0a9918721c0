//! The plan: statements in their order, and the objects that stay unchanged, with the reason.

mod choice;
mod foreign_keys;
pub(super) mod look;

use futures_util::future::LocalBoxFuture;
use std::fmt;
use std::time::Duration;
use tokio_postgres::error::SqlState;

use crate::unlog::error::UnlogError;
use crate::unlog::plan::choice::Choice;
use crate::unlog::plan::look::LockHolder;
use crate::unlog::request::{Direction, UnlogRequest};
use connect::{ConnectError, Target};
use server::quote::{identifier, literal};
use server::settings::Table;
use server::{Session, Sessions};

/// A table or a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name and schema.
    pub table: Table,
    /// Table or sequence.
    pub kind: ObjectKind,
}

/// Kind of an object that can be unlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table that is not partitioned; it may be a partition.
    Table,
    /// A sequence, from PostgreSQL 15 on.
    Sequence,
}

impl Object {
    /// Quoted, for SQL.
    pub fn qualified(&self) -> String {
        self.table.qualified()
    }
}

/// The name for people: quoted only if SQL would otherwise read another name.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let shown = |name: &str| if plain(name) { name.to_owned() } else { identifier(name) };
        write!(f, "{}.{}", shown(&self.table.schema), shown(&self.table.name))
    }
}

/// A foreign key that closes a cycle, so that it is dropped and added again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Name of the constraint.
    pub name: String,
    /// The table that has it; it may be partitioned.
    pub table: Object,
    /// As pg_get_constraintdef has it, with DEFERRABLE, NOT VALID and all.
    pub definition: String,
    /// Comment of the constraint, if it has one.
    pub comment: Option<String>,
}

/// One statement of the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Locks the table: no other session can read or write it from here on.
    Lock(Object),
    /// Drops a foreign key that closes a cycle.
    DropForeignKey(ForeignKey),
    /// Changes the persistence.
    Set {
        /// The table or sequence.
        object: Object,
        /// The new persistence.
        to: Direction,
        /// Bytes that are written again.
        bytes: u64,
    },
    /// Adds the foreign key again. Its rows are checked, unless it was NOT VALID.
    AddForeignKey(ForeignKey),
    /// Restores the comment of the foreign key.
    Comment {
        /// The foreign key.
        constraint: String,
        /// The table that has the foreign key.
        table: Object,
        /// Text of the comment.
        text: String,
    },
}

impl Step {
    /// As SQL, without a semicolon.
    pub fn sql(&self) -> String {
        match self {
            // ONLY: tables that inherit from it have steps of their own.
            Self::Lock(table) => format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", table.qualified()),
            Self::DropForeignKey(key) => {
                format!("ALTER TABLE {} DROP CONSTRAINT {}", key.table.qualified(), identifier(&key.name))
            }
            Self::Set { object, to, .. } => {
                let kind = match object.kind {
                    ObjectKind::Table => "TABLE",
                    ObjectKind::Sequence => "SEQUENCE",
                };
                format!("ALTER {kind} {} SET {}", object.qualified(), to.keyword())
            }
            Self::AddForeignKey(key) => {
                let (table, name) = (key.table.qualified(), identifier(&key.name));
                format!("ALTER TABLE {table} ADD CONSTRAINT {name} {}", key.definition)
            }
            Self::Comment { constraint, table, text } => {
                let (table, name) = (table.qualified(), identifier(constraint));
                format!("COMMENT ON CONSTRAINT {name} ON {table} IS {}", literal(text))
            }
        }
    }

    /// The table or sequence whose persistence it changes, and its bytes.
    pub fn changes(&self, direction: Direction) -> Option<(&Object, u64)> {
        match self {
            Self::Set { object, to, bytes } if *to == direction => Some((object, *bytes)),
            _ => None,
        }
    }
}

/// A table that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The table, sequence or view.
    pub object: Object,
    /// Why it stays as it is.
    pub why: Why,
}

/// Why something is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The request says so.
    Kept,
    /// A table that stays logged references it.
    ReferencedBy {
        /// The referencing table.
        table: Object,
        /// Whether the referencing table is partitioned: such tables are never unlogged.
        is_partitioned: bool,
    },
    /// It references a table that stays unlogged.
    References(Object),
    /// A partitioned table has no rows of its own; only partitions change.
    Partitioned,
    /// It cannot be rewritten, because this column has its row type.
    RowType(String),
    /// It belongs to this extension.
    Extension(String),
    /// The table that owns it stays as it is.
    OwnerStays(Object),
    /// There are no unlogged materialized views.
    MaterializedView,
    /// It is a foreign table, whose rows are elsewhere.
    ForeignTable,
    /// The server is older than PostgreSQL 15.
    NoUnloggedSequences,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("as given with --exclude-table"),
            Self::ReferencedBy { table, is_partitioned: true } => {
                write!(f, "the partitioned table {table}, which is always logged, references it")
            }
            Self::ReferencedBy { table, .. } => write!(f, "{table} references it and stays logged"),
            Self::References(table) => write!(f, "it references {table}, which stays unlogged"),
            Self::Partitioned => f.write_str("it is partitioned: only its partitions change"),
            Self::RowType(column) => write!(f, "column {column} has its row type, so it cannot be rewritten"),
            Self::Extension(extension) => write!(f, "it belongs to extension {extension}"),
            Self::OwnerStays(table) => write!(f, "its table {table} does not change"),
            Self::MaterializedView => f.write_str("PostgreSQL has no unlogged materialized views"),
            Self::ForeignTable => f.write_str("it is a foreign table: its rows are on another server"),
            Self::NoUnloggedSequences => f.write_str("sequences can be unlogged from PostgreSQL 15 on"),
        }
    }
}

/// The plan for one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlogPlan {
    /// The new persistence.
    pub direction: Direction,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Tables that stay as they are.
    pub left: Vec<Left>,
    /// Number of selected tables and sequences that have the wanted persistence already.
    pub already: usize,
    /// Sequences that follow their tables by themselves.
    pub following: usize,
    /// Time to wait for each lock.
    pub lock_timeout: Duration,
}

impl UnlogPlan {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The tables or sequences that change, in order, with their bytes.
    pub fn changes(&self, kind: ObjectKind) -> impl Iterator<Item = (&Object, u64)> {
        let changes = self.steps.iter().filter_map(|step| step.changes(self.direction));
        changes.filter(move |(object, _)| object.kind == kind)
    }

    /// Size of the tables with their indexes, bytes. That much additional disk space is needed
    /// until the transaction ends.
    pub fn bytes(&self) -> u64 {
        self.changes(ObjectKind::Table).map(|(_, bytes)| bytes).sum()
    }

    /// The foreign keys that are dropped and added again.
    pub fn cycles(&self) -> impl Iterator<Item = &ForeignKey> {
        self.steps.iter().filter_map(|step| match step {
            Step::AddForeignKey(key) => Some(key),
            _ => None,
        })
    }

    /// Statements before the steps, each without a semicolon.
    pub(crate) fn opening(&self) -> [String; 2] {
        let timeout = self.lock_timeout.as_millis();
        ["BEGIN".to_owned(), format!("SET LOCAL lock_timeout = '{timeout}ms'")]
    }

    /// All of it as a script for psql.
    pub fn script(&self) -> String {
        let steps = self.steps.iter().map(Step::sql);
        let statements = self.opening().into_iter().chain(steps).chain(["COMMIT".to_owned()]);
        let text: String = statements.map(|statement| statement + ";\n").collect();
        format!("\\set ON_ERROR_STOP on\n{text}")
    }
}

/// Makes a plan. Nothing is changed.
///
/// # Errors
/// If the request cannot be fulfilled, with the obstacle; if a query fails.
pub fn plan<'a>(
    target: &'a Target,
    request: &'a UnlogRequest,
) -> LocalBoxFuture<'a, Result<UnlogPlan, UnlogError>> {
    Box::pin(async move {
        let session = Sessions::new(target).open().await?;
        // Sizes are asked under a lock.
        session.run(&format!("SET lock_timeout = '{}ms'", request.lock_timeout.as_millis())).await?;
        let planned = planned(&session, request).await;
        let planned = match planned {
            Err(UnlogError::Connect(error)) if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                Err(locked(&session, None, error).await)
            }
            planned => planned,
        };
        session.connection.close().await;
        planned
    })
}

/// The error for a lock that could not be obtained, with its holder.
pub(crate) async fn locked(session: &Session, table: Option<&Object>, error: ConnectError) -> UnlogError {
    match look::lock_holder(session, table).await {
        Ok(Some(LockHolder { table, holder, ending })) => UnlogError::Locked { what: table, holder, ending },
        // It is gone meanwhile, or it is another object's.
        _ => UnlogError::Statement {
            statement: table.map_or("looking at tables".to_owned(), |table| Step::Lock(table.clone()).sql()),
            error,
        },
    }
}

async fn planned(session: &Session, request: &UnlogRequest) -> Result<UnlogPlan, UnlogError> {
    let catalogs = look::look(session, request).await?;
    let choice = Choice::of(&catalogs, request)?;
    let (ordered, dropped) = choice.order();
    let dropped = look::foreign_keys(session, &dropped.into_iter().collect::<Vec<u32>>()).await?;
    Ok(choice.into_plan(&ordered, dropped))
}
