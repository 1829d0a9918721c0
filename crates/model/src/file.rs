//! The model's file format.

use failure::{Class, Classified};
use rowgen::Alphabet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Number of the format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 2;

/// A model of a database's data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Number of the format.
    pub format: u32,
    /// When the statistics were read.
    pub captured: String,
    /// The server that they are from: `PostgreSQL 18.0`.
    pub server: String,
    /// Values that fewer rows than this have are replaced.
    pub k: u32,
    /// Whether tables were queried for aggregates.
    #[serde(default)]
    pub aggregates: bool,
    /// Statements that make the schema.
    pub ddl: String,
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
    /// Its rows.
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
    /// Its size.
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
    /// The TOAST table with its index.
    pub toast: u64,
    /// All indexes.
    pub indexes: u64,
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
    /// A column of the same row that its values depend on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    /// Its values.
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
    /// Both values as if drawn from a bivariate normal distribution.
    Normal {
        /// Its correlation.
        correlation: f64,
        /// Share of all rows where both are NULL, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        both_null: Option<f64>,
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
    /// The same dependence, with the roles of the two columns exchanged.
    pub(crate) fn turned(&self) -> Self {
        match self {
            Self::Pairs { pairs } => {
                Self::Pairs { pairs: pairs.iter().map(|&(one, other, share)| (other, one, share)).collect() }
            }
            how => how.clone(),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        match self {
            Self::Pairs { pairs } => {
                let all: f64 = pairs.iter().map(|(.., share)| share).sum();
                let fits =
                    pairs.iter().all(|(one, other, share)| *one >= -1 && *other >= -1 && *share >= 0.0);
                (!fits || all > 1.001)
                    .then_some("shares of pairs must be at least 0, and add up to at most 1")
            }
            Self::Normal { correlation, both_null } => {
                let fits = (-1.0..=1.0).contains(correlation)
                    && (0.0..=1.0).contains(&both_null.unwrap_or_default());
                (!fits).then_some("the correlation must be from -1 to 1, and both_null from 0 to 1")
            }
            Self::Stretches { count, window, share } => {
                let fits = (1..=1_000).contains(count)
                    && (0.0..=1.0).contains(window)
                    && (0.0..=1.0).contains(share);
                (!fits).then_some("count must be from 1 to 1000, window and share from 0 to 1")
            }
        }
    }
}

/// Rows that ANALYZE samples at a statistics target of 100.
pub(crate) const SAMPLED: u64 = 30_000;

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
        /// Whether the numbers are codes, in place of the original's: with as many digits, in the same order.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaced: bool,
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
    /// A list of values, each in place of one of the original's, or the original's values
    /// themselves.
    List {
        /// Correlation of row number and value.
        correlation: f64,
        /// Values with their shares, in ascending order.
        values: Vec<(String, f64)>,
        /// Whether they are the original's.
        #[serde(default)]
        kept: bool,
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

/// A model that cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ModelError {
    /// It is not TOML, or not a model.
    #[error("this is not a model: give a file that pgrig model capture wrote. {0}")]
    Syntax(String),
    /// A value in it is wrong.
    #[error("the model is wrong: {0}")]
    Value(String),
    /// A later version of pgrig wrote it.
    #[error(
        "the model has format {0}, and this version of pgrig reads formats up to {FORMAT}: use a newer pgrig"
    )]
    Newer(u32),
    /// The model contradicts itself.
    #[error("{table}{}{column}: {problem}", if .column.is_empty() { "" } else { "." })]
    Contradiction {
        /// `schema.name`.
        table: String,
        /// The column; empty for the table itself.
        column: String,
        /// The problem, and its remedy.
        problem: String,
    },
}

impl Classified for ModelError {
    fn class(&self) -> Class {
        match self {
            Self::Syntax(_) | Self::Value(_) | Self::Newer(_) | Self::Contradiction { .. } => Class::Request,
        }
    }
}

/// The part of the file that tells whether it has a later format.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

impl Model {
    /// Reads a model from TOML.
    ///
    /// # Errors
    /// If it is not a model, is of a later format, or contradicts itself.
    pub fn read(text: &str) -> Result<Self, ModelError> {
        let syntax = |error: toml::de::Error| ModelError::Syntax(error.to_string().trim_end().to_owned());
        let Versioned { format } = toml::from_str(text).map_err(syntax)?;
        if format > FORMAT {
            return Err(ModelError::Newer(format));
        }
        let value = |error: toml::de::Error| {
            let text = error.to_string();
            let text = text.trim_end().replace("expected u64", "expected a whole number, 0 or more");
            ModelError::Value(text)
        };
        let model: Self = toml::from_str(text).map_err(value)?;
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

    fn check(&self) -> Result<(), ModelError> {
        let mut names: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(twice[0], "", "two tables have this name"));
        }
        self.tables.iter().try_for_each(Table::check)
    }
}

fn wrong(table: &str, column: &str, problem: &str) -> ModelError {
    ModelError::Contradiction {
        table: table.to_owned(),
        column: column.to_owned(),
        problem: problem.to_owned(),
    }
}

impl Table {
    fn check(&self) -> Result<(), ModelError> {
        if !self.name.contains('.') {
            return Err(wrong(&self.name, "", "name the table with its schema, as public.orders"));
        }
        if self.sampled == 0 {
            return Err(wrong(&self.name, "", "sampled must be at least 1"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            let wrong = |problem: &str| wrong(&self.name, &column.name, problem);
            if self.columns[..at].iter().any(|other| other.name == column.name) {
                return Err(wrong("two columns have this name"));
            }
            if !(0.0..=1.0).contains(&column.nulls) {
                return Err(wrong("\"nulls\" must be from 0 to 1"));
            }
            column.values.check().map_err(|problem| wrong(&problem))?;
            self.check_follows(column).map_err(|problem| wrong(&problem))?;
            for other in column.not_below.iter().chain(&column.above) {
                let is_number = |column: &&Column| matches!(column.values, Values::Statistics { .. });
                let mut others = self.columns.iter().filter(is_number);
                if *other == column.name || !others.any(|column| column.name == *other) || !is_number(&column)
                {
                    return Err(wrong(&format!(
                        "\"not_below\" and \"above\" need statistics of both columns, this one and {other}: remove them, or give \
                         both columns \"statistics\""
                    )));
                }
            }
        }
        Ok(())
    }
}

fn are_rows(rows: &[(f64, f64)]) -> bool {
    let all: f64 = rows.iter().map(|(_, fraction)| fraction).sum();
    let within = rows.iter().all(|(rows, fraction)| (0.0..=1e12).contains(rows) && *fraction >= 0.0);
    within && (all - 1.0).abs() < 0.001 && rows.iter().any(|(rows, fraction)| *rows > 0.0 && *fraction > 0.0)
}

impl Table {
    /// The column that this one depends on, and how.
    pub(crate) fn followed<'a>(&'a self, column: &'a Column) -> Option<(&'a Column, &'a How)> {
        let follows = column.follows.as_ref()?;
        let other = self.columns.iter().find(|other| other.name == follows.column)?;
        Some((other, &follows.how))
    }

    fn check_follows(&self, column: &Column) -> Result<(), String> {
        let Some(Follows { column: name, how }) = &column.follows else { return Ok(()) };
        let is_filled =
            |column: &Column| matches!(column.values, Values::Fill { .. } | Values::Serial { .. });
        let Some((other, _)) = self.followed(column) else {
            return Err(format!(
                "\"follows\" names {name}, which is not a column of the table: correct the name"
            ));
        };
        if is_filled(column) || is_filled(other) {
            return Err(format!(
                "\"follows\" names {name}: both columns must have values of their own, not \"fill\" or \"serial\""
            ));
        }
        if let Some(problem) = how.problem() {
            return Err(format!("\"follows\" names {name}: {problem}"));
        }
        let mut links = 0;
        let mut last = column;
        while let Some((other, _)) = self.followed(last) {
            links += 1;
            last = other;
            if links > self.columns.len() {
                return Err("columns follow each other in a cycle: remove one \"follows\"".to_owned());
            }
        }
        Ok(())
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
            | Self::Any { distinct, .. } => Some(*distinct),
            Self::List { values, .. } => Some(values.len() as f64),
        }
    }

    /// Places in the order of all values, and the parameters of letters.
    fn check_places(&self) -> Result<(), String> {
        if let Self::Letters { alphabet, lengths, .. } = self {
            if Alphabet::find(alphabet).is_none() {
                return Err(format!(
                    "the alphabet {alphabet} is not digits, hex, upper, lower, mixed or words"
                ));
            }
            if lengths.is_empty() {
                return Err("\"lengths\" must have a number".to_owned());
            }
            if !lengths.is_sorted() {
                return Err("\"lengths\" must ascend".to_owned());
            }
        }
        if let Self::Any { lengths: Some((least, greatest)), .. } = self
            && !(1..=*greatest).contains(least)
        {
            return Err("\"lengths\" must be the least length, 1 or more, and the greatest one".to_owned());
        }
        let (Self::Keys { common, .. } | Self::Letters { common, .. } | Self::Any { common, .. }) = self
        else {
            return Ok(());
        };
        if !common.iter().all(|(place, share)| (0.0..=1.0).contains(place) && *share >= 0.0) {
            return Err(
                "each entry of \"common\" must have a place from 0 to 1 and a share of at least 0".to_owned()
            );
        }
        if let Self::Keys { bounds, .. } = self
            && !(bounds.is_sorted()
                && bounds.len() != 1
                && bounds.iter().all(|place| (0.0..=1.0).contains(place)))
        {
            return Err("\"bounds\" must be two or more places from 0 to 1, in ascending order".to_owned());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if let Some(distinct) = self.distinct()
            && (distinct == 0.0 || distinct < -1.0 || !distinct.is_finite())
        {
            return Err(
                "\"distinct\" must be above 0, or at least -1 and below 0; a list needs at least one value"
                    .to_owned(),
            );
        }
        let correlation = match self {
            Self::Keys { correlation, .. }
            | Self::Statistics { correlation, .. }
            | Self::Letters { correlation, .. }
            | Self::List { correlation, .. } => *correlation,
            Self::Fill { .. } | Self::Serial { .. } | Self::Any { .. } => 0.0,
        };
        if !(-1.0..=1.0).contains(&correlation) {
            return Err("the correlation must be from -1 to 1".to_owned());
        }
        self.check_places()?;
        if let Self::Statistics { common, .. } | Self::List { values: common, .. } = self
            && common.iter().any(|(_, share)| !(0.0..=1.0).contains(share))
        {
            return Err("each share must be from 0 to 1".to_owned());
        }
        let shares: f64 = match self {
            Self::Serial { step: 0, .. } => return Err("the step must not be 0".to_owned()),
            Self::Fill { .. } | Self::Serial { .. } => 0.0,
            Self::Keys { common, .. } | Self::Letters { common, .. } | Self::Any { common, .. } => {
                common.iter().map(|(_, share)| share).sum()
            }
            Self::Statistics { common, bounds, .. } => {
                if common.is_empty() && bounds.len() < 2 {
                    return Err("give common values, or at least two bounds".to_owned());
                }
                common.iter().map(|(_, share)| share).sum()
            }
            Self::List { values, .. } => values.iter().map(|(_, share)| share).sum(),
        };
        if let Self::Keys { rows, .. } = self
            && !rows.is_empty()
            && !are_rows(rows)
        {
            return Err(
                "\"rows\" must be numbers, 0 or more, with fractions that add up to 1; at least one number must be above 0"
                    .to_owned(),
            );
        }
        if (0.0..=1.001).contains(&shares) {
            Ok(())
        } else {
            Err(format!("the shares add up to {shares:.3}, and must not exceed 1"))
        }
    }
}
