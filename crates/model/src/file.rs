//! The model's file format.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::locale::Locale;

/// Number of the format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 7;

/// A model of a database's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Number of the format.
    pub format: u32,
    /// When the statistics were read; empty if they were written by hand.
    #[serde(default)]
    pub captured: String,
    /// The server that they are from: `PostgreSQL 18.0`.
    #[serde(default)]
    pub server: String,
    /// Values that fewer rows than this have are replaced.
    #[serde(default = "k_by_default")]
    pub k: u32,
    /// Whether tables were queried for aggregates.
    #[serde(default)]
    pub aggregates: bool,
    /// Statements that make the schema.
    #[serde(default)]
    pub ddl: String,
    /// The locale of the database; none if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
    /// The tables.
    #[serde(default)]
    pub tables: Vec<Table>,
}

/// A table of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// `schema.name`.
    pub name: String,
    /// Number of its rows.
    pub rows: u64,
    /// When it was last analysed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyzed: Option<String>,
    /// Rows changed since then.
    #[serde(default)]
    pub changed: u64,
    /// Rows that ANALYZE samples: 300 times the greatest statistics target of its columns.
    #[serde(default = "sampled_by_default", skip_serializing_if = "is_sampled_by_default")]
    pub sampled: u64,
    /// Bytes that it takes, with TOAST and indexes.
    #[serde(default)]
    pub bytes: Bytes,
    /// Its columns.
    #[serde(default)]
    pub columns: Vec<Column>,
}

/// Bytes of a table on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// The heap's main fork.
    pub heap: u64,
    /// The same without free space between the rows, as their statistics tell; none if a column has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<u64>,
    /// The TOAST table with its index.
    pub toast: u64,
    /// Bytes of all indexes.
    pub indexes: u64,
}

/// Share of the packed heap by which an original's is larger before the difference counts as bloat.
const BLOAT: f64 = 0.1;
/// Bytes by which it is larger at least.
const PAGES: u64 = 3 * 8192;

impl Bytes {
    /// The heap's bytes without bloat, about; none if it has none, or if that is not known.
    pub fn without_bloat(&self) -> Option<u64> {
        let is_bloated = |packed: &u64| {
            self.heap.saturating_sub(*packed) > PAGES && self.heap as f64 > *packed as f64 * (1.0 + BLOAT)
        };
        self.packed.filter(is_bloated)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Unquoted name.
    pub name: String,
    /// Its type, as SQL has it.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Fraction of NULLs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nulls: f64,
    /// Average width, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Name of a column of the same row whose value it is not below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_below: Option<String>,
    /// Name of a column of the same row whose value it is above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// For each frequent value, the fraction of the rows with infrequent values that come before
    /// it; only if other columns depend on the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<f64>,
    /// A column of the same row that its values depend on; and its NULLs, if these follow no other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// A column of the same row that its NULLs depend on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nulls_follow: Option<Follows>,
    /// Source of its values in a fill.
    pub values: Values,
}

/// The column that another one depends on. The dependent column's own `correlation` then has no
/// effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Follows {
    /// Name of the column.
    pub column: String,
    /// The kind of dependence.
    #[serde(flatten)]
    pub how: How,
}

/// How a column's values depend on those of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum How {
    /// Frequent values of both columns that occur together.
    Pairs {
        /// Indexes of the other's and of its own value among the frequent ones (from 0, in the
        /// order of values; -1 for NULL), and the share of all rows that have both.
        pairs: Vec<(i32, i32, f64)>,
    },
    /// Frequent values of one column, and parts of the other one's values in their order.
    Strata {
        /// The parts' ends, as fractions of the rows that are not NULL; the last one ends at 1.
        cuts: Vec<f64>,
        /// Whether the parts are the column's own, and the values the other's.
        own: bool,
        /// As in pairs, with numbers of parts (from 0; -1 for NULL).
        pairs: Vec<(i32, i32, f64)>,
    },
    /// Parts of both columns' values in their order; neither has NULLs.
    Parts {
        /// The ends of the other column's parts, as fractions of the rows; the last one ends at 1.
        cuts: Vec<f64>,
        /// Those of its own.
        own_cuts: Vec<f64>,
        /// As in strata.
        pairs: Vec<(i32, i32, f64)>,
    },
    /// Both values as if drawn from a bivariate normal distribution.
    Normal {
        /// Its correlation.
        correlation: f64,
    },
    /// Rows with the same value of one column have few different values of the other.
    Stretches {
        /// The other column's values are cut into this many stretches, which come in another order.
        count: u16,
        /// Ranks are shuffled within windows of this share of all rows.
        window: f64,
        /// Share of the rows to which this applies.
        share: f64,
    },
}

impl How {
    /// Whether it tells of pairs, which include NULL.
    pub(crate) fn is_by_pairs(&self) -> bool {
        matches!(self, Self::Pairs { .. } | Self::Strata { .. })
    }

    /// The same dependence, with the roles of the two columns exchanged.
    pub(crate) fn turned(&self) -> Self {
        match self {
            Self::Pairs { pairs } => {
                Self::Pairs { pairs: pairs.iter().map(|&(one, other, share)| (other, one, share)).collect() }
            }
            Self::Strata { cuts, own, pairs } => Self::Strata {
                cuts: cuts.clone(),
                own: !own,
                pairs: pairs.iter().map(|&(one, other, share)| (other, one, share)).collect(),
            },
            Self::Parts { cuts, own_cuts, pairs } => Self::Parts {
                cuts: own_cuts.clone(),
                own_cuts: cuts.clone(),
                pairs: pairs.iter().map(|&(one, other, share)| (other, one, share)).collect(),
            },
            how => how.clone(),
        }
    }
}

/// Rows that ANALYZE samples at a statistics target of 100.
pub(crate) const SAMPLED: u64 = 30_000;

fn k_by_default() -> u32 {
    20
}

fn sampled_by_default() -> u64 {
    SAMPLED
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_sampled_by_default(sampled: &u64) -> bool {
    *sampled == SAMPLED
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// How a column's values are made. `distinct` and `correlation` are as in `pg_stats`. `common` has
/// frequent values, or their positions among all values (0 to 1), with their shares of the rows
/// that are not NULL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Values {
    /// The fill decides: keys, generated columns, columns that constraints tie together, and columns without statistics.
    Fill {
        /// The reason.
        why: String,
    },
    /// Keys at equal distances, in the order of the rows.
    Serial {
        /// The first key.
        start: i64,
        /// Distance, not 0.
        step: i64,
    },
    /// Keys of the table that the foreign key refers to.
    Keys {
        /// Number of keys that are used; below 0 a fraction of all keys.
        distinct: f64,
        /// Correlation of row number and key.
        correlation: f64,
        /// Positions and shares of keys that are used more often.
        #[serde(default)]
        common: Vec<(f64, f64)>,
        /// Positions of keys; the other rows refer equally often to each interval between them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bounds: Vec<f64>,
        /// Numbers of rows that refer to a key, each with the fraction of the other keys that have so many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rows: Vec<(f64, f64)>,
    },
    /// Numbers, dates and times, booleans, labels of enums.
    Statistics {
        /// Number of different values.
        distinct: f64,
        /// Correlation of row number and value.
        correlation: f64,
        /// Frequent values and their shares.
        #[serde(default)]
        common: Vec<(String, f64)>,
        /// Bounds of equally frequent buckets.
        #[serde(default)]
        bounds: Vec<String>,
        /// Whether the numbers are codes, instead of the original's: with as many digits, in the same order.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaced: bool,
        /// The frequent values that are not in the original's statistics: their indexes (from 0), the first and the last of each
        /// run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moved_common: Vec<(usize, usize)>,
        /// The same of the bounds.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moved_bounds: Vec<(usize, usize)>,
    },
    /// Text that replaces the original's, with the same lengths and in the same order; in JSON it
    /// is the only value of the object.
    Letters {
        /// Number of different values.
        distinct: f64,
        /// Correlation of row number and value.
        correlation: f64,
        /// Positions and shares of frequent values.
        #[serde(default)]
        common: Vec<(f64, f64)>,
        /// Characters: digits, hex, upper, lower, mixed or words.
        alphabet: String,
        /// Quantiles of the length.
        lengths: Vec<u32>,
    },
    /// A list of values, each instead of one of the original's, or the original's values themselves.
    List {
        /// Correlation of row number and value.
        correlation: f64,
        /// Values with their shares, in ascending order.
        values: Vec<(String, f64)>,
        /// Whether they are the original's.
        #[serde(default)]
        kept: bool,
    },
    /// Arrays with as many elements as the original's, each frequent element in its share of them.
    Elements {
        /// Number of different arrays in the original; the copy's follows from the elements.
        distinct: f64,
        /// Quantiles of the number of different elements.
        counts: Vec<u32>,
        /// Frequent elements, each with the share of the arrays that have it: replaced texts, or numbers that enough rows have.
        #[serde(default)]
        elements: Vec<(String, f64)>,
        /// Values of the other elements.
        others: Others,
        /// Number of different other elements; below 0 relative to the rows. 0 if it is not known.
        #[serde(default, skip_serializing_if = "is_zero")]
        others_distinct: f64,
    },
    /// Ranges.
    Ranges {
        /// The type of their bounds, as SQL has it.
        of: String,
        /// Fraction of empty ranges.
        #[serde(default, skip_serializing_if = "is_zero")]
        empty: f64,
        /// Fractions of the others without a lower bound, and without an upper one.
        #[serde(default)]
        unbounded: (f64, f64),
        /// Quantiles of the lower bounds.
        low: Vec<String>,
        /// Quantiles of the lengths: days, microseconds, or the type's units (of numeric, millionths).
        lengths: Vec<i64>,
        /// The lower bounds that are not in the original's statistics: their indexes (from 0), the first and the last of each run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moved_low: Vec<(usize, usize)>,
    },
    /// Random values of the type.
    Any {
        /// Number of different values.
        distinct: f64,
        /// Positions and shares of frequent values.
        #[serde(default)]
        common: Vec<(f64, f64)>,
        /// Least and greatest length of byte strings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lengths: Option<(u32, u32)>,
    },
}

/// Elements of arrays that are not frequent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Others {
    /// Random values of the type.
    Any,
    /// Text.
    Letters {
        /// Characters: digits, hex, upper, lower, mixed or words.
        alphabet: String,
        /// The least and the greatest length.
        lengths: (u32, u32),
    },
    /// Numbers, dates and times.
    Between {
        /// The least.
        low: String,
        /// The greatest.
        high: String,
    },
}

/// The part of the file that tells whether it has a later format.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

/// Whether a text that is not TOML begins as SQL does.
fn is_sql(text: &str) -> bool {
    const FIRST: [&str; 10] =
        ["alter", "begin", "comment", "create", "do", "drop", "insert", "select", "set", "with"];
    let mut lines =
        text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(line) = lines.next() else { return false };
    let word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    line.starts_with("--") || line.starts_with("/*") || FIRST.contains(&word.to_lowercase().as_str())
}

impl Model {
    /// Reads a model from TOML.
    ///
    /// # Errors
    /// If it is not a model, is of a later format, or contradicts itself.
    pub fn read(file: &str) -> Result<Self, ModelError> {
        let syntax = |error: toml::de::Error| {
            let text = error.to_string().trim_end().to_owned();
            if is_sql(file) { ModelError::Sql } else { ModelError::Syntax(text) }
        };
        let Versioned { format } = toml::from_str(file).map_err(syntax)?;
        if format > FORMAT {
            return Err(ModelError::Newer(format));
        }
        let value = |error: toml::de::Error| {
            let text = error.to_string();
            let text = text.trim_end().replace("expected u64", "expected a whole number, 0 or more");
            ModelError::Value(text)
        };
        let model: Self = toml::from_str(file).map_err(value)?;
        model.check()?;
        Ok(model)
    }

    /// The model as TOML.
    ///
    /// # Panics
    /// Never: all its fields have a form in TOML.
    pub fn write(&self) -> String {
        toml::to_string(self).expect("a model has a form in TOML")
    }
}

impl Values {
    /// Its word in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fill { .. } => "fill",
            Self::Serial { .. } => "serial",
            Self::Keys { .. } => "keys",
            Self::Statistics { .. } => "statistics",
            Self::Letters { .. } => "letters",
            Self::List { .. } => "list",
            Self::Elements { .. } => "elements",
            Self::Ranges { .. } => "ranges",
            Self::Any { .. } => "any",
        }
    }

    /// Number of different values, as in `pg_stats`.
    pub fn distinct(&self) -> Option<f64> {
        match self {
            Self::Fill { .. } | Self::Serial { .. } => None,
            Self::Keys { distinct, .. }
            | Self::Statistics { distinct, .. }
            | Self::Letters { distinct, .. }
            | Self::Elements { distinct, .. }
            | Self::Any { distinct, .. } => Some(*distinct),
            Self::List { values, .. } => Some(values.len() as f64),
            Self::Ranges { .. } => Some(-1.0),
        }
    }
}
