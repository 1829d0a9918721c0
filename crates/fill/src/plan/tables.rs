//! Which tables a fill makes, and the relations that hold their rows.

use rowgen::{Column, Kind, Payload, Table, Values, pgbench};

use crate::plan::Plan;
use crate::request::{PartitionMethod, Partitions, Subject};

/// The table of article 000's level 0.
const SERIES: &str = "series";
/// From this many rows on its column is bigint.
const MOST_INT_ROWS: u64 = i32::MAX as u64;

/// The tables of a fill.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Those that are a thousandth of the whole or less.
    pub small: Vec<Table>,
    /// The one that holds the bulk.
    pub bulk: Table,
}

impl Tables {
    /// For so many rows of the bulk table; `scale` and `payload` are pgbench's.
    pub(crate) fn new(subject: &Subject, rows: u64, scale: u64, payload: Payload) -> Self {
        match subject {
            Subject::Pgbench => Self {
                small: vec![pgbench::history(scale), pgbench::tellers(scale), pgbench::branches(scale)],
                bulk: pgbench::accounts(rows, scale, payload),
            },
            Subject::Series => Self { small: Vec::new(), bulk: series(rows) },
            Subject::Table(_) => unreachable!("a table of the user's is described by its catalog"),
        }
    }

    /// Those of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        if let Some(rows) = &plan.described {
            return Self { small: Vec::new(), bulk: rows.table.clone() };
        }
        let rows = plan.chunking.rows.map_or(u64::MAX, |rows| plan.chunking.first_row + rows);
        Self::new(&plan.subject, rows, plan.scale, plan.payload).with_ids(plan.wide_ids)
    }

    /// With ids of the type that the tables which are there have, if they are; else as pgbench chooses.
    fn with_ids(mut self, wide: Option<bool>) -> Self {
        let Some(wide) = wide else { return self };
        let tables = self.small.iter_mut().chain([&mut self.bulk]);
        for column in tables.flat_map(|table| &mut table.columns).filter(|column| column.name == "aid") {
            column.kind = if wide { Kind::Int8 } else { Kind::Int4 };
        }
        self
    }

    /// All of them; the bulk last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Table> {
        self.small.iter().chain([&self.bulk])
    }

    /// Names of all relations that may hold rows or partitions, e.g. to see which are taken.
    pub(crate) fn relations(&self, partitions: Option<Partitions>) -> Vec<String> {
        let leaves = leaves(&self.bulk, partitions);
        let partitioned = partitions.is_some();
        let tables = self.all().map(|table| table.name.clone());
        tables.chain(leaves.into_iter().filter(|_| partitioned)).collect()
    }
}

fn series(rows: u64) -> Table {
    let kind = if rows > MOST_INT_ROWS { Kind::Int8 } else { Kind::Int4 };
    Table { name: SERIES.to_owned(), columns: vec![Column::new("x", kind, Values::SERIAL)], rows, seed: 0 }
}

/// The key column of a table that has a primary key: all but history, always the first column.
pub(crate) fn key(table: &Table) -> Option<&Column> {
    table.columns.first().filter(|column| column.not_null)
}

/// Names of the relations that hold the table's rows: pgbench's partitions are `<name>_1` to `_N`.
pub(crate) fn leaves(table: &Table, partitions: Option<Partitions>) -> Vec<String> {
    match partitions {
        None => vec![table.name.clone()],
        Some(Partitions { count, .. }) => {
            (1..=count.get()).map(|number| format!("{}_{number}", table.name)).collect()
        }
    }
}

/// Rows of each leaf but the last, as pgbench cuts ranges (`createPartitions`).
pub(crate) fn leaf_rows(rows: u64, partitions: Partitions) -> u64 {
    rows.div_ceil(u64::from(partitions.count.get()))
}

/// The FOR VALUES clause of leaf `number` (from 0): ranges are open at both ends of the whole.
pub(crate) fn bound(rows: u64, partitions: Partitions, number: u32) -> String {
    let count = partitions.count.get();
    match partitions.method {
        PartitionMethod::Hash => format!("WITH (MODULUS {count}, REMAINDER {number})"),
        PartitionMethod::Range => {
            let size = leaf_rows(rows, partitions);
            let edge = |number: u32| size * u64::from(number) + 1;
            let from = if number == 0 { "minvalue".to_owned() } else { edge(number).to_string() };
            let to = if number + 1 == count { "maxvalue".to_owned() } else { edge(number + 1).to_string() };
            format!("FROM ({from}) TO ({to})")
        }
    }
}
