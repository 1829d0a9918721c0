//! The record of a schema fill: a table beside the filled ones, as long as the fill lasts.
//!
//! Its comment holds the request. Each row holds a table, with the description of its rows. The
//! same request finds the record and completes the fill. A table is marked as filled in the
//! transaction that removes its own ledger, so a table with neither mark nor ledger has not been
//! begun.

use catalog::SequenceTaken;
use rowgen::Table;
use serde::{Deserialize, Serialize};

use super::plan::Postponed;
use super::request::SchemaRequest;
use crate::error::FillError;
use crate::request::{Part, Triggers};
use connect::{ConnectError, Connection, SqlState};
use server::quote::{literal, qualified};
use server::{Session, ask};

/// Its unquoted name.
const NAME: &str = "pgrig_schema_fill";
/// Bits of the number of a part.
const PART_BITS: u32 = 14;

/// The work on one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedTable {
    /// Its place, from 0: the number of its row less 1.
    #[serde(skip)]
    pub(super) place: u32,
    /// Its schema, unquoted.
    pub(super) schema: String,
    /// The rows, as they were described when the fill began: numbers `first_row` to `rows - 1`.
    pub(super) described: Table,
    pub(super) first_row: u64,
    /// Whether every column can be sent in binary.
    pub(super) binary: bool,
    /// Sequences in whose place pgrig counts.
    pub(super) sequences: Vec<SequenceTaken>,
    /// Bytes that the table and its indexes are predicted to take.
    pub(super) predicted: u64,
    /// Why it has so many rows.
    pub(super) why: String,
    /// Objects that are made after the rows.
    #[serde(default)]
    pub(super) postponed: Postponed,
    /// Statements that give the table its own fillfactor again, after the rows.
    #[serde(default)]
    pub(super) fillfactors: Vec<String>,
    /// Bytes of all tables, at which this one, the last, gets no more rows.
    #[serde(default)]
    pub(super) until: Option<u64>,
    /// Whether one transaction empties and loads it.
    #[serde(default)]
    pub(super) whole: bool,
    /// The cycle of tables that one transaction loads, if it belongs to one.
    #[serde(default, alias = "circle")]
    pub(super) cycle: Option<InCycle>,
}

/// A table's part in a cycle of tables that one transaction loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InCycle {
    /// Number of the cycle, from 0.
    pub(super) number: usize,
    /// Names of the table's foreign keys to tables of the cycle that are loaded after it.
    pub(super) later: Vec<String>,
    /// Whether pages are possible for all tables of the cycle.
    pub(super) pages: bool,
}

/// A fill that was begun and is not complete.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// Schema of the record.
    pub(super) schema: String,
    /// The tables in their order, and whether each is marked as filled.
    pub(super) tables: Vec<(RecordedTable, bool)>,
}

/// A record that was found.
pub(super) enum FoundRecord {
    /// The record of this request.
    Same(Begun),
    /// The record of another request, in this schema.
    Other(String),
}

/// The qualified name of the record, which also names the lock of a fill that is going on.
pub(super) fn name(schema: &str) -> String {
    qualified(schema, NAME)
}

/// Looks for the record of a schema fill in the database, preferably of this request.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn find(
    connection: &Connection,
    request: &SchemaRequest,
) -> Result<Option<FoundRecord>, FillError> {
    let query = include_str!("../sql/schema_records.sql");
    let rows = match connection.client.query(query, &[&NAME]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    let (mut other, request) = (None, &request.whole());
    for row in rows {
        let (schema, comment): (String, Option<String>) = (row.get("schema"), row.get("comment"));
        let mut of: Option<SchemaRequest> =
            comment.as_ref().and_then(|comment| serde_json::from_str(comment).ok());
        // Those that refuse rows may be off for the rest of them.
        if let Some(of) = of.as_mut().filter(|_| request.triggers == Triggers::Off) {
            of.triggers = Triggers::Off;
        }
        if of.as_ref() == Some(request) {
            return Ok(Some(FoundRecord::Same(read(connection, schema).await?)));
        }
        let same_schema = request.schema.as_ref().is_none_or(|asked| *asked == schema);
        other = other.or(same_schema.then_some(schema));
    }
    Ok(other.map(FoundRecord::Other))
}

/// Names of the tables of this schema's record whose postponed indexes and foreign keys have not
/// been created yet.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn unmade(connection: &Connection, schema: &str) -> Result<Vec<String>, FillError> {
    let query = format!(
        "SELECT coalesce(array_agg(t.name ORDER BY number), '{{}}') AS names \
           FROM {} r, LATERAL (SELECT description::json) d (json), \
                LATERAL (SELECT format('%I.%I', json ->> 'schema', json #>> '{{described,name}}')) t (name) \
          WHERE number > 0 AND to_regclass(t.name) IS NOT NULL
            AND (NOT is_filled AND json_array_length(json #> '{{postponed,makes}}') > 0
                 OR EXISTS (SELECT FROM json_array_elements(coalesce(json #> '{{postponed,foreign_keys}}', '[]')) k
                             WHERE NOT EXISTS (SELECT FROM pg_constraint
                                                WHERE conrelid = to_regclass(t.name) AND conname = k ->> 'name')))",
        qualified(schema, NAME)
    );
    Ok(ask(connection, &query, &[]).await?.get("names"))
}

/// Number of tables that are marked as filled in a record of the request; none if there is no such record.
pub(super) fn filled(found: Option<&FoundRecord>) -> Option<usize> {
    match found {
        Some(FoundRecord::Same(begun)) => {
            Some(begun.tables.iter().filter(|(_, is_filled)| *is_filled).count())
        }
        Some(FoundRecord::Other(_)) | None => None,
    }
}

async fn read(connection: &Connection, schema: String) -> Result<Begun, FillError> {
    let query = format!(
        "SELECT coalesce(json_agg(json_build_array(description::json, is_filled) ORDER BY number), '[]')::text FROM {} WHERE number > 0",
        qualified(&schema, NAME)
    );
    let text: String = ask(connection, &query, &[]).await?.get(0);
    let mut tables: Vec<(RecordedTable, bool)> = serde_json::from_str(&text).map_err(|error| {
        FillError::Combination(format!(
            "pgrig cannot read {schema}.{NAME}, the record of an unfinished fill ({error}): run DROP TABLE {}, or give \
             --no-resume",
            qualified(&schema, NAME)
        ))
    })?;
    for (place, (table, _)) in (0..).zip(&mut tables) {
        table.place = place;
    }
    Ok(Begun { schema, tables })
}

/// The statements that create the record with these tables.
pub(super) fn create(schema: &str, request: &SchemaRequest, tables: &[RecordedTable]) -> Vec<String> {
    let name = qualified(schema, NAME);
    let comment = serde_json::to_string(&request.whole()).expect("plain data");
    let rows = (1..).zip(tables).map(|(number, table): (usize, _)| {
        let description = serde_json::to_string(table).expect("plain data");
        format!("INSERT INTO {name} (number, description) VALUES ({number}, {})", literal(&description))
    });
    [
        format!("DROP TABLE IF EXISTS {name}"),
        format!(
            "CREATE TABLE {name} (number int PRIMARY KEY, description text NOT NULL, is_filled boolean NOT NULL DEFAULT false)"
        ),
        format!("COMMENT ON TABLE {name} IS {}", literal(&comment)),
    ]
    .into_iter()
    .chain(rows)
    .collect()
}

/// The statement that marks the table at this place, from 0, as filled.
pub(super) fn mark(schema: &str, place: usize) -> String {
    format!("UPDATE {} SET is_filled = true WHERE number = {}", qualified(schema, NAME), place + 1)
}

/// The statement that records that this part has loaded its chunks: rows with numbers below 0 stand for parts.
pub(super) fn report(schema: &str, part: Part) -> String {
    format!(
        "INSERT INTO {} (number, description) VALUES ({}, '') ON CONFLICT DO NOTHING",
        qualified(schema, NAME),
        of_part(part)
    )
}

/// The parts that have not recorded that they have loaded their chunks; none if the record has been dropped.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn without_report(
    session: &Session,
    schema: &str,
    part: Part,
) -> Result<Option<Vec<u32>>, ConnectError> {
    let query = format!("SELECT number FROM {} WHERE number < 0", qualified(schema, NAME));
    let reports: Vec<i32> = match session.rows(&query, &[]).await {
        Ok(rows) => rows.iter().map(|row| row.get("number")).collect(),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let missing = part.all().filter(|each| !reports.contains(&of_part(*each)));
    Ok(Some(missing.map(|each| each.number).collect()))
}

/// Whether the record has been dropped.
pub(super) fn is_missing(error: &ConnectError) -> bool {
    error.sqlstate() == Some(&SqlState::UNDEFINED_TABLE)
}

/// The number under which a part is recorded.
fn of_part(part: Part) -> i32 {
    i32::try_from(part.of << PART_BITS | part.number).map_or(i32::MIN, |number| -number)
}

/// The statement that drops the record once the fill is complete.
pub(super) fn drop(schema: &str) -> String {
    format!("DROP TABLE IF EXISTS {}", qualified(schema, NAME))
}

#[cfg(test)]
mod tests {
    use rowgen::{Buckets, Column, Described, Kind, Statistics, Values};

    use super::*;

    #[test]
    fn a_record_has_the_same_bounds_as_the_description() {
        let bounds = (1..=1000).map(|number| f64::from(number).sqrt()).collect();
        let values = Described::Reals(Buckets { common: vec![(0.1 + 0.2, 0.1)], bounds });
        let statistics = Statistics { distinct: -0.7, correlation: 0.3, values };
        let column = Column::new("f", Kind::Float8, Values::Statistics(statistics));
        let described = Table { name: "t".to_owned(), columns: vec![column], rows: 100, seed: 1 };
        let written = serde_json::to_string(&described).unwrap();
        let read: Table = serde_json::from_str(&written).unwrap();
        assert_eq!(read, described);
    }
}
