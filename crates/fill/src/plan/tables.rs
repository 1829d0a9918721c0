//! The tables that a fill makes, and the relations of their rows.

use rowgen::{Column, Kind, Payload, Table, Values, pgbench};

use crate::request::{PartitionMethod, Partitions, Subject};

/// The table of article 000's level 0.
const SERIES: &str = "series";
/// Number of rows from which its column is bigint.
const MOST_INT_ROWS: u64 = i32::MAX as u64;

/// pgbench's tables beside pgbench_accounts, in the order in which they are loaded and listed.
const PGBENCH_SMALL: [&str; 3] = ["pgbench_history", "pgbench_tellers", "pgbench_branches"];
/// The table that holds the bulk of pgbench's rows.
const PGBENCH_BULK: &str = "pgbench_accounts";

/// Names of the tables of a fill, unquoted: all that is known of them before their rows are.
#[derive(Clone, Debug)]
pub(crate) struct TableNames {
    /// Tables that are a thousandth of the whole or less.
    pub(crate) small: Vec<String>,
    /// The table that holds the bulk.
    pub(crate) bulk: String,
}

impl TableNames {
    /// Names of pgbench's tables.
    pub(crate) fn pgbench() -> Self {
        Self { small: PGBENCH_SMALL.map(str::to_owned).to_vec(), bulk: PGBENCH_BULK.to_owned() }
    }

    /// The name of the only table.
    pub(crate) fn single(name: &str) -> Self {
        Self { small: Vec::new(), bulk: name.to_owned() }
    }

    /// Names of the tables that pgrig makes for this subject.
    pub(crate) fn of(subject: &Subject) -> Self {
        match subject {
            Subject::Pgbench => Self::pgbench(),
            Subject::Series => Self::single(SERIES),
            Subject::Table(_) => unreachable!("a table of the user's is described by its catalog"),
        }
    }

    /// All names; the bulk last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.small.iter().chain([&self.bulk])
    }

    /// Names of all relations that may hold rows or partitions, e.g. to see which are taken.
    pub(crate) fn relations(&self, partitions: Option<Partitions>) -> Vec<String> {
        let leaves = partitions.map_or(Vec::new(), |partitions| leaf_names(&self.bulk, partitions));
        self.all().cloned().chain(leaves).collect()
    }
}

/// The tables of a fill, with their columns and numbers of rows.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// Tables that are a thousandth of the whole or less.
    pub(crate) small: Vec<Table>,
    /// The table that holds the bulk.
    pub(crate) bulk: Table,
    /// Whether the table is the user's.
    pub(crate) is_own: bool,
}

impl Tables {
    /// Tables that pgrig makes, with so many rows in the bulk table; `scale` and `payload` are pgbench's.
    pub(crate) fn new(subject: &Subject, rows: u64, scale: u64, payload: Payload) -> Self {
        let (small, bulk) = match subject {
            Subject::Pgbench => (
                vec![pgbench::history(scale), pgbench::tellers(scale), pgbench::branches(scale)],
                pgbench::accounts(rows, scale, payload),
            ),
            Subject::Series => (Vec::new(), series(rows)),
            Subject::Table(_) => unreachable!("a table of the user's is described by its catalog"),
        };
        Self { small, bulk, is_own: false }
    }

    /// A table of the user's.
    pub(crate) fn own(bulk: Table) -> Self {
        Self { small: Vec::new(), bulk, is_own: true }
    }

    /// Names of all of them.
    pub(crate) fn names(&self) -> TableNames {
        TableNames {
            small: self.small.iter().map(|table| table.name.clone()).collect(),
            bulk: self.bulk.name.clone(),
        }
    }

    /// The tables with the id type of existing tables (`wide`), if there are any; else with the
    /// type that pgbench chooses.
    pub(crate) fn with_ids(mut self, wide: Option<bool>) -> Self {
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
        Some(partitions) => leaf_names(&table.name, partitions),
    }
}

fn leaf_names(bulk: &str, partitions: Partitions) -> Vec<String> {
    (1..=partitions.count.get()).map(|number| format!("{bulk}_{number}")).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_names_that_are_looked_for() {
        for subject in [Subject::Pgbench, Subject::Series] {
            let made = Tables::new(&subject, 1, 1, Payload::Blank).names();
            assert_eq!(made.relations(None), TableNames::of(&subject).relations(None));
        }
    }
}
