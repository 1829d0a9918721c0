//! Defaults and sequences whose values pgrig gives itself, so that no row needs the server.

use rowgen::{Kind, Values};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::error::CatalogError;
use super::info::{CheckInfo, ColumnInfo, SequenceInfo, Source, TableInfo};
use super::mentioned::columns_in;
use super::slot::Role;
use server::quote::identifier;

/// Functions whose value is the present time.
const TIMES: [&str; 9] = [
    "now()",
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIMESTAMP",
    "LOCALTIME",
    "transaction_timestamp()",
    "statement_timestamp()",
    "clock_timestamp()",
];
/// Functions that make a new uuid.
const UUIDS: [&str; 6] = [
    "gen_random_uuid()",
    "uuidv4()",
    "uuidv7()",
    "uuid_generate_v1()",
    "uuid_generate_v1mc()",
    "uuid_generate_v4()",
];

/// Values from a column's own sequence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FromSequence {
    /// The first value.
    pub(super) next: i64,
    /// Difference of the values of two consecutive rows.
    pub(super) step: i64,
    /// Number of values.
    pub(super) count: u64,
    /// Name of the sequence.
    pub(super) name: String,
}

/// The role of a column whose default pgrig replaces by values of the same kind. None if the column
/// keeps its default. `rows` is the number of wanted rows, if it is known.
pub(super) fn role(column: &ColumnInfo, kind: &Kind, rows: Option<u64>) -> Option<Role> {
    if let Some(sequence) = &column.sequence {
        return from_sequence(sequence, kind, rows).map(Role::Sequence);
    }
    let Source::Default { expression, sequence: false } = &column.source else { return None };
    let is_time =
        matches!(kind, Kind::Date | Kind::Time | Kind::TimeTz | Kind::Timestamp | Kind::TimestampTz);
    if is_time && is_of_now(expression) || *kind == Kind::Uuid && UUIDS.contains(&function(expression)) {
        return Some(Role::Free);
    }
    constant(expression).map(Role::Given)
}

/// The columns whose constant default violates a CHECK on that column alone, or on its domain. PostgreSQL allows such defaults.
/// The session is in a transaction.
pub(super) async fn refused(client: &Client, info: &TableInfo) -> Result<Vec<String>, CatalogError> {
    let all = info.column_names();
    let of_one_column = |check: &CheckInfo| match columns_in(&check.expression, &all).as_slice() {
        [column] => Some(((*column).to_owned(), check.expression.clone())),
        _ => None,
    };
    let checks: Vec<(String, String)> = info.checks.iter().filter_map(of_one_column).collect();
    let is_reference =
        |column: &ColumnInfo| info.foreign_keys.iter().any(|key| key.columns.contains(&column.name));
    let mut refused = Vec::new();
    for column in info.columns.iter().filter(|column| !is_reference(column)) {
        let of_column = checks.iter().filter(|(name, _)| *name == column.name);
        let conditions: Vec<&str> = of_column.map(|(_, condition)| condition.as_str()).collect();
        if let Some(query) = judging(column, &conditions)
            && is_refused(client, &query).await?
        {
            refused.push(column.name.clone());
        }
    }
    Ok(refused)
}

/// The query that tells whether a column's constant default fulfils these conditions; none if there is nothing to judge.
fn judging(column: &ColumnInfo, conditions: &[&str]) -> Option<String> {
    let Source::Default { expression, sequence: false } = &column.source else { return None };
    constant(expression)?;
    if conditions.is_empty() && column.data_type.domain_checks().is_empty() {
        return None;
    }
    let each: Vec<String> =
        conditions.iter().map(|condition| format!(" AND (({condition})) IS NOT FALSE")).collect();
    let (name, data_type) = (identifier(&column.name), &column.data_type.sql);
    // The value is part of the result: what is not used is not cast to its domain.
    Some(format!(
        "SELECT true{}, {name}::text FROM (SELECT ({expression})::{data_type} AS {name} OFFSET 0) AS tuple",
        each.concat()
    ))
}

/// Whether the server refuses the value, by the answer or by the error of its domain. The transaction is as it was before.
async fn is_refused(client: &Client, query: &str) -> Result<bool, CatalogError> {
    client.batch_execute("SAVEPOINT pgrig").await?;
    let is_refused = match client.query_one(query, &[]).await {
        Ok(row) => !row.get::<_, bool>(0),
        Err(error) if error.as_db_error().is_none() => return Err(error.into()),
        // Of other errors the sample of the rows tells.
        Err(error) => error.code() == Some(&SqlState::CHECK_VIOLATION),
    };
    client.batch_execute("ROLLBACK TO SAVEPOINT pgrig; RELEASE SAVEPOINT pgrig").await?;
    Ok(is_refused)
}

/// Whether values are left in the column's own sequence; none if it has none, or one that repeats its values.
pub(super) fn has_values_left(column: &ColumnInfo) -> Option<bool> {
    let sequence = from_sequence(column.sequence.as_ref()?, &column.data_type.kind()?, None)?;
    Some(sequence.count > 0)
}

fn from_sequence(sequence: &SequenceInfo, kind: &Kind, rows: Option<u64>) -> Option<FromSequence> {
    let SequenceInfo { next, increment: step, least, greatest, cycles, .. } = *sequence;
    if !matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8) {
        return None;
    }
    let units = kind.units()?;
    let (low, high) = (least.max(units.low), greatest.min(units.high));
    let end = if step > 0 { high } else { low };
    let is_left = if step > 0 { next <= end } else { next >= end } && units.contains(next);
    let count = if is_left { (end.abs_diff(next) / step.unsigned_abs()).saturating_add(1) } else { 0 };
    // The server begins again where the sequence does; values here only where the type's end.
    let begins_again = cycles && rows.is_none_or(|rows| rows > count);
    (!begins_again).then(|| FromSequence { next, step, count, name: sequence.name.clone() })
}

/// Whether the present time is part of the expression, as in `now() + '1 day'` or `timezone('utc', now())`.
fn is_of_now(expression: &str) -> bool {
    let is_word = |at: usize| !expression[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_');
    TIMES.iter().any(|time| expression.match_indices(time).any(|(at, _)| is_word(at)))
}

/// The expression without its schema and a cast of its result.
fn function(expression: &str) -> &str {
    let bare = expression.split("::").next().unwrap_or(expression).trim_end();
    let bare = bare.strip_prefix('(').map_or(bare, |inner| inner.strip_suffix(')').unwrap_or(inner));
    match bare.split_once('.') {
        Some((_, name)) if bare.ends_with("()") => name,
        _ => bare,
    }
}

/// The value of an expression that is a literal, with any number of casts.
fn constant(expression: &str) -> Option<Values> {
    if let Some(quoted) = expression.strip_prefix('\'') {
        let (text, rest) = quoted_text(quoted)?;
        return is_casts(rest).then_some(Values::Text(text));
    }
    let (word, rest) = expression.split_at(expression.find("::").unwrap_or(expression.len()));
    let word = word.strip_prefix('(').and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    if !is_casts(rest) {
        return None;
    }
    let is_number = word.parse::<f64>().is_ok_and(f64::is_finite);
    match word {
        "NULL" => Some(Values::Null),
        "true" | "false" => Some(Values::Text(word.to_owned())),
        word if is_number => Some(Values::Text(word.to_owned())),
        _ => None,
    }
}

/// The text up to the closing quote, and the rest after the quote.
fn quoted_text(mut rest: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        text.push_str(part);
        match after.strip_prefix('\'') {
            Some(after) => {
                text.push('\'');
                rest = after;
            }
            None => return Some((text, after)),
        }
    }
}

/// Whether nothing but casts follows. A cast to a type with a length might change the value.
fn is_casts(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with("::") && !rest.contains(['(', '\'', '+', '-', '*', '/', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_told_from_what_is_computed() {
        let text = |text: &str| Some(Values::Text(text.to_owned()));
        for (expression, value) in [
            ("'active'::status", text("active")),
            ("'it''s'::text", text("it's")),
            ("''::character varying", text("")),
            ("0", text("0")),
            ("0.5", text("0.5")),
            ("'-1'::integer", text("-1")),
            ("('-1'::integer)::numeric", None),
            ("(-1)", text("-1")),
            ("0::smallint", text("0")),
            ("true", text("true")),
            ("NULL::integer", Some(Values::Null)),
            ("'{}'::text[]", text("{}")),
            ("'a'::text || 'b'::text", None),
            ("lower('A'::text)", None),
            ("('now'::text)::date", None),
            ("'x'::character(1)", None),
            ("(1 + 2)", None),
        ] {
            assert_eq!(constant(expression), value, "{expression}");
        }
    }

    #[test]
    fn functions_are_known_with_and_without_schema_and_cast() {
        for (expression, name) in [
            ("now()", "now()"),
            ("(now())::date", "now()"),
            ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
            ("public.uuid_generate_v4()", "uuid_generate_v4()"),
            ("('now'::text)::date", "'now'"),
        ] {
            assert_eq!(function(expression), name);
        }
    }

    #[test]
    fn times_of_now_are_known_inside_of_expressions() {
        for expression in
            ["now()", "(now() + '1 day'::interval)", "timezone('utc'::text, now())", "CURRENT_DATE"]
        {
            assert!(is_of_now(expression), "{expression}");
        }
        for expression in ["'2024-01-01'::date", "know()", "public.my_now()", "make_date(2024, 1, 1)"] {
            assert!(!is_of_now(expression), "{expression}");
        }
    }
}
