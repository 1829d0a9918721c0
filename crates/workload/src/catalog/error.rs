//! What can be wrong with a table that is to be filled.

use thiserror::Error;

/// Why a table cannot be described, or its rows would not be accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The server could not be asked.
    #[error(transparent)]
    Server(#[from] tokio_postgres::Error),
    /// No name that the server can look up.
    #[error(
        "--table {name}: {why}. Give NAME or SCHEMA.NAME, quoted as in SQL where it is not all lower case"
    )]
    Name {
        /// As given.
        name: String,
        /// What the server says.
        why: String,
    },
    /// There is no such table.
    #[error(
        "there is no table {name} on the search_path{}",
        if alike.is_empty() {
            ": give SCHEMA.NAME, or create it first with --ddl FILE".to_owned()
        } else {
            format!("; did you mean {}?", alike.join(" or "))
        }
    )]
    NoTable {
        /// As given.
        name: String,
        /// Tables of that name elsewhere, or spelled in other case.
        alike: Vec<String>,
    },
    /// It is something else.
    #[error("{table} is {what}, and only tables can be filled: name the table that its rows come from")]
    NotATable {
        /// Schema and name.
        table: String,
        /// What it is.
        what: &'static str,
    },
    /// A table without columns.
    #[error("{table} has no columns: add some, then fill it")]
    NoColumns {
        /// Schema and name.
        table: String,
    },
    /// COPY does not work under row-level security.
    #[error(
        "row-level security applies to role {role} on {table}, and COPY refuses to load under it: connect as the \
         table's owner (without FORCE ROW LEVEL SECURITY) or as a role with BYPASSRLS"
    )]
    RowSecurity {
        /// Schema and name.
        table: String,
        /// The role.
        role: String,
    },
    /// The role may not insert.
    #[error("role {role} may not insert into {table}: GRANT INSERT ON {table} TO {role}")]
    InsertPrivilege {
        /// Schema and name.
        table: String,
        /// The role.
        role: String,
    },
    /// The role may not insert into a column that needs a value.
    #[error(
        "role {role} may not give column {column} of {table} a value: GRANT INSERT ({column}) ON {table} TO {role}, \
         or --column '{column}=default'"
    )]
    ColumnPrivilege {
        /// Schema and name.
        table: String,
        /// The column.
        column: String,
        /// The role.
        role: String,
    },
    /// A partition is a foreign table.
    #[error(
        "partition {partition} of {table} is a foreign table: detach it, or fill a partition by its name"
    )]
    ForeignPartition {
        /// Schema and name.
        table: String,
        /// The partition.
        partition: String,
    },
    /// Rows would have nowhere to go.
    #[error(
        "{table} is partitioned but has no partition that could hold a row: CREATE TABLE … PARTITION OF {table} first"
    )]
    NoPartitions {
        /// Schema and name.
        table: String,
    },
}

impl CatalogError {
    /// Whether the request was wrong (exit status 2) rather than the server (1).
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Server(_))
    }
}
