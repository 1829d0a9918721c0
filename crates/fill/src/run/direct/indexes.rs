//! The server's facts about the indexes of a table: which pgrig can build, and whether one is new and empty before pgrig writes
//! into its file.

use page::BtreeKey;
use rowgen::{Kind, Table, Values};
use tokio_postgres::Row;

use super::Failure;
use super::data_directory::DataDirectory;
use super::fork::Fork;
use super::index::{Key, KeyPart};
use super::relation::{open, refuse};
use super::sorted::SortedKey;
use server::Session;

/// An index of a table.
#[derive(Clone, Debug)]
pub(crate) struct IndexFound {
    /// Qualified and quoted.
    pub(super) name: String,
    /// Percent.
    pub(crate) fillfactor: u8,
    /// Columns of a plain ascending B-tree; none for other indexes.
    key_columns: Option<Vec<String>>,
    is_unique: bool,
    /// Whether the server builds it in the usual way: equal keys share tuples unless the index is
    /// unique, and nulls are not equal.
    is_usual: bool,
    /// Whether its collations compare texts byte by byte.
    has_bytes: bool,
}

impl IndexFound {
    /// The query for [`Self::of`]; its parameter is a table's qualified name.
    pub(crate) const QUERY: &str = include_str!("../../sql/direct_indexes.sql");

    pub(crate) fn of(row: &Row) -> Self {
        Self {
            name: row.get("name"),
            fillfactor: u8::try_from(row.get::<_, i32>("fillfactor")).unwrap_or(page::LEAF_FILLFACTOR),
            key_columns: row.get("key_columns"),
            is_unique: row.get("is_unique"),
            is_usual: row.get("is_usual"),
            has_bytes: row.get("has_bytes"),
        }
    }

    /// Its key as a function of the row number, if keys ascend with the rows; none if they do not.
    pub(crate) fn key(&self, table: &Table) -> Option<Key> {
        let [name] = self.key_columns.as_deref()? else { return None };
        let column = table.columns.iter().find(|column| column.name == *name)?;
        let Values::Serial { start, step } = column.values else { return None };
        // Dates and times are stored as the integers that they are counted in.
        let kind = match column.kind {
            Kind::Int2 => BtreeKey::Int2,
            Kind::Int4 | Kind::Date => BtreeKey::Int4,
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => BtreeKey::Int8,
            _ => return None,
        };
        let units = column.kind.units()?;
        // Past the end of the type values begin again.
        let last = i128::from(start) + i128::from(step) * i128::from(table.rows.saturating_sub(1));
        let ascends = step > 0 && start >= units.low && last <= i128::from(units.high);
        ascends.then_some(Key { kind, start, step })
    }

    /// Its key of several columns as functions of the row number; none if the keys do not ascend
    /// with the rows.
    pub(super) fn composite_key(&self, table: &Table) -> Option<Vec<KeyPart>> {
        let part = |name: &String| KeyPart::of(table.columns.iter().find(|column| column.name == *name)?);
        let parts: Vec<KeyPart> = self.key_columns.as_deref()?.iter().map(part).collect::<Option<_>>()?;
        KeyPart::ascend(&parts, table.rows).then_some(parts)
    }

    /// Its key, if keys come in another order than the rows and pgrig can sort them; none if the
    /// server has to build the index. `page` is the size of a page, bytes.
    pub(super) fn sorted_key(&self, table: &Table, page: u32) -> Option<SortedKey> {
        let [name] = self.key_columns.as_deref()? else { return None };
        let column = table.columns.iter().find(|column| column.name == *name)?;
        self.is_usual.then(|| SortedKey::of(table, column, (self.is_unique, self.has_bytes), page))?
    }
}

/// A table's indexes.
pub(super) async fn all(session: &Session, name: &str) -> Result<Vec<IndexFound>, Failure> {
    let rows = session.rows(IndexFound::QUERY, &[&name]).await?;
    Ok(rows.iter().map(IndexFound::of).collect())
}

/// Checks an index in the transaction that made it: it has a metapage and nothing else.
pub(super) async fn file(
    session: &Session,
    data_directory: &DataDirectory,
    name: &str,
) -> Result<Fork, Failure> {
    let row = session.row(include_str!("../../sql/direct_index.sql"), &[&name]).await?;
    let bytes = u64::from(data_directory.geometry.block_size());
    let is_empty = row.get::<_, Option<i64>>("bytes").map(i64::unsigned_abs) == Some(bytes);
    let is_btree = row.get::<_, Option<&str>>("access_method") == Some("btree");
    let is_as_made = is_empty && is_btree && row.get("is_new");
    refuse(name, (!is_as_made).then_some("it is not a new and empty B-tree"))?;
    open(data_directory, row.get("path"), bytes)
}
