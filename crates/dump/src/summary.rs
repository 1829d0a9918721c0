//! The changes to a dump.

use std::fmt;

/// The changes to a dump. Tables are named as in SQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tables made unlogged.
    pub tables: u64,
    /// Tables that the dump creates unlogged.
    pub unlogged_tables: u64,
    /// Sequences made unlogged; those of identity columns follow their tables by themselves.
    pub sequences: u64,
    /// Sequences that stay as they are, because the dump does not say of which release its server is.
    pub undecided_sequences: u64,
    /// Tables that stay as they are, by database and name.
    pub left: Vec<Left>,
    /// Publications of all tables, or of all in a schema: unlogged ones are not in them.
    pub publications_of_all: Vec<String>,
    /// Sequences made unlogged, and the tables that they belong to, which were not. After a crash they begin anew.
    pub lone_sequences: Vec<(String, String)>,
    /// Whether pg_dump's closing comment is missing.
    pub is_cut_off: bool,
}

/// A table that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Name of the table with its schema, as SQL writes it.
    pub table: String,
    /// Why the table stays as it is.
    pub why: Why,
}

/// Why a table stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is partitioned: its partitions hold the rows.
    Partitioned,
    /// The user asked to keep it.
    Asked,
    /// A permanent table references it.
    Referenced {
        /// The referencing table.
        by: String,
    },
    /// It is published, which unlogged tables cannot be.
    Published {
        /// Name of the publication.
        publication: String,
    },
    /// It is a partition of a table that was asked for, or is published.
    PartitionOf {
        /// The partitioned table.
        kept: String,
    },
    /// A rule makes it a view.
    View,
}

impl Why {
    /// Whether the partitions of a table that is left for this reason are left too.
    pub(crate) fn holds_for_partitions(&self) -> bool {
        matches!(self, Self::Asked | Self::Published { .. } | Self::PartitionOf { .. })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partitioned => f.write_str("partitioned"),
            Self::Asked => f.write_str("as given with --exclude-table"),
            Self::Referenced { by } => write!(f, "referenced by {by}, which is logged"),
            Self::Published { publication } => write!(f, "published by {publication}"),
            Self::PartitionOf { kept } => write!(f, "partition of {kept}, which stays logged"),
            Self::View => f.write_str("a rule makes it a view"),
        }
    }
}
