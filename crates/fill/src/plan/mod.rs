//! From a request and a surveyed server to a plan: what is there already is found, and refusals come first.

pub(crate) mod chunks;
mod data;
mod forecast;
mod own_table;
pub(crate) mod present;
pub(crate) mod row_range;
mod rules;
pub(crate) mod sizes;
pub(crate) mod tables;

pub use chunks::{Chunking, Spread};
pub use data::{IndexBuild, Method, Plan, Prediction, RowKey, Rows};
pub use present::Present;
pub use rules::Found;
pub use sizes::{Calculation, Sizes};

use connect::Connection;
use measure::Disk;
use server::volume::Volumes;
use server::{FoundSchema, Survey, ask, refuse_odd_name, schema_for_tables};

use crate::error::FillError;
use crate::ledger;
use crate::ledger::relations::Roster;
use crate::limits::{Sight, SpaceRule, WalFacts};
use crate::plan::tables::Tables;
use crate::request::{Amount, InitStep, Request, Subject};
use crate::run::direct::Ground;
use crate::run::resume;

/// What can be seen of the volumes that the plan fills; none of a remote server's.
///
/// # Errors
/// If the server cannot be asked.
pub async fn sight(
    survey: &Survey,
    connection: &Connection,
    plan: &Plan,
) -> Result<Option<Sight>, FillError> {
    let Some(directory) = &survey.data_directory else { return Ok(None) };
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
    survey: &Survey,
    connection: &Connection,
    request: &Request,
    resume: bool,
) -> Result<Plan, FillError> {
    request.check()?;
    if let Some(schema) = &request.schema {
        refuse_odd_name(schema)?;
    }
    let ground = Ground::of(&connection.client, &survey.server, survey.data_directory.as_deref()).await;
    let ground = match ground {
        Ok(ground) => ground,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    let plan = if let Subject::Table(own) = &request.subject {
        own_table::plan(survey, &ground, connection, request, own, resume).await?
    } else {
        for tablespace in request.tablespace.iter().chain(&request.index_tablespace) {
            present::refuse_tablespace(connection, tablespace).await?;
        }
        let (request, found) = find(connection, request, resume).await?;
        let plan = Plan::new(&request, &survey.server, survey.site, &ground, found)?;
        if plan.emptied {
            present::refuse_other_shape(connection, &plan).await?;
        }
        plan
    };
    // Of an interrupted fill some is there already, and has its space.
    if let Some(disk) = survey.environment.data_volume.as_ref().filter(|_| plan.unfinished.is_none()) {
        refuse_too_little(disk, &plan)?;
    }
    Ok(plan)
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
    let FoundSchema { name: schema, exists: schema_exists } =
        schema_for_tables(connection, request.schema.as_deref()).await?;
    let row =
        ask(connection, include_str!("../sql/tables_there.sql"), &[&schema, &relations, &ledger]).await?;
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
            resume::same_tables(&request, now.as_ref(), &begun)?;
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
