//! Runs queries on the original and on the copy, for the numbers of rows that their operators return.

use connect::{Connection, SqlState};
use measure::{Event, Trial, Unit};
use model::{PlansCompared, QueryPlan, quantile};
use serde_json::{Value, json};
use server::run_sql;

use super::answered;
use super::check::Query;
use crate::app::failure::Failure;

/// PostgreSQL's limit of statement_timeout (milliseconds in an int), seconds.
const LONGEST_TIMEOUT: u64 = 2_147_483;

/// The end of a query that was run.
#[derive(Clone, Debug)]
pub(super) enum Executed {
    /// Its plan, with the rows that each operator returned.
    Plan(QueryPlan),
    /// The time-out ended it.
    TimedOut,
    /// The server's message.
    Failed(String),
}

/// Executes a query in a read-only transaction that is rolled back. Parallel workers are off: with them, the server counts
/// rows and estimates of a part of the processes.
///
/// # Errors
/// If the connection is lost, or the server does not answer in time.
pub(super) async fn execute(
    connection: &Connection,
    query: &Query,
    seconds: u64,
) -> Result<Executed, Failure> {
    let seconds = seconds.min(LONGEST_TIMEOUT);
    let begin = format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = '{seconds}s'; SET LOCAL max_parallel_workers_per_gather = 0"
    );
    let work = async {
        run_sql(connection, &begin).await?;
        let sql = format!("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {}", query.sql);
        let found = match connection.client.query_one(&sql, &[]).await {
            Ok(row) => QueryPlan::read(&row.get::<_, Value>(0))
                .map_or_else(|| Executed::Failed("EXPLAIN returns no plan".to_owned()), Executed::Plan),
            Err(error) => match error.as_db_error() {
                Some(why) if *why.code() == SqlState::QUERY_CANCELED => Executed::TimedOut,
                Some(why) if !connection.client.is_closed() => Executed::Failed(why.message().to_owned()),
                _ => return Err(connection.explain(error).await.into()),
            },
        };
        run_sql(connection, "ROLLBACK").await?;
        Ok(found)
    };
    answered(work, seconds, "--execute-timeout").await
}

/// The queries that ran to their end on both databases, compared.
pub(super) fn compared(original: &[Executed], copy: &[Executed]) -> PlansCompared {
    let ran = |executed: &Executed| match executed {
        Executed::Plan(plan) => Some(plan.clone()),
        Executed::TimedOut | Executed::Failed(_) => None,
    };
    let both = original.iter().zip(copy).filter_map(|(ours, theirs)| Some((ran(ours)?, ran(theirs)?)));
    let (ours, theirs): (Vec<QueryPlan>, Vec<QueryPlan>) = both.unzip();
    PlansCompared::of(&vec![ours], &vec![theirs])
}

/// An event for each query that ran on both, with the operators of both plans.
pub(super) fn events(queries: &[Query], original: &[Executed], copy: &[Executed]) -> Vec<Event> {
    let operators = |plan: &QueryPlan| -> Vec<Value> {
        let all = plan.shape.iter().zip(&plan.rows).zip(&plan.actual).zip(&plan.is_joined);
        let operator = |(((operator, estimate), rows), is_joined): (
            ((&String, &f64), &Option<f64>),
            &bool,
        )| {
            json!({ "operator": operator, "join": is_joined, "estimate": estimate, "rows": rows })
        };
        all.map(operator).collect()
    };
    let both =
        queries.iter().zip(original).zip(copy).filter_map(|((query, ours), theirs)| match (ours, theirs) {
            (Executed::Plan(ours), Executed::Plan(theirs)) => Some((query, ours, theirs)),
            _ => None,
        });
    let event = |(query, ours, theirs): (&Query, &QueryPlan, &QueryPlan)| Event {
        at: 0.0,
        text: format!("query {}: {} operators on the copy", query.name, theirs.shape.len()),
        what: json!({
            "event": "query",
            "query": query.name,
            "original": operators(ours),
            "copy": operators(theirs),
        }),
    };
    both.map(event).collect()
}

/// The queries that did not run to their end, and why: a sentence for each database.
pub(super) fn left_out(queries: &[Query], executed: &[Executed], name: &str, seconds: u64) -> Vec<String> {
    let late: Vec<&str> = queries
        .iter()
        .zip(executed)
        .filter(|(_, executed)| matches!(executed, Executed::TimedOut))
        .map(|(query, _)| query.name.as_str())
        .collect();
    let late = (!late.is_empty()).then(|| {
        format!(
            "the lines \"scans\" and \"joins\" leave out these queries, because they took longer than {seconds} s on the {name}: \
             {}. To include them, give a longer --execute-timeout",
            late.join(", ")
        )
    });
    let failed = queries.iter().zip(executed).filter_map(|(query, executed)| match executed {
        Executed::Failed(why) => Some(format!(
            "the lines \"scans\" and \"joins\" leave out query {}, because it failed on the {name}: {why}",
            query.name
        )),
        Executed::Plan(_) | Executed::TimedOut => None,
    });
    late.into_iter().chain(failed).collect()
}

/// Factors of scans and of joins, each with its name in a document and in the table, in the order of both.
pub(super) fn factors(plans: &PlansCompared) -> [(&'static str, &'static str, &[f64]); 6] {
    let [original, copy] = &plans.errors;
    [
        ("rows-of-scans-factor", "scans: copy to original", &plans.actual.0),
        ("original-estimates-of-scans-factor", "scans: estimate to rows, original", &original.scans),
        ("copy-estimates-of-scans-factor", "scans: estimate to rows, copy", &copy.scans),
        ("rows-of-joins-factor", "joins: copy to original", &plans.actual.1),
        ("original-estimates-of-joins-factor", "joins: estimate to rows, original", &original.joins),
        ("copy-estimates-of-joins-factor", "joins: estimate to rows, copy", &copy.joins),
    ]
}

/// Adds the number of queries, and quantiles of the factors.
pub(super) fn observe(trial: &mut Trial, plans: &PlansCompared) {
    trial.observe("executed", plans.queries as f64, Unit::Count);
    for (name, _, factors) in factors(plans) {
        for (at, of) in [("median", 0.5), ("p90", 0.9), ("p95", 0.95)] {
            if let Some(factor) = quantile(factors, of) {
                trial.observe(&format!("{name}-{at}"), factor, Unit::Count);
            }
        }
    }
}
