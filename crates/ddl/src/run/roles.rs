//! Roles that a run makes: the body of a DO, in the migration or in the schema, may create some. They are of the whole server, and would outlive
//! the databases.
//!
//! The next run of the migration would fail because of those of the run before it, so they are dropped in between. Those of the schema stay as long
//! as the filled databases. Others may create roles on the same server meanwhile, of any name: pgrig drops only roles that it has proved to be of
//! its run. The proof is the transaction that makes them: as long as it is open, its own session sees them, and no other session does.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, SqlState};
use futures_util::future::LocalBoxFuture;
use server::Session;
use server::quote::{identifier, shown};

use super::failure;
use crate::script::Statement;

/// See the module.
#[derive(Default)]
pub(crate) struct Roles {
    /// The roles before the run, by OID; nothing until they are read.
    before: OnceCell<BTreeSet<u32>>,
    /// The roles that the schema has made.
    of_schema: RefCell<BTreeSet<u32>>,
    /// The roles that the migration has made, in any of its runs.
    of_migration: RefCell<BTreeSet<u32>>,
    /// The statements that have made roles.
    makers: RefCell<BTreeSet<String>>,
}

impl Roles {
    /// The run begins.
    pub(crate) async fn begin(&self, session: &Session) -> Result<(), ConnectError> {
        let before: BTreeSet<u32> = all(session).await?.into_keys().collect();
        let _ = self.before.set(before);
        Ok(())
    }

    /// Notes the roles that the open transaction of a session has made; it is the one that creates the schema. `beside` is another session.
    pub(crate) async fn note_schema(&self, session: &Session, beside: &Session) -> Result<(), ConnectError> {
        let made = made_in(session, beside).await?;
        self.of_schema.borrow_mut().extend(made);
        Ok(())
    }

    /// Notes the roles that the open transaction of a session has made; this statement of the migration was its last one. `beside` is another
    /// session.
    pub(crate) fn note<'a>(
        &'a self,
        statement: &'a Statement,
        (session, beside): (&'a Session, &'a Session),
    ) -> LocalBoxFuture<'a, Result<(), ConnectError>> {
        Box::pin(async move {
            let mut made = made_in(session, beside).await?;
            made.retain(|oid| !self.of_migration.borrow().contains(oid));
            if !made.is_empty() {
                self.makers.borrow_mut().insert(statement.sql.clone());
                self.of_migration.borrow_mut().extend(made);
            }
            Ok(())
        })
    }

    /// Runs a statement of the migration. If it has made roles before, it runs in a transaction, so that those which it makes now are noted.
    pub(crate) fn run<'a>(
        &'a self,
        statement: &'a Statement,
        (session, beside): (&'a Session, &'a Session),
        is_in_transaction: bool,
    ) -> LocalBoxFuture<'a, Result<(), ConnectError>> {
        Box::pin(async move {
            let sql = statement.sql.as_str();
            let makes_roles = self.makers.borrow().contains(sql);
            if !makes_roles {
                return session.run(sql).await;
            }
            if is_in_transaction {
                session.run(sql).await?;
                return self.note(statement, (session, beside)).await;
            }
            session.run("BEGIN").await?;
            if let Err(error) = session.run(sql).await {
                if failure::is_of_statement(&error) {
                    session.run("ROLLBACK").await?;
                }
                return Err(error);
            }
            self.note(statement, (session, beside)).await?;
            session.run("COMMIT").await
        })
    }

    /// Drops the roles that the migration has made. What the server refuses stays until [`Self::end`].
    pub(crate) async fn drop_new(&self, session: &Session) -> Result<(), ConnectError> {
        let made = self.of_migration.borrow().clone();
        if !made.is_empty() {
            drop_each(session, &among(&all(session).await?, &made)).await?;
        }
        Ok(())
    }

    /// The roles that the schema has made.
    pub(crate) async fn made(&self, session: &Session) -> Result<Vec<String>, ConnectError> {
        let made = self.of_schema.borrow().clone();
        if made.is_empty() { Ok(Vec::new()) } else { Ok(among(&all(session).await?, &made)) }
    }

    /// Drops the roles that this run has made, after its databases. Returns a warning for each that stays, and for each that may be of the run.
    pub(crate) async fn end(&self, session: &Session) -> Result<Vec<String>, ConnectError> {
        let Some(before) = self.before.get() else { return Ok(Vec::new()) };
        let made = &*self.of_schema.borrow() | &*self.of_migration.borrow();
        let all = all(session).await?;
        let refused = drop_each(session, &among(&all, &made)).await?;
        let refused = refused.iter().map(|(name, why)| {
            format!(
                "pgrig could not drop role {}, which this run made: {why}. Drop the role yourself",
                shown(name)
            )
        });
        let others = all.iter().filter(|(oid, _)| !before.contains(*oid) && !made.contains(*oid));
        let others = others.map(|(_, name)| {
            let name = shown(name);
            format!(
                "role {name} is new on the server. Nothing proves that this run made it, so pgrig did not drop it: if a DO of the migration or of \
                 the schema made it, run DROP ROLE {name}"
            )
        });
        Ok(refused.chain(others).collect())
    }
}

/// The roles that the open transaction of a session has made, by OID. Roles that others have made since are seen by both sessions; one that they
/// have dropped since is no more.
async fn made_in(session: &Session, beside: &Session) -> Result<BTreeSet<u32>, ConnectError> {
    let seen = all(session).await?;
    let committed = all(beside).await?;
    Ok(seen.into_keys().filter(|oid| !committed.contains_key(oid)).collect())
}

/// The names of those roles that have these OIDs.
fn among(all: &BTreeMap<u32, String>, oids: &BTreeSet<u32>) -> Vec<String> {
    all.iter().filter(|(oid, _)| oids.contains(*oid)).map(|(_, name)| name.clone()).collect()
}

/// The names of all roles that are not the server's own, by OID.
async fn all(session: &Session) -> Result<BTreeMap<u32, String>, ConnectError> {
    let query = "SELECT oid, rolname::text AS name FROM pg_catalog.pg_roles WHERE oid >= 16384";
    let rows = session.rows(query, &[]).await?;
    Ok(rows.iter().map(|row| (row.get("oid"), row.get("name"))).collect())
}

/// Drops roles. Returns those that the server refuses to drop, with the reasons.
async fn drop_each(session: &Session, names: &[String]) -> Result<Vec<(String, String)>, ConnectError> {
    // Together first: one may have granted the membership of another.
    if names.is_empty() || drop_together(session, names).await?.is_none() {
        return Ok(Vec::new());
    }
    let mut refused = Vec::new();
    for name in names {
        if let Some(why) = drop_together(session, std::slice::from_ref(name)).await? {
            refused.push((name.clone(), why));
        }
    }
    Ok(refused)
}

/// Drops all of these roles, or none: then why.
async fn drop_together(session: &Session, names: &[String]) -> Result<Option<String>, ConnectError> {
    let list: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    match session.run(&format!("DROP ROLE IF EXISTS {}", list.join(", "))).await {
        Err(error)
            if failure::is_of_statement(&error) && error.sqlstate() != Some(&SqlState::QUERY_CANCELED) =>
        {
            Ok(Some(failure::of(&error).message))
        }
        done => done.map(|()| None),
    }
}
