//! Sizes at which a statement begins to behave in another way: there, a forecast from smaller sizes does not hold.

use measure::forecast::{Boundary, Cause, Memory};

use crate::find::Class;

/// The conditions of a statement that limit its forecasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The server's memory.
    pub(crate) memory: Memory,
    /// The cause of the first checkpoint, and the bytes of the statement's tables at which it begins, if it makes the statement write
    /// pages whole.
    pub(crate) checkpoint: Option<(Cause, f64)>,
    /// Bytes of the statement's tables from which on the build of an index of the largest one has parallel workers; none if it never has.
    /// Each process of such a build writes its sorted rows to a temporary file, however much memory it has (tuplesort.c:
    /// `worker_freeze_result_tape`).
    pub(crate) parallel: Option<f64>,
}

/// The quantity that is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Seconds,
    Wal,
    /// Temporary files.
    Temporary,
}

/// The boundaries of a statement's class, as bytes of its tables. `bytes_of_row` are those that were measured.
pub(crate) fn boundaries(
    class: Class,
    quantity: Quantity,
    limits: Limits,
    bytes_of_row: f64,
) -> Vec<Boundary> {
    let Limits { memory, checkpoint, parallel } = limits;
    let sort_at = memory.sorted_rows() * bytes_of_row;
    let is_build = matches!(class, Class::IndexBuild | Class::Rewrite);
    let mut found: Vec<(Cause, f64)> = match (quantity, class) {
        // A sort begins to write them there; other work has no boundary that is known.
        (Quantity::Temporary, Class::IndexBuild | Class::Rewrite | Class::SeveralTables) => {
            vec![(Cause::MaintenanceWorkMem, sort_at)]
        }
        (Quantity::Wal | Quantity::Temporary, _) | (Quantity::Seconds, Class::CatalogOnly | Class::Wait) => {
            Vec::new()
        }
        (Quantity::Seconds, Class::Scan | Class::ScanOfAnother) => vec![(Cause::Cache, memory.cached())],
        // The check of a foreign key sorts or hashes in maintenance_work_mem.
        (Quantity::Seconds, Class::SeveralTables) => {
            vec![(Cause::Cache, memory.cached()), (Cause::MaintenanceWorkMem, sort_at)]
        }
        (Quantity::Seconds, Class::Rows) => vec![
            // Beyond them, the statement writes changed pages, and flushes the WAL before each.
            (Cause::SharedBuffers, memory.shared_buffers as f64),
            (Cause::Cache, memory.dirty()),
        ],
        (Quantity::Seconds, Class::IndexBuild | Class::Rewrite) => {
            vec![(Cause::MaintenanceWorkMem, sort_at), (Cause::Cache, memory.dirty())]
        }
        (Quantity::Seconds, Class::Copy) => vec![(Cause::Cache, memory.dirty())],
    };
    if is_build && quantity != Quantity::Wal {
        found.extend(parallel.map(|at| (Cause::ParallelWorkers, at)));
    }
    if quantity != Quantity::Temporary {
        found.extend(checkpoint);
    }
    Boundary::known(found)
}
