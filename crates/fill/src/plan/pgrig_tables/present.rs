//! The rows and tables that exist, where steps work on existing tables.

use rowgen::Kind;
use rowgen::pgbench::TELLERS_PER_SCALE;

use crate::error::FillError;
use crate::ledger::relations::{Relation, Relations};
use crate::plan::Plan;
use crate::plan::tables::{TableNames, bound, key, leaves};
use crate::request::{Persistence, Request, Subject};
use connect::Connection;
use measure::human::counted;
use server::ask;
use server::quote::{qualified, shown};

/// The table that other programs write to: it may have rows before a fill.
const HISTORY: &str = "pgbench_history";

/// Rows of the bulk table by its largest id, and of pgbench_branches. Without an index on the id the
/// whole table is read.
///
/// # Errors
/// If the table has rows that the request does not want to add to.
pub(in crate::plan) async fn rows(
    connection: &Connection,
    request: &Request,
    schema: &str,
    tables: &TableNames,
) -> Result<(u64, u64), FillError> {
    use crate::request::InitStep::Generate;
    if !request.steps.include(Generate) || request.subject == Subject::Series {
        return Ok((0, 0));
    }
    let bulk = qualified(schema, &tables.bulk);
    if !request.append {
        for table in tables.all().filter(|name| *name != HISTORY) {
            let query = format!("SELECT EXISTS (SELECT FROM {})", qualified(schema, table));
            if ask(connection, &query, &[]).await?.get(0) {
                return Err(FillError::HasRows { schema: schema.to_owned(), table: table.clone() });
            }
        }
        return Ok((0, 0));
    }
    let query = format!("SELECT coalesce(max(aid), 0)::bigint FROM {bulk}");
    let rows = u64::try_from(ask(connection, &query, &[]).await?.get::<_, i64>(0)).unwrap_or_default();
    let branches = whole(connection, schema, "pgbench_branches", "bid").await?;
    let tellers = whole(connection, schema, "pgbench_tellers", "tid").await?;
    let problem = if branches == 0 && rows > 0 {
        "pgbench_branches is empty, and pgbench_accounts is not".to_owned()
    } else if rows == 0 && branches > 0 {
        format!("pgbench_accounts is empty, and pgbench_branches has {}", counted(branches, "row"))
    } else if tellers != branches * TELLERS_PER_SCALE {
        format!(
            "pgbench_tellers has {} for {branches} {} instead of {TELLERS_PER_SCALE} for each",
            counted(tellers, "row"),
            if branches == 1 { "branch" } else { "branches" }
        )
    } else {
        refuse_lost_leaves(connection, schema, tables).await?;
        return Ok((rows, branches));
    };
    Err(FillError::NotWhole { problem })
}

/// Number of rows of a small table. Its ids must be 1 to that number, because new ids continue from
/// it.
async fn whole(connection: &Connection, schema: &str, table: &str, key: &str) -> Result<u64, FillError> {
    let name = qualified(schema, table);
    let query = format!(
        "SELECT count(*), coalesce(min({key}), 1)::bigint, coalesce(max({key}), 0)::bigint FROM {name}"
    );
    let row = ask(connection, &query, &[]).await?;
    let (rows, first, last): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if (first, last) == (1, rows) {
        return Ok(rows.unsigned_abs());
    }
    Err(FillError::NotWhole {
        problem: if rows == 1 {
            format!("{table} has 1 row, and its id is {first} instead of 1")
        } else {
            format!("{table} has {rows} rows, and their ids are {first} to {last} instead of 1 to {rows}")
        },
    })
}

/// Refuses tables and partitions that a crash may have emptied.
async fn refuse_lost_leaves(
    connection: &Connection,
    schema: &str,
    tables: &TableNames,
) -> Result<(), FillError> {
    let Some(relations) = Relations::ask(connection, schema, tables, true).await? else { return Ok(()) };
    let leaves = relations.with_rows(connection).await?.leaves;
    let lost = |leaf: &&Relation| leaf.persistence == Persistence::Unlogged && !leaf.had_rows;
    leaves.iter().find(lost).map_or(Ok(()), |leaf| {
        Err(FillError::NotWhole {
            problem: format!(
                "{leaf} is empty and unlogged; a crash may have emptied it (if it is meant to be empty, run ALTER \
                 TABLE {leaf} SET LOGGED)",
                leaf = leaf.name
            ),
        })
    })
}

/// Whether all these tables are unlogged and empty, as a crash leaves them.
pub(in crate::plan) async fn is_emptied(
    connection: &Connection,
    schema: &str,
    tables: &TableNames,
) -> Result<bool, FillError> {
    let Some(relations) = Relations::ask(connection, schema, tables, true).await? else { return Ok(false) };
    if relations.all().any(|relation| relation.persistence == Persistence::Logged) {
        return Ok(false);
    }
    Ok(!relations.with_rows(connection).await?.all().any(|relation| relation.had_rows))
}

/// Refuses existing tables that differ from those that the plan would create.
pub(in crate::plan) async fn refuse_other_shape(
    connection: &Connection,
    plan: &Plan,
) -> Result<(), FillError> {
    let bulk = &plan.tables.bulk;
    let query = include_str!("../../sql/shape.sql");
    let rows = match connection.client.query(query, &[&plan.schema, &bulk.name]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    let wide_ids = key(bulk).is_some_and(|key| key.kind == Kind::Int8);
    let is_alike = |row: &tokio_postgres::Row, bound: &str| {
        let there: String = row.get("bound");
        there.replace('\'', "").to_lowercase() == bound.to_lowercase()
            && row.get::<_, i32>("fillfactor") == i32::from(plan.fillfactor)
            && row.get::<_, bool>("autovacuum") == plan.autovacuum
            && row.get::<_, Option<String>>("tablespace") == plan.tablespace
            && row.get::<_, bool>("wide_ids") == wide_ids
    };
    let names = leaves(bulk, plan.partitions);
    let there = (0..).zip(&names).all(|(number, name)| {
        let bound =
            plan.partitions.map(|partitions| format!("FOR VALUES {}", bound(bulk.rows, partitions, number)));
        let row = rows.iter().find(|row| row.get::<_, &str>("name") == name);
        row.is_some_and(|row| is_alike(row, bound.as_deref().unwrap_or_default()))
    });
    if there && rows.len() == names.len() && plan.persistence == Persistence::Unlogged {
        return Ok(());
    }
    let tables = plan.tables.names().relations(plan.partitions);
    Err(FillError::TablesExist { schema: plan.schema.clone(), tables, emptied: true })
}

/// Refuses a tablespace that is not there or that the role may not use.
pub(in crate::plan) async fn refuse_tablespace(connection: &Connection, name: &str) -> Result<(), FillError> {
    let row = ask(connection, include_str!("../../sql/tablespace.sql"), &[&name]).await?;
    let problem = match (row.get("exists"), row.get("allowed")) {
        (true, true) => return Ok(()),
        (true, false) => {
            let role: String = row.get("role");
            format!(
                "may not be used by role {role}: run GRANT CREATE ON TABLESPACE {} TO {role}",
                shown(name)
            )
        }
        (false, _) => {
            format!(
                "does not exist: give another one, or create it in an empty directory that the server's account owns (CREATE \
                 TABLESPACE {} LOCATION '/DIRECTORY')",
                shown(name)
            )
        }
    };
    Err(FillError::Tablespace { name: name.to_owned(), problem })
}
