//! Rows of a sample that the server refuses.

use thiserror::Error;

use super::{CatalogError, options};

/// Why the server refuses a row of the sample.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A sample row violates a CHECK.
    #[error(
        "{table}: the rows would violate {constraint}, CHECK ({definition}). {row}. {}",
        of_check(columns, given, *example)
    )]
    Check {
        /// Schema and name.
        table: String,
        /// Name of the CHECK constraint.
        constraint: String,
        /// As the server prints it.
        definition: String,
        /// Columns that the constraint concerns.
        columns: Box<[String]>,
        /// The row, as the server prints it.
        row: String,
        /// A specification that the name of the only column suggests.
        example: Option<&'static str>,
        /// The user's specifications of its columns, as given.
        given: Box<[String]>,
    },
    /// A sample row fits no partition.
    #[error(
        "{table} has no partition for some rows. {row}. Add the partition or a default one, or describe the \
         partition key with --column NAME=SPEC"
    )]
    NoPartition {
        /// Schema and name.
        table: String,
        /// The row, as the server prints it.
        row: String,
    },
    /// Sample rows have the same key.
    #[error(
        "{table}: two rows would have the same values of {key} ({definition}). {row}. Give one column of the key \
         unique values with --column {}",
        options(columns, "unique")
    )]
    Repeated {
        /// Schema and name.
        table: String,
        /// The constraint or index.
        key: String,
        /// As the server prints it.
        definition: String,
        /// Columns of the key.
        columns: Box<[String]>,
        /// The row, as the server prints it.
        row: String,
    },
    /// A sample row has a key that is there already.
    #[error(
        "{table} already has {columns} = {value} ({key}, {definition}): run TRUNCATE {table} first, or describe the \
         columns with --column NAME=SPEC"
    )]
    Taken {
        /// Schema and name.
        table: String,
        /// The constraint or index.
        key: String,
        /// As the server prints it.
        definition: String,
        /// Columns of the key.
        columns: String,
        /// Value of these columns.
        value: String,
    },
    /// A sample row references a key that does not exist.
    #[error(
        "{table}: {columns} would reference key {value}, which does not exist ({constraint}, {definition}). Give \
         existing values with --column, or leave out --column"
    )]
    Dangling {
        /// Schema and name.
        table: String,
        /// The foreign key.
        constraint: String,
        /// As the server prints it.
        definition: String,
        /// The referencing columns.
        columns: String,
        /// Value of these columns.
        value: String,
    },
    /// A sample row has NULL in a NOT NULL column.
    #[error(
        "column {column} of {table} is NOT NULL and would be NULL. {row}. Give it values with --column '{column}=SPEC'"
    )]
    NotNull {
        /// Schema and name.
        table: String,
        /// The column that is NOT NULL.
        column: String,
        /// The row, as the server prints it.
        row: String,
    },
    /// A sample row is too long for an index.
    #[error(
        "index {index} of {table} would refuse the rows: {message}. Give its columns shorter values ({definition}): --column NAME=SPEC"
    )]
    TooLong {
        /// Schema and name.
        table: String,
        /// Name of the index.
        index: String,
        /// Its method and columns.
        definition: String,
        /// The server's message.
        message: String,
    },
    /// A sample row has a character that the encoding of the database lacks.
    #[error(
        "{table} would refuse the rows: {message}. {row}. Give values that the encoding of the database has, or fill a database of another \
         encoding: CREATE DATABASE NAME ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding {
        /// Schema and name.
        table: String,
        /// The server's message.
        message: String,
        /// The row, as the server prints it.
        row: String,
    },
    /// A function or table is missing that a constraint, a generated column or an index uses.
    #[error(
        "{table} would refuse the rows: {message} ({context}). A constraint, a generated column or an index of the table uses it: create it first"
    )]
    Lacking {
        /// Schema and name.
        table: String,
        /// The server's message.
        message: String,
        /// Where the server looked for it.
        context: String,
    },
    /// A sample row is refused for another reason.
    #[error(
        "{table} would refuse the rows: {message}. {row}. Describe the column with --column {}",
        options(column.as_slice(), "SPEC")
    )]
    Refused {
        /// Schema and name.
        table: String,
        /// The column, if the server names it.
        column: Option<String>,
        /// The server's message.
        message: String,
        /// The row, as the server prints it.
        row: String,
    },
}

impl CatalogError {
    /// The message on a function or table that is missing, and that a constraint, a generated column or an index uses; none for other errors.
    pub fn missing_object(&self) -> Option<String> {
        match self {
            Self::AmongTables { cause, .. } => cause.missing_object(),
            Self::Sample(error) => match &**error {
                SampleError::Lacking { table, message, context } => {
                    Some(format!("{table} would refuse the rows: {message} ({context})"))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The remedy for rows that violate a CHECK.
fn of_check(columns: &[String], given: &[String], example: Option<&str>) -> String {
    if !given.is_empty() {
        let given: Vec<String> = given.iter().map(|option| format!("'{option}'")).collect();
        return format!("Change --column {}", given.join(" or "));
    }
    let example = example.map_or_else(String::new, |topic| format!(", for example {topic}"));
    format!("Describe its columns with --column {}{example}", options(columns, "SPEC"))
}
