//! The candidates, and the SQL of each.

use serde::Serialize;

/// Placeholder for the number of rows in statements.
pub const ROWS: &str = "{rows}";
/// Placeholder for the candidate's own table in DDL and statements.
pub const TABLE: &str = "{table}";
/// The statement that fills a candidate's table if the user gives none: rows of defaults only.
pub const FILL: &str = "INSERT INTO {table} SELECT FROM generate_series(1, {rows})";

/// The SQL before an expression in its statement.
const BEFORE: &str = "SELECT count((\n";

/// One of the compared expressions or statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Name for people.
    pub name: String,
    /// SQL that is timed.
    pub body: Body,
    /// Whether the other candidates run without it if the server does not support it.
    pub optional: bool,
}

/// SQL of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// An expression, evaluated for each row number `i`.
    Expression(String),
    /// A statement of its own.
    Statement(String),
    /// A statement on a table that is made anew for each round.
    Table {
        /// SQL that creates the table.
        ddl: String,
        /// SQL that is timed.
        statement: String,
    },
}

impl Candidate {
    /// A candidate whose name is its own text.
    pub fn new(body: Body) -> Self {
        let name = match &body {
            Body::Expression(text) | Body::Statement(text) => text,
            Body::Table { ddl, .. } => ddl,
        };
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { name, body, optional: false }
    }
}

impl Body {
    /// Whether one of its texts has only blanks.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Expression(text) | Self::Statement(text) => text.trim().is_empty(),
            Self::Table { ddl, statement } => ddl.trim().is_empty() || statement.trim().is_empty(),
        }
    }

    /// The statement to time, for `rows` rows; `table` is the quoted name of the candidate's table.
    pub(super) fn sql(&self, rows: u64, table: &str) -> String {
        match self {
            // An integer series: a numeric one takes a slower path. The line breaks keep a comment in the
            // expression from reaching further; the parentheses make `DISTINCT i` no aggregate's business.
            Self::Expression(text) => format!("{BEFORE}{text}\n)) FROM generate_series(1, {rows}) AS g(i)"),
            Self::Statement(text) | Self::Table { statement: text, .. } => {
                text.replace(ROWS, &rows.to_string()).replace(TABLE, table)
            }
        }
    }

    /// The user's own text, and the number of characters before it in [`Self::sql`]. None if the
    /// text was changed, so that positions in the two differ.
    pub(super) fn source(&self, rows: u64, table: &str) -> Option<(&str, usize)> {
        match self {
            Self::Expression(text) => Some((text, BEFORE.len())),
            Self::Statement(text) | Self::Table { statement: text, .. } => {
                (self.sql(rows, table) == *text).then_some((text, 0))
            }
        }
    }

    /// Whether its time depends on the number of rows.
    pub(super) fn has_rows(&self) -> bool {
        match self {
            Self::Expression(_) => true,
            Self::Statement(text) | Self::Table { statement: text, .. } => text.contains(ROWS),
        }
    }

    /// SQL that creates its table, if it has one.
    pub(super) fn ddl(&self, table: &str) -> Option<String> {
        match self {
            Self::Table { ddl, .. } => Some(ddl.replace(TABLE, table)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_users_text() {
        let body = Body::Expression("i +".to_owned());
        let sql = body.sql(10, "");
        let (text, before) = body.source(10, "").unwrap();
        assert_eq!(sql.find(text), Some(before));
        let statement = Body::Statement("SELECT {rows} +".to_owned());
        assert_eq!(statement.source(10, ""), None);
    }

    #[test]
    fn a_comment_ends_with_the_expression() {
        assert!(Body::Expression("i -- all".to_owned()).sql(5, "").contains("-- all\n)) FROM"));
    }
}
