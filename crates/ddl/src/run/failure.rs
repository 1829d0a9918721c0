//! A statement that the server refuses, with a remedy.

use connect::{ConnectError, ServerError, SqlState};

use crate::outcome::Failed;

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
    let remedy = match error {
        ConnectError::Query { error, .. } if is_of_rows(&error.code) => Some(of_rows(error)),
        error => error.sqlstate().and_then(remedy).map(str::to_owned),
    };
    Failed { message, remedy }
}

/// Whether the rows are the reason: 22 data exception, 23 integrity constraint violation.
fn is_of_rows(state: &SqlState) -> bool {
    ["22", "23"].iter().any(|class| state.code().starts_with(class))
}

/// The remedy where the rows do not suit, with the column as far as the server names it.
fn of_rows(error: &ServerError) -> String {
    let quoted: Vec<&str> = error.message.split('"').skip(1).step_by(2).collect();
    // `column "n" of relation "t" contains null values`.
    let column = match quoted[..] {
        [column, table] if error.message.starts_with("column ") => format!("{table}.{column}"),
        _ => "TABLE.COLUMN".to_owned(),
    };
    format!(
        "the statement fails because of the generated rows: give other values with --column '{column}=SPEC'"
    )
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
        state if missing.contains(state) => {
            Some("add it to the schema, or to the migration before this statement")
        }
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
