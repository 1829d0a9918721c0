//! Facts of the catalogs on which the better way of a statement depends.

use connect::ConnectError;
use server::Session;
use tokio_postgres::Row;

use crate::find::{Work, WorkKind};
use crate::objects::{Object, ObjectKind, Objects};
use crate::outcome::View;
use crate::parts::Parts;
use crate::script::Statement;

/// The columns of the primary key that a statement adds to a table, as far as they may be NULL before it, as SQL.
pub(crate) async fn nullable(
    session: &Session,
    statement: &Statement,
    table: Option<u32>,
) -> Result<Vec<String>, ConnectError> {
    let columns = Parts::of(&statement.sql).primary_key();
    let (Some(table), Some(columns)) = (table, columns) else { return Ok(Vec::new()) };
    let query = "SELECT pg_catalog.quote_ident(attname) AS name FROM pg_catalog.pg_attribute \
                 WHERE attrelid = $1 AND attname::text = ANY ($2) AND NOT attnotnull ORDER BY attnum";
    let rows = session.rows(query, &[&table, &columns]).await?;
    Ok(rows.iter().map(|row| row.get("name")).collect())
}

/// The constraints and indexes of tables, the first of which is the one that a statement names; nothing without tables.
pub(crate) async fn objects(session: &Session, tables: &[u32]) -> Result<Objects, ConnectError> {
    let Some(table) = tables.first() else { return Ok(Objects::default()) };
    let rows = session.rows(include_str!("../sql/objects.sql"), &[&tables]).await?;
    let object = |row: &Row| {
        Some(Object {
            kind: ObjectKind::of(row.get("kind"))?,
            oid: row.get("oid"),
            table: row.get("owner"),
            name: row.get("name"),
            parent: row.get("parent"),
            column: row.get("attribute"),
            is_new: false,
        })
    };
    Ok(Objects { table: *table, all: rows.iter().filter_map(object).collect() })
}

/// Whether a column that a statement has added to a table is of a domain.
pub(crate) async fn adds_domain(
    session: &Session,
    parts: &Parts<'_>,
    table: Option<u32>,
) -> Result<bool, ConnectError> {
    let columns = parts.added_columns();
    let Some(table) = table.filter(|_| !columns.is_empty()) else { return Ok(false) };
    let query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
                 WHERE a.attrelid = $1 AND a.attname::text = ANY ($2) AND t.typtype = 'd') AS found";
    Ok(session.row(query, &[&table, &columns]).await?.get("found"))
}

/// The indexes of exclusion constraints that REINDEX has built, as SQL; nothing for other statements.
pub(crate) async fn excluding(
    session: &Session,
    statement: &Statement,
    works: &[Work],
) -> Result<Vec<String>, ConnectError> {
    let built = works.iter().filter(|work| work.kind == WorkKind::IndexBuild).map(|work| work.oid);
    let built: Vec<u32> = built.collect();
    if !statement.is_reindex() || built.is_empty() {
        return Ok(Vec::new());
    }
    let query = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name FROM pg_catalog.pg_index i \
                 JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE i.indisexclusion AND i.indexrelid = ANY ($1) ORDER BY 1";
    let rows = session.rows(query, &[&built]).await?;
    Ok(rows.iter().map(|row| row.get("name")).collect())
}

/// The obstacle of a materialized view before REFRESH. The index is one that the server accepts (matview.c: `is_usable_unique_index`).
pub(crate) async fn obstacle_of_view(
    session: &Session,
    view: Option<u32>,
) -> Result<Option<View>, ConnectError> {
    let Some(view) = view else { return Ok(None) };
    let query = "SELECT c.relispopulated AS populated, EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid \
                 AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND 0 < ALL (i.indkey)) AS keyed \
                 FROM pg_catalog.pg_class c WHERE c.oid = $1";
    let rows = session.rows(query, &[&view]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (is_keyed, is_populated): (bool, bool) = (row.get("keyed"), row.get("populated"));
    Ok(match (is_keyed, is_populated) {
        (false, _) => Some(View::Keyless),
        (true, false) => Some(View::Unpopulated),
        (true, true) => None,
    })
}
