//! The server's own judgement of a sample, before anything is touched.
//!
//! The sample is copied into a temporary table with the target's types, NOT NULLs, CHECKs, keys and
//! generated columns, in a transaction that is rolled back. That needs the right to create temporary
//! tables and nothing else.

use futures_util::future::LocalBoxFuture;
use std::ops::Range;

use rowgen::{Topic, Turn, Values};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Error};

use super::allowed::Allowed;
use super::describe::Described;
use super::error::{CatalogError, SampleError};
use super::info::{ColumnInfo, ForeignKeyInfo, KeyInfo, TableInfo, columns_of};
use super::looks;
use super::mentioned::literals_in;
use super::planned::Planned;
use super::temporary;
use super::transaction::{Access, Scope, rolled_back};
use server::quote::{identifier, qualified};

/// The temporary table.
const SAMPLE: &str = "pgrig_sample";
/// Name of the constraint of the sample table that stands for the partitions' bounds.
const PARTITION: &str = "pgrig_partition";
/// Beginning of the names of the sample table's CHECKs: their numbers follow, since those of partitions may share a name.
const CHECK: &str = "pgrig_check_";
/// Rows from each of the beginning, the middle and the end.
const STRETCH: u64 = 400;
/// Length of a row as text from which its indexes are built on the sample: no index takes a key of a third of a page.
const LONG: i32 = 2_600;
/// Partitions up to which their bounds are checked: each row is compared with each.
const MOST_LEAVES: usize = 2_000;

/// Results of a sample that the server accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Warnings for the user, e.g. that the role may not create temporary tables, so that there was no sample.
    pub warnings: Vec<String>,
    /// Size of a row in the table itself and toasted, bytes.
    pub bytes_per_row: Option<u64>,
}

impl Verified {
    fn untried(warning: String) -> Self {
        Self { warnings: vec![warning], bytes_per_row: None }
    }
}

/// Has the server judge a sample of the described rows. Nothing of it stays.
///
/// # Errors
/// If a row is refused: by which constraint and which row; if the server fails.
pub fn verify<'a>(
    client: &'a Client,
    info: &'a TableInfo,
    described: &'a Described,
    scope: Scope,
) -> LocalBoxFuture<'a, Result<Verified, CatalogError>> {
    Box::pin(async move {
        if !info.may_create_temporary {
            let role = &info.role;
            let database: String =
                client.query_one("SELECT quote_ident(current_database())", &[]).await?.get(0);
            return Ok(Verified::untried(format!(
                "role {role} may not create temporary tables in this database, so pgrig does not test the rows before it \
                 loads them: run GRANT TEMPORARY ON DATABASE {database} TO {role}"
            )));
        }
        let trial = Trial { client, info, described };
        rolled_back(client, scope, Access::ReadWrite, trial.run()).await
    })
}

struct Trial<'a> {
    client: &'a Client,
    info: &'a TableInfo,
    described: &'a Described,
}

impl Trial<'_> {
    async fn run(&self) -> Result<Verified, CatalogError> {
        if let Err(error) = self.client.batch_execute(&self.ddl()).await {
            return match error.as_db_error() {
                Some(why) => {
                    Ok(Verified::untried(format!("pgrig cannot test the rows first: {}", why.message())))
                }
                None => Err(error.into()),
            };
        }
        let rows = match self.copy().await {
            Ok(rows) => rows,
            Err(error) => return Err(self.explain(error)),
        };
        self.indexes().await?;
        self.foreign_keys().await?;
        self.present_keys().await?;
        let size = self
            .client
            .query_one("SELECT pg_table_size($1::text::regclass)", &[&format!("pg_temp.{SAMPLE}")])
            .await?;
        let size = u64::try_from(size.get::<_, i64>(0)).unwrap_or_default();
        Ok(Verified { warnings: Vec::new(), bytes_per_row: (rows > 0).then(|| size / rows) })
    }

    /// CREATE TABLE and the statements that belong to it.
    fn ddl(&self) -> String {
        let checks = self
            .info
            .checks
            .iter()
            .enumerate()
            .map(|(number, check)| format!("CONSTRAINT {CHECK}{number} CHECK ({})", check.expression));
        let bounds = self.bounds().map(|bounds| format!("CONSTRAINT {PARTITION} CHECK ({bounds})"));
        let (excluding, unique): (Vec<_>, Vec<_>) = self.info.keys.iter().partition(|key| key.exclusion);
        let exclusions =
            excluding.iter().map(|key| format!("CONSTRAINT {} {}", identifier(&key.name), key.definition));
        let constraints: Vec<String> = checks.chain(bounds).chain(exclusions).collect();
        let mut statements = vec![temporary::create(self.info, SAMPLE, &constraints)];
        statements.extend(unique.iter().map(|key| {
            format!("CREATE UNIQUE INDEX {} ON pg_temp.{SAMPLE}{}", identifier(&key.name), key.index)
        }));
        statements.join(";\n")
    }

    fn bounds(&self) -> Option<String> {
        let few = self.info.partitions.as_ref().is_none_or(|leaves| leaves.len() <= MOST_LEAVES);
        few.then(|| self.info.partition_condition()).flatten()
    }

    /// Copies the sample and counts its rows.
    async fn copy(&self) -> Result<u64, Error> {
        temporary::copy(self.client, SAMPLE, &self.described.table, stretches(self.described)).await
    }

    /// Builds the table's indexes on the sample if it has rows that may be too long for them.
    async fn indexes(&self) -> Result<(), CatalogError> {
        let longest = format!("SELECT coalesce(max(octet_length(s::text)), 0) FROM pg_temp.{SAMPLE} AS s");
        let longest: i32 = self.client.query_one(&longest, &[]).await?.get(0);
        if longest < LONG {
            return Ok(());
        }
        let indexes = self.client.query(include_str!("sql/index_definitions.sql"), &[&self.info.oid]).await?;
        for index in indexes {
            let definition: String = index.get("definition");
            let build = format!("CREATE INDEX ON pg_temp.{SAMPLE} {definition}");
            match self.client.batch_execute(&build).await {
                Ok(()) => {}
                Err(error) => match error.as_db_error() {
                    Some(db) if *db.code() == SqlState::PROGRAM_LIMIT_EXCEEDED => {
                        // The server names the sample's index.
                        let message = db.message().split(" for index ").next().unwrap_or_default();
                        return Err(SampleError::TooLong {
                            table: self.info.shown(),
                            index: index.get("name"),
                            definition,
                            message: message.to_owned(),
                        }
                        .into());
                    }
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    /// Finds sample rows that reference no existing key: the keys may be the user's, or a default.
    async fn foreign_keys(&self) -> Result<(), CatalogError> {
        for key in self
            .info
            .foreign_keys
            .iter()
            .filter(|key| key.referenced.may_select && !key.period && !key.to_itself)
            .filter(|key| Planned::of(&self.described.planned, key).is_none())
        {
            let pairs = || key.columns.iter().zip(&key.referenced.columns);
            let same: Vec<String> = pairs()
                .map(|(mine, theirs)| format!("r.{} = s.{}", identifier(theirs), identifier(mine)))
                .collect();
            if let Some(value) = self
                .find(
                    key.columns.iter(),
                    &format!(
                        "{} AND NOT EXISTS (SELECT FROM {} AS r WHERE {})",
                        not_null(&key.columns),
                        qualified(&key.referenced.schema, &key.referenced.table),
                        same.join(" AND ")
                    ),
                )
                .await?
            {
                return Err(self.dangling(key, value).into());
            }
        }
        Ok(())
    }

    fn dangling(&self, key: &ForeignKeyInfo, value: String) -> SampleError {
        SampleError::Dangling {
            table: self.info.shown(),
            constraint: key.name.clone(),
            definition: key.definition.clone(),
            columns: key.columns.join(", "),
            value,
        }
    }

    /// Finds keys of sample rows that the table has already.
    async fn present_keys(&self) -> Result<(), CatalogError> {
        if !self.info.may_select {
            return Ok(());
        }
        let sent = |name: &str| {
            let column = self.described.table.columns.iter().find(|column| column.name == name);
            column.is_some_and(|column| column.values != Values::Server)
        };
        let is_plain = |key: &&KeyInfo| {
            !key.exclusion && key.elements.iter().all(|element| element.column.as_deref().is_some_and(sent))
        };
        for key in self.info.keys.iter().filter(is_plain) {
            let columns: Vec<String> = key.columns().map(str::to_owned).collect();
            let same: Vec<String> =
                columns.iter().map(|name| format!("t.{0} = s.{0}", identifier(name))).collect();
            let table = qualified(&self.info.schema, &self.info.name);
            // In the subquery the predicate's columns are those of the table, outside of it those of the sample.
            let predicate =
                key.predicate.as_ref().map_or("true".to_owned(), |predicate| format!("({predicate})"));
            let taken = format!(
                "{predicate} AND EXISTS (SELECT FROM {table} AS t WHERE {} AND {predicate})",
                same.join(" AND ")
            );
            if let Some(value) = self.find(columns.iter(), &taken).await? {
                return Err(SampleError::Taken {
                    table: self.info.shown(),
                    key: key.name.clone(),
                    definition: key.definition.clone(),
                    columns: columns.join(", "),
                    value,
                }
                .into());
            }
        }
        Ok(())
    }

    /// The columns of the first row of the sample that fulfils a condition, as text.
    async fn find(
        &self,
        columns: impl Iterator<Item = &String>,
        condition: &str,
    ) -> Result<Option<String>, CatalogError> {
        let columns: Vec<String> = columns.map(|name| format!("s.{}", identifier(name))).collect();
        let query = format!(
            "SELECT ROW({})::text FROM pg_temp.{SAMPLE} AS s WHERE {condition} LIMIT 1",
            columns.join(", ")
        );
        Ok(self.client.query_opt(&query, &[]).await?.map(|row| row.get(0)))
    }

    /// Converts the error of the sample's COPY into the error to show.
    fn explain(&self, error: Error) -> CatalogError {
        let Some(db) = error.as_db_error() else { return error.into() };
        if !is_about_data(db) {
            return error.into();
        }
        let table = self.info.shown();
        let row = failing_row(db);
        let name = db.constraint().unwrap_or_default().to_owned();
        let refused = match db.code() {
            &SqlState::CHECK_VIOLATION if name == PARTITION => SampleError::NoPartition { table, row },
            &SqlState::CHECK_VIOLATION => {
                let (constraint, definition) = self.check(&name);
                let columns = self.checked((&constraint, &definition), db);
                let example = self.example(&columns, &definition);
                let columns = columns.into_iter().map(str::to_owned).collect();
                SampleError::Check {
                    table,
                    definition,
                    columns,
                    constraint,
                    row,
                    example,
                    given: Box::default(),
                }
            }
            &SqlState::UNIQUE_VIOLATION | &SqlState::EXCLUSION_VIOLATION => {
                let key = self.info.keys.iter().find(|key| key.name == name);
                let definition = key.map_or_else(String::new, |key| key.definition.clone());
                let columns = key.map(|key| columns_of(&key.elements, &self.info.column_names()));
                let columns = columns.unwrap_or_default();
                SampleError::Repeated { table, key: name, definition, columns, row }
            }
            &SqlState::NOT_NULL_VIOLATION if db.column().is_some() => {
                SampleError::NotNull { table, column: db.column().unwrap_or_default().to_owned(), row }
            }
            &SqlState::UNTRANSLATABLE_CHARACTER => {
                SampleError::Encoding { table, message: db.message().to_owned(), row }
            }
            &SqlState::UNDEFINED_FUNCTION | &SqlState::UNDEFINED_TABLE => {
                let context = row.lines().next().unwrap_or_default().to_owned();
                SampleError::Lacking { table, message: db.message().to_owned(), context }
            }
            _ => {
                let column = column_in_context(db, &self.info.column_names()).map(str::to_owned);
                SampleError::Refused { table, column, message: db.message().to_owned(), row }
            }
        };
        refused.into()
    }

    /// The columns that a CHECK concerns. One of a domain names none: the server's context does, or their types.
    fn checked(&self, (constraint, definition): (&str, &str), error: &DbError) -> Vec<&str> {
        let all = self.info.column_names();
        if let Some(column) = column_in_context(error, &all) {
            return vec![column];
        }
        let named = self.info.columns_in(definition);
        if !named.is_empty() {
            return named;
        }
        let has = |column: &&ColumnInfo| {
            let data_type = &column.data_type;
            let mut checks = data_type.domain_checks().into_iter().chain(data_type.inner_checks());
            checks.any(|check| check.name == constraint)
        };
        self.info.columns.iter().filter(has).map(|column| column.name.as_str()).collect()
    }

    /// The specification that the name of the only column suggests, if its values have the characters which the CHECK demands.
    fn example(&self, columns: &[&str], definition: &str) -> Option<&'static str> {
        let &[name] = columns else { return None };
        let kind = self.info.column(name)?.data_type.kind()?;
        let is_key = |key: &KeyInfo| key.elements.len() == 1 && key.columns().any(|column| column == name);
        let turn = self.info.keys.iter().any(is_key).then_some(Turn::EACH);
        let demands = |sign: char| literals_in(definition).iter().any(|text| text.contains(sign));
        match looks::values(&self.info.name, name, &kind, &Allowed::anything(), turn)? {
            Values::Topic { topic: Topic::Email, turn } if demands('@') => {
                Some(if turn.is_some() { "email(unique)" } else { "email" })
            }
            Values::Topic { topic: Topic::Url, turn } if demands('/') => {
                Some(if turn.is_some() { "url(unique)" } else { "url" })
            }
            _ => None,
        }
    }

    /// The name and the definition of a CHECK of the table, which has another name in the sample, or of a domain.
    fn check(&self, name: &str) -> (String, String) {
        let number = name.strip_prefix(CHECK).and_then(|number| number.parse::<usize>().ok());
        let of_table = number.and_then(|number| self.info.checks.get(number));
        let mut domains = self.info.columns.iter().flat_map(|column| column.data_type.domain_checks());
        let check = of_table.or_else(|| domains.find(|check| check.name == name));
        check.map_or_else(
            || (name.to_owned(), String::new()),
            |check| (check.name.clone(), check.expression.clone()),
        )
    }
}

/// Whether a row is to blame: some types' input functions report syntax errors, not data errors.
fn is_about_data(error: &DbError) -> bool {
    let class = |classes: &[&str]| classes.iter().any(|class| error.code().code().starts_with(class));
    let in_a_row = error.where_().is_some_and(|context| context.contains("COPY pgrig_sample, line"));
    // 53, 57, 58, XX: the server is out of something, was told to stop, or is broken.
    class(&["22", "23"]) || in_a_row && !class(&["53", "57", "58", "XX"])
}

/// The failing row in the server's message: its values, or the line and column of the COPY.
fn failing_row(error: &DbError) -> String {
    let shown = error.detail().or_else(|| error.where_()).unwrap_or_default();
    shown.replace("pgrig_sample, ", "").trim_end_matches('.').to_owned()
}

/// The column whose value the COPY could not read: `COPY pgrig_sample, line 1, column email: "a"`.
fn column_in_context<'n>(error: &DbError, all: &[&'n str]) -> Option<&'n str> {
    let (_, line) = error.where_()?.split_once("COPY pgrig_sample, line ")?;
    let column = line.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(", column ")?;
    let is_it = |name: &&str| column.strip_prefix(*name).is_some_and(|after| after.starts_with(':'));
    all.iter().copied().find(is_it)
}

/// The beginning, the middle and the end of the described rows.
fn stretches(described: &Described) -> Vec<Range<u64>> {
    let first = described.first_row;
    let most = described.most_rows.as_ref().map_or(u64::MAX, |most| first.saturating_add(most.rows));
    let end = described.table.rows.min(most);
    if end.saturating_sub(first) <= 4 * STRETCH {
        return std::iter::once(first..end).collect();
    }
    // Without a known end, the number of rows of a large table.
    let last = end.min(first.saturating_add(1_000_000_000));
    let middle = first + (last - first) / 2;
    vec![first..first + STRETCH, middle..middle + STRETCH, last - STRETCH..last]
}

fn not_null(columns: &[String]) -> String {
    let each: Vec<String> =
        columns.iter().map(|name| format!("s.{} IS NOT NULL", identifier(name))).collect();
    each.join(" AND ")
}
