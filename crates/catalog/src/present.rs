//! The rows that the table already has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use super::compose::is_counted_on;
use super::constants::in_units;
use super::error::CatalogError;
use super::info::TableInfo;
use super::slot::Slot;
use server::quote::{identifier, qualified};

/// The rows of a table before a fill. A fill that can be resumed keeps it, so that it describes the missing rows in
/// the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// Whether the table has rows; false also where the role may not read it.
    pub has_rows: bool,
    /// The greatest value of columns that are part of a key, in [`rowgen::Units`].
    pub greatest: BTreeMap<String, i64>,
}

impl Present {
    /// Asks the server about the present rows, if the role may read them.
    pub(super) async fn ask(
        client: &Client,
        info: &TableInfo,
        slots: &[Slot<'_>],
    ) -> Result<Self, CatalogError> {
        let table = qualified(&info.schema, &info.name);
        if !info.may_select {
            return Ok(Self::default());
        }
        let any = client.query_one(&format!("SELECT EXISTS (SELECT FROM {table})"), &[]).await?;
        if !any.get::<_, bool>(0) {
            return Ok(Self::default());
        }
        let in_a_key = |slot: &&Slot<'_>| {
            slot.is_free() && info.keys.iter().any(|key| key.columns().any(|column| column == slot.name()))
        };
        let mut greatest = BTreeMap::new();
        for slot in slots.iter().filter(in_a_key).filter(|slot| is_counted_on(&slot.kind)) {
            let Some(units) = in_units(&slot.kind) else { continue };
            let column = identifier(slot.name());
            let query = format!(
                "SELECT floor({units})::text FROM (SELECT max({column}) AS v FROM {table}) AS greatest"
            );
            let value: Option<String> = client.query_one(&query, &[]).await?.get(0);
            greatest.extend(value.and_then(|value| Some((slot.name().to_owned(), value.parse().ok()?))));
        }
        Ok(Self { has_rows: true, greatest })
    }

    /// Number of rows. The server reads all of them.
    pub(super) async fn count(&self, client: &Client, info: &TableInfo) -> Result<u64, CatalogError> {
        if !self.has_rows {
            return Ok(0);
        }
        let query = format!("SELECT count(*) FROM {}", qualified(&info.schema, &info.name));
        let rows: i64 = client.query_one(&query, &[]).await?.get(0);
        Ok(rows.unsigned_abs())
    }

    /// The greatest value of a key's column, units.
    pub(super) fn greatest(&self, column: &str) -> Option<i64> {
        self.greatest.get(column).copied()
    }
}
