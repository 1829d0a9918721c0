//! Tables of fills that are only measured, in a schema of pgrig's own or of the user's.

use crate::error::FillError;
use crate::ledger::{self, LedgerHeader};
use crate::plan::tables::TableNames;
use crate::request::Subject;
use connect::{ConnectError, Target};
use server::Session;
use server::marked::{self, DropOutcome};
use server::quote::identifier;

/// The schema, unless another is named.
pub const SCRATCH_SCHEMA: &str = "pgrig_ladder";
/// The comment on the schema and its tables.
pub(crate) const SCRATCH_MARK: &str = "made by pgrig fill --ladder, whose next run drops it";

/// Drops all tables that measured fills have created in this schema, then the schema if it is empty
/// and pgrig created it.
///
/// # Errors
/// If tables cannot be dropped, or are not pgrig's.
pub async fn clear_scratch(target: &Target, schema: &str) -> Result<(), FillError> {
    let session = Session::open(target).await?;
    let mut foreign = Vec::new();
    for subject in [Subject::Pgbench, Subject::Series] {
        let tables = TableNames::of(&subject);
        let mut marks: Vec<(String, String)> =
            tables.all().map(|name| (name.clone(), SCRATCH_MARK.to_owned())).collect();
        for ledger in ledger::names(&tables.bulk) {
            let header =
                comment(&session, schema, &ledger).await?.filter(|comment| LedgerHeader::is_one(comment));
            marks.extend(header.map(|header| (ledger, header)));
        }
        for (name, mark) in marks {
            session.run("BEGIN").await?;
            if marked::drop_table(&session, schema, &name, &mark).await? == DropOutcome::Foreign {
                foreign.push(name);
            }
            session.run("COMMIT").await?;
        }
    }
    if !foreign.is_empty() {
        let names = foreign.join(", ");
        let them = if foreign.len() == 1 { "it" } else { "them" };
        return Err(FillError::Combination(format!(
            "schema {schema} has {names}, which pgrig fill --ladder did not make and does not drop: move {them} to \
             another schema, or give another --schema"
        )));
    }
    let is_own = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1 AND obj_description(oid, 'pg_namespace') = $2)";
    if session.row(is_own, &[&schema, &SCRATCH_MARK]).await?.get(0) {
        // Somebody may have put something there.
        let _ = session.run(&format!("DROP SCHEMA {}", identifier(schema))).await;
    }
    session.close().await;
    Ok(())
}

/// The comment of a table in the schema.
async fn comment(session: &Session, schema: &str, name: &str) -> Result<Option<String>, ConnectError> {
    let comment = "SELECT obj_description(c.oid, 'pg_class') AS comment FROM pg_class c \
                   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";
    let found = session.rows(comment, &[&schema, &name]).await?;
    Ok(found.first().and_then(|row| row.get("comment")))
}
