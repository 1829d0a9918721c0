//! Roles that a run makes: the body of a DO, in the migration or in the schema, may create some. They are of the whole server, and would outlive
//! the databases.
//!
//! The next run of the migration would fail because of those of the run before it, so they are dropped in between. Those of the schema stay as long
//! as the filled databases. Others may create roles on the same server meanwhile: pgrig drops only roles whose names the texts have.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, SqlState};
use server::Session;
use server::quote::{identifier, shown};

use super::failure;
use crate::request::Request;

/// See the module.
pub(crate) struct Roles {
    /// The texts of the migration and of the schema, in lower case.
    texts: String,
    /// The roles before the run, by OID; nothing until they are read.
    before: OnceCell<BTreeSet<u32>>,
    /// The roles before the last run of the migration.
    known: RefCell<BTreeSet<u32>>,
}

impl Roles {
    pub(crate) fn of(request: &Request) -> Self {
        let statements = request.script.statements.iter().map(|one| one.sql.as_str());
        let texts: Vec<&str> = statements.chain([request.schema.sql.as_str()]).collect();
        Self { texts: texts.join("\n").to_lowercase(), before: OnceCell::new(), known: RefCell::default() }
    }

    /// The run begins.
    pub(crate) async fn begin(&self, session: &Session) -> Result<(), ConnectError> {
        let before: BTreeSet<u32> = all(session).await?.into_keys().collect();
        let _ = self.before.set(before.clone());
        *self.known.borrow_mut() = before;
        Ok(())
    }

    /// The migration is about to run.
    pub(crate) async fn note(&self, session: &Session) -> Result<(), ConnectError> {
        let known: BTreeSet<u32> = all(session).await?.into_keys().collect();
        *self.known.borrow_mut() = known;
        Ok(())
    }

    /// Drops the roles that the last run of the migration has made. What the server refuses stays until [`Self::end`].
    pub(crate) async fn drop_new(&self, session: &Session) -> Result<(), ConnectError> {
        let all = all(session).await?;
        let (named, _) = self.beyond(all, &self.known.borrow());
        drop_each(session, &named).await?;
        Ok(())
    }

    /// The roles that were made since the run began.
    pub(crate) async fn made(&self, session: &Session) -> Result<Vec<String>, ConnectError> {
        let all = all(session).await?;
        Ok(self.before.get().map_or_else(Vec::new, |before| self.beyond(all, before).0))
    }

    /// Drops the roles that were made since the run began, after its databases. Returns a warning for each that stays.
    pub(crate) async fn end(&self, session: &Session) -> Result<Vec<String>, ConnectError> {
        let Some(before) = self.before.get() else { return Ok(Vec::new()) };
        let (named, others) = self.beyond(all(session).await?, before);
        let refused = drop_each(session, &named).await?;
        let refused = refused.iter().map(|(name, why)| {
            format!(
                "pgrig could not drop role {}, which this run made: {why}. Drop the role yourself",
                shown(name)
            )
        });
        let others = others.iter().map(|name| {
            format!(
                "role {} is new on the server. Neither the migration nor the schema names it, so pgrig did not drop it: if a DO made it, drop it",
                shown(name)
            )
        });
        Ok(refused.chain(others).collect())
    }

    /// The names of all roles but the known ones: those that the texts name, and the others.
    fn beyond(&self, all: BTreeMap<u32, String>, known: &BTreeSet<u32>) -> (Vec<String>, Vec<String>) {
        let new = all.into_iter().filter(|(oid, _)| !known.contains(oid)).map(|(_, name)| name);
        new.partition(|name| has_word(&self.texts, &name.to_lowercase()))
    }
}

/// Whether the text has the word, not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(continues) && !text[at + word.len()..].starts_with(continues))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        let text = "do $$ begin create role app; create role \"odd-one\"; end $$";
        for (word, has) in [("app", true), ("odd-one", true), ("ap", false), ("one", true), ("end $$", true)]
        {
            assert_eq!(has_word(text, word), has, "{word}");
        }
        assert!(!has_word("create role app_owner", "app"));
        assert!(has_word("create role app_owner; drop role app", "app"));
    }
}
