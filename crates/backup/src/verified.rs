//! The proof of a restore: how its content was compared, and with which counts.

use std::fmt;

use measure::human::counted;
use serde::Serialize;

/// The proof that the restored content is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How the content was compared.
    pub witness: Witness,
    /// Tables that were compared, or only read.
    pub tables: u64,
    /// Those of them whose rows were not compared, because the role may not read all of them in the original.
    pub hidden: u64,
    /// Rows in them.
    pub rows: u64,
    /// Sequences with a value between those before and after the backup; in a copy of the server's files, at most 32 values further. Compared
    /// even if transactions ran meanwhile.
    pub sequences: u64,
    /// Large objects that were compared, or only counted.
    pub large_objects: u64,
    /// Constraints that are there and valid.
    pub constraints: u64,
    /// B-tree indexes that amcheck found sound; none if the server has no amcheck.
    pub indexes: Option<u64>,
    /// B-tree indexes that were not checked, because this machine has their collation in another version.
    pub other_order: u64,
    /// Names of the other databases of the server that were read to their end in the copy, and compared with nothing. Only in the first trial
    /// of a base backup; none in dumps.
    pub other_databases: Vec<String>,
}

/// How the content was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// The hash of each table is that of the snapshot that was dumped.
    SameSnapshot,
    /// The hash of each table is the original's, in which no transaction ended between the hash and the backup's end.
    Unchanged,
    /// The hash of each table is that at the time to which it was recovered; all rows of a witness that were committed before are there, and
    /// none that was committed after.
    PointInTime,
    /// Transactions ran in the original meanwhile: files against the manifest, amcheck, and the ranges of sequences; no rows and no large
    /// objects were compared.
    Changed,
}

impl Verified {
    /// Sequences and large objects, each with its number, if there are some: `2 sequences`.
    pub fn beside_tables(&self) -> impl Iterator<Item = String> {
        [(self.sequences, "sequence"), (self.large_objects, "large object")]
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, noun)| counted(number, noun))
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            witness, tables, hidden, rows, constraints, indexes, other_order, other_databases, ..
        } = self;
        let how = match witness {
            Witness::Changed => "read but not compared",
            Witness::PointInTime => "equal to the original at the target time",
            Witness::SameSnapshot | Witness::Unchanged => "equal to the original",
        };
        write!(f, "{} with {}, {how}", counted(*tables, "table"), counted(*rows, "row"))?;
        if *hidden > 0 && *witness != Witness::Changed {
            write!(f, ", except {}", counted(*hidden, "table"))?;
        }
        for part in self.beside_tables() {
            write!(f, "; {part}")?;
        }
        write!(f, "; {}", counted(*constraints, "valid constraint"))?;
        match indexes {
            Some(1) => f.write_str("; 1 sound B-tree index (amcheck)")?,
            Some(indexes) => write!(f, "; {indexes} sound B-tree indexes (amcheck)")?,
            None => {}
        }
        match other_order {
            0 => {}
            count => write!(f, "; not checked, because of another version of the collation: {count}")?,
        }
        match other_databases.len() as u64 {
            0 => Ok(()),
            count => write!(f, "; {} read, and not compared", counted(count, "other database")),
        }
    }
}
