//! A statement that the server refuses, with a remedy.

use connect::{ConnectError, ServerError, SqlState};
use server::quote::shell_word;

use crate::outcome::Failed;
use crate::run::missing;
use crate::run::unsuited::Unsuited;
use crate::script::Statement;

/// The server's messages for a column whose type cannot change because of objects that use it begin so.
const KEEPS_TYPE: &str = "cannot alter type of a column used ";

/// Whether the server refused the statement and the session goes on. Cancelled statements, and those that fail because of
/// the machine, are not meant.
pub(crate) fn is_of_statement(error: &ConnectError) -> bool {
    // 53 insufficient resources, 57 operator intervention, 58000 system error, 58030 I/O error. The others of class 58 are of files
    // that a statement names, or whose extension it names (fd.c: errcode_for_file_access).
    let of_machine = |state: &SqlState| {
        state.code().starts_with("53")
            || state.code().starts_with("57") && *state != SqlState::QUERY_CANCELED
            || [SqlState::SYSTEM_ERROR, SqlState::IO_ERROR].contains(state)
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
    let remedy = match (&unsuited, error) {
        // The columns are named later.
        (Some(_), _) => Some(Unsuited::remedy(&[], "SPEC")),
        (None, ConnectError::Query { error, .. }) => remedy(error).map(str::to_owned),
        (None, _) => None,
    };
    Failed { message, remedy, unsuited, is_certain: false }
}

/// The failure of a statement that ran on its own.
pub(crate) fn of_statement(error: &ConnectError, statement: &Statement) -> Failed {
    let failed = of(error);
    let is_certain = is_certain(error, statement);
    let is_of_rows = error.sqlstate().is_some_and(is_of_rows);
    let is_syntax = error.sqlstate().is_some_and(|state| *state == SqlState::SYNTAX_ERROR);
    let of_tool = if is_syntax { of_tool(&failed.message, statement) } else { None };
    let remedy = of_tool
        .or_else(|| already_there(error, statement))
        .or_else(|| failed.remedy.filter(|_| !(is_certain && is_of_rows)));
    Failed { remedy, is_certain, ..failed }
}

/// The remedy of a syntax error with this message, if the statement has text that is meant for a tool: a placeholder, a delimiter, or a variable of psql's.
fn of_tool(message: &str, statement: &Statement) -> Option<String> {
    let is_at = |tokens: &[&str]| tokens.iter().any(|token| message.ends_with(&format!("\"{token}\"")));
    if let Some(placeholder) = placeholder(&statement.sql).filter(|_| is_at(&["$", "{"])) {
        return Some(format!(
            "pgrig does not replace placeholders (of Flyway, Liquibase or goose): write the value in place of {placeholder}"
        ));
    }
    let delimiters = ["/", "GO"];
    let delimiter = statement.sql.lines().map(str::trim).find(|line| delimiters.contains(line));
    if let Some(delimiter) = delimiter.filter(|delimiter| is_at(&[*delimiter])) {
        return Some(format!(
            "pgrig splits a file at semicolons, and knows no other delimiter (endDelimiter of Liquibase): end the statements with ; and remove the lines that \
             are {delimiter}"
        ));
    }
    let variable = statement.variable()?;
    Some(format!("pgrig does not replace psql's variables: write the value in place of {variable}"))
}

/// The first placeholder of a text: `${flyway:defaultSchema}`.
fn placeholder(sql: &str) -> Option<&str> {
    let from = &sql[sql.find("${")?..];
    Some(&from[..=from.find('}')?])
}

/// The remedy if a file among those of the migration creates a table that the migration finds: it may be the file of the schema.
fn already_there(error: &ConnectError, statement: &Statement) -> Option<String> {
    let file = shell_word(statement.file.as_deref()?);
    let is_there = error.sqlstate().is_some_and(|state| *state == SqlState::DUPLICATE_TABLE);
    let creates_table = statement.in_one_line().to_ascii_uppercase().starts_with("CREATE TABLE ");
    (is_there && creates_table).then(|| {
        format!(
            "if {file} creates the tables before the migration, give it as --schema-file {file}, without -d"
        )
    })
}

/// Whether the statement itself is the reason, if it failed on tables without rows: it cannot succeed, whatever rows they have. What fails in the
/// body of a function may depend on rows; only an error at a place of the text is of the text. Roles, databases, tablespaces, extensions and
/// user mappings are not of the schema: the original's server may have them.
fn is_certain(error: &ConnectError, statement: &Statement) -> bool {
    let ConnectError::Query { error, .. } = error else { return false };
    let is_of_text = is_of_text(&error.code)
        || error.code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
        || error.code == SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE
        || error.code == SqlState::INVALID_PARAMETER_VALUE && statement.target().is_some();
    let elsewhere = ["role ", "database ", "tablespace ", "extension ", "user mapping ", "must be "];
    // Outside of a transaction, whatever the statement does in one.
    error.code == SqlState::NO_ACTIVE_SQL_TRANSACTION
        || is_of_text
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

/// Whether the server lacks a file, or those of an extension (extension.c: `parse_extension_control_file`; up to PostgreSQL 14 with the
/// SQLSTATE of a file).
fn is_of_missing_file(error: &ServerError) -> bool {
    let is_of_extension = || {
        error.code == SqlState::FEATURE_NOT_SUPPORTED
            && error.message.starts_with("extension ")
            && error.message.ends_with("is not available")
    };
    error.code == SqlState::UNDEFINED_FILE || is_of_extension()
}

fn remedy(error: &ServerError) -> Option<&'static str> {
    let of_missing = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_OBJECT,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::INVALID_SCHEMA_NAME,
    ];
    match &error.code {
        _ if is_of_missing_file(error) => Some(
            "the server that measures lacks this file or extension: install it there, or give --scratch with a server that has it",
        ),
        // foreign.c: GetUserMapping.
        _ if error.message.starts_with("user mapping not found") => Some(
            "pgrig drops the user mappings, so that the migration cannot change data on other servers: remove statements on foreign tables",
        ),
        // foreigncmds.c: RemoveUserMapping.
        _ if error.message.starts_with("user mapping for ") => Some(
            "pgrig drops the user mappings, so that the migration cannot change data on other servers: write DROP USER MAPPING IF EXISTS, or remove this \
             statement",
        ),
        // indexcmds.c: ReindexMultipleTables.
        _ if error.message.starts_with("can only reindex the currently open database") => Some(
            "pgrig runs the migration in databases of other names: leave out the name (from PostgreSQL 16 on), or write REINDEX SCHEMA for each schema",
        ),
        state
            if *state == SqlState::FEATURE_NOT_SUPPORTED && error.message.starts_with("cross-database ") =>
        {
            Some("leave out the name of the database: pgrig runs the migration in databases of other names")
        }
        // tablecmds.c: RememberAllDependentForRebuilding. The detail names the object.
        _ if error.message.starts_with(KEEPS_TYPE) => Some(
            "drop the view, rule, policy, trigger, function or publication that uses the column earlier in the migration, and create it again later",
        ),
        // dependency.c: reportDependentObjects.
        state
            if *state == SqlState::DEPENDENT_OBJECTS_STILL_EXIST
                && error.message.ends_with(" because other objects depend on it") =>
        {
            Some("drop these objects earlier in the migration, or write CASCADE, which drops them, too")
        }
        // xact.c: PreventInTransactionBlock.
        state
            if *state == SqlState::ACTIVE_SQL_TRANSACTION
                && error.message.ends_with(" cannot run inside a transaction block") =>
        {
            Some("leave out --single-transaction, or BEGIN and COMMIT around this statement")
        }
        // xact.c: RequireTransactionBlock.
        state if *state == SqlState::NO_ACTIVE_SQL_TRANSACTION => Some(
            "write BEGIN before this statement, and COMMIT after those that need it; or give --single-transaction",
        ),
        // A schema's CREATE ROLE is skipped, and a migration's is refused.
        state if *state == SqlState::UNDEFINED_OBJECT && error.message.starts_with("role ") => {
            Some("create the role on the server that measures (CREATE ROLE NAME)")
        }
        state if of_missing.contains(state) => Some(missing::REMEDY),
        state if *state == SqlState::DUPLICATE_OBJECT && error.message.starts_with("role ") => Some(
            "the server already had this role, perhaps from a pgrig that was killed: drop the role, or create it only if it is not in \
             pg_roles",
        ),
        state if [SqlState::DUPLICATE_OBJECT, SqlState::DUPLICATE_DATABASE].contains(state) => Some(
            "pgrig runs the migration several times: remove statements that create objects of the whole server, such as roles",
        ),
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE && error.message.starts_with("could not ") => {
            Some(
                "allow the account of the server to read this file, or give --scratch with a server that can",
            )
        }
        state if *state == SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "the migration runs as the role of pgrig's connection: grant the right in the schema, or leave out SET ROLE",
        ),
        state if *state == SqlState::QUERY_CANCELED => {
            Some("the migration's own statement_timeout ended it: raise it, or measure fewer rows")
        }
        // enum.c: check_safe_enum_use.
        state if *state == SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE => Some(
            "PostgreSQL lets no statement use a new value before its transaction commits: put ALTER TYPE … ADD VALUE into a migration of its own, before \
             this one",
        ),
        state if *state == SqlState::LOCK_NOT_AVAILABLE => {
            Some("the migration's own lock_timeout ended it: raise it")
        }
        _ => None,
    }
}
