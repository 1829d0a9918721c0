//! The verdict, and all that was found.

use serde::Serialize;

use super::recipe::Recipe;

/// Most damages that are kept one by one.
const MOST: usize = 1000;

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Checksums cover everything, all of it was read, and all of it agrees.
    Whole,
    /// All of it was read and is complete, but checksums do not cover everything.
    NoDamageFound,
    /// Something is missing or wrong.
    Damaged,
}

/// Damage in a file, and the byte at which pgrig noticed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file, within the backup.
    pub file: String,
    /// The byte at or before which it was noticed, if known.
    pub offset: Option<u64>,
    /// The damage, in words.
    pub damage: String,
}

/// A part in which damage may go unnoticed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The part.
    pub part: String,
    /// The way to be certain of the part, in this backup or in the next one.
    pub remedy: String,
}

/// All that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The kind of the backup, with its compression.
    pub kind: String,
    /// Version of the server that was backed up.
    pub server: Option<String>,
    /// Damages, the first thousand of them.
    pub damages: Vec<Damage>,
    /// Further damages.
    pub more: u64,
    /// Parts in which damage may go unnoticed.
    pub gaps: Vec<Gap>,
    /// Files that were read.
    pub files: u64,
    /// Bytes that were read, those of a file that is read twice counted once.
    pub bytes: u64,
    /// Tables with data; none for base backups.
    pub tables: Option<u64>,
    /// Rows in the lines of COPY; none for base backups.
    pub rows: Option<u64>,
    /// Whether rows are in INSERT statements, which are not counted.
    pub has_inserts: bool,
    /// Large objects.
    pub large_objects: u64,
    /// Bytes of WAL whose records have the right checksum.
    pub wal: u64,
    /// Facts for a restore.
    #[serde(skip)]
    pub(super) recipe: Recipe,
}

impl Outcome {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if !self.damages.is_empty() {
            Verdict::Damaged
        } else if self.gaps.is_empty() {
            Verdict::Whole
        } else {
            Verdict::NoDamageFound
        }
    }

    pub(super) fn damage(&mut self, file: impl Into<String>, offset: Option<u64>, damage: impl Into<String>) {
        if self.damages.len() == MOST {
            self.more += 1;
            return;
        }
        self.damages.push(Damage { file: file.into(), offset, damage: damage.into() });
    }

    /// Adds a gap, once.
    pub(super) fn gap(&mut self, part: impl Into<String>, remedy: impl Into<String>) {
        let gap = Gap { part: part.into(), remedy: remedy.into() };
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::NoDamageFound => "no damage found",
            Self::Damaged => "damaged",
        })
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, offset, damage } = self;
        match offset {
            Some(offset) => write!(f, "{file}, byte {offset}: {damage}"),
            None => write!(f, "{file}: {damage}"),
        }
    }
}
