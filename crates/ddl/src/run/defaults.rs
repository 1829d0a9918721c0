//! Rows for default partitions on which statements work: values of the partition key outside of the bounds of all other partitions, also of
//! those that the migration adds.
//!
//! Without them, the values lie within the bounds of the other partitions, and the default partition has no rows. The values are a
//! specification of the key column; a fill that cannot make rows of it leaves it out.

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, SqlState, Target};
use server::Session;
use server::quote::literal;

use super::bounds::Bounds;
use super::fill::is_given;
use super::rehearse::{Table, Tables};
use crate::outcome::StatementOutcome;
use crate::plan::PlannedDefault;
use crate::request::Request;

/// The share of the table's rows in a default partition whose share nothing tells.
const ASSUMED: f64 = 0.1;
/// The greatest share: the other partitions have rows, too.
const MOST: f64 = 0.99;

/// The partitions beside a default partition.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    /// OID of the table.
    root: u32,
    /// Partitioned by RANGE, else by LIST.
    is_range: bool,
    /// The key column.
    column: String,
    type_name: String,
    /// Whether values of the column can be chosen.
    is_simple: bool,
    /// As the server prints them.
    pub(crate) bounds: BTreeSet<String>,
}

/// Rows for a default partition.
#[derive(Clone, Debug)]
pub(crate) struct DefaultRows {
    /// The values of the key, `schema.table.column=specification`.
    pub(crate) spec: String,
    /// For people.
    pub(crate) planned: PlannedDefault,
}

/// The partitions beside default partitions at this moment, by the OID of the default partition.
pub(crate) async fn beside(session: &Session) -> Result<BTreeMap<u32, Beside>, ConnectError> {
    let mut all: BTreeMap<u32, Beside> = BTreeMap::new();
    for row in session.rows(include_str!("../sql/beside.sql"), &[]).await? {
        let new = || Beside {
            root: row.get("root"),
            is_range: row.get("is_range"),
            column: row.get("column"),
            type_name: row.get("type"),
            is_simple: row.get("is_simple"),
            bounds: BTreeSet::new(),
        };
        all.entry(row.get("default")).or_insert_with(new).bounds.insert(row.get("bounds"));
    }
    Ok(all)
}

/// The rows of default partitions on which statements work. `empty` has the tables before the migration; `added` are the bounds of partitions
/// after each statement, by the OID of the default partition.
pub(super) async fn rows(
    empty: &Target,
    request: &Request,
    (tables, statements): (&Tables, &[StatementOutcome]),
    added: &BTreeMap<u32, BTreeSet<String>>,
) -> Result<Vec<DefaultRows>, ConnectError> {
    let session = Session::open(empty).await?;
    session.run("SET search_path = ''; SET DateStyle = 'ISO, YMD'; SET TimeZone = 'UTC'").await?;
    let mut found = Vec::new();
    for (oid, beside) in beside(&session).await? {
        let (Some(partition), Some(table)) = (tables.get(oid), tables.get(beside.root)) else { continue };
        let Some(share) = share(request, partition) else { continue };
        if !beside.is_simple || !is_worked(oid, tables, statements) {
            continue;
        }
        let none = BTreeSet::new();
        let after = added.get(&oid).unwrap_or(&none);
        let Some(values) = values(&session, &beside, after, share.0).await? else { continue };
        let spec = format!("{}.{}={values}", table.plain_name(), beside.column);
        if !is_given(&request.columns, &spec) {
            let (partition, table) = (partition.shown(), table.shown());
            let planned = PlannedDefault { partition, table, share: share.0, is_assumed: share.1 };
            found.push(DefaultRows { spec, planned });
        }
    }
    session.close().await;
    Ok(found)
}

/// The share of the table's rows in its default partition, and whether it is assumed; none if it has no rows in the original.
fn share(request: &Request, partition: &Table) -> Option<(f64, bool)> {
    let (schema, name) = (&request.schema, partition.plain_name());
    if schema.bare.contains(&name) {
        return None;
    }
    match schema.shares.get(&name) {
        Some(share) => (*share > 0.0).then(|| (share.min(MOST), false)),
        None => Some((ASSUMED, true)),
    }
}

/// Whether a statement works on the partition, and on no other one of the table.
fn is_worked(oid: u32, tables: &Tables, statements: &[StatementOutcome]) -> bool {
    let root = |oid: u32| tables.get(oid).map(Table::root);
    statements.iter().filter_map(|one| one.found.as_ref()).any(|found| {
        let worked: BTreeSet<u32> = found.works.iter().map(|work| work.table).collect();
        let is_other = |other: &u32| *other != oid && root(*other) == root(oid);
        worked.contains(&oid) && !worked.iter().any(is_other)
    })
}

/// The specification of the key's values; none if there are none for its type or bounds.
async fn values(
    session: &Session,
    beside: &Beside,
    after: &BTreeSet<String>,
    share: f64,
) -> Result<Option<String>, ConnectError> {
    let (Some(old), Some(all)) = (read(beside.bounds.iter()), read(beside.bounds.union(after))) else {
        return Ok(None);
    };
    let counted = Counted::of(&beside.type_name);
    if beside.is_range {
        let Some(counted) = counted else { return Ok(None) };
        let outside = outside(session, &counted, ends(&old), ends(&all)).await?;
        return Ok(outside.map(|outside| outside.range(share)));
    }
    let values = listed(&old);
    if values.is_empty() {
        return Ok(None);
    }
    let new = match counted {
        // Each value is a stretch of its own.
        Some(counted) => {
            let same = |values: Vec<String>| [some(values.clone()), some(values)];
            let outside = outside(session, &counted, same(values.clone()), same(listed(&all))).await?;
            outside.map(|outside| outside.values)
        }
        None => is_text(&beside.type_name).then(|| vec![other(&listed(&all))]),
    };
    Ok(new.map(|new| list(&values, &new, share)))
}

fn read<'a>(bounds: impl Iterator<Item = &'a String>) -> Option<Vec<Bounds>> {
    bounds.map(|text| Bounds::of(text)).collect()
}

/// Lower and upper bounds; none for an open end.
type Ends = [Vec<Option<String>>; 2];

fn ends(all: &[Bounds]) -> Ends {
    let end = |at: usize| {
        let of = |one: &Bounds| match one {
            Bounds::Range(ends) => Some(ends[at].clone()),
            Bounds::List(_) => None,
        };
        all.iter().filter_map(of).collect()
    };
    [end(0), end(1)]
}

fn listed(all: &[Bounds]) -> Vec<String> {
    let of = |one: &Bounds| match one {
        Bounds::List(values) => values.clone(),
        Bounds::Range(_) => Vec::new(),
    };
    all.iter().flat_map(of).collect()
}

fn some(values: Vec<String>) -> Vec<Option<String>> {
    values.into_iter().map(Some).collect()
}

/// A type whose values the server counts on from a bound.
struct Counted {
    /// The type in which it counts.
    name: &'static str,
    /// The distance of the values outside of the bounds from each other.
    step: &'static str,
    /// The distance of the last value within a range from its upper bound.
    tail: &'static str,
    /// The length of a range: the number of its values, or of its seconds.
    span: &'static str,
}

impl Counted {
    fn of(type_name: &str) -> Option<Self> {
        let whole = |name| Some(Self { name, step: "1", tail: "1", span: "(longest.high - longest.low)" });
        let time = |name| {
            let (step, tail) = ("interval '1 day'", "interval '1 microsecond'");
            Some(Self { name, step, tail, span: "EXTRACT(epoch FROM longest.high - longest.low)" })
        };
        match type_name {
            "smallint" | "integer" | "bigint" | "numeric" => whole("numeric"),
            "date" => whole("date"),
            "timestamp without time zone" => time("timestamp"),
            "timestamp with time zone" => time("timestamptz"),
            _ => None,
        }
    }

    /// The query for values; without a tail for values that are no ranges.
    fn query(&self, is_list: bool) -> String {
        let tail = match (is_list, self.tail) {
            (true, "1") => "0",
            (true, _) => "interval '0'",
            (false, tail) => tail,
        };
        let query = include_str!("../sql/outside.sql");
        // The comment names them, too.
        [("TYPE", self.name), ("STEP", self.step), ("TAIL", tail), ("SPAN", self.span)]
            .into_iter()
            .fold(query.to_owned(), |query, (place, text)| query.replace(place, text))
    }
}

/// Values for rows of other partitions, and of the default partition.
struct Outside {
    low: String,
    high: String,
    /// Different values from `low` to `high` that the rows of other partitions have.
    within: i32,
    values: Vec<String>,
}

impl Outside {
    /// Values from `low` to `high`, equally often, and those outside. Their number is given: with `-1`, the range would grow with the rows.
    fn range(&self, share: f64) -> String {
        let each = share / self.values.len() as f64;
        let common: Vec<String> =
            self.values.iter().map(|value| format!("{}*{each}", literal(value))).collect();
        let (low, high) = (literal(&self.low), literal(&self.high));
        let different = self.values.len() + usize::try_from(self.within).unwrap_or_default();
        format!("statistics({different},0,common({}),histogram({low},{high}))", common.join(","))
    }
}

/// Asks the server. Both ends of a value of LIST are the value. Nothing if there are no such values, or they are out of the type's range.
async fn outside(
    session: &Session,
    counted: &Counted,
    old: Ends,
    all: Ends,
) -> Result<Option<Outside>, ConnectError> {
    let is_list = old[0] == old[1];
    let query = counted.query(is_list);
    let is_of_data = |state: &SqlState| state.code().starts_with("22");
    let rows = match session.rows(&query, &[&old[0], &old[1], &all[0], &all[1]]).await {
        Err(error) if error.sqlstate().is_some_and(is_of_data) => return Ok(None),
        rows => rows?,
    };
    // A specification reads a time in UTC, as the session writes it, and no offset.
    let without_offset = |text: String| text.trim_end_matches("+00").to_owned();
    let outside = |row: &tokio_postgres::Row| Outside {
        low: without_offset(row.get("low")),
        high: without_offset(row.get("high")),
        within: row.get("within"),
        values: row.get::<_, Vec<String>>("outside").into_iter().map(without_offset).collect(),
    };
    Ok(rows.first().map(outside))
}

fn is_text(type_name: &str) -> bool {
    ["text", "character varying", "character"].contains(&type_name)
}

/// A text that is none of these.
fn other(texts: &[String]) -> String {
    let numbered = (1..).map(|number| format!("other_{number}"));
    let mut candidates = std::iter::once("other".to_owned()).chain(numbered);
    candidates.find(|candidate| !texts.contains(candidate)).unwrap_or_default()
}

/// Values of partitions by LIST, equally often, and those outside.
fn list(old: &[String], outside: &[String], share: f64) -> String {
    let weighted = |values: &[String], share: f64| -> Vec<String> {
        let each = share / values.len() as f64;
        values.iter().map(|value| format!("{}*{each}", literal(value))).collect()
    };
    let all = [weighted(old, 1.0 - share), weighted(outside, share)].concat();
    format!("list({})", all.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_values_outside_have_their_share() {
        let values = texts(&["2026-01-02", "2026-01-03"]);
        let outside =
            Outside { low: "2024-01-01".to_owned(), high: "2025-12-31".to_owned(), within: 9, values };
        let spec = "statistics(11,0,common('2026-01-02'*0.25,'2026-01-03'*0.25),\
                    histogram('2024-01-01','2025-12-31'))";
        assert_eq!(outside.range(0.5), spec);
        let listed = list(&texts(&["a", "it's"]), &texts(&["other"]), 0.5);
        assert_eq!(listed, "list('a'*0.25,'it''s'*0.25,'other'*0.5)");
    }

    #[test]
    fn another_text_is_none_of_the_lists() {
        assert_eq!(other(&texts(&["a"])), "other");
        assert_eq!(other(&texts(&["other", "other_1"])), "other_2");
    }

    #[test]
    fn all_places_of_the_query_are_filled() {
        for (type_name, is_list) in [("integer", false), ("date", true), ("timestamp with time zone", true)] {
            let query = Counted::of(type_name).unwrap().query(is_list);
            assert!(["TYPE", "STEP", "TAIL", "SPAN"].iter().all(|place| !query.contains(place)), "{query}");
        }
        assert!(Counted::of("double precision").is_none());
    }
}
