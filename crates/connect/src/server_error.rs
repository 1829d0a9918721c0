//! Errors that a server sends.

use failure::Class;
use std::fmt;

use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

/// The server's error, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// ERROR, FATAL or PANIC.
    pub severity: String,
    /// SQLSTATE of the error.
    pub code: SqlState,
    /// The primary message, in the server's language.
    pub message: String,
    /// The detail, if any.
    pub detail: Option<String>,
    /// The server's own hint, if any.
    pub hint: Option<String>,
    /// The row of a COPY, if the error is about one: `COPY orders, line 84`.
    pub row: Option<String>,
    /// The character of the statement, counted from 1, if the error is about one.
    pub position: Option<u32>,
    /// The schema and table that the error concerns, if the server names them.
    pub table: Option<(String, String)>,
    /// The column of this table, if the server names it.
    pub column: Option<String>,
    /// The constraint that the error concerns, if the server names it.
    pub constraint: Option<String>,
    /// The beginning of the statement, where pgrig knows it.
    pub statement: Option<String>,
}

impl ServerError {
    /// The cause of a statement that the user wrote: the statement itself, unless the server failed, was stopped, or had
    /// no room or no lock for it.
    pub fn class(&self) -> Class {
        let code = self.code.code();
        let by_server =
            ["08", "40", "53", "57", "58", "F0", "XX"].iter().any(|class| code.starts_with(class));
        if by_server || self.code == SqlState::LOCK_NOT_AVAILABLE { Class::Machine } else { Class::Request }
    }

    /// Parses the fields of an ErrorResponse or NoticeResponse ("54.8 Error and Notice Message Fields").
    pub fn parse(body: &[u8]) -> Self {
        let field = |kind: u8| {
            let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&kind));
            found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
        };
        Self {
            // V is S untranslated; all supported versions send it.
            severity: field(b'V').or_else(|| field(b'S')).unwrap_or_default(),
            code: SqlState::from_code(&field(b'C').unwrap_or_default()),
            message: field(b'M').unwrap_or_default(),
            detail: field(b'D'),
            hint: field(b'H'),
            row: None,
            position: field(b'P').and_then(|position| position.parse().ok()),
            table: field(b's').zip(field(b't')),
            column: field(b'c'),
            constraint: field(b'n'),
            statement: None,
        }
    }
}

/// The driver's error with all that the server or the machine said.
pub fn described(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return Box::<ServerError>::from(said).to_string();
    }
    match std::error::Error::source(error) {
        Some(why) => format!("{error}: {why}"),
        None => error.to_string(),
    }
}

impl From<&DbError> for Box<ServerError> {
    fn from(error: &DbError) -> Self {
        Box::new(ServerError {
            severity: error.severity().to_owned(),
            code: error.code().clone(),
            message: error.message().to_owned(),
            detail: error.detail().map(str::to_owned),
            hint: error.hint().map(str::to_owned),
            row: error.where_().and_then(row_of_copy),
            position: match error.position() {
                Some(ErrorPosition::Original(position)) => Some(*position),
                _ => None,
            },
            table: error
                .schema()
                .zip(error.table())
                .map(|(schema, table)| (schema.to_owned(), table.to_owned())),
            column: error.column().map(str::to_owned),
            constraint: error.constraint().map(str::to_owned),
            statement: None,
        })
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (SQLSTATE {})", self.severity, self.message, self.code.code())?;
        // Other sentences follow: a full stop before a semicolon would stand twice.
        self.detail.iter().try_for_each(|detail| write!(f, "; {}", detail.trim_end_matches('.')))?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))?;
        self.row.iter().try_for_each(|row| write!(f, "; {row}"))?;
        self.statement.iter().try_for_each(|statement| write!(f, "; the statement: {statement}"))
    }
}

/// The line of an error's context that tells where a COPY was.
fn row_of_copy(context: &str) -> Option<String> {
    context.lines().find(|line| line.starts_with("COPY ")).map(str::to_owned)
}
