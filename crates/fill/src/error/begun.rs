//! Errors of a fill that was begun before, or that other processes run too.

use failure::{Class, Classified};
use thiserror::Error;

/// Why a fill that was begun cannot be completed, or not by this process.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BegunError {
    /// Other sessions have changed a table of an interrupted fill.
    #[error(
        "{table} has rows that the unfinished fill did not load. If another pgrig is filling it, wait until it ends. Otherwise \
         run TRUNCATE {table} and repeat the command, or give --no-resume to forget the unfinished fill"
    )]
    TableChanged {
        /// Schema and name.
        table: String,
    },
    /// Another session has worked on the same fill since it was planned.
    #[error("another session changed the tables after this fill was planned. Repeat the command")]
    SchemaChanged,
    /// An unfinished fill has not yet recreated indexes and constraints, and this fill would remove
    /// the record of them.
    #[error(
        "an unfinished fill has not yet created the keys, foreign keys and indexes of {tables}: repeat the \
         command that began it, or drop these tables"
    )]
    Unmade {
        /// Names of the tables.
        tables: String,
    },
    /// An unfinished fill that another command began.
    #[error(
        "schema {schema} has an unfinished fill that another command began{differences}: repeat that command to complete it; or \
         give --drop to replace the tables; or {}give another --schema",
        if *.may_forget { "give --no-resume to forget the unfinished fill; or " } else { "" }
    )]
    Unfinished {
        /// Schema of the unfinished fill.
        schema: String,
        /// The options that differ, as a phrase.
        differences: String,
        /// Whether --no-resume without --drop makes sense.
        may_forget: bool,
    },
    /// An unfinished fill of the user's tables, which another command began.
    #[error(
        "schema {schema} has an unfinished fill that another command began: repeat that command to complete it, or give --no-resume to \
         forget the unfinished fill (your tables and rows stay)"
    )]
    UnfinishedSchema {
        /// Schema of the record.
        schema: String,
    },
    /// An unfinished fill of the user's table, which another command began.
    #[error(
        "{table} has an unfinished fill that another command began{differences}: repeat that command to complete it, or give \
         --no-resume to forget the unfinished fill"
    )]
    UnfinishedTable {
        /// Schema and name.
        table: String,
        /// The options that differ, as a phrase.
        differences: String,
    },
    /// The tables of an unfinished fill are not as it left them.
    #[error("cannot complete the interrupted fill: {table} {problem}. Nothing was changed. {remedy}")]
    NotAsLeft {
        /// The table that differs.
        table: String,
        /// The difference, as a predicate of the table.
        problem: String,
        /// The way to start over.
        remedy: String,
    },
    /// Another session runs this fill.
    #[error(
        "another session (server process {pid}) runs this fill: wait until it ends, or end it with SELECT \
         pg_terminate_backend({pid})"
    )]
    InHand {
        /// Its server process.
        pid: i32,
    },
    /// Another part of a fill arrives, and does not come to an end.
    #[error(
        "another part of a fill (server process {pid}) is still preparing tables of this database: repeat the command later, or \
         end that part with SELECT pg_terminate_backend({pid})"
    )]
    Arrival {
        /// Its server process.
        pid: i32,
    },
    /// Another process is the same part.
    #[error(
        "another process is already part {number} of {of} of this fill: give this one another number, or wait until that one ends"
    )]
    PartTaken {
        /// Number of the part.
        number: u32,
        /// Number of all parts.
        of: u32,
    },
    /// Parts of another number are at work.
    #[error(
        "--part: this process divides the fill into {of} parts, and a running process divides it into {others}: give all \
         processes the same number of parts, or wait until the others end"
    )]
    PartsOfAnother {
        /// Number of all parts.
        of: u32,
        /// The same, of the other process.
        others: i32,
    },
}

impl Classified for BegunError {
    fn class(&self) -> Class {
        match self {
            Self::TableChanged { .. }
            | Self::Unmade { .. }
            | Self::Unfinished { .. }
            | Self::UnfinishedSchema { .. }
            | Self::UnfinishedTable { .. }
            | Self::PartTaken { .. }
            | Self::PartsOfAnother { .. } => Class::Request,
            Self::SchemaChanged | Self::NotAsLeft { .. } | Self::InHand { .. } | Self::Arrival { .. } => {
                Class::Machine
            }
        }
    }
}
