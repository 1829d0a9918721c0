//! The catalogs' facts about a database's tables.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::unlog::error::{Publication, UnlogError};
use crate::unlog::plan::{ForeignKey, Object, ObjectKind};
use crate::unlog::request::UnlogRequest;
use connect::ConnectError;
use server::settings::Table;
use server::{ServerInfo, Session};

/// All facts that a plan is made from.
pub(crate) struct Catalogs {
    /// `server_version_num`.
    pub(crate) version_num: u32,
    /// The relations, by schema and name.
    pub(crate) relations: Vec<Relation>,
    pub(crate) keys: Vec<Key>,
}

/// A table, partitioned table, sequence, materialized view or foreign table.
pub(crate) struct Relation {
    pub(crate) oid: u32,
    pub(crate) object: Object,
    /// pg_class.relkind.
    pub(crate) kind: char,
    /// pg_class.relpersistence.
    pub(crate) persistence: char,
    /// The owner, if it is another role than the session's.
    pub(crate) other_owner: Option<String>,
    /// Size with indexes and TOAST, bytes.
    pub(crate) bytes: u64,
    /// Whether it is in one of the selected schemas.
    pub(crate) is_selected: bool,
    /// Whether the user wants it to stay as it is.
    pub(crate) is_kept: bool,
    /// A column of another table that has this table's row type; none if there is none.
    pub(crate) row_type_used_by: Option<String>,
    /// Publications that it is in.
    pub(crate) publications: Vec<Publication>,
    /// The extension that it belongs to.
    pub(crate) extension: Option<String>,
    /// The table whose column owns the sequence; none if it is no sequence or is not owned.
    pub(crate) owned_by: Option<u32>,
}

/// A foreign key.
pub(crate) struct Key {
    /// The constraint that can be dropped and added again: for a partition, that of its partitioned
    /// table.
    pub(crate) root: u32,
    pub(crate) referencing: u32,
    pub(crate) referenced: u32,
    /// Whether the constraint is valid: if so, adding it again checks the rows.
    pub(crate) is_valid: bool,
}

/// Asks the server.
pub(crate) async fn look(session: &Session, request: &UnlogRequest) -> Result<Catalogs, UnlogError> {
    let server = ServerInfo::ask(&session.connection).await?;
    server.check_writable()?;
    let kept = kept(session, &request.keep).await?;
    schemas_exist(session, &request.schemas).await?;
    // Names that the server prints are qualified then.
    session.run("SET search_path = ''").await?;
    let rows = session.rows(include_str!("../../sql/relations.sql"), &[]).await?;
    let keys = session.rows(include_str!("../../sql/foreign_keys.sql"), &[]).await?;
    Ok(Catalogs {
        version_num: server.version_num,
        relations: rows.iter().map(|row| relation(row, request, &kept)).collect(),
        keys: with_roots(&keys),
    })
}

async fn kept(session: &Session, names: &[String]) -> Result<Vec<u32>, UnlogError> {
    let rows = session.rows(include_str!("../../sql/kept.sql"), &[&names]).await?;
    let found = rows.iter().map(|row| {
        row.get::<_, Option<u32>>("oid").ok_or_else(|| UnlogError::NoTable { name: row.get("name") })
    });
    found.collect()
}

async fn schemas_exist(session: &Session, schemas: &[String]) -> Result<(), UnlogError> {
    let query =
        "SELECT s FROM unnest($1::text[]) AS s WHERE NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = s)";
    match session.rows(query, &[&schemas]).await?.first() {
        Some(row) => Err(UnlogError::NoSchema { schema: row.get(0) }),
        None => Ok(()),
    }
}

fn relation(row: &Row, request: &UnlogRequest, kept: &[u32]) -> Relation {
    let (oid, ancestors): (u32, Vec<u32>) = (row.get("oid"), row.get("ancestors"));
    let table = Table { schema: row.get("schema"), name: row.get("name") };
    let kind = letter(row, "kind");
    let is_selected = request.schemas.is_empty() || request.schemas.contains(&table.schema);
    let is_owner: bool = row.get("is_owner");
    Relation {
        oid,
        object: Object { table, kind: if kind == 'S' { ObjectKind::Sequence } else { ObjectKind::Table } },
        kind,
        persistence: letter(row, "persistence"),
        other_owner: (!is_owner).then(|| row.get("owner")),
        bytes: row.get::<_, Option<i64>>("bytes").and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        is_selected,
        is_kept: kept.contains(&oid) || ancestors.iter().any(|ancestor| kept.contains(ancestor)),
        row_type_used_by: row.get("row_type_used_by"),
        publications: publications(row),
        extension: row.get("extension"),
        owned_by: row.get("owned_by"),
    }
}

fn publications(row: &Row) -> Vec<Publication> {
    let named = |column, is_of_all| {
        let names: Vec<String> = row.get(column);
        names.into_iter().map(move |name| Publication { name, is_of_all })
    };
    named("publications", false).chain(named("publications_of_all", true)).collect()
}

fn letter(row: &Row, column: &str) -> char {
    row.get::<_, &str>(column).chars().next().expect("the catalogs hold a letter there")
}

fn with_roots(rows: &[Row]) -> Vec<Key> {
    let parents: HashMap<u32, Option<u32>> =
        rows.iter().map(|row| (row.get("oid"), row.get("parent"))).collect();
    let root = |mut oid: u32| {
        while let Some(Some(parent)) = parents.get(&oid) {
            oid = *parent;
        }
        oid
    };
    let key = |row: &Row| Key {
        root: root(row.get("oid")),
        referencing: row.get("referencing"),
        referenced: row.get("referenced"),
        is_valid: row.get("is_valid"),
    };
    rows.iter().map(key).collect()
}

/// The foreign keys, with the cost of dropping them and adding them again.
pub(crate) async fn foreign_keys(session: &Session, oids: &[u32]) -> Result<Vec<ForeignKey>, UnlogError> {
    let rows = session.rows(include_str!("../../sql/foreign_key_definitions.sql"), &[&oids]).await?;
    let key = |row: &Row| {
        let table = Table { schema: row.get("schema"), name: row.get("table") };
        let key = ForeignKey {
            name: row.get("name"),
            table: Object { table, kind: ObjectKind::Table },
            definition: row.get("definition"),
            comment: row.get("comment"),
        };
        if row.get("has_disabled_triggers") {
            return Err(UnlogError::DisabledTriggers { constraint: key.name, table: key.table.to_string() });
        }
        Ok(key)
    };
    rows.iter().map(key).collect()
}

/// A session or prepared transaction that holds a lock.
pub(crate) struct LockHolder {
    /// The locked table.
    pub(crate) table: String,
    /// The holder, as a phrase.
    pub(crate) holder: String,
    /// The statement that ends the holder.
    pub(crate) ending: String,
}

/// The holder of a lock on this table; without a table, of an exclusive lock on any table.
pub(crate) async fn lock_holder(
    session: &Session,
    table: Option<&Object>,
) -> Result<Option<LockHolder>, ConnectError> {
    let name = table.map(Object::qualified);
    let rows = session.rows(include_str!("../../sql/lock_holder.sql"), &[&name]).await?;
    Ok(rows.first().map(|row| LockHolder {
        table: row.get("table"),
        holder: row.get("holder"),
        ending: row.get("ending"),
    }))
}
