//! Relations at one moment, as the session of the migration sees them.

use std::collections::BTreeMap;

use serde::Serialize;
use server::quote::{shown, shown_qualified};

/// Kind of a relation (`pg_class.relkind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A table with rows of its own.
    Table,
    /// A partitioned table.
    Partitioned,
    /// A materialized view.
    MaterializedView,
    /// The TOAST table of a table.
    Toast,
    /// An index with pages of its own.
    Index,
    /// An index of a partitioned table.
    PartitionedIndex,
    /// A sequence.
    Sequence,
    /// A view, a foreign table or a composite type.
    Other,
}

impl Kind {
    /// By the letter in `pg_class.relkind`.
    pub fn of(relkind: &str) -> Self {
        match relkind {
            "r" => Self::Table,
            "p" => Self::Partitioned,
            "m" => Self::MaterializedView,
            "t" => Self::Toast,
            "i" => Self::Index,
            "I" => Self::PartitionedIndex,
            "S" => Self::Sequence,
            _ => Self::Other,
        }
    }

    /// Whether statements of others name it: a table, view or sequence, but no index and no TOAST table.
    pub(crate) fn is_named(self) -> bool {
        !matches!(self, Self::Toast | Self::Index | Self::PartitionedIndex)
    }

    /// Whether it holds rows in a file of its own that a statement could scan or rewrite.
    pub(crate) fn has_rows(self) -> bool {
        matches!(self, Self::Table | Self::MaterializedView)
    }
}

/// Reads and writes of a relation, by a transaction or by all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Scans that it began: of the whole table; for an index, by the index.
    pub scans: i64,
    /// Rows that scans of the table returned; for an index, entries.
    pub returned: i64,
    /// Blocks that it asked the buffer manager for.
    pub blocks: i64,
    /// Number of rows inserted.
    pub inserted: i64,
    /// Number of rows updated.
    pub updated: i64,
    /// Number of rows deleted.
    pub deleted: i64,
}

impl Read {
    /// The difference from `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            scans: self.scans - before.scans,
            returned: self.returned - before.returned,
            blocks: self.blocks - before.blocks,
            inserted: self.inserted - before.inserted,
            updated: self.updated - before.updated,
            deleted: self.deleted - before.deleted,
        }
    }

    /// The sum with `more`.
    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            scans: self.scans + more.scans,
            returned: self.returned + more.returned,
            blocks: self.blocks + more.blocks,
            inserted: self.inserted + more.inserted,
            updated: self.updated + more.updated,
            deleted: self.deleted + more.deleted,
        }
    }

    /// Rows written.
    pub(crate) fn written(self) -> i64 {
        self.inserted + self.updated + self.deleted
    }
}

/// A relation at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Its name for people, with its schema unless that is public.
    pub name: String,
    /// Its schema as SQL.
    pub schema: String,
    /// Schema and name as SQL.
    pub sql: String,
    /// Kind of the relation: `pg_class.relkind`.
    pub kind: Kind,
    /// `relfilenode`; 0 without a file.
    pub file: u32,
    /// `reltablespace`; 0 for the database's.
    pub tablespace: u32,
    /// The table of an index or of a TOAST table; 0 for others.
    pub owner: u32,
    /// The table of which it is a partition or child; 0 for others.
    pub parent: u32,
    /// Size of its main fork, bytes.
    pub bytes: i64,
    /// Rows that the planner assumes.
    pub rows: f64,
    /// Whether it is temporary: no other session can use it.
    pub(crate) is_temporary: bool,
    /// Whether the server raised `table_rewrite` for it in the statement.
    pub(crate) is_rewritten: bool,
    /// Counters of the transaction, or those of the server.
    pub read: Read,
}

/// All relations that are not the server's own, by OID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relations(pub BTreeMap<u32, Relation>);

impl Relations {
    /// With names of TOAST tables and their indexes that say whose they are.
    #[must_use]
    pub(crate) fn with_names_of_toast(mut self) -> Self {
        let toast: Vec<(u32, String)> = self
            .0
            .iter()
            .filter_map(|(oid, toast)| {
                let owner = self.get(toast.owner)?;
                match (toast.kind, owner.kind) {
                    (Kind::Toast, _) => Some((*oid, format!("TOAST of {}", owner.name))),
                    (Kind::Index, Kind::Toast) => {
                        let table = self.get(owner.owner)?;
                        Some((*oid, format!("TOAST index of {}", table.name)))
                    }
                    _ => None,
                }
            })
            .collect();
        for (oid, name) in toast {
            if let Some(relation) = self.0.get_mut(&oid) {
                relation.name = name;
            }
        }
        self
    }

    /// With these counters, if there are any, instead of the transaction's.
    #[must_use]
    pub(crate) fn with_counters(mut self, counters: Option<&BTreeMap<u32, Read>>) -> Self {
        if let Some(counters) = counters {
            for (oid, relation) in &mut self.0 {
                relation.read = counters.get(oid).copied().unwrap_or_default();
            }
        }
        self
    }

    /// The relation of an OID.
    pub fn get(&self, oid: u32) -> Option<&Relation> {
        self.0.get(&oid)
    }

    /// The table to which a relation belongs: that of an index, of a TOAST table and of its index; else itself.
    pub(crate) fn table_of(&self, oid: u32) -> u32 {
        match self.get(oid).map(|relation| relation.owner) {
            Some(owner) if owner != 0 && owner != oid => self.table_of(owner),
            _ => oid,
        }
    }

    /// The table of which another is a partition or child at any depth; else itself.
    pub(crate) fn root(&self, oid: u32) -> u32 {
        let mut at = oid;
        while let Some(parent) = self.get(at).map(|relation| relation.parent).filter(|parent| *parent != 0) {
            at = parent;
        }
        at
    }

    /// Whether a table is `ancestor`, or a partition or child of it at any depth.
    pub(crate) fn is_within(&self, oid: u32, ancestor: u32) -> bool {
        let mut at = oid;
        while at != 0 {
            if at == ancestor {
                return true;
            }
            at = self.get(at).map_or(0, |relation| relation.parent);
        }
        false
    }
}

/// A relation's name for people: without the schema public.
pub(crate) fn shown_relation(schema: &str, name: &str) -> String {
    match schema {
        "public" => shown(name),
        // The number of the session's schema differs from run to run.
        _ if schema.starts_with("pg_temp_") => shown_qualified("pg_temp", name),
        _ => shown_qualified(schema, name),
    }
}
