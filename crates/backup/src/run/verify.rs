//! Compares the restored content with the original's.

use connect::{ConnectError, SqlState, Target};
use measure::human::counted;
use server::Session;
use server::quote::identifier;

use crate::run::parts::{Part, parts};
use crate::run::sequences::{self, Sequence};
use crate::run::source::Content;
use crate::run::step::Trouble;
use crate::verified::{Verified, Witness};

/// A restored server has no other clients. So the lock for which a session waits is that of a prepared transaction, and never ends.
const PATIENCE: &str = "SET lock_timeout = '10s'";

/// Reads the restored database, and compares it with the original's content as the witness says; its sequences also with those that the
/// original had after the backup. Meanwhile, it checks the indexes.
pub(super) async fn verify(
    target: &Target,
    (original, later): (&Content, &[Sequence]),
    witness: Witness,
    is_base: bool,
) -> Result<Verified, Trouble> {
    let unreadable = |error: ConnectError| Trouble::Way(of_reading(&error));
    // This machine may lack the locale of a base backup's database, for example.
    let session = Session::open(target).await.map_err(unreadable)?;
    session.run(include_str!("../sql/session.sql")).await.map_err(unreadable)?;
    session.run(PATIENCE).await.map_err(unreadable)?;
    // The database's event triggers may write rows when amcheck is created, and draw values from sequences: the snapshot does not see these
    // rows, and the values are read before.
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(unreadable)?;
    let sequences = Sequence::read(&session).await.map_err(unreadable)?;
    let (restored, indexes) = tokio::join!(Content::with(&session, sequences), Box::pin(checked(target)));
    session.close().await;
    let restored = restored.map_err(unreadable)?;
    let differs = |difference: String| Trouble::Way(format!("the restored database differs: {difference}"));
    if witness != Witness::Changed
        && let Some(difference) = difference(original, &restored, is_base)
    {
        return Err(differs(difference));
    }
    let sequences = (original.sequences.as_slice(), later);
    let sequences = sequences::compare(sequences, &restored.sequences, witness, is_base).map_err(differs)?;
    let indexes = indexes?;
    let tables = restored.tables.len() as u64;
    let hidden = original.tables.iter().filter(|table| table.is_hidden).count() as u64;
    let (rows, constraints) = (restored.rows(), restored.constraints());
    let (indexes, other_order) = indexes.map_or((None, 0), |(sound, left_out)| (Some(sound), left_out));
    Ok(Verified {
        witness,
        tables,
        hidden,
        rows,
        sequences,
        large_objects: restored.large.count,
        constraints,
        indexes,
        other_order,
        other_databases: Vec::new(),
    })
}

/// Checks all B-tree indexes in a session of its own: the numbers of sound ones and of those whose order this machine does not know; none if
/// amcheck cannot be used.
async fn checked(target: &Target) -> Result<Option<(u64, u64)>, Trouble> {
    let failed = |error: ConnectError| Trouble::Way(of_amcheck(&error));
    let session = Session::open(target).await.map_err(failed)?;
    // Without those of texts: expressions of indexes may need the database's own, also its search path.
    session.run(include_str!("../sql/reading.sql")).await.map_err(failed)?;
    session.run(PATIENCE).await.map_err(failed)?;
    let indexes = match amcheck(&session).await {
        Ok(schema) => check_indexes(&session, schema).await,
        // Something of the database forbids the extension, which says nothing of its indexes.
        Err(error) if error.sqlstate().is_some() => Ok(None),
        Err(error) => Err(error),
    };
    session.close().await;
    indexes.map_err(failed)
}

/// The text of an error while rows are read.
fn of_reading(error: &ConnectError) -> String {
    let why = if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        "a prepared transaction in the backup locks a table: end it in the original (COMMIT PREPARED or ROLLBACK PREPARED; pg_prepared_xacts lists \
         them), and run pgrig again"
            .to_owned()
    } else {
        error.to_string()
    };
    format!("the restored database cannot be read: {why}")
}

/// The text of an error while amcheck runs. Its reports of damage have one of these codes (`contrib/amcheck/verify_nbtree.c`).
fn of_amcheck(error: &ConnectError) -> String {
    let damage = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
    if error.sqlstate().is_some_and(|code| damage.contains(code)) {
        format!("amcheck found damage: {error}")
    } else {
        format!("pgrig could not check the indexes with amcheck: {error}")
    }
}

/// The first difference. A base backup has no rows of unlogged tables.
fn difference(original: &Content, restored: &Content, is_base: bool) -> Option<String> {
    if original.tables.len() != restored.tables.len() {
        return Some(format!(
            "it has {} instead of {}",
            counted(restored.tables.len() as u64, "table"),
            original.tables.len()
        ));
    }
    let mut pairs = original.tables.iter().zip(&restored.tables);
    if let Some((missing, _)) = pairs.find(|(one, other)| one.name != other.name) {
        return Some(format!("table {} is missing", missing.name));
    }
    let parts = parts(&original.tables, &restored.tables, is_base);
    if let Some(difference) = parts.iter().find_map(Part::difference) {
        return Some(difference);
    }
    if let Some(difference) = original.large.difference(&restored.large) {
        return Some(difference);
    }
    let missing = original.valid.difference(&restored.valid).next()?;
    Some(format!("{missing} is missing or not valid"))
}

/// Checks all B-tree indexes. Returns the numbers of sound ones and of those whose order this machine does not know; none if the
/// server has no amcheck.
async fn check_indexes(
    session: &Session,
    amcheck: Option<String>,
) -> Result<Option<(u64, u64)>, ConnectError> {
    let Some(schema) = amcheck else { return Ok(None) };
    let (mut checked, mut left_out) = (0, 0);
    let collations = other_collations(session).await?;
    for index in session.rows(include_str!("../sql/btrees.sql"), &[&collations]).await? {
        if index.get("other_order") {
            left_out += 1;
            continue;
        }
        session.rows(&check_of_index(&schema, index.get("oid")), &[]).await?;
        checked += 1;
    }
    Ok(Some((checked, left_out)))
}

/// The collations of the restored database that this machine has in another version. amcheck would call indexes in their old order
/// damaged.
pub(crate) async fn other_collations(session: &Session) -> Result<Vec<u32>, ConnectError> {
    let mut rows = session.rows(include_str!("../sql/collations.sql"), &[]).await?;
    let query = "SELECT 1 FROM pg_catalog.pg_proc WHERE proname = 'pg_database_collation_actual_version'";
    if !session.rows(query, &[]).await?.is_empty() {
        rows.extend(session.rows(include_str!("../sql/default_collation.sql"), &[]).await?);
    }
    Ok(rows.iter().map(|row| row.get("oid")).collect())
}

/// Looks up all rows of the table in a B-tree index. Damage is an error.
pub(crate) fn check_of_index(amcheck: &str, index: u32) -> String {
    format!("SELECT {}.bt_index_check({index}::oid::regclass, true)", identifier(amcheck))
}

/// The schema of amcheck, which is created if it is not there. None if the server does not have it.
pub(crate) async fn amcheck(session: &Session) -> Result<Option<String>, ConnectError> {
    extension(session, "amcheck").await
}

/// The schema of an extension, which is created in a schema of its own if it is not there. None if the server does not have it.
pub(super) async fn extension(session: &Session, name: &str) -> Result<Option<String>, ConnectError> {
    let query = "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = $1::text";
    if session.rows(query, &[&name]).await?.is_empty() {
        return Ok(None);
    }
    let query = "SELECT n.nspname::text FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
                 WHERE e.extname = $1::text";
    if let Some(row) = session.rows(query, &[&name]).await?.first() {
        return Ok(Some(row.get(0)));
    }
    let schema = format!("pgrig_{name}");
    session.run(&format!("CREATE SCHEMA {schema}; CREATE EXTENSION {name} SCHEMA {schema}")).await?;
    Ok(Some(schema))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::run::large::LargeObjects;
    use crate::run::source::{Hash, Table};

    fn content(rows: i64, hash: i128, valid: &[&str]) -> Content {
        let table = |name: &str, is_logged, rows| Table {
            name: name.into(),
            is_logged,
            is_read: true,
            is_hidden: false,
            rows,
            hash: Hash(1, hash),
            family: None,
        };
        let valid: BTreeSet<String> = valid.iter().map(|name| (*name).to_owned()).collect();
        let tables = vec![table("a.a", true, rows), table("a.u", false, 7 * rows)];
        let large = LargeObjects { count: 2, hash: Some("7".to_owned()) };
        Content { tables, sequences: Vec::new(), large, valid }
    }

    #[test]
    fn each_difference_is_named() {
        let original = content(10, 2, &["constraint a.a.pk"]);
        assert_eq!(difference(&original, &content(10, 2, &["constraint a.a.pk", "index x"]), false), None);
        let of = |restored: Content| difference(&original, &restored, false).unwrap();
        assert_eq!(of(content(9, 2, &[])), "table a.a has 9 rows instead of 10");
        assert_eq!(of(content(10, 3, &[])), "table a.a has as many rows as the original, but other values");
        assert_eq!(of(content(10, 2, &[])), "constraint a.a.pk is missing or not valid");
        let mut base = content(10, 2, &["constraint a.a.pk"]);
        base.tables[1].rows = 0;
        assert_eq!(difference(&original, &base, true), None);
        assert!(difference(&original, &base, false).is_some());
        base.tables[1].is_read = false;
        assert_eq!(difference(&original, &base, false), None);
        base.large.count = 1;
        assert_eq!(of(base), "it has 1 large object instead of 2");
        let mut base = content(10, 2, &[]);
        base.tables.pop();
        assert_eq!(of(base), "it has 1 table instead of 2");
    }
}
