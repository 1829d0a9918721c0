//! A statement that the server refuses, with a remedy.

use connect::{ConnectError, SqlState};

use crate::outcome::Failed;
use crate::run::missing;
use crate::run::unsuited::Unsuited;
use crate::script::Statement;

/// Whether the server refused the statement and the session goes on. Cancelled statements, and those that fail because of
/// the machine, are not meant.
pub(crate) fn is_of_statement(error: &ConnectError) -> bool {
    // 53 insufficient resources, 57 operator intervention, 58 system error, XX internal error.
    let of_machine = |state: &SqlState| {
        ["53", "58"].iter().any(|class| state.code().starts_with(class))
            || state.code().starts_with("57") && *state != SqlState::QUERY_CANCELED
    };
    matches!(error, ConnectError::Query { .. }) && !error.sqlstate().is_some_and(of_machine)
}

/// Separates the server's refusal of a statement (inner) from a lost connection (outer).
pub(crate) fn refused(run: Result<(), ConnectError>) -> Result<Result<(), ConnectError>, ConnectError> {
    match run {
        Ok(()) => Ok(Ok(())),
        Err(error) if is_of_statement(&error) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// The failure with its remedy.
pub(crate) fn of(error: &ConnectError) -> Failed {
    let message = match error {
        ConnectError::Query { error, .. } => {
            let detail = error.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
            format!("{}{detail}", error.message)
        }
        error => error.to_string(),
    };
    let unsuited = match error {
        ConnectError::Query { error, .. } if is_of_rows(&error.code) => Some(Box::new(Unsuited::of(error))),
        _ => None,
    };
    // The columns are named later.
    let remedy = match unsuited {
        Some(_) => Some(Unsuited::remedy(&[])),
        None => error.sqlstate().and_then(remedy).map(str::to_owned),
    };
    Failed { message, remedy, unsuited, is_certain: false }
}

/// The failure of a statement that ran on its own.
pub(crate) fn of_statement(error: &ConnectError, statement: &Statement) -> Failed {
    let failed = of(error);
    let is_certain = is_certain(error, statement);
    let is_of_rows = error.sqlstate().is_some_and(is_of_rows);
    Failed { is_certain, remedy: failed.remedy.filter(|_| !(is_certain && is_of_rows)), ..failed }
}

/// Whether the statement itself is the reason, if it failed on tables without rows: it cannot succeed, whatever rows they have. What fails in the
/// body of a function may depend on rows; only an error at a place of the text is of the text. Roles, tablespaces and extensions are not of the schema: the original's server may have them.
fn is_certain(error: &ConnectError, statement: &Statement) -> bool {
    let ConnectError::Query { error, .. } = error else { return false };
    let is_of_text = is_of_text(&error.code)
        || error.code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
        || error.code == SqlState::INVALID_PARAMETER_VALUE && statement.target().is_some();
    let elsewhere = ["role ", "tablespace ", "extension ", "must be "];
    is_of_text
        && (error.position.is_some() || !statement.runs_code())
        && !elsewhere.iter().any(|word| error.message.starts_with(word))
}

/// Whether a place in the text of a reader's or writer's statement is the reason, whatever rows there are.
pub(crate) fn is_of_place(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Query { error, .. } if error.position.is_some() && is_of_text(&error.code))
}

/// 0A feature not supported, 25 invalid transaction state, 2B dependent objects, 3D and 3F names of databases and schemas, 42
/// syntax error or access rule violation, 54 program limit exceeded.
fn is_of_text(state: &SqlState) -> bool {
    ["0A", "25", "2B", "3D", "3F", "42", "54"].iter().any(|class| state.code().starts_with(class))
}

/// Whether the rows are the reason: 22 data exception, 23 integrity constraint violation.
fn is_of_rows(state: &SqlState) -> bool {
    ["22", "23"].iter().any(|class| state.code().starts_with(class))
}

fn remedy(state: &SqlState) -> Option<&'static str> {
    let missing = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_OBJECT,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    match state {
        state if missing.contains(state) => Some(missing::REMEDY),
        state if [SqlState::DUPLICATE_OBJECT, SqlState::DUPLICATE_DATABASE].contains(state) => Some(
            "pgrig runs the migration several times: remove statements that create objects of the whole server, such as roles",
        ),
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "the migration runs as the role of pgrig's connection: grant the right in the schema, or leave out SET ROLE",
        ),
        state if *state == SqlState::QUERY_CANCELED => {
            Some("the migration's own statement_timeout ended it: raise it, or measure fewer rows")
        }
        state if *state == SqlState::LOCK_NOT_AVAILABLE => Some("the migration's own lock_timeout ended it"),
        _ => None,
    }
}
