//! What is in the table already.

use std::collections::BTreeMap;

use tokio_postgres::Client;

use super::constants::in_units;
use super::error::CatalogError;
use super::info::TableInfo;
use super::slot::Slot;
use crate::quote::{identifier, qualified};

/// Rows that are there before any is added.
#[derive(Clone, Debug, Default)]
pub(super) struct Present {
    /// How many; 0 too where the role may not look.
    pub(super) rows: u64,
    /// The greatest value in units of columns that are part of a key.
    greatest: BTreeMap<String, i64>,
}

impl Present {
    /// Looks, if the role may.
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
        let numbered: Vec<(&str, String)> = slots
            .iter()
            .filter(in_a_key)
            .filter(|slot| super::compose::is_counted_on(&slot.kind))
            .filter_map(|slot| Some((slot.name(), in_units(&slot.kind)?)))
            .collect();
        let greatest: Vec<String> = numbered
            .iter()
            .map(|(name, units)| {
                let column = identifier(name);
                format!(
                    "(SELECT floor({units})::text FROM (SELECT max({column}) AS v FROM {table}) AS greatest)"
                )
            })
            .chain([format!("(SELECT count(*)::text FROM {table})")])
            .collect();
        let row = client.query_one(&format!("SELECT ARRAY[{}]", greatest.join(", ")), &[]).await?;
        let values: Vec<Option<String>> = row.get(0);
        let number = |at: usize| values.get(at)?.as_deref()?.parse::<i64>().ok();
        Ok(Self {
            rows: number(numbered.len()).and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0),
            greatest: numbered
                .iter()
                .enumerate()
                .filter_map(|(at, (name, _))| Some(((*name).to_owned(), number(at)?)))
                .collect(),
        })
    }

    pub(super) fn has_rows(&self) -> bool {
        self.rows > 0
    }

    /// The greatest value of a key's column, units.
    pub(super) fn greatest(&self, column: &str) -> Option<i64> {
        self.greatest.get(column).copied()
    }
}
