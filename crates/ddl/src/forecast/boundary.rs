//! Sizes at which a statement begins to behave in another way: there, a forecast from smaller sizes does not hold.

use measure::forecast::{Boundary, Cause, Memory};

use crate::find::Class;

/// Indexes, a part of the tables, are changed at random places: their blocks are found in shared_buffers until the tables are so
/// many times larger.
const SCATTERED: f64 = 4.0;

/// The quantity that is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Seconds,
    Wal,
    /// Temporary files.
    Temporary,
}

/// The boundaries of a statement's class, as bytes of its tables. `bytes_of_row` and `wal_of_byte` are those that were
/// measured.
pub(crate) fn boundaries(
    class: Class,
    quantity: Quantity,
    memory: Memory,
    bytes_of_row: f64,
    wal_of_byte: f64,
) -> Vec<Boundary> {
    #[expect(clippy::cast_precision_loss, reason = "sizes need no more")]
    let (buffers, wal) = (memory.shared_buffers as f64, memory.max_wal_size as f64);
    // Full images of pages are written again after each checkpoint.
    let wal_at = if wal_of_byte > 0.0 { wal / wal_of_byte } else { 0.0 };
    let sort_at = memory.sorted_rows() * bytes_of_row;
    let found: Vec<(Cause, f64)> = match (quantity, class) {
        (Quantity::Wal, Class::Rows) => vec![(Cause::MaxWalSize, wal_at)],
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
            (Cause::SharedBuffers, buffers * SCATTERED),
            (Cause::MaxWalSize, wal_at),
            (Cause::Cache, memory.dirty()),
        ],
        (Quantity::Seconds, Class::IndexBuild | Class::Rewrite) => {
            vec![(Cause::MaintenanceWorkMem, sort_at), (Cause::Cache, memory.dirty())]
        }
        (Quantity::Seconds, Class::Copy) => vec![(Cause::Cache, memory.dirty())],
    };
    Boundary::known(found)
}
