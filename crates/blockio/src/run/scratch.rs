//! The objects that `blockio` makes, and how it drops them: a journal beside the tables lists them, so that the next
//! start can drop the objects of a killed run.

use crate::error::BlockioError;
use crate::plan::{JOURNAL, MARK, Plan, SETTINGS};
use crate::run::evict::{EXTENSION, Eviction};
use connect::ConnectError;
use server::Session;
use server::marked;
use server::quote::{identifier, literal, qualified};

/// Takes the lock on the schema for the leading session, once no other session leads or works
/// there.
pub(crate) async fn take_in_hand(lead: &Session, schema: &str) -> Result<(), BlockioError> {
    server::take_in_hand(lead, "blockio", schema, &[leading(schema), working(schema)]).await?;
    let release =
        format!("SELECT pg_advisory_unlock({}, hashtext({}))", marked::NUMBER, literal(&working(schema)));
    Ok(lead.run(&release).await?)
}

/// Takes a lock that shows other pgrigs that this one is still at work, even if its leading session
/// is gone.
pub(crate) async fn mark_working(client: &Session, schema: &str) -> Result<(), ConnectError> {
    let key = literal(&working(schema));
    client.run(&format!("SELECT pg_advisory_lock_shared({}, hashtext({key}))", marked::NUMBER)).await
}

fn leading(schema: &str) -> String {
    format!("blockio leads in {schema}")
}

fn working(schema: &str) -> String {
    format!("blockio works in {schema}")
}

/// Creates schema, journal and settings; the journal first, in one transaction with the schema. All
/// objects get the mark.
pub(crate) async fn prepare(lead: &Session, plan: &Plan) -> Result<(), ConnectError> {
    let schema = identifier(&plan.schema);
    let mark = literal(MARK);
    let journal = qualified(&plan.schema, JOURNAL);
    let mut statements = vec!["BEGIN".to_owned()];
    let mut made = vec![("table", SETTINGS)];
    made.extend(plan.tables.iter().map(|names| ("table", names.table.as_str())));
    if plan.create_schema {
        statements.push(format!("CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS {mark}"));
        made.push(("schema", &plan.schema));
    }
    let creates_extension = plan.eviction == Eviction::CreateExtension;
    if creates_extension {
        made.push(("extension", EXTENSION));
    }
    let rows: Vec<String> =
        made.iter().map(|(kind, name)| format!("({}, {})", literal(kind), literal(name))).collect();
    statements.push(format!("CREATE TABLE {journal} (kind text, name text)"));
    statements.push(format!("INSERT INTO {journal} VALUES {}", rows.join(", ")));
    statements.push(format!("COMMENT ON TABLE {journal} IS {mark}"));
    statements.push("COMMIT".to_owned());
    if creates_extension {
        statements.push(format!("CREATE EXTENSION {EXTENSION} SCHEMA {schema}"));
        statements.push(format!("COMMENT ON EXTENSION {EXTENSION} IS {mark}"));
    }
    lead.run_all(&statements).await?;
    let settings = qualified(&plan.schema, SETTINGS);
    let create = include_str!("../sql/settings.sql").replace("{table}", &settings);
    lead.run_all(&[create, format!("COMMENT ON TABLE {settings} IS {mark}")]).await?;
    lead.run(&format!("ANALYZE {settings}")).await
}

/// Drops the clients' tables.
pub(crate) async fn drop_tables(lead: &Session, plan: &Plan) -> Result<(), ConnectError> {
    for names in &plan.tables {
        lead.run("BEGIN").await?;
        // If another table has the name, the next CREATE TABLE fails.
        marked::drop_table(lead, &plan.schema, &names.table, MARK).await?;
        lead.run("COMMIT").await?;
    }
    Ok(())
}

/// Drops all objects that the journal lists and that have the mark, then the schema if pgrig
/// created it and it is empty. Only a marked journal that belongs to this role is trusted.
///
/// # Errors
/// If something cannot be dropped.
pub(crate) async fn clear(lead: &Session, schema: &str) -> Result<(), ConnectError> {
    // A failed statement may have left a transaction open.
    lead.run("ROLLBACK").await?;
    let journal = marked::look(lead, schema, JOURNAL, MARK).await?;
    if !journal.is_some_and(|journal| journal.get("is_marked")) {
        return Ok(());
    }
    let listed = include_str!("../sql/left.sql").replace("{journal}", &qualified(schema, JOURNAL));
    let left = lead.row(&listed, &[&schema, &EXTENSION, &MARK]).await?;
    lead.run("BEGIN").await?;
    for name in left.get::<_, Vec<String>>("tables") {
        marked::drop_table(lead, schema, &name, MARK).await?;
    }
    if left.get("extension") {
        lead.run(&format!("DROP EXTENSION {EXTENSION}")).await?;
    }
    marked::drop_table(lead, schema, JOURNAL, MARK).await?;
    if left.get("schema") {
        let drop = format!("SAVEPOINT schema; DROP SCHEMA {}", identifier(schema));
        if lead.run(&drop).await.is_err() {
            // Somebody has put something there.
            lead.run("ROLLBACK TO schema").await?;
        }
    }
    lead.run("COMMIT").await
}
