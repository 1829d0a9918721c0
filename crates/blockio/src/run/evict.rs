//! Evicts a table from shared_buffers, if SQL can: PostgreSQL 18's pg_buffercache, for superusers.

use serde::Serialize;

use crate::error::BlockioError;
use crate::plan::Names;
use crate::request::Mode;
use connect::{ConnectError, Connection};
use server::Session;
use server::Survey;
use server::ask;
use server::quote::{identifier, literal, qualified};

/// The first major version whose pg_buffercache evicts whole relations.
const FIRST_MAJOR: u32 = 18;
/// The extension that does it.
pub(crate) const EXTENSION: &str = "pg_buffercache";

/// Means to evict a table before its first scan and its lookups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eviction {
    /// By the extension, which is installed in this schema.
    Extension {
        /// Schema of the extension's functions.
        schema: String,
    },
    /// By the extension, which is created for the run and dropped after it.
    CreateExtension,
    /// Tables are not evicted, for this reason.
    None {
        /// The reason, as a phrase.
        because: String,
    },
}

impl Eviction {
    pub(crate) async fn ask(
        connection: &Connection,
        survey: &Survey,
        mode: Mode,
    ) -> Result<Self, BlockioError> {
        let none = |because: &str| Ok(Self::None { because: because.to_owned() });
        if mode == Mode::Compat {
            return none("the published statements do not evict pages from shared_buffers");
        }
        if survey.server.major() < FIRST_MAJOR {
            return none("PostgreSQL before 18 has no function that evicts a table from shared_buffers");
        }
        let row = ask(connection, include_str!("../sql/eviction.sql"), &[]).await?;
        if !row.get::<_, bool>("superuser") {
            return none(&format!(
                "role {} is not a superuser, and only superusers may evict pages: connect as a superuser",
                survey.server.role
            ));
        }
        if let Some(schema) = row.get("schema") {
            return Ok(Self::Extension { schema });
        }
        if row.get("installed") {
            return none(
                "the extension pg_buffercache is too old: run ALTER EXTENSION pg_buffercache UPDATE",
            );
        }
        if !row.get::<_, bool>("available") {
            return none(
                "the extension pg_buffercache is not installed on the server's machine: install the package \
                 postgresql-contrib there",
            );
        }
        Ok(Self::CreateExtension)
    }

    /// Evicts table and index; returns the number of evicted buffers.
    ///
    /// # Errors
    /// If the server refuses.
    pub(crate) async fn evict(
        &self,
        session: &Session,
        own_schema: &str,
        names: &Names,
        has_index: bool,
    ) -> Result<Option<u64>, ConnectError> {
        let extension = match self {
            Self::Extension { schema } => schema.as_str(),
            Self::CreateExtension => own_schema,
            Self::None { .. } => return Ok(None),
        };
        let mut evicted = 0;
        for relation in [&names.table, &names.index].into_iter().take(1 + usize::from(has_index)) {
            let query = format!(
                "SELECT buffers_evicted FROM {}.pg_buffercache_evict_relation({}::regclass)",
                identifier(extension),
                literal(&qualified(own_schema, relation))
            );
            let row = session.row(&query, &[]).await?;
            evicted += u64::try_from(row.get::<_, i32>(0)).unwrap_or_default();
        }
        Ok(Some(evicted))
    }
}
