//! Work of other sessions in other databases of the server while pgrig measures. Their WAL counts as that of the statements, and they take time from
//! the statements.

use std::collections::BTreeMap;

use measure::human::grouped;
use tokio_postgres::Row;

/// Fewer changed rows than these are no work that matters: statistics of autovacuum, for example.
const ROWS: i64 = 1000;
/// Databases that a sentence names.
const NAMED: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// Rows that were changed in each database up to the last reading, by its OID; none before the first reading.
    last: Option<BTreeMap<u32, i64>>,
    /// Rows that were changed since the first reading, by the name of the database.
    changed: BTreeMap<String, i64>,
    /// Whether a session wrote at a reading. The rows of its transaction may not be counted yet.
    is_written: bool,
}

impl Others {
    /// Whether there was a reading.
    pub(crate) fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Adds a reading (`others.sql`).
    pub(crate) fn add(&mut self, rows: &[Row]) {
        let each = |row: &Row| -> (u32, String, i64, bool) {
            (row.get("oid"), row.get("name"), row.get("changed"), row.get("is_written"))
        };
        self.add_each(rows.iter().map(each).collect());
    }

    fn add_each(&mut self, reading: Vec<(u32, String, i64, bool)>) {
        let last = self.last.replace(reading.iter().map(|(oid, _, changed, _)| (*oid, *changed)).collect());
        let Some(last) = last else { return };
        for (oid, name, changed, is_written) in reading {
            // A database without a reading before was made since.
            let rows = (changed - last.get(&oid).copied().unwrap_or_default()).max(0);
            self.is_written |= is_written;
            if rows > 0 || is_written {
                *self.changed.entry(name).or_default() += rows;
            }
        }
    }

    /// A warning, if they have worked.
    pub(crate) fn warning(&self) -> Option<String> {
        let rows: i64 = self.changed.values().sum();
        if rows < ROWS && !self.is_written {
            return None;
        }
        let names: Vec<&str> = self.changed.keys().take(NAMED).map(String::as_str).collect();
        let more = self.changed.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "other sessions wrote in other databases of the server ({}{more}: the server has counted {} changed rows) while pgrig measured: the \
             WAL of statements includes the WAL of these sessions, and seconds and stalls may be too long. For the figures of the migration alone, measure on a server that nobody \
             else uses",
            names.join(", "),
            grouped(rows.unsigned_abs())
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_after_the_first_reading_counts() {
        let mut others = Others::default();
        let shop = |changed: i64, is_written: bool| (1, "shop".to_owned(), changed, is_written);
        others.add_each(vec![shop(50_000, true)]);
        assert_eq!((others.has_begun(), others.warning()), (true, None));
        others.add_each(vec![shop(50_999, false)]);
        assert_eq!(others.warning(), None);
        others.add_each(vec![shop(51_001, false), (2, "new".to_owned(), 10, false)]);
        let warning = others.warning().unwrap();
        assert!(warning.contains("(new, shop: the server has counted 1,011 changed rows)"), "{warning}");
        // It was dropped, and another has its OID.
        others.add_each(vec![shop(5, false)]);
        assert_eq!(others.warning(), Some(warning));

        let mut others = Others::default();
        others.add_each(vec![shop(0, false)]);
        others.add_each(vec![shop(0, true)]);
        assert!(others.warning().is_some());
    }
}
