//! The error for tables that reference each other, with the remedies of each verb.

use std::error::Error;
use std::fmt;

/// Origin of SQL that creates tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlOrigin {
    /// A file of the user's.
    File,
    /// A model of another database.
    Model,
    /// The catalogs of a database.
    Database,
}

/// Tables that reference each other, so that pgrig cannot fill any of them first.
#[derive(Clone, Debug)]
pub struct CycleError {
    /// The tables, in the direction of their references.
    pub(crate) tables: String,
    /// The foreign keys.
    pub(crate) keys: String,
    /// Why none of the tables can be filled first.
    pub(crate) why: String,
    /// A statement after which foreign keys of one of the tables may be NULL, if there is one.
    pub(crate) nullable: Option<String>,
    /// A statement that removes one of the foreign keys.
    pub(crate) drop: String,
    /// Origin of the SQL that creates the tables; none for tables that were there before.
    pub(crate) origin: Option<SqlOrigin>,
    /// Options of `pgrig fill` that leave the tables out.
    pub(crate) leave_out: String,
}

impl CycleError {
    /// The error for a verb that fills tables which SQL creates, and has no option that leaves tables out.
    pub fn in_sql(&self, origin: SqlOrigin) -> String {
        let place = match origin {
            SqlOrigin::File => "Add to the end of the file",
            SqlOrigin::Model => "Add to the end of ddl in the model",
            SqlOrigin::Database => {
                "Write the schema to a file (pg_dump --schema-only), give it with --schema-file in place of the database, and add to its end"
            }
        };
        let statements: Vec<&str> = self.nullable.iter().chain([&self.drop]).map(String::as_str).collect();
        format!("{}. {place}: {}", self.problem(), statements.join("; or: "))
    }

    fn problem(&self) -> String {
        let Self { tables, keys, why, .. } = self;
        format!("{tables} reference each other ({keys}), and pgrig cannot fill any of them first: {why}")
    }
}

impl fmt::Display for CycleError {
    /// With the remedies of `pgrig fill`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, leave_out) = (self.problem(), &self.leave_out);
        let Some(nullable) = &self.nullable else {
            return write!(f, "{problem}. Leave the tables out: {leave_out}");
        };
        match self.origin {
            None => write!(f, "{problem}. Run {nullable} for the time of the fill")?,
            Some(SqlOrigin::Model) => write!(f, "{problem}. Add {nullable} to the end of ddl in the model")?,
            Some(SqlOrigin::File | SqlOrigin::Database) => {
                write!(f, "{problem}. Add {nullable} to the end of the SQL")?;
            }
        }
        write!(f, ", or leave the tables out: {leave_out}")
    }
}

impl Error for CycleError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(nullable: Option<&str>, origin: Option<SqlOrigin>) -> CycleError {
        CycleError {
            tables: "a → b → a".to_owned(),
            keys: "foreign keys a_b, b_a".to_owned(),
            why: "so it is".to_owned(),
            nullable: nullable.map(str::to_owned),
            drop: "ALTER TABLE a DROP CONSTRAINT a_b".to_owned(),
            origin,
            leave_out: "--exclude-table a --exclude-table b".to_owned(),
        }
    }

    #[test]
    fn each_verb_gets_remedies_that_it_has() {
        let alter = Some("ALTER TABLE a ALTER COLUMN b DROP NOT NULL");
        for (nullable, origin, end) in [
            (
                alter,
                None,
                ". Run ALTER TABLE a ALTER COLUMN b DROP NOT NULL for the time of the fill, or leave the tables out: \
                 --exclude-table a --exclude-table b",
            ),
            (
                alter,
                Some(SqlOrigin::Model),
                ". Add ALTER TABLE a ALTER COLUMN b DROP NOT NULL to the end of ddl in the model, or leave the tables out: \
                 --exclude-table a --exclude-table b",
            ),
            (None, None, ". Leave the tables out: --exclude-table a --exclude-table b"),
        ] {
            let said = error(nullable, origin).to_string();
            assert!(said.starts_with("a → b → a reference each other (foreign keys a_b, b_a)"), "{said}");
            assert!(said.ends_with(end), "{said}");
        }
        let said = error(alter, Some(SqlOrigin::File)).in_sql(SqlOrigin::File);
        assert!(
            said.ends_with(
                ". Add to the end of the file: ALTER TABLE a ALTER COLUMN b DROP NOT NULL; or: ALTER TABLE a DROP \
                 CONSTRAINT a_b"
            ),
            "{said}"
        );
        let said = error(None, Some(SqlOrigin::File)).in_sql(SqlOrigin::Database);
        assert!(
            said.ends_with("in place of the database, and add to its end: ALTER TABLE a DROP CONSTRAINT a_b"),
            "{said}"
        );
    }
}
