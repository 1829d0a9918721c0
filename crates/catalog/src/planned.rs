//! Tables that are filled before the described one, in the same run: their keys can be referenced although none of
//! their rows is there yet.

use rowgen::{Column, Keys, Kind, Table, Values};
use tokio_postgres::Client;

use super::error::CatalogError;
use super::info::{ForeignKeyInfo, Referenced};
use super::temporary;
use server::quote::{identifier, qualified};

/// A table that is filled earlier in the same run.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Its schema, unquoted.
    pub schema: String,
    /// Its rows as they are described: numbers `first_row` to `table.rows - 1`.
    pub table: Table,
    /// Number of its first row.
    pub first_row: u64,
}

/// Rows of a planned table that are put into a temporary table, where the server has to choose among its keys.
const SAMPLE: u64 = 100_000;

impl Planned {
    /// The planned table that a foreign key refers to.
    pub(super) fn of<'a>(planned: &'a [Self], key: &ForeignKeyInfo) -> Option<&'a Self> {
        let Referenced { schema, table, .. } = &key.referenced;
        planned.iter().find(|planned| planned.schema == *schema && planned.table.name == *table)
    }

    /// Whether these are its name, or its schema and its name, unquoted.
    pub(super) fn has_name(&self, parts: &[String]) -> bool {
        match parts {
            [name] => self.table.name == *name,
            [schema, name] => self.schema == *schema && self.table.name == *name,
            _ => false,
        }
    }

    /// The table with these columns only; none if the server decides on one of them.
    fn narrowed(&self, columns: &[String]) -> Option<Table> {
        let column = |name: &String| {
            let column = self.table.columns.iter().find(|column| column.name == *name)?;
            (column.values != Values::Server).then(|| column.clone())
        };
        let columns = columns.iter().map(column).collect::<Option<Vec<_>>>()?;
        Some(Table { columns, ..self.table.clone() })
    }

    /// All keys of these columns of the planned table, for foreign-key columns of these kinds. None
    /// if only the server can tell which keys can be used: some may be NULL, or not suit the kinds.
    pub fn keys(&self, columns: &[String], kinds: &[&Kind]) -> Option<Keys> {
        let table = self.narrowed(columns)?;
        if let ([Column { values: Values::Serial { start, step: 1 }, kind: of, .. }], [kind]) =
            (table.columns.as_slice(), kinds)
            && is_integer(of)
            && is_integer(kind)
        {
            let at = |row: u64| start.checked_add_unsigned(row);
            let (low, high) = (at(self.first_row)?, at(table.rows.checked_sub(1)?)?);
            let holds =
                |kind: &Kind| kind.units().is_some_and(|units| units.high >= high && units.low <= low);
            return (holds(of) && holds(kind)).then_some(Keys::Interval { low, high });
        }
        let suits = |(column, kind): (&Column, &&Kind)| {
            !column.values.may_be_null() && is_stored_alike(&column.kind, kind)
        };
        let suit = table.columns.iter().zip(kinds).all(suits) && self.first_row < table.rows;
        suit.then_some(Keys::Made { table, first: self.first_row })
    }

    /// Puts its first rows into a temporary table of this name, with these columns.
    pub(super) async fn stand_in(
        &self,
        client: &Client,
        name: &str,
        columns: &[String],
    ) -> Result<(), CatalogError> {
        let Some(table) = self.narrowed(columns) else { return Err(self.unknown(columns)) };
        let of = qualified(&self.schema, &self.table.name);
        let columns: Vec<String> = columns.iter().map(|name| identifier(name)).collect();
        let columns = columns.join(", ");
        let create = format!("CREATE TEMPORARY TABLE {name} AS SELECT {columns} FROM {of} WITH NO DATA");
        client.batch_execute(&create).await?;
        let rows = self.first_row..table.rows.min(self.first_row.saturating_add(SAMPLE));
        temporary::copy(client, name, &table, [rows]).await?;
        Ok(())
    }

    fn unknown(&self, columns: &[String]) -> CatalogError {
        CatalogError::UnknownKeys {
            referenced: format!("{}.{}", self.schema, self.table.name),
            columns: columns.join(", "),
        }
    }
}

fn is_integer(kind: &Kind) -> bool {
    matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8)
}

/// Whether values of one kind are values of the other as they are.
fn is_stored_alike(of: &Kind, kind: &Kind) -> bool {
    let is_text = |kind: &Kind| matches!(kind, Kind::Text | Kind::Varchar(_));
    let fits = || match (of.characters(), kind.characters()) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(of), Some(most)) => of <= most,
    };
    of == kind || is_text(of) && is_text(kind) && fits()
}
