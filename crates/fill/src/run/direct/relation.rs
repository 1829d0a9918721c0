//! What the server says of a relation: asked before a fill is planned, and once more within the transaction
//! that fills it, where it has to be new, empty and locked, before anything is written into its files.

use std::path::PathBuf;

use page::BtreeKey;
use rowgen::{Kind, Table, Values};
use serde::Deserialize;
use tokio_postgres::Row;
use tokio_postgres::types::Json;

use super::data_directory::DataDirectory;
use super::fork::Fork;
use super::index::{Key, KeyPart};
use super::{Failure, NotDirect, form};
use crate::request::Persistence;
use crate::run::foreign_keys::ForeignKey;
use server::Session;

/// A table or an index.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(crate) struct Relation {
    /// Within the data directory.
    path: Option<String>,
    access_method: Option<String>,
    /// `relkind`.
    kind: String,
    /// `relpersistence`.
    persistence: String,
    /// Of the main fork.
    pub(crate) bytes: u64,
    pub(crate) has_toast: bool,
    /// Whether this transaction has made or truncated it.
    pub(crate) is_new: bool,
    is_locked: bool,
    /// In their order, with those that were dropped.
    pub(super) attributes: Vec<Attribute>,
    /// Enforced CHECKs.
    pub(super) checks: Vec<Check>,
    /// Enforced ones.
    pub(crate) foreign_keys: Vec<ForeignKey>,
    /// Those that fire on INSERT, and so for each row of a COPY.
    triggers: Vec<String>,
    /// Those that fire on INSERT where ordinary ones do not.
    replica_triggers: Vec<String>,
    /// Deferrable unique and exclusion constraints: triggers check them.
    deferrable_keys: Vec<String>,
    truncate_triggers: Vec<String>,
    /// Other tables that reference it, directly or by way of others, and cannot be truncated with it.
    referenced_by: Vec<String>,
    /// Those that can, qualified and quoted.
    truncated_with: Vec<String>,
    has_children: bool,
    may_truncate: bool,
    may_select: bool,
    may_reindex: bool,
}

/// A table's attribute.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) dropped: bool,
    /// Its type with modifiers.
    pub(super) type_sql: String,
    /// The type below all domains.
    pub(super) base_oid: u32,
    /// `atttypmod`, or a domain's `typtypmod`.
    pub(super) base_modifier: i32,
    /// The type below all domains, with modifiers.
    pub(super) base_sql: String,
    pub(super) has_domain_checks: bool,
    pub(super) not_null: bool,
    /// Of an enum, in its order.
    pub(super) enum_labels: Vec<String>,
    /// Of its labels.
    pub(super) enum_oids: Vec<u32>,
    /// STORAGE PLAIN of a type of varying length: no short headers.
    pub(super) has_plain_storage: bool,
}

/// A CHECK constraint.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) expression: String,
}

impl Relation {
    /// The query for [`Self::of`]; its parameters are a qualified name and the names of tables that may be truncated
    /// together with that one.
    pub(crate) const QUERY: &str = include_str!("../../sql/direct_relation.sql");
    /// No table is truncated together with one that is looked at in its transaction: that has been done.
    pub(crate) const NOTHING: &[&str] = &[];

    pub(crate) fn of(row: &Row) -> Self {
        let Json(attributes) = row.get("attributes");
        let Json(checks) = row.get("checks");
        let Json(foreign_keys) = row.get("foreign_keys");
        Self {
            path: row.get("path"),
            access_method: row.get("access_method"),
            kind: row.get("kind"),
            persistence: row.get("persistence"),
            bytes: row.get::<_, Option<i64>>("bytes").unwrap_or_default().unsigned_abs(),
            has_toast: row.get("has_toast"),
            is_new: row.get("is_new"),
            is_locked: row.get("is_locked"),
            attributes,
            checks,
            foreign_keys,
            triggers: row.get("triggers"),
            replica_triggers: row.get("replica_triggers"),
            deferrable_keys: row.get("deferrable_keys"),
            truncate_triggers: row.get("truncate_triggers"),
            referenced_by: row.get("referenced_by"),
            truncated_with: row.get("truncated_with"),
            has_children: row.get("has_children"),
            may_truncate: row.get("may_truncate"),
            may_select: row.get("may_select"),
            may_reindex: row.get("may_reindex"),
        }
    }

    /// The table with the OIDs that labels of enums have in this database.
    pub(super) fn with_oids(&self, table: &Table) -> Table {
        let mut table = table.clone();
        for (column, attribute) in table.columns.iter_mut().zip(&self.attributes) {
            if let Kind::Enum { oids, .. } = &mut column.kind {
                oids.clone_from(&attribute.enum_oids);
            }
        }
        table
    }

    /// Whether the table has values that hold OIDs of the database.
    pub(super) fn has_enums(&self) -> bool {
        self.attributes.iter().any(|attribute| !attribute.enum_oids.is_empty())
    }

    /// Whether the table can hold rows that nobody but their maker has looked at; CHECKs and foreign keys can be
    /// asked for afterwards.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn takes(&self, table: &Table) -> Result<(), NotDirect> {
        if self.kind == "p" {
            return Err(NotDirect::Duties("it is partitioned".to_owned()));
        }
        if self.access_method.as_deref() != Some("heap") {
            return Err(NotDirect::AccessMethod { found: self.access_method.clone().unwrap_or_default() });
        }
        if !self.triggers.is_empty() {
            return Err(NotDirect::Duties(format!(
                "triggers run for its rows: {}",
                self.triggers.join(", ")
            )));
        }
        if let Some(key) = self.foreign_keys.iter().find(|key| key.has_period) {
            return Err(NotDirect::Duties(format!("foreign key {} references a period", key.name)));
        }
        form::fits(&self.attributes, table)
    }

    /// Whether rows can be loaded with all triggers off, if foreign keys are proved afterwards.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn loads_without_triggers(&self) -> Result<(), String> {
        let named = |what: &str, names: &[String]| Err(format!("{what} {}", names.join(", ")));
        if self.kind != "r" {
            return Err("the table is partitioned".to_owned());
        }
        if !self.triggers.is_empty() {
            return named("there are triggers:", &self.triggers);
        }
        if !self.replica_triggers.is_empty() {
            return named("there are triggers for replicas:", &self.replica_triggers);
        }
        if !self.deferrable_keys.is_empty() {
            return named("the server needs triggers for deferrable", &self.deferrable_keys);
        }
        for key in &self.foreign_keys {
            let name = &key.name;
            if key.has_period {
                return Err(format!("{name} references a period"));
            }
            if key.is_self || key.is_circular {
                return Err(format!("{name} is part of a circle of references"));
            }
            if !key.may_prove {
                return Err(format!("this role may not lock or read all that {name} references"));
            }
        }
        Ok(())
    }

    /// Whether a table that is there can be given new files; `indexes`: whether the server has to build some.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn can_begin_anew(&self) -> Result<(), NotDirect> {
        let problem = if !self.may_truncate || !self.may_select {
            "this role may not do so, or not see whether it is empty: GRANT SELECT, TRUNCATE on it".to_owned()
        } else if self.has_children {
            "other tables inherit from it".to_owned()
        } else if !self.referenced_by.is_empty() {
            format!("foreign keys of {} reference it", self.referenced_by.join(", "))
        } else if !self.truncate_triggers.is_empty() {
            format!("triggers run for that: {}", self.truncate_triggers.join(", "))
        } else {
            return Ok(());
        };
        Err(NotDirect::Truncate(problem))
    }

    /// Tables that have to be truncated in the same statement, qualified and quoted.
    pub(crate) fn truncated_with(&self) -> &[String] {
        &self.truncated_with
    }

    /// Whether the role may have the server build its indexes.
    pub(crate) fn may_reindex(&self) -> bool {
        self.may_reindex
    }
}

/// An index of a table.
#[derive(Clone, Debug)]
pub(crate) struct IndexFound {
    /// Qualified and quoted.
    pub(super) name: String,
    /// Percent.
    pub(crate) fillfactor: u8,
    /// Columns of a plain ascending B-tree.
    key_columns: Option<Vec<String>>,
}

impl IndexFound {
    /// The query for [`Self::of`]; its parameter is a table's qualified name.
    pub(crate) const QUERY: &str = include_str!("../../sql/direct_indexes.sql");

    pub(crate) fn of(row: &Row) -> Self {
        Self {
            name: row.get("name"),
            fillfactor: u8::try_from(row.get::<_, i32>("fillfactor")).unwrap_or(page::LEAF_FILLFACTOR),
            key_columns: row.get("key_columns"),
        }
    }

    /// How its keys follow from the numbers of the table's rows, if they ascend with them; none if the server
    /// has to build it.
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

    /// The same of several columns; none if their keys do not ascend with the rows.
    pub(super) fn composite_key(&self, table: &Table) -> Option<Vec<KeyPart>> {
        let part = |name: &String| KeyPart::of(table.columns.iter().find(|column| column.name == *name)?);
        let parts: Vec<KeyPart> = self.key_columns.as_deref()?.iter().map(part).collect::<Option<_>>()?;
        KeyPart::ascend(&parts, table.rows).then_some(parts)
    }
}

/// A table's indexes.
pub(super) async fn indexes(session: &Session, name: &str) -> Result<Vec<IndexFound>, Failure> {
    let rows = session.rows(IndexFound::QUERY, &[&name]).await?;
    Ok(rows.iter().map(IndexFound::of).collect())
}

/// Looks at a table in its transaction, and opens its main fork. `table` is what rows were made for.
pub(super) async fn heap(
    session: &Session,
    data_directory: &DataDirectory,
    name: &str,
    table: &Table,
    persistence: Persistence,
) -> Result<(Relation, Fork), Failure> {
    let relation = Relation::of(&session.row(Relation::QUERY, &[&name, &Relation::NOTHING]).await?);
    relation.takes(table)?;
    let expected = match persistence {
        Persistence::Logged => "p",
        Persistence::Unlogged => "u",
    };
    let problem = if relation.kind != "r" {
        Some("it is no ordinary table")
    } else if relation.persistence != expected {
        Some("it is logged or unlogged, other than when this was planned")
    } else if !relation.is_new {
        Some("it was not made in this transaction")
    } else if !relation.is_locked {
        Some("it is not locked")
    } else if relation.bytes != 0 {
        Some("it is not empty")
    } else {
        None
    };
    refuse(name, problem)?;
    let fork = open(data_directory, &relation, 0)?;
    Ok((relation, fork))
}

/// Looks at an index in the transaction that made it: it has a metapage and nothing else.
pub(super) async fn index(
    session: &Session,
    data_directory: &DataDirectory,
    name: &str,
) -> Result<Fork, Failure> {
    let relation = Relation::of(&session.row(Relation::QUERY, &[&name, &Relation::NOTHING]).await?);
    let is_empty = relation.bytes == u64::from(data_directory.geometry.block_size());
    let is_as_made = is_empty && relation.is_new && relation.access_method.as_deref() == Some("btree");
    refuse(name, (!is_as_made).then_some("it is no new and empty B-tree"))?;
    open(data_directory, &relation, relation.bytes)
}

/// Refuses a relation that is not as it has to be.
///
/// # Errors
/// If there is a problem.
pub(crate) fn refuse(name: &str, problem: Option<&str>) -> Result<(), NotDirect> {
    let refused =
        |problem: &str| NotDirect::Relation { relation: name.to_owned(), problem: problem.to_owned() };
    problem.map_or(Ok(()), |problem| Err(refused(problem)))
}

/// Opens the main fork. That the file is where this machine sees the data directory, with the length that
/// the server says, shows that the directory is the one that the server works in, and no copy of it.
fn open(data_directory: &DataDirectory, relation: &Relation, bytes: u64) -> Result<Fork, Failure> {
    let path = data_directory.path.join(relation.path.as_deref().unwrap_or_default());
    let failed = |path: &PathBuf, source| Failure::File { path: path.display().to_string(), source };
    match std::fs::metadata(&path) {
        Ok(file) if file.len() == bytes => {}
        Ok(_) | Err(_) => {
            return Err(Failure::NotDirect(NotDirect::Copy { path: path.display().to_string() }));
        }
    }
    Fork::of_server(path.clone(), data_directory.geometry, data_directory.segments)
        .map_err(|error| failed(&path, error))
}
