//! The class of a statement.

use std::fmt;

use serde::Serialize;

use super::relation::Relations;
use super::work::{Work, WorkKind};

/// Class of a statement, decided by the heaviest part of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It changes catalogs, and reads no whole table.
    CatalogOnly,
    /// It runs outside a transaction, waits for others', and does nothing else.
    Wait,
    /// It reads a whole table.
    Scan,
    /// It reads a whole table, which is not the one that it names.
    ScanOfAnother,
    /// It reads several whole tables.
    SeveralTables,
    /// It inserts, updates or deletes rows.
    Rows,
    /// It builds indexes of tables with rows.
    IndexBuild,
    /// It copies files to another tablespace.
    Copy,
    /// It writes tables anew.
    Rewrite,
}

impl Class {
    /// All classes, in ascending order of work.
    pub const ALL: [Self; 9] = [
        Self::CatalogOnly,
        Self::Wait,
        Self::Scan,
        Self::ScanOfAnother,
        Self::SeveralTables,
        Self::Rows,
        Self::IndexBuild,
        Self::Copy,
        Self::Rewrite,
    ];

    /// The name for people and in run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::CatalogOnly => "catalog only",
            Self::Wait => "wait",
            Self::Scan => "scan",
            Self::ScanOfAnother => "scan of another table",
            Self::SeveralTables => "scan of several tables",
            Self::Rows => "rows",
            Self::IndexBuild => "index build",
            Self::Copy => "copy",
            Self::Rewrite => "rewrite",
        }
    }

    /// The class of a statement that did this work. `target` is the table that it names, `before` the relations before
    /// it; `waits` tells whether it waited for transactions of others.
    pub fn of(works: &[Work], target: Option<u32>, before: &Relations, waits: bool) -> Self {
        match works.first().map(|work| work.kind) {
            Some(WorkKind::Rewrite) => Self::Rewrite,
            Some(WorkKind::Copy) => Self::Copy,
            Some(WorkKind::IndexBuild) => Self::IndexBuild,
            Some(WorkKind::Rows) => Self::Rows,
            Some(WorkKind::Scan) if works.len() > 1 => Self::SeveralTables,
            Some(WorkKind::Scan) => match target {
                Some(target) if !before.is_within(works[0].oid, target) => Self::ScanOfAnother,
                Some(target) if works[0].oid != target && has_others(before, target, works[0].oid) => {
                    Self::ScanOfAnother
                }
                _ => Self::Scan,
            },
            None if waits => Self::Wait,
            None => Self::CatalogOnly,
        }
    }
}

/// Whether a partitioned table has rows in other tables than this one.
fn has_others(relations: &Relations, target: u32, scanned: u32) -> bool {
    relations.0.iter().any(|(oid, relation)| {
        relation.kind.has_rows() && *oid != scanned && relations.is_within(*oid, target)
    })
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |class: &Self| class.name() == text;
        Self::ALL.into_iter().find(known).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no class \"{text}\": give one of {names}")
        })
    }
}
