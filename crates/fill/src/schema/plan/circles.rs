//! Circles of foreign keys: where the SQL creates the tables, a key that closes a circle is dropped before the rows and
//! created after those of both its tables. Its columns have keys that the later table will have.

use std::sync::Arc;

use catalog::{Planned, TableInfo};
use rowgen::{Keys, Pick, Reference, Values};

use super::Planner;
use super::design::Designed;
use super::order::{Placed, is_referenced};
use super::postponed::PostponedKey;
use super::{PlannedTable, TableState};
use crate::error::FillError;
use server::ask;
use server::quote::{literal, qualified};

/// Foreign keys that close circles.
#[derive(Debug, Default)]
pub(super) struct Circles {
    /// Statements that drop them.
    pub(super) drops: Vec<String>,
    keys: Vec<Closing>,
}

#[derive(Debug)]
struct Closing {
    /// Place of its table.
    at: usize,
    key: PostponedKey,
    /// A sentence for the plan.
    why: String,
}

impl Planner<'_> {
    /// Drops the keys that close circles, from the tables that the transaction has created and from their description.
    pub(super) async fn circles(
        &self,
        tables: &mut [TableInfo],
        order: &[Placed],
    ) -> Result<Circles, FillError> {
        let mut circles = Circles::default();
        if order.iter().all(|placed| placed.later.is_empty()) {
            return Ok(circles);
        }
        // Definitions are written for the search path, and run with another one.
        let path: String = ask(self.connection, "SELECT current_setting('search_path')", &[]).await?.get(0);
        self.run("SET LOCAL search_path = ''").await?;
        for (at, Placed { table, later, .. }) in order.iter().enumerate() {
            for key in later {
                let info = &mut tables[*table];
                let name = qualified(&info.schema, &info.name);
                let query = include_str!("../../sql/schema_circle.sql");
                let row = ask(self.connection, query, &[&name, &key.name]).await?;
                let drops: String = row.get("drops");
                self.run(&drops).await?;
                circles.drops.push(drops);
                let why = format!(
                    "foreign key {} is created after the rows of both tables: it closes a circle",
                    key.name
                );
                info.foreign_keys.retain(|of| of.name != key.name);
                for column in info.columns.iter_mut().filter(|column| key.columns.contains(&column.name)) {
                    column.not_null = false;
                }
                let referenced = (key.referenced.schema.clone(), key.referenced.table.clone());
                let makes = row.get::<_, Vec<String>>("makes").join("; ");
                circles.keys.push(Closing {
                    at,
                    key: PostponedKey { name: key.name.clone(), makes, referenced },
                    why,
                });
            }
        }
        self.run(&format!("SELECT set_config('search_path', {}, true)", literal(&path))).await?;
        Ok(circles)
    }
}

impl Circles {
    /// Has the keys created after the rows.
    pub(super) fn plan(self, planned: &mut [PlannedTable]) {
        for Closing { at, key, why } in self.keys {
            let table = &mut planned[at];
            table.recorded.postponed.foreign_keys.push(key);
            if let TableState::ToFill(plan) = &mut table.state {
                plan.reasons.push(why);
            }
        }
    }
}

/// Gives the columns of keys that close circles the keys that later tables will have. `is_given` tells of a table's column
/// whether the user describes it.
///
/// # Errors
/// If those keys are not known before the server makes them.
pub(super) fn close(
    designed: &mut [Designed<'_>],
    order: &[Placed],
    is_given: impl Fn(&TableInfo, &str) -> bool,
) -> Result<(), FillError> {
    for (place, Placed { later, .. }) in order.iter().enumerate() {
        for key in later {
            let Some(parent) = designed.iter().find(|parent| is_referenced(key, parent.info)) else {
                continue;
            };
            let planned = Planned {
                schema: parent.info.schema.clone(),
                table: parent.described.table.clone(),
                first_row: parent.described.first_row,
            };
            let names = (designed[place].info.display_name(), parent.info.display_name());
            let (info, table) = (designed[place].info, &mut designed[place].described.table);
            let mut columns: Vec<_> =
                table.columns.iter_mut().filter(|column| key.columns.contains(&column.name)).collect();
            columns.sort_by_key(|column| key.columns.iter().position(|name| *name == column.name));
            if columns.iter().any(|column| is_given(info, &column.name)) {
                continue;
            }
            let kinds: Vec<_> = columns.iter().map(|column| &column.kind).collect();
            let keys: Arc<Keys> = match planned.keys(&key.referenced.columns, &kinds) {
                Some(keys) => Arc::new(keys),
                None => {
                    return Err(FillError::Circle {
                        tables: format!("{} → {} → {}", names.0, names.1, names.0),
                        keys: key.name.clone(),
                    });
                }
            };
            for (position, column) in columns.into_iter().enumerate() {
                let pick = Pick::Random { name: key.name.clone() };
                column.values =
                    Values::Reference(Reference { keys: Arc::clone(&keys), column: position, pick });
                column.not_null = true;
            }
        }
    }
    Ok(())
}
