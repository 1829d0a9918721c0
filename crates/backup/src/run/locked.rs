//! The error of tables that stay locked: the sessions and transactions with locks.

use connect::{ConnectError, Target};
use server::Session;
use server::quote::literal;
use tokio_postgres::Row;

use crate::error::BackupError;

/// Sessions and transactions with locks that an error names.
const NAMED: usize = 3;

/// The error of a table that stays locked. Those that hold locks are named by a session of its own.
pub(super) async fn locked(target: &Target) -> Result<BackupError, ConnectError> {
    let session = Session::open(target).await?;
    let rows = session.rows(include_str!("../sql/exclusive.sql"), &[]).await?;
    session.close().await;
    let database = target.dbname().to_owned();
    Ok(BackupError::Locked { database, holders: rows.iter().take(NAMED).map(holder).collect() })
}

/// A session or a prepared transaction with its locks, and how to end it.
fn holder(row: &Row) -> String {
    let (name, tables): (&str, i64) = (row.get("name"), row.get("tables"));
    let more = if tables > 1 { format!(" and {} more", tables - 1) } else { String::new() };
    let does = if row.get("granted") { "holds" } else { "waits for" };
    let has = format!("{does} ACCESS EXCLUSIVE on {name}{more}");
    if let Some(gid) = row.get::<_, Option<&str>>("gid") {
        let gid = literal(gid);
        return format!(
            "prepared transaction {gid} {has} (COMMIT PREPARED {gid} or ROLLBACK PREPARED {gid} ends it)"
        );
    }
    if row.get("replays") {
        return format!("the replay of WAL {has}, as a transaction of the primary does");
    }
    let Some(pid) = row.get::<_, Option<i32>>("pid") else { return format!("a transaction {has}") };
    let (program, state): (&str, &str) = (row.get("program"), row.get("state"));
    let about: Vec<&str> = [program, state].into_iter().filter(|text| !text.is_empty()).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    let behind: Vec<String> = row.get("behind");
    if behind.is_empty() {
        format!("session {pid}{about} {has} (SELECT pg_terminate_backend({pid}) ends it)")
    } else {
        format!("session {pid}{about} {has} behind {}", behind.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use testkit::{RELEASES, assert_says, block_on, shared, until_async};

    use super::*;

    /// The end of the session that waits would end the work of somebody else, and release nothing.
    #[test]
    fn the_session_behind_which_another_one_waits_is_named() {
        block_on(async {
            let database = shared(RELEASES[0]).database().await;
            let open = async || Session::open(&database.target).await.unwrap();
            let (reader, other) = (open().await, open().await);
            let pid = reader.pid().await.unwrap();
            reader.run("CREATE TABLE public.wanted (id int)").await.unwrap();
            reader.run("BEGIN").await.unwrap();
            reader.run("LOCK TABLE public.wanted IN ACCESS SHARE MODE").await.unwrap();
            let told = async {
                let query = "SELECT count(*) AS waiting FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                             WHERE NOT l.granted AND d.datname = current_database()";
                until_async("the other session waits", async || {
                    reader.row(query, &[]).await.unwrap().get::<_, i64>("waiting") > 0
                })
                .await;
                let told = locked(&database.target).await.unwrap().to_string();
                reader.run("COMMIT").await.unwrap();
                told
            };
            let (altered, told) = tokio::join!(other.run("ALTER TABLE public.wanted ADD more int"), told);
            altered.unwrap();
            let behind = format!("waits for ACCESS EXCLUSIVE on wanted behind session {pid} (");
            assert_says(&told, &[behind.as_str(), "idle in transaction)"]);
            assert!(!told.contains("pg_terminate_backend"), "{told}");
        });
    }
}
