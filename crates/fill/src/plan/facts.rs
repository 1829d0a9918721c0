//! Facts about a fill's tables, from the server's catalogs; the rules use them for their decisions.

use super::own_table::OwnTableFacts;
use super::pgrig_tables::PgrigTablesFacts;
use crate::ledger::Unfinished;
use crate::request::Request;

/// Facts about the tables, whether pgrig or the user makes them.
pub(super) struct Facts {
    /// The request, with the storage of tables that exist instead of the storage that was asked for.
    pub(super) request: Request,
    /// Schema of the tables.
    pub(super) schema: String,
    /// Whether that schema has to be created.
    pub(super) create_schema: bool,
    /// Statements that create a table of the user's.
    pub(super) create: Vec<String>,
    /// Tables that are in the way and that the step `drop` drops.
    pub(super) dropped: Vec<String>,
    /// Bytes that those take, as of their last vacuum.
    pub(super) dropped_bytes: u64,
    /// Whether there is the ledger of a fill that will not be completed.
    pub(super) stale_ledger: bool,
    /// A fill of the same request that was interrupted.
    pub(super) unfinished: Option<Unfinished>,
    /// Whether the tables that the request creates exist, all unlogged and empty, as a crash leaves them.
    pub(super) emptied: bool,
    /// The table and the role, if the role may not VACUUM it.
    pub(super) vacuum_refused: Option<VacuumRefused>,
    /// Facts that only tables of one origin have.
    pub(super) tables: TablesFacts,
}

/// A table that the session's role may not VACUUM.
pub(super) struct VacuumRefused {
    pub(super) table: String,
    pub(super) role: String,
}

/// Facts that depend on the tables' origin.
pub(super) enum TablesFacts {
    /// pgbench's tables, or the table of one integer column.
    Pgrig(PgrigTablesFacts),
    /// A table of the user's.
    Own(Box<OwnTableFacts>),
}
