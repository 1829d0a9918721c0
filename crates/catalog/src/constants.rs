//! Values of the constants in conditions: the server evaluates them in the column's own type.

use std::collections::BTreeMap;

use rowgen::Kind;
use serde::Deserialize;
use tokio_postgres::Client;
use tokio_postgres::types::Json;

use super::condition::{Condition, Subject};
use super::error::CatalogError;
use super::slot::Slot;

/// One value that a condition compares with.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Constant {
    /// In the column's type's input syntax.
    pub(super) text: String,
    /// Rounded down to whole units.
    floor: Option<String>,
    /// Rounded up to whole units.
    ceiling: Option<String>,
    /// For floating-point types.
    pub(super) float: Option<f64>,
}

/// A constant with the operand that it is compared with: the same text can mean different values
/// for two types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    subject: Subject,
    sql: String,
    is_array: bool,
}

/// Every constant of some conditions that the server could evaluate.
#[derive(Debug, Default)]
pub(super) struct Constants(BTreeMap<Asked, Vec<Constant>>);

impl Constants {
    /// Evaluates them. The session is in a transaction; expressions that fail are left out.
    pub(super) async fn ask(
        client: &Client,
        slots: &[Slot<'_>],
        conditions: &[Condition],
    ) -> Result<Self, CatalogError> {
        let mut asked = Vec::new();
        for condition in conditions {
            collect(condition, &mut asked);
        }
        asked.sort();
        asked.dedup();
        let queries: Vec<(Asked, String)> =
            asked.into_iter().filter_map(|asked| query(&asked, slots).map(|query| (asked, query))).collect();
        let mut known = BTreeMap::new();
        for part in queries.chunks(AT_ONCE) {
            let answers = evaluate(client, part.iter().map(|(_, query)| query.as_str())).await?;
            if let Some(answers) = answers {
                known.extend(part.iter().map(|(asked, _)| asked.clone()).zip(answers));
                continue;
            }
            for (asked, query) in part {
                let answer = evaluate(client, std::iter::once(query.as_str())).await?;
                known.extend(answer.into_iter().flatten().map(|answer| (asked.clone(), answer)));
            }
        }
        Ok(Self(known))
    }

    /// The constant on the other side of a comparison.
    pub(super) fn one(&self, subject: &Subject, sql: &str) -> Option<&Constant> {
        self.get(subject, sql, false)?.first()
    }

    /// The elements of an array.
    pub(super) fn array(&self, subject: &Subject, sql: &str) -> Option<&[Constant]> {
        self.get(subject, sql, true)
    }

    fn get(&self, subject: &Subject, sql: &str, is_array: bool) -> Option<&[Constant]> {
        let asked = Asked { subject: subject.clone(), sql: sql.to_owned(), is_array };
        self.0.get(&asked).map(Vec::as_slice)
    }
}

impl Constant {
    /// In units, rounded down; the nearest that i64 has.
    pub(super) fn floor(&self) -> Option<i64> {
        clamped(self.floor.as_deref()?)
    }

    /// In units, rounded up; the nearest that i64 has.
    pub(super) fn ceiling(&self) -> Option<i64> {
        clamped(self.ceiling.as_deref()?)
    }
}

fn clamped(text: &str) -> Option<i64> {
    let wide: i128 = text.parse().ok()?;
    Some(i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX }))
}

/// Constants that one query evaluates: below the 1664 columns of a result.
const AT_ONCE: usize = 500;

async fn evaluate(
    client: &Client,
    queries: impl Iterator<Item = &str>,
) -> Result<Option<Vec<Vec<Constant>>>, CatalogError> {
    let queries: Vec<String> = queries.map(|query| format!("({query})")).collect();
    client.batch_execute("SAVEPOINT pgrig").await?;
    let row = client.query_one(&format!("SELECT {}", queries.join(", ")), &[]).await;
    let answers = match row {
        Ok(row) => (0..queries.len())
            .map(|at| row.try_get::<_, Json<Vec<Constant>>>(at).map(|Json(constants)| constants))
            .collect::<Result<_, _>>()
            .ok(),
        Err(error) if error.as_db_error().is_some() => None,
        Err(error) => return Err(error.into()),
    };
    client.batch_execute("ROLLBACK TO SAVEPOINT pgrig; RELEASE SAVEPOINT pgrig").await?;
    Ok(answers)
}

fn collect(condition: &Condition, asked: &mut Vec<Asked>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            for part in parts {
                collect(part, asked);
            }
        }
        Condition::Compare { subject, constant, .. } => {
            asked.push(Asked { subject: subject.clone(), sql: constant.clone(), is_array: false });
        }
        Condition::OneOf { subject, array } => {
            asked.push(Asked { subject: subject.clone(), sql: array.clone(), is_array: true });
        }
        _ => {}
    }
}

/// A subquery that gives the constants as JSON.
fn query(asked: &Asked, slots: &[Slot<'_>]) -> Option<String> {
    let (kind, sql_type) = match &asked.subject {
        Subject::Length(_) | Subject::Bytes(_) => (Kind::Int4, "int"),
        Subject::Value(column) => {
            let slot = slots.iter().find(|slot| slot.name() == column)?;
            (slot.kind.clone(), slot.info.data_type.base().sql.as_str())
        }
    };
    let from =
        if asked.is_array { format!("unnest({})", asked.sql) } else { format!("(VALUES ({}))", asked.sql) };
    let units = in_units(&kind).unwrap_or_else(|| "NULL::numeric".to_owned());
    let float = if is_float(&kind) { "v::float8" } else { "NULL" };
    Some(format!(
        "SELECT coalesce(jsonb_agg(jsonb_build_object('text', v::{sql_type}::text, 'floor', floor({units})::text, \
         'ceiling', ceil({units})::text, 'float', {float})), '[]') FROM {from} AS constants (v)"
    ))
}

/// Whether the kind is a floating-point one.
pub(super) fn is_float(kind: &Kind) -> bool {
    matches!(kind, Kind::Float4 | Kind::Float8)
}

/// An expression that turns `v` into [`rowgen::Units`], numeric; none for types whose values are not
/// counted in the type's own order.
pub(super) fn in_units(kind: &Kind) -> Option<String> {
    let micros = |v: &str| {
        // In whole seconds first: before PostgreSQL 14 extract gives a double.
        format!(
            "(extract(epoch FROM date_trunc('second', {v}))::int8::numeric * 1000000 \
             + extract(microseconds FROM {v})::int8 % 1000000)"
        )
    };
    Some(match kind {
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => "v::numeric".to_owned(),
        Kind::Numeric(_) => format!("(v::numeric * 1e{})", kind.decimals()),
        Kind::Money => format!("(v::money::numeric * 1e{})", kind.decimals()),
        Kind::Date => "(v::date - date '2000-01-01')::numeric".to_owned(),
        Kind::Timestamp => format!("({} - 946684800000000)", micros("v::timestamp")),
        Kind::TimestampTz => format!("({} - 946684800000000)", micros("v::timestamptz")),
        Kind::Time => micros("v::time"),
        Kind::TimeTz => micros("v::timetz::time"),
        Kind::Interval => micros("v::interval"),
        Kind::Bool => "v::bool::int::numeric".to_owned(),
        Kind::PgLsn => "(v::pg_lsn - '0/0'::pg_lsn)".to_owned(),
        Kind::Enum { name, .. } => {
            format!("(array_position(enum_range(NULL::{name}), v::{name}) - 1)::numeric")
        }
        _ => return None,
    })
}
