//! Warnings about columns and triggers of a table.

use super::Design;
use crate::extension;
use crate::info::{ColumnInfo, Source};
use crate::slot::{Role, has_sequence};
use server::quote::{literal, shown};

impl Design<'_> {
    /// Those that the table and the columns raise, whatever rows are made.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.info.triggers.is_empty() {
            let names = self.info.triggers.join(", ");
            warnings.push(format!(
                "these triggers run for each row, may change or refuse rows, and slow the fill: {names}. To skip \
                 them, give --triggers off"
            ));
        }
        for slot in self.slots.iter().filter(|slot| slot.role == Role::Unknown) {
            let (name, data_type) = (slot.name(), &slot.info.data_type.sql);
            let reason = if extension::values(&slot.info.data_type).is_some() {
                format!(
                    "a condition or an expression uses it, and pgrig judges no values of type {data_type}"
                )
            } else {
                format!("pgrig makes no values of type {data_type}")
            };
            warnings.push(format!(
                "column {name} is NULL, because {reason}. For other values, give --column \
                 '{name}=constant(VALUE)'"
            ));
        }
        for slot in self.slots.iter().filter(|slot| slot.is_free()) {
            if has_sequence(&slot.info.source) {
                warnings.push(self.sequence_behind(slot.info));
            }
        }
        warnings
    }

    /// A warning that a sequence does not follow the values that pgrig writes.
    fn sequence_behind(&self, column: &ColumnInfo) -> String {
        let (table, name) = (self.info.shown(), shown(&column.name));
        let sequence = match (&column.sequence, &column.source) {
            (Some(sequence), _) => literal(&sequence.name),
            // As the server prints it: nextval('orders_id_seq'::regclass).
            (None, Source::Default { expression, .. }) if expression.starts_with("nextval('") => {
                expression["nextval(".len()..].split("::regclass").next().unwrap_or_default().to_owned()
            }
            _ => format!("pg_get_serial_sequence({}, {})", literal(&table), literal(&column.name)),
        };
        format!(
            "pgrig writes the values of column {name}, and the sequence of the column does not advance: before other sessions insert, \
             run \
             SELECT setval({sequence}, max({name})) FROM {table}"
        )
    }
}
