//! Lookups beside backups, locks and snapshots as text.

use std::fmt::Write;

use backup::Summary;
use measure::Percentile;
use measure::human::{counted, grouped, latency, time};

use crate::app::table::{align_right, new_table, trimmed};

/// The effects on other clients; none if nothing was looked up.
pub(super) fn text(all: &[Summary]) -> Option<String> {
    let mut table =
        new_table(&["way", "lookups", "p50", "before", "p95", "before", "p99", "before", "max", "before"]);
    let mut more = String::new();
    for one in all {
        let Some(beside) = &one.beside else { continue };
        let (during, before) = (&beside.during, &beside.baseline);
        let mut row = vec![one.way.to_string(), grouped(during.latencies.count())];
        for percentile in [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max] {
            row.extend([during, before].map(|of| of.seconds(percentile).map_or_else(String::new, latency)));
        }
        table.add_row(row);
        let unanswered = during.waiting + during.failed;
        if unanswered > 0 {
            let _ = write!(more, "\n  {}: {} without an answer", one.way, counted(unanswered, "lookup"));
        }
        if !one.way.is_base() {
            let _ = write!(
                more,
                "\n  {}: the dump took {}; meanwhile {}",
                one.way,
                time(one.backup.median),
                transactions(beside.transactions)
            );
        }
        for (mode, tables) in &beside.locks {
            let _ = write!(more, "\n  {}: it held {mode} on {}", one.way, counted(*tables, "table"));
        }
    }
    let is_empty = all.iter().all(|one| one.beside.is_none());
    align_right(&mut table, 1..10);
    (!is_empty).then(|| {
        format!(
            "\nlookups by primary key during each backup, and in the second before it (50 each second; latency from the scheduled start)\n{}{more}",
            trimmed(&table)
        )
    })
}

/// Transactions that ran beside a dump, and their effect.
fn transactions(number: u64) -> String {
    let delete = match number {
        0 => return "no transaction got a transaction ID".to_owned(),
        1 => "this transaction deletes",
        _ => "these transactions delete",
    };
    format!(
        "{} got a transaction ID; until the snapshot is closed, vacuum cannot remove the rows that {delete}",
        counted(number, "transaction")
    )
}
