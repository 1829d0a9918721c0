//! pgbench's own four tables, with the names, types, order of columns and values that
//! `pgbench -i` gives them (PostgreSQL 18, `src/bin/pgbench/pgbench.c`, `initCreateTables` and
//! `initGenerateDataClientSide`).

use crate::{Column, Kind, Payload, Table, Values};

/// Accounts per unit of scale (pgbench's `naccounts`).
pub const ACCOUNTS_PER_SCALE: u64 = 100_000;
/// Tellers per unit of scale (pgbench's `ntellers`).
pub const TELLERS_PER_SCALE: u64 = 10;
/// From this scale on account ids are bigint (pgbench's `SCALE_32BIT_THRESHOLD`).
pub const BIGINT_SCALE: u64 = 20_000;
/// Largest scale: branch and teller ids stay int (10 tellers a branch).
pub const MAX_SCALE: u64 = i32::MAX as u64 / TELLERS_PER_SCALE;

/// The largest scale whose every account exists among `accounts` rows, at least 1.
///
/// pgbench reads its scale from the number of branches and then touches accounts 1 to
/// 100,000 × scale, so rounding down keeps each of those in the table.
pub fn scale_for(accounts: u64) -> u64 {
    (accounts / ACCOUNTS_PER_SCALE).clamp(1, MAX_SCALE)
}

/// The table `pgbench_branches` at this scale: a row for each unit of it.
pub fn branches(scale: u64) -> Table {
    Table {
        name: "pgbench_branches".to_owned(),
        rows: scale,
        seed: 0,
        columns: vec![
            Column::new("bid", Kind::Int4, Values::SERIAL).not_null(),
            Column::new("bbalance", Kind::Int4, Values::Int(0)),
            Column::new("filler", Kind::Char(88), Values::Null),
        ],
    }
}

/// The table `pgbench_tellers` at this scale: ten rows for each unit of it.
pub fn tellers(scale: u64) -> Table {
    Table {
        name: "pgbench_tellers".to_owned(),
        rows: scale * TELLERS_PER_SCALE,
        seed: 0,
        columns: vec![
            Column::new("tid", Kind::Int4, Values::SERIAL).not_null(),
            Column::new("bid", Kind::Int4, Values::Group { size: TELLERS_PER_SCALE, groups: scale }),
            Column::new("tbalance", Kind::Int4, Values::Int(0)),
            Column::new("filler", Kind::Char(84), Values::Null),
        ],
    }
}

/// `pgbench_accounts` with `rows` rows over `scale` branches.
///
/// Where `rows` is no multiple of 100,000 the last branch has the rest. pgbench's own filler is
/// [`Payload::Blank`]: empty text, which the server pads.
pub fn accounts(rows: u64, scale: u64, payload: Payload) -> Table {
    Table {
        name: "pgbench_accounts".to_owned(),
        rows,
        seed: 0,
        columns: vec![
            Column::new("aid", account_id(scale), Values::SERIAL).not_null(),
            Column::new("bid", Kind::Int4, Values::Group { size: ACCOUNTS_PER_SCALE, groups: scale }),
            Column::new("abalance", Kind::Int4, Values::Int(0)),
            Column::new("filler", Kind::Char(84), filler(84, payload)),
        ],
    }
}

/// `pgbench_history`: empty, pgbench's transactions append to it.
pub fn history(scale: u64) -> Table {
    Table {
        name: "pgbench_history".to_owned(),
        rows: 0,
        seed: 0,
        columns: vec![
            Column::new("tid", Kind::Int4, Values::Null),
            Column::new("bid", Kind::Int4, Values::Null),
            Column::new("aid", account_id(scale), Values::Null),
            Column::new("delta", Kind::Int4, Values::Null),
            Column::new("mtime", Kind::Timestamp, Values::Null),
            Column::new("filler", Kind::Char(22), Values::Null),
        ],
    }
}

fn filler(length: u32, payload: Payload) -> Values {
    match payload {
        Payload::Blank => Values::Text(String::new()),
        Payload::Text | Payload::Random => Values::Payload { payload, low: length, high: length },
    }
}

fn account_id(scale: u64) -> Kind {
    if scale >= BIGINT_SCALE { Kind::Int8 } else { Kind::Int4 }
}
