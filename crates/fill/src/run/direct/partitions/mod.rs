//! Partitioned tables: each row goes to the leaf that the server would choose.
//!
//! [`tree`] reads partitions and bounds; the server itself reads the values of [`bound`]s. [`key`] has the values of the
//! rows, [`split`] finds the leaf of every row before the first page is written, and keeps the numbers of each leaf's
//! rows. Then one leaf after the other is written as a table of its own. Before the commit the server looks for rows
//! that break the bounds of their leaf ([`super::checks`]).

mod bound;
mod key;
mod numeric;
mod split;
mod tree;

use rowgen::Table;

pub(crate) use self::tree::PartitionsFound;
use self::tree::{LeafFound, Tree};
use super::relation::Relation;
use super::{Direct, Failure, Loaded, NotDirect, Unproved, close};
use crate::run::rows::RowSource;
use server::Session;

/// Approximate memory for the number of a row, bytes.
pub(crate) const ROW_NUMBER: u64 = 2;

/// Asks the server for the partitions of a table.
async fn found(session: &Session, relation: &str) -> Result<PartitionsFound, Failure> {
    Ok(PartitionsFound::of(&session.rows(PartitionsFound::QUERY, &[&relation]).await?))
}

async fn look_at(session: &Session, name: &str) -> Result<Relation, Failure> {
    Ok(Relation::of(&session.row(Relation::QUERY, &[&name, &Relation::NOTHING]).await?))
}

/// Locks the table and its partitions, and returns whether it is partitioned.
pub(super) async fn has_some(session: &Session, relation: &str) -> Result<bool, Failure> {
    session.run(&format!("LOCK TABLE {relation} IN ACCESS EXCLUSIVE MODE")).await?;
    let query = "SELECT relkind = 'p' AS has_some FROM pg_class WHERE oid = to_regclass($1)";
    Ok(session.row(query, &[&relation]).await?.get("has_some"))
}

impl Direct<'_> {
    /// Fills the empty leaves of a table that the session's transaction has locked.
    pub(super) async fn load_partitions(
        &self,
        session: &Session,
        relation: &str,
        rows: RowSource,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Loaded, Failure> {
        let found = found(session, relation).await?;
        let leaves: Vec<&LeafFound> = found.leaves().collect();
        let (tree, table) = self.tree(session, relation, &found).await?;
        let lists = split::split(tree, (relation, &table), rows, (leaves.len(), self.writers)).await?;
        let mut all = Loaded::default();
        for (leaf, list) in leaves.into_iter().zip(lists) {
            let of_leaf = look_at(session, &leaf.name).await?;
            let table = of_leaf.in_order(self.table);
            let direct = Direct { table: &table, fillfactor: leaf.fillfactor, ..*self };
            let loaded = direct.load_one(session, &leaf.name, RowSource::listed(list), sent).await?;
            all.rows += loaded.rows;
            all.unproved.extend(loaded.unproved);
            if let Some(recorded) = loaded.recorded {
                // It records all files of the transaction.
                close(all.recorded.replace(recorded))?;
            }
        }
        for name in found.partitioned() {
            let keys = look_at(session, name).await?.foreign_keys;
            all.unproved.push(Unproved { table: name.to_owned(), rows: all.rows, keys });
        }
        // Rows are looked at once.
        for Unproved { keys, .. } in &mut all.unproved {
            keys.retain(|key| !key.is_inherited);
        }
        Ok(all)
    }

    /// Checks the bounds and one leaf, and changes nothing.
    pub(super) async fn rehearse_partitions(&self, session: &Session, relation: &str) -> Result<(), Failure> {
        let found = found(session, relation).await?;
        let (_, table) = self.tree(session, relation, &found).await?;
        let Some(leaf) = found.leaves().next() else { return Ok(()) };
        Direct { table: &table, ..*self }.open(session, &leaf.name, 0).await?.leave();
        Ok(())
    }

    /// The tree that finds the leaf of a row, and the table with the OIDs of this database.
    async fn tree(
        &self,
        session: &Session,
        relation: &str,
        found: &PartitionsFound,
    ) -> Result<(Tree, Table), Failure> {
        let no_leaf = || NotDirect::Duties(format!("{relation} has no partition"));
        let leaf = found.leaves().next().ok_or_else(no_leaf)?;
        let table = look_at(session, &leaf.name).await?.in_order(self.table);
        Ok((Tree::of(session, found, &table).await?, table))
    }
}
