//! The objects that `micro` makes, and how it drops them: a comment marks each as pgrig's, so that the next start can
//! drop the objects of a killed run.

use crate::error::MicroError;
use crate::request::Request;
use connect::{ConnectError, Connection};
use server::Session;
use server::marked::{self, DropOutcome};
use server::quote::{identifier, literal, qualified};
use server::{refuse_odd_name, schema_for_tables, take_in_hand};

/// The schema that is made for a run.
pub const SCHEMA: &str = "pgrig_micro";
/// The comment on all that is made.
const MARK: &str = "made by pgrig micro, whose next run drops it";

/// A place for tables and extensions.
#[derive(Debug)]
pub(crate) struct Scratch {
    schema: String,
    /// Whether it is pgrig's own schema, which is created and dropped.
    is_own: bool,
}

impl Scratch {
    /// The place for a request; none if it needs no tables and no extensions.
    pub(crate) fn of(request: &Request) -> Self {
        let schema = request.schema.clone().unwrap_or_else(|| SCHEMA.to_owned());
        Self { schema, is_own: request.schema.is_none() }
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of the table of the arm with this number.
    pub(crate) fn table(&self, arm: usize) -> String {
        qualified(&self.schema, &table_name(arm))
    }

    /// Takes the lock on the schema, drops the objects that an earlier run left there, and creates the
    /// schema if necessary.
    pub(crate) async fn prepare(&self, session: &Session, connection: &Connection) -> Result<(), MicroError> {
        refuse_odd_name(&self.schema)?;
        take_in_hand(session, "micro", &self.schema, &[format!("micro in {}", self.schema)]).await?;
        self.clear(session).await?;
        if !schema_for_tables(connection, Some(&self.schema)).await?.exists {
            let schema = identifier(&self.schema);
            let mark = literal(MARK);
            session.run(&format!("CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS {mark}")).await?;
        }
        let path = "SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), $1::text), \
                    false)";
        session.row(path, &[&identifier(&self.schema)]).await?;
        Ok(())
    }

    /// Creates an extension that does not exist yet. Returns why the server refuses that, if it
    /// does.
    pub(crate) async fn extension(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<String>, MicroError> {
        let exists = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = $1)";
        if session.row(exists, &[&name]).await?.get(0) {
            return Ok(None);
        }
        let remedy = format!("run CREATE EXTENSION {} first", identifier(name));
        if !self.is_own {
            return Ok(Some(format!("extension {name} does not exist: {remedy}")));
        }
        let (extension, schema) = (identifier(name), identifier(&self.schema));
        let create = format!(
            "CREATE EXTENSION {extension} SCHEMA {schema}; COMMENT ON EXTENSION {extension} IS {}",
            literal(MARK)
        );
        match session.run(&create).await {
            Ok(()) => Ok(None),
            Err(ConnectError::Query { error, .. }) => Ok(Some(format!(
                "extension {name} does not exist and cannot be created ({}): {remedy}",
                error.message
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an arm's table again, without autovacuum. Drops an existing table only if pgrig has
    /// made it.
    pub(crate) async fn create(
        &self,
        session: &Session,
        arm: usize,
        name: &str,
        ddl: &str,
    ) -> Result<(), MicroError> {
        session.run("BEGIN").await?;
        match self.replace(session, arm, name, ddl).await {
            Ok(()) => Ok(session.run("COMMIT").await?),
            Err(error) => {
                session.run("ROLLBACK").await?;
                Err(error)
            }
        }
    }

    /// Creates the table and its mark in one transaction, so that no other session sees a table
    /// without the mark.
    async fn replace(&self, session: &Session, arm: usize, name: &str, ddl: &str) -> Result<(), MicroError> {
        let (table, unquoted) = (self.table(arm), table_name(arm));
        if marked::drop_table(session, &self.schema, &unquoted, MARK).await? == DropOutcome::Foreign {
            return Err(MicroError::Taken { schema: self.schema.clone(), name: unquoted });
        }
        let refused = |why: String| MicroError::Candidate { name: name.to_owned(), why };
        match session.run(ddl).await {
            Ok(()) => {}
            Err(ConnectError::Query { error, .. }) => return Err(refused(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        let made = marked::look(session, &self.schema, &unquoted, MARK).await?;
        let Some(made) = made.filter(|made| made.get("is_locked")) else {
            return Err(refused(format!(
                "its DDL did not create {table} in pgrig's transaction: create that table, without IF NOT EXISTS \
                 and COMMIT"
            )));
        };
        let kind: String = made.get("kind");
        if !matches!(kind.as_str(), "r" | "p") {
            return Err(refused(format!(
                "its DDL created {table} as another kind of object: create a table"
            )));
        }
        let mut finish = vec![format!("COMMENT ON TABLE {table} IS {}", literal(MARK))];
        if kind == "r" {
            finish.push(format!(
                "ALTER TABLE {table} SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)"
            ));
        }
        session.run_all(&finish).await?;
        Ok(())
    }

    /// Drops everything with pgrig's mark, and the schema unless it contains other objects.
    pub(crate) async fn clear(&self, session: &Session) -> Result<(), ConnectError> {
        // A failed statement may have left a transaction open.
        session.run("ROLLBACK").await?;
        let left = session.rows(include_str!("../sql/left.sql"), &[&self.schema, &MARK]).await?;
        let Some(left) = left.first() else { return Ok(()) };
        for table in left.get::<_, Vec<String>>("tables") {
            session.run("BEGIN").await?;
            marked::drop_table(session, &self.schema, &table, MARK).await?;
            session.run("COMMIT").await?;
        }
        for extension in left.get::<_, Vec<String>>("extensions") {
            session.run(&format!("DROP EXTENSION {}", identifier(&extension))).await?;
        }
        if left.get("is_own") {
            match session.run(&format!("DROP SCHEMA {}", identifier(&self.schema))).await {
                // Somebody has put something there.
                Ok(()) | Err(ConnectError::Query { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn table_name(arm: usize) -> String {
    format!("pgrig_micro_{}", arm + 1)
}
