//! Reads a restored server: all rows of all tables, constraints and indexes of all databases.

use std::cell::RefCell;

use connect::{ConnectError, Target};
use server::Session;
use server::quote::{identifier, literal, qualified};
use tokio_postgres::error::SqlState;

use super::outcome::Restored;
use super::{Failed, RestoreError};
use crate::error::BackupError;
use crate::run::verify::{amcheck, check_of_index, other_collations};

/// Damages of one table that are kept.
const OF_TABLE: usize = 20;
/// Locked objects that are named.
const LOCKED: usize = 5;
/// Beside prepared transactions, whose locks never end: a function of a constraint may read another table.
const PATIENCE: &str = "SET lock_timeout = '1min'";
/// Level of a lock for which each read waits.
const READS: i32 = 3;
/// That of a lock for which the check of a foreign key waits on the referenced table.
const REFERENCES: i32 = 2;

/// The databases of a restored server.
pub(super) struct Databases<'a> {
    /// Reaches one.
    pub(super) of: &'a dyn Fn(&str) -> Target,
    /// One that is there.
    pub(super) first: &'a str,
    /// Whether files were restored, so that nothing has checked constraints yet.
    pub(super) is_base: bool,
    /// Hears of progress.
    pub(super) tell: &'a dyn Fn(&str),
}

/// Reads them.
pub(super) async fn read(databases: &Databases<'_>, restored: &mut Restored) -> Result<(), Failed> {
    let target = (databases.of)(databases.first);
    let session = match Session::open(&target).await {
        Ok(session) => session,
        Err(error) if is_no_superuser(&error) => {
            return Err(RestoreError::NoSuperuser { name: target.user().to_owned() }.into());
        }
        Err(error) => {
            restored.fail(format!("the restored server accepts no connection: {error}"));
            return Ok(());
        }
    };
    let found = facts(&session).await.map_err(BackupError::from)?;
    session.close().await;
    if !found.is_superuser {
        return Err(RestoreError::NoSuperuser { name: target.user().to_owned() }.into());
    }
    restored.server = found.version;
    for name in found.databases {
        (databases.tell)(&format!("reading database {name}: all rows, constraints and indexes"));
        match Session::open(&(databases.of)(&name)).await {
            Ok(session) => {
                let reading = Reading::of(&session, &name, databases.is_base);
                match reading.all(restored).await {
                    Ok(None) => {}
                    Ok(Some(locked)) => restored.fail(locked),
                    Err(error) => restored.fail(format!("database {name}: {error}")),
                }
                session.close().await;
            }
            Err(error) => restored.fail(format!("database {name} cannot be opened: {error}")),
        }
    }
    Ok(())
}

/// Whether it is the error of a connection whose role is not there, or may not set all options of the target.
fn is_no_superuser(error: &ConnectError) -> bool {
    let codes = [SqlState::INVALID_AUTHORIZATION_SPECIFICATION, SqlState::INSUFFICIENT_PRIVILEGE];
    error.sqlstate().is_some_and(|code| codes.contains(code))
}

/// Reads a database that was restored beside one that is compared with its original. Damage is kept as a failure. Constraints count, and are
/// not checked again: they need not hold in the original either. Returns the reason why some objects were not read, if there are any.
pub(crate) async fn read_beside(
    session: &Session,
    database: &str,
    restored: &mut Restored,
) -> Result<Option<String>, ConnectError> {
    let reading = Reading { is_beside: true, ..Reading::of(session, database, true) };
    reading.all(restored).await
}

struct Facts {
    version: String,
    is_superuser: bool,
    databases: Vec<String>,
}

async fn facts(session: &Session) -> Result<Facts, ConnectError> {
    let row = session.row(include_str!("../../sql/restored.sql"), &[]).await?;
    Ok(Facts {
        version: row.get("version"),
        is_superuser: row.get("is_superuser"),
        databases: row.get("databases"),
    })
}

/// A database that is being read. Its own errors are those that end the session.
struct Reading<'a> {
    session: &'a Session,
    database: &'a str,
    is_base: bool,
    /// Whether the server that was backed up is there: its constraints need not hold, and it may forbid extensions.
    is_beside: bool,
    /// Those of prepared transactions.
    locks: Vec<Lock>,
    skipped: RefCell<Skipped>,
}

/// A prepared transaction's lock.
struct Lock {
    gid: String,
    /// A table, an index or a TOAST table.
    relation: u32,
    /// Its table.
    table: u32,
    /// The table and its ancestors.
    family: Vec<u32>,
    /// The locks that wait for it, as a level from 1 to 3; see `blocking.sql`.
    level: i32,
}

impl Lock {
    /// Whether reads of one of these wait for it.
    fn stops_reads(&self, of: &[u32]) -> bool {
        self.level >= READS && (of.contains(&self.relation) || of.contains(&self.table))
    }

    /// Whether the check of a constraint of this table waits for it. `referenced` is 0 unless it is a foreign key.
    fn stops_check(&self, own: u32, referenced: u32) -> bool {
        self.family.contains(&own) || self.level >= REFERENCES && self.family.contains(&referenced)
    }
}

/// Objects that pgrig did not read because of locks, and the transactions that hold these locks.
#[derive(Default)]
struct Skipped {
    objects: Vec<String>,
    gids: Vec<String>,
}

impl Skipped {
    fn add(&mut self, object: &str, gid: &str) {
        if !self.objects.iter().any(|known| known == object) {
            self.objects.push(object.to_owned());
        }
        if !self.gids.iter().any(|known| known == gid) {
            self.gids.push(gid.to_owned());
        }
    }
}

impl<'a> Reading<'a> {
    fn of(session: &'a Session, database: &'a str, is_base: bool) -> Self {
        let (locks, skipped) = (Vec::new(), RefCell::default());
        Self { session, database, is_base, is_beside: false, locks, skipped }
    }

    /// Returns the text about locked objects, if there are some.
    async fn all(mut self, restored: &mut Restored) -> Result<Option<String>, ConnectError> {
        self.session.run(include_str!("../../sql/reading.sql")).await?;
        self.locks = locks(self.session).await?;
        if !self.locks.is_empty() {
            self.session.run(PATIENCE).await?;
        }
        let tables = self.tables(restored).await?;
        restored.databases += u64::from(tables > 0);
        self.constraints(restored).await?;
        self.indexes(restored).await?;
        let skipped = self.skipped.take();
        let is_whole = skipped.objects.is_empty();
        Ok((!is_whole).then(|| of_locks(self.database, &skipped.objects, &skipped.gids)))
    }

    /// Whether one of these locks stops the reading of an object, which is kept then.
    fn is_locked(&self, object: &str, stops: impl Fn(&Lock) -> bool) -> bool {
        let mut skipped = self.skipped.borrow_mut();
        let mut is_locked = false;
        for lock in self.locks.iter().filter(|lock| stops(lock)) {
            skipped.add(object, &lock.gid);
            is_locked = true;
        }
        is_locked
    }

    /// Reads all rows. Returns the number of tables.
    async fn tables(&self, restored: &mut Restored) -> Result<usize, ConnectError> {
        let tables = self.session.rows(include_str!("../../sql/restored_tables.sql"), &[]).await?;
        for table in &tables {
            let name = qualified(table.get("schema"), table.get("name"));
            let object = format!("table {name}");
            let oid: u32 = table.get("oid");
            if self.is_locked(&object, |lock| lock.stops_reads(&[oid])) {
                continue;
            }
            let query = format!("SELECT count(ROW(t.*)::text) AS rows FROM ONLY {name} AS t");
            match self.session.row(&query, &[]).await {
                Ok(row) => {
                    restored.tables += 1;
                    restored.rows += u64::try_from(row.get::<_, i64>("rows")).unwrap_or_default();
                }
                Err(error) => self.failed((&object, "cannot be read"), error, restored)?,
            }
        }
        Ok(tables.len())
    }

    /// Counts valid constraints. Those of restored files are checked again: this copy may be changed.
    async fn constraints(&self, restored: &mut Restored) -> Result<(), ConnectError> {
        let valid = self.session.rows(include_str!("../../sql/constraints.sql"), &[]).await?;
        let names = valid.iter().map(|row| row.get::<_, &str>("name"));
        restored.constraints += names.filter(|name| name.starts_with("constraint ")).count() as u64;
        if !self.is_base || self.is_beside {
            return Ok(());
        }
        for row in self.session.rows(include_str!("../../sql/checked.sql"), &[]).await? {
            let (oid, name): (u32, &str) = (row.get("oid"), row.get("name"));
            let table = qualified(row.get("schema"), row.get("table"));
            let object = format!("constraint {name} of table {table}");
            let (own, referenced): (u32, u32) = (row.get("own"), row.get("referenced"));
            if self.is_locked(&object, |lock| lock.stops_check(own, referenced)) {
                restored.constraints = restored.constraints.saturating_sub(1);
                continue;
            }
            let check = format!(
                "UPDATE pg_catalog.pg_constraint SET convalidated = false WHERE oid = {oid}; \
                 ALTER TABLE {table} VALIDATE CONSTRAINT {}",
                identifier(name)
            );
            if let Err(error) = self.session.run(&check).await {
                restored.constraints = restored.constraints.saturating_sub(1);
                self.failed((&object, "does not hold"), error, restored)?;
            }
        }
        Ok(())
    }

    /// Checks all B-tree indexes, and the pages of restored tables, if the server has amcheck.
    async fn indexes(&self, restored: &mut Restored) -> Result<(), ConnectError> {
        let others: i64 =
            self.session.row(include_str!("../../sql/other_indexes.sql"), &[]).await?.get("indexes");
        restored.other_indexes += u64::try_from(others).unwrap_or_default();
        // Expressions of indexes may need the database's own search path.
        let schema = match amcheck(self.session).await {
            Ok(Some(schema)) => schema,
            Ok(None) => return Ok(()),
            Err(error) if self.is_beside && error.sqlstate().is_some() => return Ok(()),
            Err(error) => return self.failed(("amcheck", "cannot be used"), error, restored),
        };
        let collations = other_collations(self.session).await?;
        for row in self.session.rows(include_str!("../../sql/btrees.sql"), &[&collations]).await? {
            if row.get("other_order") {
                restored.other_order += 1;
                continue;
            }
            let (oid, own): (u32, u32) = (row.get("oid"), row.get("own"));
            let (name, table): (&str, &str) = (row.get("name"), row.get("table"));
            let object = format!("index {name} of table {table}");
            if self.is_locked(&object, |lock| lock.stops_reads(&[oid, own])) {
                continue;
            }
            match self.session.rows(&check_of_index(&schema, oid), &[]).await {
                Ok(_) => *restored.indexes.get_or_insert_default() += 1,
                Err(error) => self.failed((&object, "is damaged"), error, restored)?,
            }
        }
        if self.is_base { self.heaps(&schema, restored).await } else { Ok(()) }
    }

    /// `verify_heapam` of all tables, from version 14 on.
    async fn heaps(&self, schema: &str, restored: &mut Restored) -> Result<(), ConnectError> {
        let query = "SELECT 1 FROM pg_catalog.pg_proc WHERE proname = 'verify_heapam'";
        if self.session.rows(query, &[]).await?.is_empty() {
            return Ok(());
        }
        for row in self.session.rows(include_str!("../../sql/heaps.sql"), &[]).await? {
            let (oid, name): (u32, &str) = (row.get("oid"), row.get("name"));
            let object = format!("pages of table {name}");
            if self.is_locked(&object, |lock| lock.stops_reads(&[oid])) {
                continue;
            }
            let query = format!(
                "SELECT blkno, msg FROM {}.verify_heapam({oid}::oid::regclass, check_toast => true) LIMIT {OF_TABLE}",
                identifier(schema)
            );
            match self.session.rows(&query, &[]).await {
                Ok(found) => {
                    for damage in found {
                        let (block, text): (Option<i64>, &str) = (damage.get("blkno"), damage.get("msg"));
                        let block = block.unwrap_or_default();
                        restored
                            .fail(format!("database {}: table {name}, block {block}: {text}", self.database));
                    }
                }
                Err(error) => self.failed((&object, "are damaged"), error, restored)?,
            }
        }
        Ok(())
    }

    /// Keeps a failure of a named object, or that it is locked. The error is returned if the session has ended with it.
    fn failed(
        &self,
        (object, what): (&str, &str),
        error: ConnectError,
        restored: &mut Restored,
    ) -> Result<(), ConnectError> {
        if self.session.connection.client.is_closed() {
            return Err(error);
        }
        if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            let mut skipped = self.skipped.borrow_mut();
            skipped.objects.push(object.to_owned());
            for lock in &self.locks {
                skipped.add(object, &lock.gid);
            }
            return Ok(());
        }
        restored.fail(format!("database {}: {object} {what}: {error}", self.database));
        Ok(())
    }
}

/// The locks of prepared transactions in a database.
async fn locks(session: &Session) -> Result<Vec<Lock>, ConnectError> {
    let mut locks = Vec::new();
    for row in session.rows(include_str!("../../sql/blocking.sql"), &[]).await? {
        let (relation, table, level) = (row.get("relation"), row.get("table"), row.get("level"));
        locks.push(Lock { gid: row.get("gid"), relation, table, family: row.get("family"), level });
    }
    Ok(locks)
}

/// The text about objects that these prepared transactions lock.
fn of_locks(database: &str, locked: &[String], gids: &[String]) -> String {
    let named = locked[..locked.len().min(LOCKED)].join(", ");
    let more = locked.len().saturating_sub(LOCKED);
    let objects = if more > 0 { format!("{named} and {more} more") } else { named };
    let Some(first) = gids.first() else {
        return format!("database {database}: pgrig cannot read {objects}: another transaction has locks");
    };
    let (all, first): (Vec<String>, _) = (gids.iter().map(|gid| literal(gid)).collect(), literal(first));
    format!(
        "database {database}: pgrig cannot read {objects}: the backup has prepared transactions that lock them: {}. End each on the original \
         server, with COMMIT PREPARED {first} or ROLLBACK PREPARED {first}, and make a new backup. In a server restored from this backup, end them \
         in the same way",
        all.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reference waits for EXCLUSIVE on the referenced table, a check for SHARE on a child, a read only for ACCESS EXCLUSIVE.
    #[test]
    fn only_what_waits_for_a_lock_is_left_out() {
        let on_child =
            |level| Lock { gid: "a".to_owned(), relation: 30, table: 20, family: vec![20, 10], level };
        assert!(on_child(3).stops_reads(&[20]) && on_child(3).stops_reads(&[30, 1]));
        assert!(!on_child(3).stops_reads(&[10]) && !on_child(2).stops_reads(&[20]));
        assert!(on_child(1).stops_check(10, 0) && on_child(1).stops_check(20, 0));
        assert!(on_child(2).stops_check(1, 20) && !on_child(1).stops_check(1, 20));
        assert!(!on_child(3).stops_check(1, 0));
    }

    #[test]
    fn locked_objects_have_their_transactions_and_the_remedy() {
        let tables: Vec<String> = (1..=7).map(|number| format!("table t{number}")).collect();
        let text = of_locks("shop", &tables, &["it's".to_owned(), "b".to_owned()]);
        assert!(text.contains("cannot read table t1, table t2, table t3, table t4, table t5 and 2 more: "));
        assert!(text.contains("'it''s', 'b'. ") && text.contains("ROLLBACK PREPARED 'it''s'"), "{text}");
        assert!(of_locks("shop", &tables[..1], &[]).ends_with("table t1: another transaction has locks"));
    }
}
