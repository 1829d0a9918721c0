//! The tables that TRUNCATE has to name.

use catalog::TableInfo;
use connect::Connection;
use server::ask;
use server::quote::{qualified, shell_word};

use crate::error::FillError;

/// The error of a table that has rows, with the TRUNCATE that empties it and `all` tables with rows.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn has_rows(
    connection: &Connection,
    table: &TableInfo,
    all: &[&TableInfo],
) -> Result<FillError, FillError> {
    let names: Vec<String> = all.iter().map(|info| qualified(&info.schema, &info.name)).collect();
    let row = ask(connection, include_str!("emptied_together.sql"), &[&names]).await?;
    let (together, referencing): (Vec<String>, bool) = (row.get("tables"), row.get("referencing"));
    Ok(FillError::OwnTableHasRows {
        table: table.shown(),
        truncate: format!("TRUNCATE {}", together.join(", ")),
        referencing,
        excluded: String::new(),
    })
}

impl FillError {
    /// The error of a table that has rows, with the options that leave out these tables. Other errors stay as they are.
    pub(crate) fn or_without(mut self, tables: &[&TableInfo]) -> Self {
        if let Self::OwnTableHasRows { excluded, .. } = &mut self {
            let options = tables.iter().map(|info| format!("--exclude-table {}", shell_word(&info.shown())));
            *excluded = options.collect::<Vec<_>>().join(" ");
        }
        self
    }

    /// The error of a table that has rows, with the command that runs its TRUNCATE. None for other errors, and without such a command.
    pub fn truncated_by(&self, command: impl FnOnce(&str) -> Option<String>) -> Option<Self> {
        let Self::OwnTableHasRows { table, truncate, referencing, excluded } = self else { return None };
        Some(Self::OwnTableHasRows {
            table: table.clone(),
            truncate: command(truncate)?,
            referencing: *referencing,
            excluded: excluded.clone(),
        })
    }
}
