//! Errors of a table to fill. `sample`: rows of a sample that the server refuses.

mod sample;

use failure::{Class, Classified};
use thiserror::Error;

use connect::described;
use server::quote::{shell_word, shown};

pub use self::sample::SampleError;

/// Why a table cannot be described, or its rows would not be accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The server could not be asked; [`connect::Connection::explain`] knows why.
    #[error("a query of the catalogs failed: {}", described(.0))]
    Server(tokio_postgres::Error),
    /// Another transaction has locked a table that was to be read; with this transaction and the remedy.
    #[error("pgrig cannot read a table: {0}")]
    Locked(String),
    /// A name that the server cannot look up.
    #[error("--table {name}: {why}. Give NAME or SCHEMA.NAME, quoted as in SQL if it is not all lower case")]
    Name {
        /// The name that the user gave.
        name: String,
        /// The server's message.
        why: String,
    },
    /// The role may not use the table's schema.
    #[error(
        "role {role} may not use schema {schema}, where {table} is: run GRANT USAGE ON SCHEMA {schema} TO {role}, or connect as \
         another role"
    )]
    SchemaPrivilege {
        /// The table that the user named.
        table: String,
        /// Its schema, quoted for SQL.
        schema: String,
        /// The role, quoted for SQL.
        role: String,
    },
    /// The role may not use the schemas of several tables.
    #[error(
        "role {role} may not use the schemas {}: run GRANT USAGE ON SCHEMA {} TO {role}, or connect as another role",
        schemas.join(", "),
        schemas.join(", ")
    )]
    SchemaPrivileges {
        /// Two or more, quoted for SQL.
        schemas: Vec<String>,
        /// The role, quoted for SQL.
        role: String,
    },
    /// There is no such table.
    #[error(
        "there is no table {name}{}",
        if alike.is_empty() {
            ": check the name, give SCHEMA.NAME if the schema is not on the search_path, or create it first with --ddl FILE".to_owned()
        } else {
            format!("; did you mean {}?", alike.join(" or "))
        }
    )]
    NoTable {
        /// The name that the user gave.
        name: String,
        /// Tables of that name elsewhere, or of a similar one.
        alike: Vec<String>,
    },
    /// The name is of another kind of relation.
    #[error("pgrig cannot fill {table}, because it is {what}: give the name of a table{}", if .what.ends_with(" view") { " that the view reads" } else { "" })]
    NotATable {
        /// Schema and name.
        table: String,
        /// Kind of the relation.
        what: &'static str,
    },
    /// A table without columns.
    #[error("{table} has no columns: add a column first")]
    NoColumns {
        /// Schema and name.
        table: String,
    },
    /// The schema, or the database, has no table for a model.
    #[error(
        "there is no table{}{}",
        schema.as_ref().map_or_else(String::new, |schema| format!(" in schema {schema}")),
        alike.as_ref().map_or_else(
            || ": give another database with -d, or another --schema".to_owned(),
            |alike| format!("; did you mean --schema {alike}?")
        )
    )]
    NothingToModel {
        /// The schema, if one was named.
        schema: Option<String>,
        /// A schema whose name differs in upper case only.
        alike: Option<String>,
    },
    /// COPY does not work under row-level security.
    #[error(
        "row-level security applies to role {role} on {table}, and COPY refuses to load: connect as the table's \
         owner (without FORCE ROW LEVEL SECURITY) or as a role with BYPASSRLS"
    )]
    RowSecurity {
        /// Schema and name.
        table: String,
        /// The role to which row-level security applies.
        role: String,
    },
    /// The role may not insert.
    #[error("role {role} may not insert into {table}: run GRANT INSERT ON {table} TO {role}")]
    InsertPrivilege {
        /// Schema and name.
        table: String,
        /// The role that lacks the privilege.
        role: String,
    },
    /// The role may not insert into a column that needs a value.
    #[error(
        "role {role} may not give column {column} of {table} a value: run GRANT INSERT ({}) ON {table} TO {role}{}",
        shown(column),
        if *is_optional { format!(", or give --column '{column}=default'") } else { String::new() }
    )]
    ColumnPrivilege {
        /// Schema and name.
        table: String,
        /// The column that needs a value.
        column: String,
        /// The role that lacks the privilege.
        role: String,
        /// Whether it has a default, or may be NULL.
        is_optional: bool,
    },
    /// A partition is a foreign table.
    #[error(
        "partition {partition} of {table} is a foreign table: detach it, or give the name of another partition"
    )]
    ForeignPartition {
        /// Schema and name.
        table: String,
        /// The partition that is a foreign table.
        partition: String,
    },
    /// A partitioned table has no partition that could hold a row.
    #[error(
        "{table} is partitioned but has no partition that could hold a row: create one first (for all rows: {remedy})"
    )]
    NoPartitions {
        /// Schema and name.
        table: String,
        /// The statement that creates a partition for all rows.
        remedy: String,
    },
    /// `--column` names no column.
    #[error("{table} has no column {column}; its columns are {columns}")]
    NoColumn {
        /// Schema and name.
        table: String,
        /// The name that the user gave.
        column: String,
        /// Names of the table's columns.
        columns: String,
    },
    /// `--column` was given twice for a column.
    #[error("--column {column} is given twice: give it once")]
    GivenTwice {
        /// The column that two options describe.
        column: String,
    },
    /// A spec that the column cannot have.
    #[error("--column {column}: {why}")]
    Spec {
        /// The column that the option names.
        column: String,
        /// The fault of the value.
        why: String,
    },
    /// A generated column cannot be given a value.
    #[error("the server generates column {column} of {table} from other columns: give --column for those")]
    GeneratedColumn {
        /// Schema and name.
        table: String,
        /// The generated column.
        column: String,
    },
    /// A type that no values can be made for.
    #[error(
        "pgrig makes no values of type {data_type} for column {column} of {table}: give --column \
         '{column}=constant(VALUE)'{}{}",
        if *has_default { format!(" or '{column}=default'") } else { String::new() },
        if *nullable { format!(" or '{column}=null'") } else { String::new() }
    )]
    UnsupportedType {
        /// Schema and name.
        table: String,
        /// The column with this type.
        column: String,
        /// Its type as SQL has it.
        data_type: String,
        /// Whether it may be NULL.
        nullable: bool,
        /// Whether the server has a value for it.
        has_default: bool,
    },
    /// Values that do not suit the column.
    #[error("column {column} of {table}: {why}")]
    Unsuited {
        /// Schema and name.
        table: String,
        /// The column that the values are for.
        column: String,
        /// Why the values do not suit the column.
        why: String,
    },
    /// No value fulfils all constraints.
    #[error(
        "pgrig finds no values that satisfy all constraints of {table}{}: describe the columns with --column NAME=SPEC",
        if constraints.is_empty() { String::new() } else { format!(" ({constraints})") }
    )]
    Contradiction {
        /// Schema and name.
        table: String,
        /// Names of its CHECK constraints.
        constraints: String,
    },
    /// A key that cannot be made unique.
    #[error(
        "{table}: pgrig finds no unique values for {key}, {definition}: {}leave out {key} (drop it, or remove it from the SQL that \
         creates the tables)",
        for_key(columns.as_deref(), nulls)
    )]
    Key {
        /// Schema and name.
        table: String,
        /// The constraint or index.
        key: String,
        /// As the server prints it.
        definition: String,
        /// Its columns that are in no foreign key; none if all are in one.
        columns: Option<Box<[String]>>,
        /// Of each foreign key that may be NULL instead, the columns that may be.
        nulls: Box<[Vec<String>]>,
    },
    /// More rows than keys leave room for.
    #[error(
        "{table} has room for {most} {}, not {rows}: {why}. {}",
        if *most == 1 { "row" } else { "rows" },
        for_room(*most, *is_constant, .table)
    )]
    TooManyRows {
        /// Schema and name.
        table: String,
        /// Number of rows that the user asked for.
        rows: u64,
        /// Number of rows that fit.
        most: u64,
        /// The constraint that limits them.
        why: String,
        /// The unique key that does, if it is one.
        key: Option<String>,
        /// Whether this key is the same in each row, whatever the values of the columns.
        is_constant: bool,
    },
    /// The table has rows, and pgrig cannot find out which keys they use.
    #[error(
        "{table} has rows, and pgrig cannot find values of {key} ({definition}) that are not in use: run TRUNCATE \
         {table} first, or give one column of the key unique values with --column {}",
        options(columns, "unique")
    )]
    RowsPresent {
        /// Schema and name.
        table: String,
        /// The constraint or index.
        key: String,
        /// As the server prints it.
        definition: String,
        /// Columns of the key.
        columns: Box<[String]>,
    },
    /// A referenced table is empty.
    #[error(
        "{columns} of {table} must reference rows of {referenced} ({constraint}), which is empty: fill \
         {referenced} first (pgrig fill --table {} --rows 1000, with the same server and database)",
        shell_word(.referenced)
    )]
    NothingToReference {
        /// Schema and name.
        table: String,
        /// The referencing columns.
        columns: String,
        /// The foreign key.
        constraint: String,
        /// The referenced table.
        referenced: String,
    },
    /// A referenced table has rows, but none that may be referenced (again).
    #[error(
        "{columns} of {table} can reference no more rows of {referenced} ({constraint}): all are referenced already, or \
         other constraints exclude them. Fill {referenced} with more rows first"
    )]
    NoKeyLeft {
        /// Schema and name.
        table: String,
        /// The referencing columns.
        columns: String,
        /// The foreign key.
        constraint: String,
        /// The referenced table.
        referenced: String,
    },
    /// The referenced keys cannot be read.
    #[error(
        "role {role} may not read {referenced}, and {columns} of {table} must reference its keys ({constraint}): run \
         GRANT SELECT ON {referenced} TO {role}, or give values for {columns} with --column"
    )]
    ReferencePrivilege {
        /// Schema and name.
        table: String,
        /// The referencing columns.
        columns: String,
        /// The foreign key.
        constraint: String,
        /// The referenced table.
        referenced: String,
        /// The role that may not read the keys.
        role: String,
    },
    /// Part of a composite foreign key is given in a way that the rest cannot follow.
    #[error(
        "column {column} of {table} is part of {constraint}, {definition}: give --column for every column of \
         {constraint}, or give --column '{column}=constant(VALUE)'"
    )]
    HalfGiven {
        /// Schema and name.
        table: String,
        /// The column that is given.
        column: String,
        /// The foreign key.
        constraint: String,
        /// As the server prints it.
        definition: String,
    },
    /// The server generates the keys of a table filled earlier, so pgrig does not know them when it
    /// describes a table that references them.
    #[error(
        "the server generates {columns} of {referenced} only when it inserts the rows, so pgrig does not know the \
         values that other tables must reference: give them with --column, or fill {referenced} first (pgrig fill \
         --table {} --rows 1000, with the same server and database)",
        shell_word(.referenced)
    )]
    UnknownKeys {
        /// Schema and name.
        referenced: String,
        /// Columns of its key.
        columns: String,
    },
    /// A foreign key with PERIOD.
    #[error(
        "{table}: pgrig cannot make values for the period of {constraint} ({definition}): give values for its columns with --column, or \
         leave out the constraint (drop it, or remove it from the SQL that creates the tables)"
    )]
    Period {
        /// Schema and name.
        table: String,
        /// The foreign key.
        constraint: String,
        /// As the server prints it.
        definition: String,
    },
    /// A row has to reference itself, by a key that is not known beforehand.
    #[error(
        "column {column} of {table} must reference {referenced} of the same table: give values for {referenced} \
         (--column '{referenced}=serial') or for {column} with --column"
    )]
    SelfReference {
        /// Schema and name.
        table: String,
        /// The referencing column.
        column: String,
        /// The referenced column.
        referenced: String,
    },
    /// Hardly any values fulfil conditions that pgrig does not understand.
    #[error(
        "{table}: pgrig tried {tried} rows for {columns}, and only {passed} satisfied {constraints}{}: describe the \
         columns with --column {}",
        error.as_ref().map_or_else(String::new, |error| format!(" (its error: {error})")),
        columns.split(", ").map(|column| format!("'{column}=SPEC'")).collect::<Vec<_>>().join(" or ")
    )]
    Rare {
        /// Schema and name.
        table: String,
        /// The columns that pgrig gives values.
        columns: String,
        /// The constraints with their definitions.
        constraints: String,
        /// Number of rows that pgrig tried.
        tried: u64,
        /// Number of these that fulfil the constraints.
        passed: u64,
        /// The last error that a candidate raised.
        error: Option<String>,
    },
    /// The server refuses a row of the sample.
    #[error(transparent)]
    Sample(Box<SampleError>),
    /// The error of a table that is filled among others.
    #[error("{shown}")]
    AmongTables {
        /// The text, with options for several tables.
        shown: String,
        /// The error of the table alone.
        cause: Box<Self>,
    },
}

/// The values of `--column` for one of these columns: `'a=SPEC' or 'b=SPEC'`.
fn options(columns: &[String], spec: &str) -> String {
    if columns.is_empty() {
        return format!("'NAME={spec}'");
    }
    columns.iter().map(|column| format!("'{column}={spec}'")).collect::<Vec<_>>().join(" or ")
}

/// The ways to make a key unique, each with ` or ` after it.
fn for_key(columns: Option<&[String]>, nulls: &[Vec<String>]) -> String {
    let unique = columns.map(|columns| {
        format!("give one of its columns unique values with --column {}", options(columns, "unique"))
    });
    let null = |columns: &Vec<String>| {
        let options: Vec<String> = columns.iter().map(|column| format!("--column '{column}=null'")).collect();
        format!("make a foreign key NULL with {}", options.join(" "))
    };
    unique.into_iter().chain(nulls.iter().map(null)).map(|way| way + ", or ").collect()
}

/// The remedy where a table has room for fewer rows than wanted.
fn for_room(most: u64, is_constant: bool, table: &str) -> String {
    match (most, is_constant) {
        (0, true) => format!("Run TRUNCATE {table} first"),
        (_, true) => "Give fewer rows".to_owned(),
        (0, false) => "Give other values to its columns with --column NAME=SPEC".to_owned(),
        (_, false) => "Give fewer rows, or other values to its columns with --column NAME=SPEC".to_owned(),
    }
}

impl Classified for CatalogError {
    fn class(&self) -> Class {
        match self {
            Self::Name { .. }
            | Self::SchemaPrivilege { .. }
            | Self::SchemaPrivileges { .. }
            | Self::NoTable { .. }
            | Self::NotATable { .. }
            | Self::NoColumns { .. }
            | Self::NothingToModel { .. }
            | Self::RowSecurity { .. }
            | Self::InsertPrivilege { .. }
            | Self::ColumnPrivilege { .. }
            | Self::ForeignPartition { .. }
            | Self::NoPartitions { .. }
            | Self::NoColumn { .. }
            | Self::GivenTwice { .. }
            | Self::Spec { .. }
            | Self::GeneratedColumn { .. }
            | Self::UnsupportedType { .. }
            | Self::Unsuited { .. }
            | Self::Contradiction { .. }
            | Self::Key { .. }
            | Self::TooManyRows { .. }
            | Self::RowsPresent { .. }
            | Self::NothingToReference { .. }
            | Self::NoKeyLeft { .. }
            | Self::ReferencePrivilege { .. }
            | Self::HalfGiven { .. }
            | Self::UnknownKeys { .. }
            | Self::Period { .. }
            | Self::SelfReference { .. }
            | Self::Rare { .. }
            | Self::Sample(_) => Class::Request,
            Self::AmongTables { cause, .. } => cause.class(),
            Self::Server(_) | Self::Locked(_) => Class::Machine,
        }
    }
}

impl From<SampleError> for CatalogError {
    fn from(error: SampleError) -> Self {
        Self::Sample(Box::new(error))
    }
}

impl From<tokio_postgres::Error> for CatalogError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}
