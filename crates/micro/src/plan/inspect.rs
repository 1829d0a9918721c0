//! Reads a candidate's plan before anything is timed, and checks that it still contains the
//! expressions of the user.

use serde_json::Value;
use tokio_postgres::error::SqlState;

use crate::candidate::Body;
use crate::error::MicroError;
use crate::plan::calls;
use crate::plan::finding::{Finding, Kind};
use crate::plan::literal::is_literal;
use crate::plan::plan_tree::PlanTree;
use connect::ConnectError;
use server::Session;

/// The statement and plan that the server would execute.
#[derive(Debug)]
pub(crate) struct Inspected {
    /// The statement as the server's plan prints it.
    pub(crate) executed: String,
    /// Kinds of nodes; none if the plan cannot be read.
    pub(crate) shape: Option<String>,
    pub(crate) kinds: Vec<Kind>,
}

/// Reads the plan of one candidate's statement.
pub(crate) async fn inspect(
    session: &Session,
    name: &str,
    body: &Body,
    sql: &str,
) -> Result<Inspected, MicroError> {
    let Some(tree) = explained(session, name, sql, "VERBOSE").await? else {
        let executed = sql.to_owned();
        return Ok(Inspected { executed, shape: None, kinds: vec![Kind::Unexplained] });
    };
    let mut kinds = Vec::new();
    let text = match body {
        Body::Expression(text) => {
            kinds.extend(of_expression(text, &tree));
            text
        }
        Body::Statement(text) | Body::Table { statement: text, .. } => text,
    };
    if kinds.is_empty() {
        kinds.extend(missing_calls(session, text, &tree).await?);
    }
    kinds.extend(of_plan(session, &tree).await?);
    // A statement is meant to change data if it does; an expression may do so without the user's knowledge.
    if matches!(body, Body::Expression(_)) {
        kinds.extend(volatile_calls(session, &tree).await?);
        kinds.extend(calls::is_select_of_value(text).then_some(Kind::Subquery));
    }
    let executed = match body {
        Body::Expression(_) => executed_expression(&tree),
        _ => tree.executed(),
    };
    Ok(Inspected { executed, shape: Some(tree.shape()), kinds })
}

/// Executes the statement once and rolls it back, for findings that only an execution shows.
pub(crate) async fn observe(
    session: &Session,
    name: &str,
    sql: &str,
    rows: u64,
) -> Result<Vec<Kind>, MicroError> {
    session.run("BEGIN").await?;
    let tree = explained(session, name, sql, "ANALYZE, BUFFERS, TIMING OFF").await;
    session.run("ROLLBACK").await?;
    let Some(tree) = tree? else { return Ok(Vec::new()) };
    let mut kinds = Vec::new();
    if tree.was_compiled() {
        kinds.push(Kind::Compiled { above: None });
    } else {
        kinds.extend(compiled_by_cost(session, &tree).await?);
    }
    if tree.spilled_blocks() > 0 {
        kinds.push(Kind::Spills { blocks: tree.spilled_blocks(), rows });
    }
    if !tree.triggers().is_empty() {
        kinds.push(Kind::Triggers { names: tree.triggers().into_iter().map(str::to_owned).collect() });
    }
    Ok(kinds)
}

/// Candidates whose plans are of another kind than the first one's.
pub(crate) fn compare_shapes(candidates: &[(String, Inspected)]) -> Vec<Finding> {
    let Some((_, Inspected { shape: Some(first), .. })) = candidates.first() else { return Vec::new() };
    let differing = candidates.iter().filter_map(|(name, inspected)| {
        let this = inspected.shape.as_ref().filter(|shape| *shape != first)?;
        let kind = Kind::OtherShape { first: first.clone(), this: this.clone() };
        Some(Finding { candidate: name.clone(), kind })
    });
    differing.collect()
}

/// The plan; none if the server does not explain such statements.
async fn explained(
    session: &Session,
    name: &str,
    sql: &str,
    options: &str,
) -> Result<Option<PlanTree>, MicroError> {
    let row = match session.row(&format!("EXPLAIN ({options}, FORMAT JSON) {sql}"), &[]).await {
        Ok(row) => row,
        // The statement itself is sound: it has been prepared.
        Err(error) if error.sqlstate() == Some(&SqlState::SYNTAX_ERROR) => return Ok(None),
        Err(source) => return Err(MicroError::Sample { name: name.to_owned(), source }),
    };
    // serde_json reads 128 levels at most.
    let json: Value = row.try_get(0).map_err(|error| {
        let what = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        MicroError::Explain { name: name.to_owned(), what }
    })?;
    match PlanTree::of(&json) {
        Some(tree) => Ok(Some(tree)),
        // A utility statement: {"Utility Statement": …}.
        None => Ok(None),
    }
}

/// The expression that is counted, as the plan prints it.
fn counted(tree: &PlanTree) -> Option<&str> {
    tree.first_output()?.strip_prefix("count(")?.strip_suffix(')')
}

fn of_expression(text: &str, tree: &PlanTree) -> Option<Kind> {
    let counted = counted(tree)?;
    if is_literal(counted) {
        // A constant in the user's text is meant to be one.
        return (!is_literal(text)).then(|| Kind::Folded { value: counted.to_owned() });
    }
    // `$0` until 16, `(InitPlan 1).col1` since.
    let is_parameter =
        counted.strip_prefix('$').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
            || counted.starts_with("(InitPlan ") && counted.bytes().filter(|b| *b == b'(').count() == 1;
    is_parameter.then(|| Kind::Once { what: init_plan(tree) })
}

fn init_plan(tree: &PlanTree) -> String {
    let mut names = tree.subplans().into_iter().map(|(name, _)| name);
    names.find(|name| name.starts_with("InitPlan")).unwrap_or_else(|| "InitPlan".to_owned())
}

fn executed_expression(tree: &PlanTree) -> String {
    let counted = counted(tree).unwrap_or_default().to_owned();
    let subplans = tree.subplans().into_iter().map(|(name, what)| format!("{name}: {what}"));
    std::iter::once(counted).chain(subplans).collect::<Vec<_>>().join("\n")
}

/// Calls in the user's text that the plan lacks, or has less often.
async fn missing_calls(session: &Session, text: &str, tree: &PlanTree) -> Result<Vec<Kind>, ConnectError> {
    let mut names = calls::calls(text);
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let known = session.rows(include_str!("../sql/functions.sql"), &[&names]).await?;
    let expressions = tree.expressions().join("\n");
    let (mut inlined, mut dropped) = (Vec::new(), Vec::new());
    for row in known {
        let name: String = row.get("name");
        if calls::count(&expressions, &name) >= calls::count(text, &name) {
            continue;
        }
        if row.get("is_sql") { inlined.push(name) } else { dropped.push(name) }
    }
    if !inlined.is_empty() {
        // The bodies of inlined functions may contain calls themselves, so the count of the other calls says nothing.
        return Ok(vec![Kind::Inlined { functions: inlined }]);
    }
    Ok(if dropped.is_empty() { Vec::new() } else { vec![Kind::Dropped { functions: dropped }] })
}

/// Volatile functions of the user's own that the plan calls. The plan, not the user's text: it also has the
/// calls in the bodies of inlined functions.
async fn volatile_calls(session: &Session, tree: &PlanTree) -> Result<Option<Kind>, ConnectError> {
    let names = calls::calls(&tree.expressions().join("\n"));
    let volatile = session.rows(include_str!("../sql/volatile.sql"), &[&names]).await?;
    let functions: Vec<String> = volatile.iter().map(|row| row.get("name")).collect();
    Ok((!functions.is_empty()).then_some(Kind::Volatile { functions }))
}

async fn of_plan(session: &Session, tree: &PlanTree) -> Result<Vec<Kind>, ConnectError> {
    let mut kinds = Vec::new();
    if tree.is_parallel() {
        kinds.push(Kind::Parallel);
    }
    kinds.extend(compiled_by_cost(session, tree).await?);
    let is_numeric = |text: &&str| text.contains("generate_series(") && text.contains("::numeric");
    if tree.expressions().iter().any(is_numeric) {
        kinds.push(Kind::NumericSeries);
    }
    Ok(kinds)
}

/// Whether the session's settings make the server JIT-compile the plan.
async fn compiled_by_cost(session: &Session, tree: &PlanTree) -> Result<Option<Kind>, ConnectError> {
    let above: Option<f64> = session.row(include_str!("../sql/jit.sql"), &[]).await?.get("above");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost, not below 0")]
    let kind = above
        .filter(|above| tree.cost().is_some_and(|cost| cost > *above))
        .map(|above| Kind::Compiled { above: Some(above as u64) });
    Ok(kind)
}
