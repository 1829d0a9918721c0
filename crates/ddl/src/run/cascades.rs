//! Changes of rows by foreign keys: ON DELETE and ON UPDATE with CASCADE, SET NULL or SET DEFAULT change rows of the tables that reference those which a
//! statement changes, at any distance. Without rows, no lock tells of these tables.

use std::collections::BTreeSet;

use connect::{ConnectError, Target};
use server::Session;

use super::changes::{concerns, events_on};
use super::rehearse::{Table, Tables};
use crate::parts::Write;
use crate::script::Statement;
use crate::triggers::{DELETE, UPDATE};

/// See the module.
pub(super) struct Cascades(Vec<Key>);

/// A foreign key.
struct Key {
    /// OID of its table; of a partition, the table.
    own_table: u32,
    /// OID of the table that it references; of a partition, the table.
    referenced: u32,
    /// The columns that it references.
    referenced_columns: Vec<String>,
    own_columns: Vec<String>,
    on_delete: Action,
    on_update: Action,
}

/// The effect of a foreign key on a row, if the row that it references is removed or gets another key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    None,
    Delete,
    Update,
}

/// A change of a table's rows.
#[derive(Clone, PartialEq, Eq)]
enum RowChange {
    Delete,
    /// Of these columns; none if they are not known.
    Update(Option<Vec<String>>),
}

impl Key {
    fn of(row: &tokio_postgres::Row) -> Self {
        // pg_constraint.confdeltype, confupdtype.
        let action = |letter: &str, cascade: Action| match letter {
            "c" => cascade,
            "n" | "d" => Action::Update,
            _ => Action::None,
        };
        Self {
            own_table: row.get("own_table"),
            referenced: row.get("referenced"),
            referenced_columns: row.get("referenced_columns"),
            own_columns: row.get("own_columns"),
            on_delete: action(row.get("on_delete"), Action::Delete),
            on_update: action(row.get("on_update"), Action::Update),
        }
    }

    /// The change of its table by that of the table that it references; none if there is none.
    fn after(&self, change: &RowChange) -> Option<RowChange> {
        let is_of_key =
            |columns: &Vec<String>| columns.iter().any(|one| self.referenced_columns.contains(one));
        let action = match change {
            RowChange::Delete => self.on_delete,
            RowChange::Update(columns) if columns.as_ref().is_none_or(is_of_key) => self.on_update,
            RowChange::Update(_) => Action::None,
        };
        match action {
            Action::None => None,
            Action::Delete => Some(RowChange::Delete),
            Action::Update => Some(RowChange::Update(Some(self.own_columns.clone()))),
        }
    }
}

impl Cascades {
    /// The foreign keys of a database.
    pub(super) async fn read(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let rows = session.rows(include_str!("../sql/cascades.sql"), &[]).await?;
        session.close().await;
        Ok(Self(rows.iter().map(Key::of).collect()))
    }

    /// The tables whose rows a statement changes by foreign keys, each with the bit of a trigger's event. `changed` are the OIDs of those that it
    /// changes itself.
    pub(super) fn of(
        &self,
        statement: &Statement,
        changed: &BTreeSet<u32>,
        tables: &Tables,
    ) -> Vec<(u32, i32)> {
        let mut reached: Vec<(u32, RowChange)> = Vec::new();
        let mut new: Vec<(u32, RowChange)> = Vec::new();
        for oid in changed.iter().copied() {
            let root = tables.get(oid).map_or(oid, Table::root);
            new.extend(own(statement, oid, tables).into_iter().map(|change| (root, change)));
        }
        while let Some((table, change)) = new.pop() {
            for key in self.0.iter().filter(|key| key.referenced == table) {
                let Some(next) = key.after(&change).map(|next| (key.own_table, next)) else { continue };
                if !reached.contains(&next) {
                    reached.push(next.clone());
                    new.push(next);
                }
            }
        }
        let event = |change: &RowChange| if *change == RowChange::Delete { DELETE } else { UPDATE };
        reached.iter().map(|(table, change)| (*table, event(change))).collect()
    }
}

/// The ways in which a statement changes the rows of a table, as far as its text tells: it may be any, of any columns, if the text of code names none.
fn own(statement: &Statement, table: u32, tables: &Tables) -> Vec<RowChange> {
    let named = events_on(statement, table, tables);
    let is_any = named == 0 && statement.is_code();
    let mut changes = Vec::new();
    if is_any || named & DELETE != 0 {
        changes.push(RowChange::Delete);
    }
    let writes = Write::all_of(&statement.sql);
    let of_table = writes.iter().filter(|write| concerns(write, table, tables));
    let sets: Vec<String> = of_table.filter_map(|write| write.sets.clone()).flatten().collect();
    if !sets.is_empty() {
        changes.push(RowChange::Update(Some(sets)));
    } else if is_any || statement.is_code() && named & UPDATE != 0 {
        changes.push(RowChange::Update(None));
    }
    changes
}
