//! Facts for a model: catalogs and statistics of all tables, read in one transaction that changes nothing.

mod aggregates;
mod defaults;
mod drawn;
mod extended;
mod locales;
mod orders;
mod packed;
mod reading;
mod sampled;

use std::collections::BTreeMap;

pub use self::aggregates::Aggregates;
use self::aggregates::Question;
pub use self::drawn::{Drawing, draw, drawing};
pub use self::locales::locale;
use self::packed::{Pages, StoredColumn};
use self::reading::{by_relation, in_transaction};
use futures_util::future::LocalBoxFuture;
use model::{Bytes, ColumnFacts, ColumnRole, Facts, RangeStatistics, Statistics, TableFacts};
use rowgen::Kind;
use tokio_postgres::{Client, Row};

use crate::error::CatalogError;
use crate::info::{CheckInfo, ColumnInfo, DataType, KeyInfo, TableInfo, TypeShape};
use crate::mentioned::{columns_in, literals_in};
use crate::read;
use crate::slot::has_sequence;
use server::Steps;

/// Seconds that a statement may take, if nothing else is asked for.
pub const TIMEOUT: u64 = 60;

/// Columns of `pg_stats` on ranges, for `{ranges}` in the query; and the same before PostgreSQL 17, which lacks them.
const RANGES: &str = "s.range_empty_frac AS range_empty, s.range_bounds_histogram::text::text[] AS range_bounds, \
                      s.range_length_histogram::text::float8[] AS range_lengths";
const NO_RANGES: &str =
    "NULL::float4 AS range_empty, NULL::text[] AS range_bounds, NULL::float8[] AS range_lengths";
/// The first version that has them.
const WITH_RANGES: i32 = 170_000;

/// Different values that a column with few values has at most.
const FEW: f64 = 50.0;

/// Reads the facts of all tables of a schema, or of all schemas but the system's. Nothing is changed. Tables are read only
/// for aggregates. A statement may take `timeout` seconds.
///
/// # Errors
/// If there is no table, or the server fails.
pub fn capture<'a>(
    client: &'a Client,
    schema: Option<&'a str>,
    aggregates: Option<Aggregates>,
    timeout: u64,
    steps: Steps<'a>,
) -> LocalBoxFuture<'a, Result<Facts, CatalogError>> {
    Box::pin(in_transaction(client, timeout, async move {
        steps("reading the catalogs and statistics of the tables");
        let (mut facts, infos) = read_all(client, schema).await?;
        if let Some(asked) = aggregates {
            facts.aggregates = true;
            let questions = questions(&facts, &infos, asked);
            let of = questions.len();
            for (place, (table, questions)) in facts.tables.iter_mut().zip(&questions).enumerate() {
                steps(&format!("reading {}, table {} of {of}", table.name, place + 1));
                aggregates::ask(client, questions, asked, table, &mut facts.unseen).await?;
            }
        }
        Ok(facts)
    }))
}

/// The statements that would read tables for aggregates. To find them, only catalogs and statistics
/// are read.
///
/// # Errors
/// As [`capture`].
pub fn statements<'a>(
    client: &'a Client,
    schema: Option<&'a str>,
    aggregates: Aggregates,
) -> LocalBoxFuture<'a, Result<Vec<String>, CatalogError>> {
    Box::pin(in_transaction(client, TIMEOUT, async move {
        let (facts, infos) = read_all(client, schema).await?;
        let questions = questions(&facts, &infos, aggregates);
        Ok(questions.into_iter().flatten().map(|question| question.sql).collect())
    }))
}

/// The queries of each table.
fn questions(facts: &Facts, infos: &[TableInfo], asked: Aggregates) -> Vec<Vec<Question>> {
    let is_modelled = |name: &str| facts.tables.iter().any(|table| table.name == name);
    let tables = facts.tables.iter().zip(infos);
    tables.map(|(table, info)| aggregates::of_table(info, table, asked, is_modelled)).collect()
}

async fn read_all(client: &Client, schema: Option<&str>) -> Result<(Facts, Vec<TableInfo>), CatalogError> {
    let rows = client.query(include_str!("tables.sql"), &[&schema]).await?;
    if rows.is_empty() {
        let alike =
            "SELECT min(nspname::text) FROM pg_namespace WHERE lower(nspname) = lower($1) AND nspname <> $1";
        let alike = client.query_one(alike, &[&schema]).await?.get(0);
        return Err(CatalogError::NothingToModel { schema: schema.map(str::to_owned), alike });
    }
    let head = "SELECT 'PostgreSQL ' || current_setting('server_version') AS server, \
                to_char(now(), 'YYYY-MM-DD HH24:MI:SS\"Z\"') AS captured, \
                current_setting('server_version_num')::int AS version";
    let head = client.query_one(head, &[]).await?;
    let ddl = client.query(include_str!("ddl.sql"), &[&schema]).await?;
    let ddl: Vec<String> = ddl.iter().map(|row| row.get::<_, String>("sql") + ";\n").collect();
    let sizes: BTreeMap<String, u64> =
        rows.iter().map(|row| (row.get("name"), unsigned(row, "rows"))).collect();
    let names: Vec<String> = rows.iter().map(|row| row.get("sql_name")).collect();
    let infos = read::looked_at(client, &names).await?;
    let oids: Vec<u32> = rows.iter().map(|row| row.get("oid")).collect();
    let ranges = if head.get::<_, i32>("version") < WITH_RANGES { NO_RANGES } else { RANGES };
    let query = include_str!("statistics.sql").replace("{ranges}", ranges);
    let mut statistics = by_relation(client, &query, &oids).await?;
    let mut objects_of = by_relation(client, include_str!("extended.sql"), &oids).await?;
    let mut unseen = Vec::new();
    let mut tables = Vec::with_capacity(rows.len());
    for (row, info) in rows.iter().zip(&infos) {
        let oid: u32 = row.get("oid");
        let mut found = table(row, info, &sizes, &statistics.remove(&oid).unwrap_or_default());
        let objects = objects_of.remove(&oid).unwrap_or_default();
        let (pairs, not_seen) = extended::read(&objects, &found.name, found.rows);
        found.pairs = pairs;
        unseen.extend(not_seen);
        tables.push(found);
    }
    let facts = Facts {
        server: head.get("server"),
        captured: head.get("captured"),
        ddl: ddl.concat(),
        locale: Some(locale(client, None).await?),
        tables,
        unseen,
        elsewhere: rows.iter().filter_map(defaults::described).collect(),
        aggregates: false,
    };
    Ok((facts, infos))
}

/// The facts of a table, without dependence between its columns.
fn table(row: &Row, info: &TableInfo, sizes: &BTreeMap<String, u64>, statistics: &[Row]) -> TableFacts {
    let stored: Vec<StoredColumn> = statistics.iter().map(stored).collect();
    let pages = Pages { size: unsigned(row, "block_size"), fillfactor: unsigned(row, "fillfactor") };
    let rows = unsigned(row, "rows");
    let is_whole = rows > 0 && stored.len() == info.columns.len();
    let mut statistics: BTreeMap<String, Statistics> =
        statistics.iter().map(|row| (row.get("name"), statistics_of(row))).collect();
    // Counters do not know it where they were reset, or in a standby.
    let counted = row.get::<_, Option<i64>>("analyzed_rows").and_then(|rows| u64::try_from(rows).ok());
    let analyzed_rows = match counted {
        Some(counted) if counted >= rows => rows,
        _ => {
            counted.unwrap_or(0).max(sampled::least(statistics.values(), unsigned(row, "sampled"))).min(rows)
        }
    };
    let columns = info.columns.iter().map(|column| {
        let mut found = statistics.remove(&column.name);
        // Rows from before a NOT NULL that is NOT VALID may be NULL; new ones may not.
        if let Some(found) = found.as_mut().filter(|_| column.not_null) {
            found.null_frac = 0.0;
        }
        ColumnFacts {
            name: column.name.clone(),
            data_type: column.data_type.sql.clone(),
            kind: column.data_type.kind(),
            role: role(info, column, sizes),
            statistics: found,
            ..ColumnFacts::default()
        }
    });
    TableFacts {
        name: row.get("name"),
        sql_name: row.get("sql_name"),
        rows,
        analyzed_rows,
        sampled: unsigned(row, "sampled"),
        bytes: Bytes {
            heap: unsigned(row, "heap"),
            packed: is_whole.then(|| pages.heap(rows, &stored)),
            toast: unsigned(row, "toast"),
            indexes: unsigned(row, "indexes"),
        },
        analyzed: row.get("analyzed"),
        changed: unsigned(row, "changed"),
        row_security: row.get("row_security"),
        denied: row.get("denied"),
        columns: columns.collect(),
        pairs: Vec::new(),
    }
}

/// How a column with statistics is stored.
fn stored(row: &Row) -> StoredColumn {
    StoredColumn {
        length: u16::try_from(row.get::<_, i16>("length")).ok(),
        alignment: match row.get::<_, &str>("alignment") {
            "d" => 8,
            "i" => 4,
            "s" => 2,
            _ => 1,
        },
        width: f64::from(row.get::<_, i32>("avg_width")),
        nulls: f64::from(row.get::<_, f32>("null_frac")),
    }
}

fn unsigned(row: &Row, name: &str) -> u64 {
    u64::try_from(row.get::<_, i64>(name)).unwrap_or_default()
}

fn statistics_of(row: &Row) -> Statistics {
    let values: Vec<Option<String>> = row.get::<_, Option<_>>("common").unwrap_or_default();
    let shares: Vec<f32> = row.get::<_, Option<_>>("shares").unwrap_or_default();
    let bounds: Vec<Option<String>> = row.get::<_, Option<_>>("bounds").unwrap_or_default();
    let elements: Vec<Option<String>> = row.get::<_, Option<_>>("elements").unwrap_or_default();
    // After the elements' shares come the least and the greatest of them, and the share of arrays with NULL.
    let element_shares: Vec<f32> = row.get::<_, Option<_>>("element_shares").unwrap_or_default();
    let mut element_counts: Vec<f32> = row.get::<_, Option<_>>("element_counts").unwrap_or_default();
    // The last one is their mean.
    element_counts.pop();
    let real = |name: &str| f64::from(row.get::<_, f32>(name));
    let common = values.into_iter().zip(shares);
    Statistics {
        null_frac: real("null_frac"),
        n_distinct: real("n_distinct"),
        avg_width: row.get::<_, i32>("avg_width").try_into().unwrap_or_default(),
        correlation: row.get::<_, Option<f32>>("correlation").map(f64::from),
        common: common.filter_map(|(value, share)| Some((value?, f64::from(share)))).collect(),
        bounds: bounds.into_iter().flatten().collect(),
        elements: elements
            .into_iter()
            .zip(element_shares)
            .filter_map(|(element, share)| Some((element?, f64::from(share))))
            .collect(),
        element_counts: element_counts.into_iter().map(f64::from).collect(),
        ranges: row.get::<_, Option<f32>>("range_empty").map(|empty| ranges_of(row, empty)),
    }
}

fn ranges_of(row: &Row, empty: f32) -> RangeStatistics {
    let bounds: Vec<Option<String>> = row.get::<_, Option<_>>("range_bounds").unwrap_or_default();
    RangeStatistics {
        empty: f64::from(empty),
        bounds: bounds.into_iter().flatten().collect(),
        lengths: row.get::<_, Option<_>>("range_lengths").unwrap_or_default(),
    }
}

/// The column's role: keys, foreign keys and constraints that decide on its values besides statistics.
fn role(info: &TableInfo, column: &ColumnInfo, sizes: &BTreeMap<String, u64>) -> ColumnRole {
    if column.is_generated() {
        return ColumnRole::Generated;
    }
    let all = info.column_names();
    let is_in = |expression: &str| columns_in(expression, &all).contains(&column.name.as_str());
    let keys = || {
        info.keys.iter().filter(|key| {
            key.elements.iter().any(|element| element.columns_in(&all).contains(&column.name.as_str()))
        })
    };
    if let Some(key) = keys().next() {
        let is_alone = keys().count() == 1
            && !key.exclusion
            && key.elements.len() == 1
            && key.elements[0].column.is_some()
            && !has_sequence(&column.source)
            && !info.foreign_keys.iter().any(|key| key.columns.contains(&column.name));
        return if is_alone {
            formed(info, column).unwrap_or(ColumnRole::Unique)
        } else if keys().count() == 1
            && let Some(role) = counted(info, key, column, sizes).or_else(|| paired(info, key, column, sizes))
        {
            role
        } else {
            ColumnRole::Key
        };
    }
    if has_sequence(&column.source) {
        return ColumnRole::Key;
    }
    let mut foreign = info.foreign_keys.iter().filter(|key| key.columns.contains(&column.name));
    if let Some(key) = foreign.next() {
        let rows = sizes.get(&key.referenced.display_name()).filter(|_| !key.to_itself);
        let is_first = key.columns.first() == Some(&column.name);
        return match rows {
            Some(_) if is_first && foreign.next().is_none() => ColumnRole::Reference {
                table: key.referenced.display_name(),
                column: key.referenced.columns[0].clone(),
            },
            Some(_) => ColumnRole::Constrained("follows another column of its foreign key".to_owned()),
            None if key.to_itself => ColumnRole::Constrained("refers to its own table".to_owned()),
            None => ColumnRole::Constrained("refers to a table that the model does not have".to_owned()),
        };
    }
    let is_text = is_text(&column.data_type);
    let mut checks = info.checks.iter().filter(|check| is_in(&check.expression));
    if let Some(check) = checks.find(|check| is_text || columns_in(&check.expression, &all).len() > 1) {
        let constrained = || ColumnRole::Constrained(format!("constraint {}", check.name));
        return orders::role(info, &column.name).unwrap_or_else(constrained);
    }
    let data_type = &column.data_type;
    if is_text && (!data_type.domain_checks().is_empty() || has_inner_checks(data_type)) {
        return ColumnRole::Constrained(format!("domain {}", data_type.sql));
    }
    if info.partition_condition().is_some_and(|condition| is_in(&condition)) {
        return ColumnRole::Constrained("the bounds of partitions".to_owned());
    }
    ColumnRole::Free
}

/// The role of a text column that is a whole key, if a CHECK demands more than the characters and the length that replaced texts keep.
fn formed(info: &TableInfo, column: &ColumnInfo) -> Option<ColumnRole> {
    let data_type = &column.data_type;
    if !is_text(data_type) {
        return None;
    }
    let all = info.column_names();
    let is_in = |check: &&CheckInfo| columns_in(&check.expression, &all).contains(&column.name.as_str());
    let is_form = |check: &CheckInfo| literals_in(&check.expression).iter().any(|text| !is_kept(text));
    if let Some(check) = info.checks.iter().filter(is_in).find(|check| is_form(check)) {
        return Some(ColumnRole::Constrained(format!("constraint {}", check.name)));
    }
    let mut of_domain = data_type.domain_checks().into_iter();
    of_domain.any(is_form).then(|| ColumnRole::Constrained(format!("domain {}", data_type.sql)))
}

/// Whether a text that stands in a CHECK is a number, or a pattern of digits and letters in any order, which replaced texts keep.
fn is_kept(text: &str) -> bool {
    let classes = ["0-9", "a-z", "A-Z", "\\d", "\\w"];
    let rest = classes.iter().fold(text.to_owned(), |rest, class| rest.replace(class, ""));
    let mut is_in_braces = false;
    let is_plain = |c: char| {
        is_in_braces = c == '{' || is_in_braces && c != '}';
        match c {
            '0'..='9' | ',' => is_in_braces,
            _ => "[](){}^$+*?".contains(c),
        }
    };
    text.parse::<f64>().is_ok() || rest.chars().all(is_plain)
}

/// Whether the model replaces values of the type like texts: everything but numbers, times, booleans and labels.
fn is_text(data_type: &DataType) -> bool {
    data_type.kind().is_none_or(|kind| {
        matches!(kind, Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name) || kind.units().is_none()
    })
}

/// Whether values inside of the type have CHECKs that replaced texts may violate. Numbers and labels in an array are not replaced by
/// texts.
fn has_inner_checks(data_type: &DataType) -> bool {
    match &data_type.shape {
        TypeShape::Domain { base, .. } => has_inner_checks(base),
        TypeShape::Array { element } if !is_text(element) => false,
        _ => !data_type.inner_checks().is_empty(),
    }
}

/// The role of a foreign key that is the first of two columns of a unique key, the second of which may
/// number rows.
fn counted(
    info: &TableInfo,
    key: &KeyInfo,
    column: &ColumnInfo,
    sizes: &BTreeMap<String, u64>,
) -> Option<ColumnRole> {
    let [first, second] = &key.elements[..] else { return None };
    let by = info.column(second.column.as_ref()?)?;
    let mut foreign = info.foreign_keys.iter().filter(|key| key.columns.contains(&column.name));
    let refers = foreign.next().filter(|key| key.columns.len() == 1 && !key.to_itself)?;
    let table = refers.referenced.display_name();
    let is_number = matches!(by.data_type.kind(), Some(Kind::Int2 | Kind::Int4 | Kind::Int8));
    let is_free = !by.is_generated()
        && !has_sequence(&by.source)
        && !info.foreign_keys.iter().any(|key| key.columns.contains(&by.name));
    let is_it = first.column.as_ref() == Some(&column.name)
        && !key.exclusion
        && foreign.next().is_none()
        && sizes.contains_key(&table);
    (is_it && is_number && is_free).then(|| ColumnRole::Counted { table, by: by.name.clone() })
}

/// The role of one of two foreign keys that are a unique key together.
fn paired(
    info: &TableInfo,
    key: &KeyInfo,
    column: &ColumnInfo,
    sizes: &BTreeMap<String, u64>,
) -> Option<ColumnRole> {
    let refers = |name: &str| {
        let mut foreign =
            info.foreign_keys.iter().filter(|key| key.columns.iter().any(|column| column == name));
        let only = foreign.next().filter(|key| key.columns.len() == 1 && !key.to_itself)?;
        let is_known = foreign.next().is_none() && sizes.contains_key(&only.referenced.display_name());
        is_known.then_some(only)
    };
    let [first, second] = &key.elements[..] else { return None };
    let names = [first.column.as_ref()?, second.column.as_ref()?];
    let is_pair =
        !key.exclusion && key.predicate.is_none() && names.iter().all(|name| refers(name).is_some());
    let of = &refers(&column.name)?.referenced;
    is_pair.then(|| ColumnRole::Paired { table: of.display_name(), column: of.columns[0].clone() })
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn patterns_that_replaced_texts_keep() {
        for text in ["", "255", "^[A-Z]{3}$", "^[0-9a-zA-Z]+$", "^\\d{4,5}$"] {
            assert!(is_kept(text), "{text}");
        }
        for text in ["@", "^[^@]+@[^@]+$", "^5[0-9]+$", "^[A-Z]{3}-[0-9]+$", "sku-%", "new"] {
            assert!(!is_kept(text), "{text}");
        }
    }
}
