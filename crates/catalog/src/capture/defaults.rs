//! Default partitions, whose rows a copy has in other partitions.

use tokio_postgres::Row;

use super::unsigned;

/// A sentence on the default partitions of a table, if they have rows.
pub(super) fn described(row: &Row) -> Option<String> {
    let partitions: Vec<String> = row.get("default_partitions");
    let name: String = row.get("name");
    (!partitions.is_empty()).then(|| {
        format!(
            "{name}: {} of {} rows of the original are in default partitions ({}). In the copy, these partitions are empty, and the other \
             partitions have their rows. To fill them, give pgrig fill --model a --column that makes keys outside of the bounds of the other \
             partitions",
            unsigned(row, "default_rows"),
            unsigned(row, "rows"),
            partitions.join(", ")
        )
    })
}
