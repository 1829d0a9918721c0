//! `--save-in-database`: saves results in the schema `benchmark`, as the article does. Existing
//! objects are not changed or dropped; rows are added.

use futures_util::future::LocalBoxFuture;
use tokio_postgres::Row;

use crate::error::MicroError;
use crate::outcome::Outcome;
use connect::{ConnectError, Target};
use server::quote::shown;
use server::{Session, Sessions};

/// The objects and rows that were saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Rows that were inserted, one for each sample.
    pub rows: u64,
    /// Schema, table and views that were created.
    pub made: Vec<&'static str>,
}

/// Checks whether results can be saved, before time is spent on measuring.
///
/// # Errors
/// If they cannot be saved.
pub async fn check(target: &Target) -> Result<(), MicroError> {
    let session = Sessions::new(target).open().await?;
    let checked = refuse(&session, &state(&session).await?).await;
    session.connection.close().await;
    checked
}

/// Adds the samples of a run, except the cold round. Creates missing objects in the same
/// transaction.
///
/// # Errors
/// If the server refuses.
pub fn save<'a>(
    target: &'a Target,
    run_id: &'a str,
    outcome: &'a Outcome,
) -> LocalBoxFuture<'a, Result<Saved, MicroError>> {
    Box::pin(async move {
        let session = Sessions::new(target).open().await?;
        session.run("BEGIN").await?;
        let made = make(&session, &state(&session).await?).await?;
        let rows = insert(&session, run_id, outcome).await?;
        session.run("COMMIT").await?;
        session.connection.close().await;
        Ok(Saved { rows, made })
    })
}

async fn state(session: &Session) -> Result<Row, ConnectError> {
    session.row(include_str!("sql/benchmark_state.sql"), &[]).await
}

async fn refuse(session: &Session, state: &Row) -> Result<(), MicroError> {
    let (role, database): (String, String) = (state.get("role"), state.get("database"));
    if state.get::<_, Option<bool>>("may") != Some(true) {
        let remedy = match (state.get("has_schema"), state.get("has_table")) {
            (false, _) => format!("GRANT CREATE ON DATABASE {} TO {role}", shown(&database)),
            (true, false) => format!("GRANT USAGE, CREATE ON SCHEMA benchmark TO {role}"),
            (true, true) => format!("GRANT INSERT ON benchmark.outcome TO {role}"),
        };
        return Err(MicroError::Save(format!("role {role} may not write to schema benchmark: run {remedy}")));
    }
    if !state.get::<_, bool>("has_table") {
        return Ok(());
    }
    let columns = "SELECT run_id, run_at, candidate, statement, round, row_count, seconds FROM benchmark.outcome LIMIT 0";
    match session.run(columns).await {
        Ok(()) => Ok(()),
        Err(ConnectError::Query { error, .. }) => Err(MicroError::Save(format!(
            "benchmark.outcome exists, but not as pgrig creates it ({}): rename it",
            error.message
        ))),
        Err(error) => Err(error.into()),
    }
}

async fn make(session: &Session, state: &Row) -> Result<Vec<&'static str>, ConnectError> {
    let missing: Vec<String> = state.get("missing_views");
    let is_missing = |view: &str| missing.iter().any(|name| name == view);
    let parts = [
        (!state.get::<_, bool>("has_schema"), "schema benchmark", "CREATE SCHEMA benchmark"),
        (
            !state.get::<_, bool>("has_table"),
            "table benchmark.outcome",
            include_str!("sql/benchmark_table.sql"),
        ),
        (
            is_missing("compare_outcome"),
            "view benchmark.compare_outcome",
            include_str!("sql/benchmark_compare_outcome.sql"),
        ),
        (
            is_missing("compare_outcome_threshold"),
            "view benchmark.compare_outcome_threshold",
            include_str!("sql/benchmark_compare_outcome_threshold.sql"),
        ),
    ];
    let mut made = Vec::new();
    for (_, name, sql) in parts.into_iter().filter(|(is_missing, ..)| *is_missing) {
        session.run(sql).await?;
        made.push(name);
    }
    Ok(made)
}

async fn insert(session: &Session, run_id: &str, outcome: &Outcome) -> Result<u64, ConnectError> {
    let (mut candidates, mut statements, mut rounds, mut rows, mut seconds) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let row_count = i64::try_from(outcome.plan.rows).unwrap_or(i64::MAX);
    for (number, round) in (1_i32..).zip(outcome.rounds.iter().filter(|round| !round.cold)) {
        for (arm, sample) in outcome.plan.arms.iter().zip(&round.seconds) {
            candidates.push(arm.name.as_str());
            statements.push(arm.sql.as_str());
            rounds.push(number);
            rows.push(row_count);
            seconds.push(*sample);
        }
    }
    let sql = include_str!("sql/benchmark_insert.sql");
    let client = &session.connection.client;
    match client.execute(sql, &[&run_id, &candidates, &statements, &rounds, &rows, &seconds]).await {
        Ok(inserted) => Ok(inserted),
        Err(error) => Err(session.connection.explain(error).await),
    }
}
