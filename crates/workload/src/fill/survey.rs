//! What has to be known, and what is refused, before a fill is planned.

use std::path::{Path, PathBuf};

use measure::{Disk, Environment};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::direct::{Ground, NotDirect};
use super::error::FillError;
use super::limits::{Sight, SpaceRule, WalFacts};
use super::plan::{Plan, Prediction};
use super::planner::{Found, Site};
use super::predict::Sizes;
use super::request::{Amount, InitStep, Request, Subject};
use super::roster::Roster;
use super::tables::Tables;
use super::{ledger, own_table, present, verify};
use crate::connect::Connection;
use crate::machine;
use crate::server::{OLDEST_VERSION, ServerInfo};
use crate::surroundings::environment;
use crate::volume::Volumes;

/// How the server's data directory is known.
#[derive(Clone, Debug)]
pub enum DataDirectory {
    /// It is pgrig's own server's.
    Own(PathBuf),
    /// Somebody says that this machine sees it here; it has to be proved.
    Named(PathBuf),
    /// The server is asked, and believed only when the directory is proved to be here.
    Asked,
}

/// A server seen with a fill in mind.
pub struct Survey {
    /// Its build and settings.
    pub server: ServerInfo,
    /// Where it runs.
    pub site: Site,
    /// The run document's part about all this.
    pub environment: Environment,
    /// What its tables' pages can be written on, or why they cannot.
    pub ground: Result<Ground, NotDirect>,
    /// Where the server's files are, if they can be seen.
    data_directory: Option<PathBuf>,
}

impl Survey {
    /// Looks at the server.
    ///
    /// # Errors
    /// If the server cannot be asked or cannot be filled at all, or if the directory that was named is
    /// not its.
    pub async fn of(connection: &Connection, data_directory: &DataDirectory) -> Result<Self, FillError> {
        let server = match ServerInfo::ask(&connection.client).await {
            Ok(server) => server,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        if server.version_num < OLDEST_VERSION {
            return Err(FillError::TooOld { version: server.version });
        }
        if server.in_recovery {
            return Err(FillError::InRecovery);
        }
        if server.read_only {
            return Err(FillError::ReadOnly);
        }
        let directory = match data_directory {
            DataDirectory::Own(directory) => Some(directory.clone()),
            DataDirectory::Named(directory) => Some(named(connection, directory).await?),
            DataDirectory::Asked => machine::data_directory(connection, &server).await,
        };
        let environment = environment(connection, &server, directory.as_deref());
        let local = environment.server_is_local == Some(true);
        let site = Site {
            cores: local.then_some(environment.client.cores),
            memory: local.then_some(environment.client.memory),
            remote: !local && !machine::is_loopback(&connection.transport),
            own: matches!(data_directory, DataDirectory::Own(_)),
        };
        let ground = match Ground::of(&connection.client, &server, directory.as_deref()).await {
            Ok(ground) => ground,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        Ok(Self { server, site, environment, ground, data_directory: directory })
    }

    /// What can be seen of the volumes that the plan fills; none of a remote server's.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn sight(&self, connection: &Connection, plan: &Plan) -> Result<Option<Sight>, FillError> {
        let Some(directory) = &self.data_directory else { return Ok(None) };
        let look = async {
            let (tables, indexes) = (plan.tablespace.as_deref(), plan.index_tablespace.as_deref());
            let Some(volumes) = Volumes::of(&connection.client, directory, tables, indexes).await? else {
                return Ok(None);
            };
            let facts = WalFacts::ask(&connection.client).await?;
            Ok(Some(Sight::new(&volumes, SpaceRule::new(&volumes, &facts, plan.wal_use()))))
        };
        match look.await {
            Ok(sight) => Ok(sight),
            Err(error) => Err(connection.explain(error).await.into()),
        }
    }

    /// Plans the request for this server, or refuses it. Nothing is touched. With `resume` a fill of the
    /// same request that was interrupted is completed.
    ///
    /// # Errors
    /// If the request cannot be met: see [`FillError`].
    pub async fn plan(
        &self,
        connection: &Connection,
        request: &Request,
        resume: bool,
    ) -> Result<Plan, FillError> {
        request.check()?;
        if let Some(schema) = &request.schema {
            refuse_odd_name(schema)?;
        }
        let plan = if let Subject::Table(own) = &request.subject {
            own_table::plan(self, connection, request, own, resume).await?
        } else {
            for tablespace in request.tablespace.iter().chain(&request.index_tablespace) {
                present::refuse_tablespace(connection, tablespace).await?;
            }
            let (request, found) = find(connection, request, resume).await?;
            let plan = Plan::new(&request, &self.server, self.site, &self.ground, found)?;
            if plan.emptied {
                present::refuse_other_shape(connection, &plan).await?;
            }
            plan
        };
        // Of an interrupted fill some is there already, and has its space.
        if let Some(disk) = self.environment.data_volume.as_ref().filter(|_| plan.unfinished.is_none()) {
            refuse_too_little(disk, &plan)?;
        }
        Ok(plan)
    }
}

impl Survey {
    /// Where the server's files are, if they can be seen.
    pub fn data_directory(&self) -> Option<&Path> {
        self.data_directory.as_deref()
    }

    /// Where the server runs.
    pub(super) fn is_remote(&self) -> bool {
        self.site.remote
    }
}

/// The directory that somebody says is the server's, if it is.
async fn named(connection: &Connection, directory: &Path) -> Result<PathBuf, FillError> {
    let problem = match machine::is_data_directory(connection, directory).await {
        Ok(Ok(true)) => return Ok(directory.to_owned()),
        Ok(Ok(false)) => "it belongs to another one (its system identifier differs)".to_owned(),
        Ok(Err(error)) => format!("its global/pg_control cannot be read ({error})"),
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    Err(FillError::DataDirectory { path: directory.display().to_string(), problem })
}

/// Names that CREATE SCHEMA would refuse, or cut short.
pub(crate) fn refuse_odd_name(schema: &str) -> Result<(), FillError> {
    // NAMEDATALEN less the final zero byte.
    let fits = (1..=63).contains(&schema.len());
    if fits && !schema.starts_with("pg_") && schema != "information_schema" {
        return Ok(());
    }
    Err(FillError::SchemaName { schema: schema.to_owned() })
}

fn refuse_too_little(disk: &Disk, plan: &Plan) -> Result<(), FillError> {
    // A table that grows until it has its size is predicted chunk by chunk.
    let predicted = match plan.request.amount {
        Amount::Size(size) if plan.until_size.is_some() => Prediction {
            sizes: Sizes { heap: size, index: 0 },
            wal: if plan.predicted.wal > 0 { size } else { 0 },
            temporary: 0,
        },
        _ => plan.predicted,
    };
    // Dropped tables are truncated at the commit of the drop, so their space comes back in time.
    let free = disk.free + plan.dropped_bytes;
    if predicted.peak() <= free {
        return Ok(());
    }
    Err(FillError::Disk {
        needed: predicted.peak(),
        total: predicted.sizes.total(),
        wal: predicted.wal,
        temporary: predicted.temporary,
        free,
        mount: disk.mount.clone(),
    })
}

/// Looks for the schema, for what is in the way, and for what is to be completed or added to. What is
/// there already decides over what was asked for.
async fn find(
    connection: &Connection,
    request: &Request,
    resume: bool,
) -> Result<(Request, Found), FillError> {
    let tables = Tables::new(&request.subject, 1, 1, request.payload);
    let relations = tables.relations(request.partitions);
    let ledger = ledger::name(&tables.bulk.name);
    let query = include_str!("../sql/schema.sql");
    let row = ask(connection, query, &[&request.schema, &relations, &ledger]).await?;
    let (schema, schema_exists) = usable_schema(&row)?;
    let mut taken: Vec<String> = row.get("taken");
    let missing: Vec<String> = tables.all().map(|table| table.name.clone()).collect();
    let missing: Vec<String> = missing.into_iter().filter(|name| !taken.contains(name)).collect();
    let creates = request.steps.include(InitStep::Create);
    let drops = request.steps.include(InitStep::Drop);
    let (request, present) = if creates || !missing.is_empty() {
        (request.clone(), None)
    } else {
        let (request, present) = present::adjusted(connection, request, &schema, &tables.bulk.name).await?;
        (request, Some(present))
    };
    let bytes = u64::try_from(row.get::<_, i64>("taken_bytes")).unwrap_or_default();
    let mut found = Found { schema, schema_exists, bytes, present, ..Found::default() };
    if row.get::<_, bool>("ledger_exists") {
        let comment: Option<String> = row.get("ledger_comment");
        let unfinished =
            ledger::read(connection, &found.schema, &tables.bulk.name, comment.as_deref()).await?;
        let unfinished = unfinished.filter(|begun| resume && request.is_that_of(&begun.charter.request));
        if let Some(begun) = unfinished {
            let now = Roster::ask(connection, &found.schema, &tables, begun.charter.roster.routes).await?;
            verify::same_tables(&request, now.as_ref(), &begun)?;
            found.unfinished = Some(begun);
            return Ok((request, found));
        }
        if resume && !drops {
            return Err(FillError::Unfinished { schema: found.schema, may_forget: !creates });
        }
        found.stale_ledger = true;
    }
    if !creates {
        if !missing.is_empty() {
            return Err(FillError::NoTables { schema: found.schema, tables: missing });
        }
        (found.rows, found.scale) = present::rows(connection, &request, &found.schema, &tables).await?;
        return Ok((request, found));
    }
    if !taken.is_empty() && !drops {
        let all_there = missing.is_empty() && request.steps.include(InitStep::Generate);
        let emptied = all_there && present::is_emptied(connection, &found.schema, &tables).await?;
        if emptied && request.subject == Subject::Pgbench {
            return Ok((request, Found { emptied, ..found }));
        }
        return Err(FillError::TablesExist { schema: found.schema, tables: taken, emptied });
    }
    if let Some(name) = row.get::<_, Vec<String>>("taken_by_others").pop() {
        return Err(FillError::NotATable { schema: found.schema, name });
    }
    found.tables.append(&mut taken);
    Ok((request, found))
}

/// Whether the schema for new tables exists; refuses one that the role may not create or use.
pub(crate) async fn schema_for_tables(
    connection: &Connection,
    schema: Option<&str>,
) -> Result<bool, FillError> {
    let none: Vec<String> = Vec::new();
    let row = ask(connection, include_str!("../sql/schema.sql"), &[&schema, &none, &""]).await?;
    usable_schema(&row).map(|(_, exists)| exists)
}

/// The schema's name and whether it exists, from `schema.sql`.
fn usable_schema(row: &Row) -> Result<(String, bool), FillError> {
    let role: String = row.get("role");
    let Some(schema) = row.get::<_, Option<String>>("schema") else {
        return Err(FillError::NoSchema);
    };
    let exists: bool = row.get("schema_exists");
    if !exists && !row.get::<_, bool>("may_create_schema") {
        let database = row.get("database");
        return Err(FillError::CreateSchemaPrivilege { role, schema, database });
    }
    if exists && !row.get::<_, bool>("may_create_tables") {
        return Err(FillError::SchemaPrivilege { role, schema });
    }
    Ok((schema, exists))
}

/// One row of a query about the server.
pub(crate) async fn ask(
    connection: &Connection,
    query: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Row, FillError> {
    match connection.client.query_one(query, parameters).await {
        Ok(row) => Ok(row),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
