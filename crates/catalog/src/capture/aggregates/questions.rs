//! The queries of a table.

use model::{ColumnFacts, ColumnRole, TableFacts};
use rowgen::Kind;
use server::quote::{identifier, qualified};

use super::super::FEW;
use super::{Aggregates, strata};
use crate::info::{ForeignKeyInfo, TableInfo};

/// Most rows of a foreign key that are grouped. If there are more, only those of a sample of keys
/// are.
const KEYED: u64 = 2_000_000;
/// Most rows whose pairs of values are counted, whose values are ranked, and whose texts are
/// measured.
const COUNTED: u64 = 300_000;
const RANKED: u64 = 50_000;
/// Columns of a table that are paired.
const MOST_COLUMNS: usize = 12;
/// Columns that are cut into strata: numbers and times, which are paired with columns of few values, with NULLs and with each other; and keys, which are
/// paired with columns of few values.
const MOST_CUT: usize = 6;
// grouping() has at most 31 arguments; a column can have two: its values, and whether it is NULL.
const _: () = assert!(2 * MOST_COLUMNS + MOST_CUT <= 31);
/// Columns whose NULLs are paired.
const MOST_WITH_NULLS: usize = 40;
/// Different values that a column has at most whose values are paired; of others only NULL is.
const MOST_VALUES: f64 = 256.0;

/// A query with its question.
#[derive(Debug)]
pub(in super::super) struct Question {
    pub(in super::super) sql: String,
    pub(super) asks: Asks,
}

#[derive(Debug)]
pub(super) enum Asks {
    /// How many rows refer to a key. Result columns: number of rows, number of keys with so many
    /// rows, number of all keys.
    RowsPerKey {
        column: String,
        /// The sample has one of this many keys.
        every: u64,
    },
    /// Rows for each pair of values.
    Pairs { parts: Vec<PairedColumn> },
    /// Rows that are NULL in both of two columns, for all pairs of these columns in their order; and all rows.
    Nulls { columns: Vec<String> },
    /// Rank correlations of all pairs of these columns, in their order.
    Ranks { columns: Vec<String> },
    /// Quantiles of a text's length, and characters of each class that it has.
    Lengths { columns: Vec<String> },
}

/// A column of pairs.
#[derive(Clone, Debug)]
pub(super) struct PairedColumn {
    pub(super) column: String,
    /// Values that the question counts apart.
    pub(super) by: By,
    /// Where strata begin, after the first one.
    bounds: Vec<String>,
    /// The type of bounds.
    kind: Option<Kind>,
    /// Whether it has strata of a foreign key.
    is_key: bool,
}

/// The values of a column that a question counts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// NULL from all other values.
    Null,
    /// The same, of a column whose values another part counts.
    There,
    /// Each value from all others.
    Value,
    /// All values; and how often each occurs, because there are more of them than the statistics list.
    Counted,
    /// Strata of numbers, times and keys.
    Stratum,
}

impl PairedColumn {
    /// Without strata.
    fn new(column: &ColumnFacts, by: By) -> Self {
        Self { column: column.name.clone(), by, bounds: Vec::new(), kind: None, is_key: false }
    }

    /// Whether the question counts the pairs of two parts.
    pub(super) fn is_paired(&self, other: &Self) -> bool {
        let is_of_values = |one: By, two: By| one != By::There || matches!(two, By::Value | By::Counted);
        // Rows of near keys can have the same value.
        let suits_key = |one: &Self, two: &Self| !one.is_key || matches!(two.by, By::Value | By::Counted);
        self.column != other.column
            && is_of_values(self.by, other.by)
            && is_of_values(other.by, self.by)
            && suits_key(self, other)
            && suits_key(other, self)
    }

    fn sql(&self) -> String {
        let column = identifier(&self.column);
        match (self.by, &self.kind) {
            (By::Null | By::There, _) => format!("{column} IS NULL"),
            (By::Stratum, Some(kind)) => {
                let bounds: Vec<String> =
                    self.bounds.iter().map(|bound| format!("'{}'", bound.replace('\'', "''"))).collect();
                let kind = kind.sql();
                format!("width_bucket({column}::{kind}, ARRAY[{}]::{kind}[])", bounds.join(", "))
            }
            _ => column,
        }
    }
}

impl Question {
    pub(super) fn subject(&self) -> String {
        match &self.asks {
            Asks::RowsPerKey { column, .. } => format!("rows for each key of {column}"),
            Asks::Pairs { .. } => "pairs of values".to_owned(),
            Asks::Nulls { .. } => "rows with NULLs".to_owned(),
            Asks::Ranks { .. } => "correlations".to_owned(),
            Asks::Lengths { .. } => "lengths of texts".to_owned(),
        }
    }
}

/// All queries of a table: none if it has fewer than k rows.
pub(in super::super) fn of_table(
    info: &TableInfo,
    facts: &TableFacts,
    asked: Aggregates,
    is_modelled: impl Fn(&str) -> bool,
) -> Vec<Question> {
    if facts.rows < u64::from(asked.k) {
        return Vec::new();
    }
    let name = rows_of(&info.schema, &info.name, info.partitions.is_some());
    let mut questions = Vec::new();
    for column in &facts.columns {
        if !matches!(column.role, ColumnRole::Reference { .. } | ColumnRole::Paired { .. }) {
            continue;
        }
        let keys = info.foreign_keys.iter().filter(|key| key.columns.first() == Some(&column.name));
        for key in keys.filter(|key| !key.to_itself && is_modelled(&key.referenced.display_name())) {
            questions.push(rows_per_key(&name, facts, key));
        }
    }
    questions.extend(pairs(&name, facts, asked));
    questions.extend(nulls(&name, facts, asked));
    questions.extend(ranks(&name, facts));
    questions.extend(lengths(&name, facts));
    questions
}

/// The table in SQL, without the rows of tables that inherit from it: statistics and foreign keys do not count these. The rows of a
/// partitioned table are those of its partitions.
pub(in super::super) fn rows_of(schema: &str, table: &str, is_partitioned: bool) -> String {
    let only = if is_partitioned { "" } else { "ONLY " };
    format!("{only}{}", qualified(schema, table))
}

fn rows_per_key(name: &str, facts: &TableFacts, key: &ForeignKeyInfo) -> Question {
    let columns = |names: &[String]| names.iter().map(|name| identifier(name)).collect::<Vec<_>>();
    let (own, theirs) = (columns(&key.columns), columns(&key.referenced.columns));
    let there: Vec<String> = own.iter().map(|column| format!("{column} IS NOT NULL")).collect();
    // By a hash of the key, so that all rows of a key are in the sample, or none.
    let every = facts.rows.div_ceil(KEYED);
    let drawn = |columns: &[String]| {
        format!("mod(hashtextextended(ROW({})::text, 0), {every}) = 0", columns.join(", "))
    };
    let (of_rows, of_keys) = if every > 1 {
        (format!(" AND {}", drawn(&own)), format!(" WHERE {}", drawn(&theirs)))
    } else {
        Default::default()
    };
    let referenced = rows_of(&key.referenced.schema, &key.referenced.table, key.referenced.partitioned);
    let sql = format!(
        "SELECT n, count(*) AS keys, (SELECT count(*) FROM {referenced}{of_keys}) AS all_keys\n  \
           FROM (SELECT count(*) AS n FROM {name}\n         WHERE {}{of_rows}\n         GROUP BY {}) AS child\n \
          GROUP BY n ORDER BY n",
        there.join(" AND "),
        own.join(", ")
    );
    Question { sql, asks: Asks::RowsPerKey { column: key.columns[0].clone(), every } }
}

/// Columns that differ from row to row and have statistics, without keys and columns that the server generates.
fn free(facts: &TableFacts) -> impl Iterator<Item = (&ColumnFacts, &model::Statistics)> {
    let columns = facts.columns.iter().filter(|column| {
        matches!(column.role, ColumnRole::Free | ColumnRole::Reference { .. } | ColumnRole::Above { .. })
    });
    columns.filter_map(|column| Some((column, column.statistics.as_ref()?)))
}

fn has_few(statistics: &model::Statistics, most: f64) -> bool {
    let common: f64 = statistics.common.iter().map(|(_, share)| share).sum();
    (1.0..=most).contains(&statistics.n_distinct) && common + statistics.null_frac > 0.5
}

/// SQL of a sample of about `rows` rows.
fn sample(name: &str, facts: &TableFacts, rows: u64) -> String {
    if facts.rows <= rows {
        return name.to_owned();
    }
    format!("{name} TABLESAMPLE BERNOULLI ({:.4}) REPEATABLE (0)", rows as f64 / facts.rows as f64 * 100.0)
}

fn has_nulls(statistics: &model::Statistics) -> bool {
    (0.001..=0.999).contains(&statistics.null_frac)
}

/// Which columns are NULL together, if there are more of them than columns whose values are paired.
fn nulls(name: &str, facts: &TableFacts, asked: Aggregates) -> Option<Question> {
    let with_nulls = free(facts).filter(|(_, statistics)| has_nulls(statistics));
    let columns: Vec<String> =
        with_nulls.map(|(column, _)| column.name.clone()).take(MOST_WITH_NULLS).collect();
    let paired = parts(facts, asked);
    let is_paired = |name: &String| paired.iter().any(|part| part.column == *name && part.by != By::Stratum);
    if columns.len() < 2 || columns.iter().all(is_paired) {
        return None;
    }
    let all = 1..=columns.len();
    let each = |text: &dyn Fn(usize) -> String| all.clone().map(text).collect::<Vec<_>>().join(", ");
    let both = all.clone().flat_map(|one| (one + 1..=columns.len()).map(move |other| (one, other)));
    let sums: Vec<String> =
        both.map(|(one, other)| format!("sum(n) FILTER (WHERE n{one} AND n{other})::int8")).collect();
    let sql = format!(
        "SELECT sum(n)::int8 AS rows, ARRAY[{}] AS both\n  FROM (SELECT {}, count(*) AS n\n          FROM {}\n         GROUP BY {}) AS t",
        sums.join(", "),
        each(&|at| format!("{} IS NULL AS n{at}", identifier(&columns[at - 1]))),
        sample(name, facts, COUNTED),
        each(&|at| at.to_string()),
    );
    Some(Question { sql, asks: Asks::Nulls { columns } })
}

fn pairs(name: &str, facts: &TableFacts, asked: Aggregates) -> Option<Question> {
    let all = parts(facts, asked);
    let is_paired = |one: &PairedColumn| all.iter().any(|other| one.is_paired(other) || other.is_paired(one));
    if !all.iter().any(is_paired) {
        return None;
    }
    // grouping() knows only columns that a set groups by.
    let is_meant: Vec<bool> =
        all.iter().map(|one| !matches!(one.by, By::Null | By::There) || is_paired(one)).collect();
    let parts: Vec<PairedColumn> =
        all.into_iter().zip(is_meant).filter_map(|(one, is_meant)| is_meant.then_some(one)).collect();
    let letters: Vec<String> = (1..=parts.len()).map(|at| format!("c{at}")).collect();
    let named: Vec<String> =
        parts.iter().zip(&letters).map(|(part, letter)| format!("{} AS {letter}", part.sql())).collect();
    let mut sets = vec!["()".to_owned()];
    let counted = parts.iter().zip(&letters).filter(|(part, _)| !matches!(part.by, By::Null | By::There));
    sets.extend(counted.map(|(_, letter)| format!("({letter})")));
    for (at, one) in letters.iter().enumerate() {
        let others = letters.iter().zip(&parts).skip(at + 1).filter(|(_, other)| parts[at].is_paired(other));
        sets.extend(others.map(|(other, _)| format!("({one}, {other})")));
    }
    // As in pg_stats, by the type's output function.
    let values: Vec<String> = letters
        .iter()
        .map(|letter| format!("CASE WHEN {letter} IS NOT NULL THEN format('%s', {letter}) END"))
        .collect();
    let sql = format!(
        "SELECT grouping({}) AS left_out, ARRAY[{}] AS pair, count(*) AS rows\n  FROM (SELECT {}\n          FROM {}) AS t\n \
         GROUP BY GROUPING SETS ({})\nHAVING count(*) >= {}",
        letters.join(", "),
        values.join(", "),
        named.join(", "),
        sample(name, facts, COUNTED),
        sets.join(", "),
        asked.k
    );
    Some(Question { sql, asks: Asks::Pairs { parts } })
}

/// Columns whose pairs are counted.
fn parts(facts: &TableFacts, asked: Aggregates) -> Vec<PairedColumn> {
    let parts = free(facts).filter_map(|(column, statistics)| {
        let is_varied = statistics.n_distinct.abs() > 0.0 && (statistics.n_distinct - 1.0).abs() > 0.0;
        let part = |by| PairedColumn::new(column, by);
        // A single value beside NULL tells no more than NULL itself.
        if has_few(statistics, MOST_VALUES) && is_varied {
            let is_listed = statistics.bounds.len() < 2;
            Some(part(if is_listed { By::Value } else { By::Counted }))
        } else {
            has_nulls(statistics).then(|| part(By::Null))
        }
    });
    let mut parts: Vec<PairedColumn> = parts.take(MOST_COLUMNS).collect();
    // Pairs of a value with NOT NULL have many rows where those with each value have few.
    let there = free(facts).filter(|(column, statistics)| {
        let is_counted = |part: &PairedColumn| part.column == column.name && part.by != By::Null;
        has_nulls(statistics) && parts.iter().any(is_counted)
    });
    let there: Vec<PairedColumn> = there.map(|(column, _)| PairedColumn::new(column, By::There)).collect();
    parts.extend(there);
    let rows = facts.rows.min(COUNTED);
    let cut = |(column, statistics)| cut(column, statistics, rows, asked);
    let mut strata: Vec<PairedColumn> = free(facts).filter_map(cut).collect();
    strata.sort_by_key(|part| part.is_key);
    strata.truncate(MOST_CUT);
    parts.extend(strata);
    parts
}

/// Strata with about equally many rows, of a number, time or key with many values. So many rows are counted.
fn cut(
    column: &ColumnFacts,
    statistics: &model::Statistics,
    rows: u64,
    asked: Aggregates,
) -> Option<PairedColumn> {
    let kind = column.kind.clone().filter(is_measured)?;
    if has_few(statistics, MOST_VALUES) {
        return None;
    }
    let buckets = statistics.bounds.len().saturating_sub(1).max(1);
    let each = rows as f64 * (1.0 - statistics.null_frac) / buckets as f64;
    let bounds = strata::begins(&kind, &statistics.bounds, each, asked.k)?;
    let is_key = matches!(column.role, ColumnRole::Reference { .. });
    Some(PairedColumn { bounds, kind: Some(kind), is_key, ..PairedColumn::new(column, By::Stratum) })
}

fn is_measured(kind: &Kind) -> bool {
    let is_counted = kind.units().is_some() && !matches!(kind, Kind::Bool | Kind::Enum { .. } | Kind::Name);
    let is_text = matches!(kind, Kind::Text | Kind::Varchar(_) | Kind::Char(_));
    (is_counted || matches!(kind, Kind::Float4 | Kind::Float8)) && !is_text
}

fn ranks(name: &str, facts: &TableFacts) -> Option<Question> {
    let columns: Vec<String> = free(facts)
        .filter(|(column, statistics)| {
            column.kind.as_ref().is_some_and(is_measured)
                && !matches!(column.role, ColumnRole::Reference { .. })
                && !has_few(statistics, FEW)
        })
        .map(|(column, _)| column.name.clone())
        .take(MOST_COLUMNS)
        .collect();
    if columns.len() < 2 {
        return None;
    }
    let each = |text: &dyn Fn(usize, &str) -> String| -> String {
        columns
            .iter()
            .enumerate()
            .map(|(at, name)| text(at + 1, &identifier(name)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut correlations = Vec::new();
    for one in 1..=columns.len() {
        for other in one + 1..=columns.len() {
            correlations.push(format!("corr(r{one}, r{other}) FILTER (WHERE n{one} AND n{other})"));
        }
    }
    let sql = format!(
        "SELECT ARRAY[{}] AS correlations\n  FROM (SELECT {}, {}\n          FROM (SELECT {}\n                  FROM {}) AS s) AS r",
        correlations.join(", "),
        each(&|at, _| format!("rank() OVER (ORDER BY c{at}) AS r{at}")),
        each(&|at, _| format!("c{at} IS NOT NULL AS n{at}")),
        each(&|at, name| format!("{name} AS c{at}")),
        sample(name, facts, RANKED)
    );
    Some(Question { sql, asks: Asks::Ranks { columns } })
}

fn lengths(name: &str, facts: &TableFacts) -> Option<Question> {
    const CLASSES: [(&str, &str); 6] =
        [("[0-9]", "0"), ("[a-f]", "a"), ("[g-z]", "g"), ("[A-Z]", "A"), (" ", " "), ("[^0-9a-zA-Z ]", "-")];
    let columns: Vec<String> = facts
        .columns
        .iter()
        .filter(|column| {
            matches!(column.role, ColumnRole::Free | ColumnRole::Unique)
                && matches!(column.kind, Some(Kind::Text | Kind::Varchar(_)))
                && column.statistics.as_ref().is_some_and(|statistics| !has_few(statistics, FEW))
        })
        .map(|column| column.name.clone())
        .collect();
    if columns.is_empty() {
        return None;
    }
    let of_column = |name: &String| {
        let name = identifier(name);
        let classes = CLASSES.map(|(class, letter)| {
            format!("CASE WHEN bool_or({name}::text COLLATE \"C\" ~ '{class}') THEN '{letter}' END")
        });
        // The least and the greatest length are of single rows.
        format!(
            "percentile_disc(ARRAY[0.005, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.995])\n       \
             WITHIN GROUP (ORDER BY length({name})),\n       concat({})",
            classes.join(", ")
        )
    };
    let selected: Vec<String> = columns.iter().map(of_column).collect();
    let sql = format!("SELECT {}\n  FROM {}", selected.join(",\n       "), sample(name, facts, RANKED));
    Some(Question { sql, asks: Asks::Lengths { columns } })
}
