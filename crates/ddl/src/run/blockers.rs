//! Transactions that hold up a statement which runs outside of transactions, so that its locks can be read.
//!
//! Such a statement commits on its way, and its locks are gone at its end. The first blocker has ACCESS EXCLUSIVE locks on
//! all tables: the statement waits for its first lock, and pg_locks shows the mode. Then it goes back to SHARE UPDATE EXCLUSIVE, for
//! which all locks wait that conflict with DDL, and then to ROW EXCLUSIVE and an old snapshot, for which CONCURRENTLY waits
//! between its phases (indexcmds.c: WaitForLockers, WaitForOlderSnapshots). At each of these waits the next blocker
//! begins before the last one ends, so that each phase waits again. While the statement has or awaits a lock on a table for which a blocker
//! would wait, the next blocker locks the other tables, which the statement may lock later.
//!
//! VACUUM waits up to 5 s to truncate a table on which anybody has a lock (vacuumlazy.c: `VACUUM_TRUNCATE_LOCK_TIMEOUT`), and pg_locks does not
//! show that wait. So its blocker ends once its first lock was seen: the weaker locks would not hold it up.
//!
//! If the server refuses a blocker its locks, or the statement gives up instead of waiting (NOWAIT), it goes on alone, and not all of its locks
//! are known.

use std::collections::BTreeSet;

use connect::{ConnectError, ServerError, SqlState, Target};
use server::Session;

use crate::find::{Kind, Relation, Relations};
use crate::parts::{Parts, names};
use crate::script::Statement;

/// Most waits that are caused: VACUUM of a whole database would meet every table.
const MOST: usize = 16;

/// See the module.
pub(crate) struct Blockers<'a> {
    target: &'a Target,
    /// Tables, as SQL.
    tables: &'a [String],
    current: Option<Session>,
    /// Savepoints before the stronger locks of the current one.
    savepoints: Vec<&'static str>,
    /// Blockers that were released.
    released: usize,
    /// Whether the statement is VACUUM without FULL.
    is_vacuum: bool,
    /// Why the server refused locks, if it did.
    refusal: Option<String>,
}

/// Why not all locks of a statement with NOWAIT are seen.
const GIVES_UP: &str =
    "to read the locks, pgrig lets a statement that commits wait for them, and one with NOWAIT does not wait";
/// Begins the transaction of a blocker, with a snapshot.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
/// The stronger locks of the first blocker, the weakest first, each after a savepoint.
const STRONGER: [(&str, &str); 2] =
    [("before_ddl", "SHARE UPDATE EXCLUSIVE"), ("before_all", "ACCESS EXCLUSIVE")];

impl<'a> Blockers<'a> {
    /// The first one, with strong locks on the tables.
    pub(crate) async fn begin(
        target: &'a Target,
        tables: &'a [String],
        statement: &Statement,
    ) -> Result<Self, ConnectError> {
        let is_vacuum = statement.is_vacuum() && !statement.is_full_vacuum();
        let refusal = Parts::gives_up(&statement.sql).then(|| GIVES_UP.to_owned());
        let is_alone = tables.is_empty() || refusal.is_some();
        let (savepoints, released) = (Vec::new(), 0);
        let mut this = Self { target, tables, current: None, savepoints, released, is_vacuum, refusal };
        if !is_alone {
            this.current = this.strong().await?;
        }
        Ok(this)
    }

    /// A session with all of its locks; none if the server refuses one.
    async fn strong(&mut self) -> Result<Option<Session>, ConnectError> {
        let Some(session) = self.weak().await? else { return Ok(None) };
        for (savepoint, mode) in STRONGER {
            let lock = format!("LOCK TABLE {} IN {mode} MODE", self.tables.join(", "));
            if let Err(error) = session.run(&format!("SAVEPOINT {savepoint}; {lock}")).await {
                self.note(error)?;
                self.savepoints.clear();
                session.close().await;
                return Ok(None);
            }
            self.savepoints.push(savepoint);
        }
        Ok(Some(session))
    }

    /// A session with a snapshot, and ROW EXCLUSIVE locks on the tables that the statement does not lock itself; none if there is no such table, or
    /// the server refuses the locks.
    async fn weak(&mut self) -> Result<Option<Session>, ConnectError> {
        let session = Session::open(self.target).await?;
        session.run(BEGIN).await?;
        let is_blocking = match session.run(&weak_lock(&self.tables.join(", "))).await {
            Ok(()) => true,
            Err(error) if is_in_the_way(&error) && self.tables.len() > 1 => {
                self.lock_others(&session).await?
            }
            Err(error) => {
                self.note(error)?;
                false
            }
        };
        if is_blocking {
            return Ok(Some(session));
        }
        session.close().await;
        Ok(None)
    }

    /// Locks the tables one by one, as far as the statement leaves them. Returns whether there is one.
    async fn lock_others(&mut self, session: &Session) -> Result<bool, ConnectError> {
        session.run(&format!("ROLLBACK; {BEGIN}")).await?;
        let tables = self.tables;
        let mut is_any = false;
        for table in tables {
            let lock =
                format!("SAVEPOINT before_table; {}; RELEASE SAVEPOINT before_table", weak_lock(table));
            match session.run(&lock).await {
                Ok(()) => is_any = true,
                Err(error) => {
                    self.note(error)?;
                    session.run("ROLLBACK TO SAVEPOINT before_table").await?;
                }
            }
        }
        Ok(is_any)
    }

    /// Notes why the server refuses locks, unless the statement is the reason.
    ///
    /// # Errors
    /// If the connection is lost.
    fn note(&mut self, error: ConnectError) -> Result<(), ConnectError> {
        match error {
            error if is_in_the_way(&error) => Ok(()),
            ConnectError::Query { error, .. } => {
                self.refusal.get_or_insert_with(|| refusal(&error));
                Ok(())
            }
            lost => Err(lost),
        }
    }

    /// Lets the statement go on to its next wait.
    pub(crate) async fn release(&mut self) -> Result<(), ConnectError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let savepoint = self.savepoints.pop();
        let is_last = self.is_vacuum && self.savepoints.is_empty();
        if let Some(savepoint) = savepoint.filter(|_| !is_last) {
            current.run(&format!("ROLLBACK TO SAVEPOINT {savepoint}")).await?;
            self.current = Some(current);
            return Ok(());
        }
        self.released += 1;
        let is_over = is_last || self.released == MOST;
        self.current = if is_over { None } else { self.weak().await? };
        current.run("ROLLBACK").await?;
        current.close().await;
        Ok(())
    }

    /// Whether VACUUM goes on alone. It takes its further locks for moments, so that a reading meets them by chance.
    pub(crate) fn is_over(&self) -> bool {
        self.is_vacuum && self.released > 0 && self.current.is_none()
    }

    /// Ends the last one. Returns why not all locks of the statement were seen, if the server refused locks.
    pub(crate) async fn end(&mut self) -> Option<String> {
        if let Some(current) = self.current.take() {
            current.close().await;
        }
        self.refusal.take()
    }
}

/// A phrase for people, with the remedy.
fn refusal(error: &ServerError) -> String {
    let remedy = if error.code == SqlState::OUT_OF_MEMORY {
        ": raise max_locks_per_transaction, for example with --set max_locks_per_transaction=1024"
    } else if error.code == SqlState::INSUFFICIENT_PRIVILEGE {
        ": measure as a role that may lock all tables"
    } else {
        ""
    };
    format!(
        "to read the locks, pgrig locks the tables itself and lets the statement wait, and the server refused the locks of pgrig ({}){remedy}",
        error.message
    )
}

/// The lock of a blocker on tables, as SQL.
fn weak_lock(tables: &str) -> String {
    format!("LOCK TABLE {tables} IN ROW EXCLUSIVE MODE NOWAIT")
}

/// Whether the statement has or awaits a lock on a table, or has dropped the table.
fn is_in_the_way(error: &ConnectError) -> bool {
    let of_statement =
        [SqlState::LOCK_NOT_AVAILABLE, SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.sqlstate().is_some_and(|state| of_statement.contains(state))
}

/// The tables that blockers lock, as SQL: those that the statement uses, or all. DETACH PARTITION … CONCURRENTLY also locks tables that foreign
/// keys connect with them (tablecmds.c: `ATDetachCheckNoForeignKeyRefs`, `DetachPartitionFinalize`).
pub(crate) async fn tables(
    session: &Session,
    statement: &Statement,
    relations: &Relations,
) -> Result<Vec<String>, ConnectError> {
    // It would leave out the tables of a blocker.
    if statement.skips_locked() {
        return Ok(Vec::new());
    }
    let Some(mut used) = used(statement, relations) else { return Ok(lockable(relations, |_| true)) };
    if Parts::of(&statement.sql).detaches_concurrently() {
        let oids: Vec<u32> = used.iter().copied().collect();
        let related = session.rows(include_str!("../sql/related.sql"), &[&oids]).await?;
        used.extend(related.iter().map(|row| row.get::<_, u32>("oid")));
    }
    Ok(lockable(relations, |oid| used.contains(&oid)))
}

/// The tables for which other sessions may wait, as far as they are meant, as SQL.
fn lockable(relations: &Relations, is_meant: impl Fn(u32) -> bool) -> Vec<String> {
    let is_lockable = |(oid, one): &(&u32, &Relation)| {
        matches!(one.kind, Kind::Table | Kind::Partitioned) && !one.is_temporary && is_meant(**oid)
    };
    relations.0.iter().filter(is_lockable).map(|(_, one)| one.sql.clone()).collect()
}

/// The tables that a statement names, or whose indexes it names, with their partitions and parents, by their OIDs; none if it may use
/// others: it runs functions, or names no table.
fn used(statement: &Statement, relations: &Relations) -> Option<BTreeSet<u32>> {
    if statement.runs_code() {
        return None;
    }
    let words: BTreeSet<String> = names(&statement.sql).collect();
    // REINDEX of all that is in one of these.
    let is_of_many = ["schema", "database", "system"].iter().any(|word| words.contains(*word));
    if statement.is_reindex() && is_of_many {
        return None;
    }
    let is_named =
        |relation: &Relation| names(&relation.sql).last().is_some_and(|name| words.contains(&name));
    let named = relations.0.iter().filter(|(_, relation)| is_named(relation));
    let named: BTreeSet<u32> = named.map(|(oid, _)| relations.table_of(*oid)).collect();
    let is_used = |oid: u32| {
        named.iter().any(|other| relations.is_within(oid, *other) || relations.is_within(*other, oid))
    };
    let tables = relations
        .0
        .iter()
        .filter(|(oid, relation)| matches!(relation.kind, Kind::Table | Kind::Partitioned) && is_used(**oid));
    let tables: BTreeSet<u32> = tables.map(|(oid, _)| *oid).collect();
    (!tables.is_empty()).then_some(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::Read;
    use crate::script::Script;

    /// OID, kind, owner, parent and name of each.
    fn relations(all: &[(u32, Kind, u32, u32, &str)]) -> Relations {
        let relation = |(oid, kind, owner, parent, name): &(u32, Kind, u32, u32, &str)| {
            let relation = Relation {
                name: (*name).to_owned(),
                schema: "\"app\"".to_owned(),
                sql: format!("\"app\".\"{name}\""),
                kind: *kind,
                file: *oid,
                tablespace: 0,
                owner: *owner,
                parent: *parent,
                bytes: 0,
                rows: 0.0,
                is_temporary: false,
                is_rewritten: false,
                read: Read::default(),
            };
            (*oid, relation)
        };
        Relations(all.iter().map(relation).collect())
    }

    #[test]
    fn a_statement_uses_the_tables_that_it_names() {
        let relations = relations(&[
            (1, Kind::Table, 0, 0, "orders"),
            (2, Kind::Index, 1, 0, "Orders_i"),
            (3, Kind::Partitioned, 0, 0, "parted"),
            (4, Kind::Table, 0, 3, "parted_1"),
            (5, Kind::Table, 0, 3, "parted_2"),
            (6, Kind::MaterializedView, 0, 0, "totals"),
        ]);
        let of = |sql: &str| {
            let script = Script::read(sql, None).unwrap();
            let used = used(&script.statements[0], &relations)?;
            let used = lockable(&relations, |oid| used.contains(&oid));
            Some(used.iter().map(|sql| sql.replace("\"app\".", "").replace('"', "")).collect::<Vec<_>>())
        };
        let wanted = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of("CREATE INDEX CONCURRENTLY ON app.Orders (n)"), wanted(&["orders"]));
        assert_eq!(of("DROP INDEX CONCURRENTLY \"Orders_i\""), wanted(&["orders"]));
        assert_eq!(
            of("ALTER TABLE parted DETACH PARTITION parted_1 CONCURRENTLY"),
            wanted(&["parted", "parted_1", "parted_2"])
        );
        assert_eq!(of("VACUUM parted_2, orders"), wanted(&["orders", "parted", "parted_2"]));
        for all in [
            "VACUUM",
            "REINDEX SCHEMA CONCURRENTLY app",
            "REINDEX TABLE CONCURRENTLY totals",
            "CALL app.parted()",
            "DO $$ BEGIN UPDATE orders SET n = 1; COMMIT; END $$",
        ] {
            assert_eq!(of(all), None, "{all}");
        }
    }

    /// No other session waits for a temporary table, and one without rights on its schema may not lock it.
    #[test]
    fn temporary_tables_are_not_locked() {
        let mut relations = relations(&[(1, Kind::Table, 0, 0, "orders"), (2, Kind::Table, 0, 0, "own")]);
        assert_eq!(lockable(&relations, |_| true).len(), 2);
        relations.0.get_mut(&2).unwrap().is_temporary = true;
        assert_eq!(lockable(&relations, |_| true), ["\"app\".\"orders\""]);
    }
}
