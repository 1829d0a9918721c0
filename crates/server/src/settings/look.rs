//! The values of settings, and whether they may be changed: asked before anything is touched.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::error::SettingsError;
use super::record::Before;
use super::tables::{self, Loggable};
use crate::info::removal;
use crate::quote::identifier;
use crate::session::{Session, Sessions};
use connect::{ConnectError, Target};

/// Settings that hold lists of names: ALTER SYSTEM would quote their text as one name
/// (pg_dump's variable_is_guc_list_quote).
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Scope that a change of a setting needs, the smallest that suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// One session: each session sets it for itself, no other session notices, and nothing has to
    /// be restored.
    Session,
    /// The whole server, when it loads its configuration again.
    Reload,
    /// The whole server, when it starts.
    Restart,
}

impl Effect {
    /// The name in run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Reload => "reload",
            Self::Restart => "restart",
        }
    }
}

/// A setting that may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeable {
    /// Values before the change.
    pub before: Before,
    /// Scope of the change.
    pub effect: Effect,
}

/// Whether and how the server can be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// pgrig can restart it.
    Possible,
    /// It cannot be restarted: the reason, and the remedy.
    Impossible(&'static str),
}

/// Settings and tables to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToChange {
    /// Names of settings.
    pub settings: Vec<String>,
    /// Names of tables to be made unlogged, as SQL has them.
    pub tables: Vec<String>,
    /// Whether the server can be restarted, for settings that need it.
    pub restart: Restart,
}

/// Result of [`ToChange::look`]: all of the changes are possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The settings, in the same order.
    pub settings: Vec<Changeable>,
    /// The tables, or their leaves, in an order in which they can be made unlogged.
    pub tables: Vec<Loggable>,
}

impl ToChange {
    /// Checks the settings and tables to change. Changes nothing.
    ///
    /// # Errors
    /// If some of it cannot be changed by this role, or at all.
    pub async fn look(&self, target: &Target) -> Result<Looked, SettingsError> {
        let session = Sessions::new(target).open().await?;
        let looked = self.look_in(&session).await;
        session.connection.close().await;
        looked
    }

    async fn look_in(&self, session: &Session) -> Result<Looked, SettingsError> {
        Ok(Looked {
            settings: look_at_settings(session, &self.settings, self.restart).await?,
            tables: tables::look(session, &self.tables).await?,
        })
    }
}

async fn look_at_settings(
    session: &Session,
    names: &[String],
    restart: Restart,
) -> Result<Vec<Changeable>, SettingsError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let rights = session.row(include_str!("../sql/settings_rights.sql"), &[]).await?;
    let mut changeable = Vec::new();
    for name in names {
        let rows = session.rows(include_str!("../sql/settings_look.sql"), &[name]).await?;
        let Some(row) = rows.first() else {
            let alike = session.row(include_str!("../sql/setting_alike.sql"), &[name]).await?.get("alike");
            return Err(SettingsError::Unknown { name: name.clone(), alike });
        };
        let found = changeable_if(row, restart)?;
        // A value that a session sets itself overrides all of these.
        if found.effect != Effect::Session
            && let Some((by, remedy)) = stronger(session, row.get("source"), &found.before.name).await?
        {
            return Err(SettingsError::Overridden { name: found.before.name, by, remedy });
        }
        changeable.push(found);
    }
    let reloaded = changeable.iter().filter(|found| found.effect == Effect::Reload);
    refuse_without_rights(session, &rights, reloaded.map(|found| found.before.name.as_str()).collect())
        .await?;
    if rights.get("sees_files") {
        let altered = altered(session).await?;
        for found in &mut changeable {
            found.before.altered = altered.get(&found.before.name.to_ascii_lowercase()).cloned();
        }
    }
    Ok(changeable)
}

/// Reads a row of `settings_look.sql`.
fn changeable_if(row: &Row, restart: Restart) -> Result<Changeable, SettingsError> {
    let name: String = row.get("name");
    let context: &str = row.get("context");
    let effect = match (context, restart) {
        ("internal", _) => return Err(SettingsError::Fixed { name }),
        ("postmaster", Restart::Impossible(why)) => return Err(SettingsError::Restart { name, why }),
        ("postmaster", Restart::Possible) => Effect::Restart,
        ("user", _) => Effect::Session,
        _ => Effect::Reload,
    };
    if LISTS.contains(&name.as_str()) {
        return Err(SettingsError::List { name });
    }
    let altered = row.get::<_, bool>("is_altered").then(|| row.get("setting"));
    Ok(Changeable { before: Before { name, altered, shown: row.get("shown") }, effect })
}

/// The source of a setting on which ALTER SYSTEM has no effect (guc.h, GucSource), and the remedy.
pub(super) async fn stronger(
    session: &Session,
    source: &str,
    name: &str,
) -> Result<Option<(&'static str, String)>, ConnectError> {
    let by = match source {
        "command line" => "on the server's command line",
        "environment variable" => "by an environment variable of the server",
        "global" => "for all roles",
        "user" => "for this role",
        "database user" => "for this role in this database",
        "database" => "for this database",
        "client" => "by the connection",
        _ => return Ok(None),
    };
    match removal(&session.connection.client, name).await {
        Ok(remedy) => Ok(Some((by, remedy))),
        Err(error) => Err(session.connection.explain(error).await),
    }
}

/// The contents of postgresql.auto.conf; none if the role may not see them.
pub(super) async fn altered_if_visible(
    session: &Session,
) -> Result<Option<HashMap<String, String>>, ConnectError> {
    let rights = session.row(include_str!("../sql/settings_rights.sql"), &[]).await?;
    if rights.get("sees_files") { Ok(Some(altered(session).await?)) } else { Ok(None) }
}

/// The contents of postgresql.auto.conf, by name in lower case.
async fn altered(session: &Session) -> Result<HashMap<String, String>, ConnectError> {
    let query = "SELECT lower(name), setting FROM pg_file_settings \
                 WHERE sourcefile LIKE '%/postgresql.auto.conf' AND setting IS NOT NULL ORDER BY seqno";
    let rows = session.rows(query, &[]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Refuses if the role lacks privileges: names all of them, with the statements that grant them.
async fn refuse_without_rights(
    session: &Session,
    rights: &Row,
    names: Vec<&str>,
) -> Result<(), SettingsError> {
    if names.is_empty() {
        return Ok(());
    }
    let role: String = rights.get("role");
    let refused =
        |what: String, remedy: String| Err(SettingsError::NotAllowed { role: role.clone(), what, remedy });
    if !rights.get::<_, bool>("allowed") {
        return refused(
            "the server forbids ALTER SYSTEM, because allow_alter_system is off".to_owned(),
            "have the administrator of the server set it to on".to_owned(),
        );
    }
    if rights.get("superuser") {
        return Ok(());
    }
    let superuser = "connect as a superuser; on a managed server, change the setting in its console and leave it \
                     out of the command";
    if rights.get::<_, i32>("version_num") < 150_000 {
        return refused(
            "before PostgreSQL 15, only superusers may change them".to_owned(),
            superuser.to_owned(),
        );
    }
    let (mut lacking, mut grants) = (Vec::new(), Vec::new());
    let mut lacks = |what: String, grant: String| {
        lacking.push(what);
        grants.push(format!("GRANT {grant} TO {};", identifier(&role)));
    };
    let query = "SELECT string_agg(name, ', ') FROM unnest($1::text[]) AS name \
                 WHERE NOT has_parameter_privilege(name, 'ALTER SYSTEM')";
    if let Some(names) = session.row(query, &[&names]).await?.get::<_, Option<String>>(0) {
        lacks(format!("ALTER SYSTEM SET {names}"), format!("ALTER SYSTEM ON PARAMETER {names}"));
    }
    if !rights.get::<_, bool>("may_reload") {
        let function = "pg_reload_conf()";
        lacks(function.to_owned(), format!("EXECUTE ON FUNCTION {function}"));
    }
    if !rights.get::<_, bool>("sees_files") && !rights.get::<_, bool>("sees_sources") {
        let what = "the right to read postgresql.auto.conf, which pgrig needs to restore it";
        lacks(what.to_owned(), "pg_read_all_settings".to_owned());
    }
    if grants.is_empty() {
        return Ok(());
    }
    // Rights on functions are each database's own.
    let database = identifier(rights.get("database"));
    let remedy = format!(
        "have a superuser run this in database {database}: {} Otherwise, {superuser}",
        grants.join(" ")
    );
    refused(format!("it lacks {}", lacking.join(", and ")), remedy)
}
