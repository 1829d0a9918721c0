//! Types of the values of `pgrig fill`'s arguments.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::str::FromStr;

use clap::ValueEnum;
use fill::{IndexKind, PartitionMethod, Partitions, RowsRule, Triggers};

use crate::app::failure::Usage;
use crate::app::size::Size;

/// Most rows: ids are bigint at most.
pub(crate) const MOST_ROWS: u64 = i64::MAX as u64;
/// Largest scale: it has 100,000 times as many accounts.
pub(crate) const MOST_SCALE: u64 = MOST_ROWS / 100_000;

/// The name of a table.
pub(super) fn table(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty: give the name of a table, for example orders".to_owned());
    }
    Ok(text.to_owned())
}

/// The table of `--table`.
pub(super) fn one_table(text: &str) -> Result<String, String> {
    if text.contains(',') && !text.contains('"') {
        return Err("--table takes one table; for several, give --all-tables, and --exclude-table TABLE for each of the others".to_owned());
    }
    table(text)
}

/// The partitions in the form of the request.
pub(crate) fn partitions(count: Option<u32>, method: PartitionMethod) -> Option<Partitions> {
    let count = count.and_then(NonZeroU32::new)?;
    Some(Partitions { count, method })
}

/// A factor above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor(pub(crate) f64);

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && *factor <= MOST_SCALE as f64);
        factor.map(Self).ok_or_else(|| match text.parse::<f64>() {
            Ok(factor) if factor > MOST_SCALE as f64 => "the number is too large".to_owned(),
            Err(_) if text.parse::<Size>().is_ok() => {
                format!("for tables of this size, give it without --scale: pgrig fill {text}, with the other options")
            }
            _ => "give a whole number, 1 or more; with --model, --ddl or --all-tables, a factor above 0"
                .to_owned(),
        })
    }
}

impl Factor {
    /// The factor as pgbench's scale: a whole number.
    pub(crate) fn whole(self) -> Result<u64, Usage> {
        if self.0.fract() > 0.0 {
            let text =
                format!("--scale {}: pgbench's scale is a whole number; give a SIZE, or --rows", self.0);
            return Err(Usage(text));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked where it is read"
        )]
        Ok(self.0 as u64)
    }
}

/// Rows, of each table or of single ones.
#[derive(Clone, Debug)]
pub(crate) enum RowsArg {
    /// Rows of the only table, or of each table.
    Each(u64),
    /// Of single tables.
    Rules(Vec<RowsRule>),
}

impl FromStr for RowsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            let rules: Vec<RowsRule> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
            let mut seen = HashSet::new();
            if let Some(twice) = rules.iter().find(|rule| !seen.insert(&rule.table)) {
                return Err(format!("{} is given twice: give one number for each table", twice.table));
            }
            return Ok(Self::Rules(rules));
        }
        let rows: u64 = text.parse().map_err(|_| {
            format!("\"{text}\" is not a number of rows: give a whole number like 1000000, or TABLE=1000000")
        })?;
        if (1..=MOST_ROWS).contains(&rows) {
            Ok(Self::Each(rows))
        } else {
            Err(if rows == 0 { "give 1 or more" } else { "the number is too large" }.to_owned())
        }
    }
}

/// COPY's formats.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    Text,
    Binary,
}

/// How rows are divided into partitions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PartitionBy {
    Range,
    Hash,
}

/// The bulk table's index.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Index {
    Btree,
    Brin,
    None,
}

impl From<PartitionBy> for PartitionMethod {
    fn from(method: PartitionBy) -> Self {
        match method {
            PartitionBy::Range => Self::Range,
            PartitionBy::Hash => Self::Hash,
        }
    }
}

impl From<Index> for IndexKind {
    fn from(index: Index) -> Self {
        match index {
            Index::Btree => Self::Btree,
            Index::Brin => Self::Brin,
            Index::None => Self::None,
        }
    }
}

/// Whether triggers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Triggering {
    On,
    Off,
}

impl From<Triggering> for Triggers {
    fn from(triggering: Triggering) -> Self {
        match triggering {
            Triggering::On => Self::On,
            Triggering::Off => Self::Off,
        }
    }
}

/// Free space in the heaps of a model's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bloat {
    Keep,
}

/// Content of a filler column.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Filler {
    /// Blanks, as in pgbench
    Blank,
    /// English-like words
    Text,
    /// Random characters
    Random,
}

/// How rows are made and loaded.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Method {
    /// direct on pgrig's own server if the tables allow it; otherwise the fastest method, given the number of cores, the server and the tables
    Auto,
    /// COPY over the connection. Plan and results call it frozen-copy (COPY with FREEZE, in the transaction that creates or truncates the table) or chunked-copy (a transaction for each chunk)
    Copy,
    /// INSERT … SELECT in the server
    Server,
    /// COPY of the rows of the first chunk again and again. The ids are new each time, except in hash partitions; a primary key is therefore not possible there (give --data-only)
    Reinsert,
    /// COPY into full pages; then VACUUM FULL rewrites them at the fillfactor
    Explode,
    /// Pages that pgrig makes and writes to the tables' files, on the server's machine
    Direct,
}
