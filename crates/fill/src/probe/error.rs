//! Errors of a probe.

use thiserror::Error;

use connect::described;

/// Why a probe cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The server refused a query: for the user's own SQL the user's error.
    #[error("the probe's query failed: {}", described(.0))]
    Query(tokio_postgres::Error),
    /// A lookup would read the whole table.
    #[error(
        "--probe {probe} looks up rows by {key}, and {table} has no index on it during the fill: build the key \
         before the rows (--init-steps tpgv), or give --probe scan"
    )]
    NoIndex {
        /// The kind's name.
        probe: &'static str,
        /// The table, quoted.
        table: String,
        /// Its key column.
        key: String,
    },
    /// The table has no key to look rows up by.
    #[error(
        "--probe {probe} looks up rows by a key, and {table} has no primary key or unique column that is a single \
         integer ascending by one: give --probe scan, or a query of your own"
    )]
    NoKey {
        /// The kind's name.
        probe: &'static str,
        /// The table, quoted.
        table: String,
    },
    /// The probe's query writes to the database.
    #[error("the probe's query writes or locks rows (its plan has a {node} node): give one that only reads")]
    Writes {
        /// The plan's node.
        node: String,
    },
}

impl From<tokio_postgres::Error> for ProbeError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Query(error)
    }
}
