//! Tables that are made unlogged, and logged again.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::error::SettingsError;
use super::record::Table;
use crate::session::Session;

/// A table that may be made unlogged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loggable {
    /// Schema and name.
    pub table: Table,
    /// Size with indexes and TOAST, bytes: a change of persistence rewrites all of it.
    pub bytes: u64,
    /// Whether it holds any rows, or did since it was last vacuumed.
    pub has_rows: bool,
}

/// Checks tables that are to be made unlogged; a partitioned table is replaced by its leaves.
/// Returns them in an order in which they can be changed: a permanent table may not reference an
/// unlogged one, so referencing tables come first (tablecmds.c, ATPrepChangePersistence).
///
/// # Errors
/// If one of them cannot be made unlogged, or is already.
pub(super) async fn look(session: &Session, names: &[String]) -> Result<Vec<Loggable>, SettingsError> {
    let rows = session.rows(include_str!("../sql/settings_tables.sql"), &[&names]).await?;
    let mut found = Vec::new();
    for row in &rows {
        refuse_unfit(row)?;
        found.push(Member {
            oid: row.get("oid"),
            references: row.get("referenced"),
            loggable: Loggable {
                table: Table { schema: row.get("schema"), name: row.get("table") },
                bytes: u64::try_from(row.get::<_, i64>("bytes")).unwrap_or_default(),
                has_rows: row.get("has_rows"),
            },
        });
    }
    referencing_first(found)
}

struct Member {
    oid: u32,
    references: Vec<u32>,
    loggable: Loggable,
}

fn refuse_unfit(row: &Row) -> Result<(), SettingsError> {
    let given: String = row.get("given");
    let refused = |why: String| Err(SettingsError::Table { table: given.clone(), why });
    let (Some(kind), Some(persistence)) =
        (row.get::<_, Option<&str>>("kind"), row.get::<_, Option<&str>>("persistence"))
    else {
        return refused(match row.get::<_, Option<&str>>("alike") {
            Some(alike) => format!("there is no such table; did you mean {alike}?"),
            None => {
                "there is no such table: check the name, or give SCHEMA.NAME if the schema is not on the search_path"
                    .to_owned()
            }
        });
    };
    let (schema, name): (&str, &str) = (row.get("schema"), row.get("table"));
    match (kind, persistence) {
        ("r", "p") => {}
        ("r", "u") => {
            return refused(format!(
                "{schema}.{name} is already unlogged, so there is nothing to compare: run ALTER TABLE \
                 {schema}.{name} SET LOGGED first"
            ));
        }
        ("r", _) => return refused("it is temporary: leave it out of --tables".to_owned()),
        ("p", _) => {
            return refused("it is partitioned and has no partitions: leave it out of --tables".to_owned());
        }
        _ => return refused("it is not a table: leave it out of --tables".to_owned()),
    }
    if !row.get::<_, bool>("is_owner") {
        let owner: &str = row.get("owner");
        return refused(format!("it belongs to role {owner}: connect as that role, or as a superuser"));
    }
    if let Some(publication) = row.get::<_, Option<&str>>("publication") {
        return refused(format!(
            "it is in publication {publication}, and unlogged tables cannot be replicated: run ALTER PUBLICATION \
             {publication} DROP TABLE {schema}.{name}, or leave it out of --tables"
        ));
    }
    if let Some(other) = row.get::<_, Option<&str>>("permanent_referencing") {
        return refused(format!(
            "{other} references it, and a logged table may not reference an unlogged one: add {other} to \
             --tables; if {other} is partitioned, leave this table out, because partitioned tables are always logged"
        ));
    }
    Ok(())
}

fn referencing_first(mut left: Vec<Member>) -> Result<Vec<Loggable>, SettingsError> {
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut referenced: HashMap<u32, usize> = HashMap::new();
        for oid in left.iter().flat_map(|member| &member.references) {
            *referenced.entry(*oid).or_default() += 1;
        }
        let Some(next) = left.iter().position(|member| !referenced.contains_key(&member.oid)) else {
            let names: Vec<String> = left.iter().map(|member| member.loggable.table.qualified()).collect();
            return Err(SettingsError::Table {
                table: names.join(", "),
                why: "their foreign keys form a cycle, so pgrig cannot make any of them unlogged before the others: drop one of \
                      the foreign keys, or leave these tables out of --tables".to_owned(),
            });
        };
        ordered.push(left.remove(next).loggable);
    }
    Ok(ordered)
}

/// Makes all of the tables unlogged, or logged again. Skips tables that are so already, or that no
/// longer exist. Returns those that were changed.
///
/// # Errors
/// If a statement fails.
pub(super) async fn set_persistence(
    session: &Session,
    tables: &[Table],
    unlogged: bool,
) -> Result<Vec<Table>, SettingsError> {
    let (now, word) = if unlogged { ("p", "UNLOGGED") } else { ("u", "LOGGED") };
    let ordered: Vec<&Table> = if unlogged { tables.iter().collect() } else { tables.iter().rev().collect() };
    let mut changed = Vec::new();
    for table in ordered {
        let query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1) AND relpersistence::text = $2";
        let name = table.qualified();
        if session.row(query, &[&name, &now]).await?.get::<_, i64>(0) == 1 {
            session.run(&format!("ALTER TABLE {name} SET {word}")).await?;
            changed.push(table.clone());
        }
    }
    Ok(changed)
}

/// The tables without rows.
pub(super) async fn empty(session: &Session, tables: Vec<Table>) -> Result<Vec<Table>, SettingsError> {
    let mut empty = Vec::new();
    for table in tables {
        let query = "SELECT pg_relation_size(to_regclass($1)) = 0";
        if session.row(query, &[&table.qualified()]).await?.get::<_, Option<bool>>(0) == Some(true) {
            empty.push(table);
        }
    }
    Ok(empty)
}
