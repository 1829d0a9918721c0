//! A relation within the transaction that fills it: proved to be new, empty, locked and as planned, before
//! anything is written into its files.

use std::path::PathBuf;

use page::BtreeKey;
use rowgen::{Column, Kind, Table, Values};

use super::fork::Fork;
use super::ground::Ground;
use super::index::Key;
use super::{Failure, NotDirect};
use crate::fill::request::Persistence;
use crate::fill::session::Session;

/// An index of a relation.
pub(super) struct IndexFound {
    /// Qualified and quoted.
    pub(super) name: String,
    /// Percent.
    pub(super) fillfactor: u8,
    /// How its keys follow from rows' numbers; none if the server has to build it.
    pub(super) key: Option<Key>,
}

/// Looks at a table's main fork in its transaction. `columns` are those that rows were made for.
pub(super) async fn heap(
    session: &Session,
    ground: &Ground,
    name: &str,
    table: &Table,
    persistence: Persistence,
) -> Result<Fork, Failure> {
    let row = session.row(include_str!("../../sql/direct_relation.sql"), &[&name]).await?;
    let refuse =
        |problem: String| Failure::NotDirect(NotDirect::Relation { relation: name.to_owned(), problem });
    let kind: String = row.get("kind");
    let access_method: Option<String> = row.get("access_method");
    let expected = match persistence {
        Persistence::Logged => "p",
        Persistence::Unlogged => "u",
    };
    let columns: Vec<String> = row.get("columns");
    if kind != "r" {
        return Err(refuse(format!("it is no ordinary table (relkind {kind})")));
    }
    if access_method.as_deref() != Some("heap") {
        let found = access_method.unwrap_or_default();
        return Err(Failure::NotDirect(NotDirect::AccessMethod { found }));
    }
    if row.get::<_, String>("persistence") != expected {
        return Err(refuse("it is logged or unlogged, other than when this was planned".to_owned()));
    }
    if !table.columns.iter().map(|column| &column.name).eq(&columns) {
        return Err(refuse(format!("it has the columns {}", columns.join(", "))));
    }
    if row.get("has_plain_storage") {
        return Err(refuse("a column has STORAGE PLAIN".to_owned()));
    }
    if !row.get::<_, bool>("is_new") {
        return Err(refuse("it was not made in this transaction".to_owned()));
    }
    if !row.get::<_, bool>("is_locked") {
        return Err(refuse("it is not locked".to_owned()));
    }
    if row.get::<_, i64>("bytes") != 0 {
        return Err(refuse("it is not empty".to_owned()));
    }
    open(ground, row.get("path"), 0)
}

/// Looks at an index in the transaction that made it: it has a metapage and nothing else.
pub(super) async fn index(session: &Session, ground: &Ground, name: &str) -> Result<Fork, Failure> {
    let row = session.row(include_str!("../../sql/direct_relation.sql"), &[&name]).await?;
    let block = i64::from(ground.geometry.block_size());
    let bytes: i64 = row.get("bytes");
    let access_method: Option<String> = row.get("access_method");
    if bytes != block || !row.get::<_, bool>("is_new") || access_method.as_deref() != Some("btree") {
        let problem = "it is no new and empty B-tree".to_owned();
        return Err(Failure::NotDirect(NotDirect::Relation { relation: name.to_owned(), problem }));
    }
    open(ground, row.get("path"), bytes.unsigned_abs())
}

/// Opens the main fork. That the file is where this machine sees the data directory, with the length that
/// the server says, shows that the directory is the one that the server works in, and no copy of it.
fn open(ground: &Ground, path: &str, bytes: u64) -> Result<Fork, Failure> {
    let path = ground.data_directory.join(path);
    let failed = |path: &PathBuf, source| Failure::File { path: path.display().to_string(), source };
    match std::fs::metadata(&path) {
        Ok(file) if file.len() == bytes => {}
        Ok(_) | Err(_) => {
            return Err(Failure::NotDirect(NotDirect::Copy { path: path.display().to_string() }));
        }
    }
    Fork::of_server(path.clone(), ground.geometry, ground.segments).map_err(|error| failed(&path, error))
}

/// The table's indexes, and which of them can be built from sequential keys.
pub(super) async fn indexes(
    session: &Session,
    name: &str,
    table: &Table,
) -> Result<Vec<IndexFound>, Failure> {
    let rows = session.rows(include_str!("../../sql/direct_indexes.sql"), &[&name]).await?;
    let found = |row: &tokio_postgres::Row| {
        let column: Option<String> = row.get("key_column");
        let column = table.columns.iter().find(|known| Some(&known.name) == column.as_ref());
        IndexFound {
            name: row.get("name"),
            fillfactor: u8::try_from(row.get::<_, i32>("fillfactor")).unwrap_or(page::LEAF_FILLFACTOR),
            key: column.and_then(|column| sequential(column, table.rows)),
        }
    };
    Ok(rows.iter().map(found).collect())
}

/// The key that a column is if its values ascend with the rows.
fn sequential(column: &Column, rows: u64) -> Option<Key> {
    let kind = match column.kind {
        Kind::Int2 => BtreeKey::Int2,
        Kind::Int4 => BtreeKey::Int4,
        Kind::Int8 => BtreeKey::Int8,
        _ => return None,
    };
    let Values::Serial { start, step } = column.values else { return None };
    let bits = 8 * kind.length();
    let most = i64::MAX >> (64 - bits);
    // Past the end of the type values begin again.
    let last = i128::from(start) + i128::from(step) * i128::from(rows.saturating_sub(1));
    (step > 0 && last <= i128::from(most)).then_some(Key { kind, start, step })
}
