//! A statement that the server refuses, with a remedy.

use connect::ConnectError;
use connect::SqlState;

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

/// The failure with its remedy.
pub(crate) fn of(error: &ConnectError) -> Failed {
    let message = match error {
        ConnectError::Query { error, .. } => {
            let detail = error.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
            format!("{}{detail}", error.message)
        }
        error => error.to_string(),
    };
    let remedy = error.sqlstate().and_then(remedy);
    Failed { message, remedy: remedy.map(str::to_owned) }
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
        // 22 data exception, 23 integrity constraint violation.
        state if ["22", "23"].iter().any(|class| state.code().starts_with(class)) => Some(
            "the statement fails because of the generated rows: give other values with --column TABLE.COLUMN=SPEC",
        ),
        state if missing.contains(state) => {
            Some("add it to the schema, or to the migration before this statement")
        }
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "the migration runs as the role of pgrig's connection: grant the right in the schema, or leave out SET ROLE",
        ),
        state if *state == SqlState::QUERY_CANCELED => {
            Some("the migration's own statement_timeout ended it: raise it, or fill fewer rows")
        }
        state if *state == SqlState::LOCK_NOT_AVAILABLE => Some("the migration's own lock_timeout ended it"),
        _ => None,
    }
}
