//! A column's values as a function of the row number.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ranking::Ranking;
use crate::spread::{Elements, Letters, Spread, Statistics};
use crate::{Table, Topic};

/// A column's value as a function of its row number (counted from 0).
///
/// Integers that describe values of another type are in that type's units, see [`crate::Units`].
/// Strings are in the type's input syntax, as in a quoted SQL literal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// Random values that suit the type: the default of a column without a specification.
    Any,
    /// None: the column is left to the server (default, identity, generated).
    Server,
    /// NULL in every row.
    Null,
    /// The same integer in every row.
    Int(i64),
    /// The same value in every row.
    Text(String),
    /// `start + row × step`, beginning again where the type's values end.
    Serial {
        /// Value of row 0, in the type's units.
        start: i64,
        /// Difference from one row to the next, in the type's units; not 0.
        step: i64,
    },
    /// `row / size + 1`, and at most `groups`: each group has `size` members, the last one the rest.
    Group {
        /// Rows in a group.
        size: u64,
        /// Number of groups.
        groups: u64,
    },
    /// Values that differ where their [`Turn`] does, in ascending order as far as the type has one.
    Unique(Turn),
    /// Texts or bytes that differ where their [`Turn`] does, ascend, and are longer than those of [`Values::Unique`].
    Long {
        /// The turn.
        turn: Turn,
        /// Length of all values, characters (of `bytea`: bytes).
        length: u32,
    },
    /// Each of `low` to `high` once, in a random order; then again from the beginning.
    Shuffle {
        /// Least value, in the type's units.
        low: i64,
        /// Greatest value, in the type's units.
        high: i64,
    },
    /// Each of `low` to `high` with the same probability.
    Between {
        /// Least value, in the type's units.
        low: i64,
        /// Greatest value, in the type's units.
        high: i64,
    },
    /// Random numbers, in units; rounded and clamped to the type's range.
    Drawn(Distribution),
    /// One of these, drawn by weight.
    List(Vec<Weighted>),
    /// These in turn, then again from the first.
    Cycle(Vec<String>),
    /// Texts or bytes that only fill space: their length and compressibility matter.
    Payload {
        /// Characters or bytes of the values.
        payload: Payload,
        /// Least length, characters (of `bytea`: bytes).
        low: u32,
        /// Greatest length, characters (of `bytea`: bytes).
        high: u32,
    },
    /// Values that suit the meaning of a column.
    ///
    /// The record of an unfinished fill holds this name: when a topic's values change, so must the number, so that
    /// no fill goes on with other values than it began with.
    #[serde(rename = "Topic1")]
    Topic {
        /// The topic of the values.
        topic: Topic,
        /// The turn by which the values have to differ; none if they may repeat.
        turn: Option<Turn>,
    },
    /// Values that repeat: each row has the value of a number, which other rows may have too.
    Repeated {
        /// How often each number occurs, and in which order.
        spread: Spread,
        /// The values of the numbers.
        values: Box<Values>,
    },
    /// Numbers, dates and times with given statistics.
    Statistics(Statistics),
    /// Text that ascends with the row number.
    Letters(Letters),
    /// The greater or the lesser of two values: its own, and another column's value. A condition
    /// such as `a <= b` then holds.
    Ordered {
        /// The other column.
        other: String,
        /// Values of the other column, of the same kind. If these are [`Values::Ordered`], the other column has them; else it has the other side.
        others: Box<Values>,
        /// The side that the column gets.
        side: Side,
        /// Its own values.
        values: Box<Values>,
    },
    /// Values whose order follows from other columns of the row: the row gets the value of its rank
    /// instead of the value of its row number.
    Ranked {
        /// Ranks of the rows, those of NULLs last.
        ranking: Ranking,
        /// Statistics, repeated values or keys, which ascend with the rank (correlation 1), with or without NULLs.
        values: Box<Values>,
    },
    /// Arrays with these elements.
    Elements(Elements),
    /// Other values in the first rows, where a condition holds for a number of rows only.
    Leading {
        /// Number of the first row that has the `others`.
        until: u64,
        /// Values of the rows before it.
        leading: Box<Values>,
        /// Values of that row and those after it.
        others: Box<Values>,
    },
    /// A key of a referenced row.
    Reference(Reference),
    /// NULL in a fraction of the rows, these values in the others.
    Nulls {
        /// 0 to 1.
        fraction: f64,
        /// Ranks of the rows, the last of which are NULL; none if rows are drawn at random.
        by: Option<Ranking>,
        /// Values of the other rows.
        values: Box<Values>,
    },
}

/// A row's turn: `row / every`, counted round modulo `of`.
///
/// Turns make composite keys unique: with columns of `a` and `b` possible values, `every: 1, of: a`
/// on one and `every: a, of: b` on the other go through all pairs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Rows that share a turn, at least 1.
    pub every: u64,
    /// Number of turns, at least 1; `u64::MAX` for no end.
    pub of: u64,
}

/// All rows, divided into groups of the same size, as nearly as possible. It gives a row's value in
/// a key of two parts: the first part is the number of the group, the second one the number of the
/// row within the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Number of rows, at least as many as groups unless there are sizes.
    pub rows: u64,
    /// Number of groups, at least 1.
    pub groups: u64,
    /// None for the part that is the group's number.
    pub member: Option<Member>,
    /// Rows of groups that follow each other; after the last one, the same again. All are stretched so that
    /// they add up to the rows. Empty means that all groups have the same number, rounded up or down.
    #[serde(default, skip_serializing_if = "no_sizes")]
    pub sizes: Arc<[u32]>,
}

fn no_sizes(sizes: &Arc<[u32]>) -> bool {
    sizes.is_empty()
}

/// How members of a group are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Member {
    /// 0, 1, 2 in each group.
    Counted,
    /// Numbers from 0 to below this one, each as often as the others. It must be at least the
    /// size of the largest group, so that the members of a group differ.
    Of(u64),
}

/// Distribution of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// Evenly from `low` to `high`; for the types with whole units use [`Values::Between`].
    Uniform {
        /// Least value.
        low: f64,
        /// Greatest value.
        high: f64,
    },
    /// The normal distribution.
    Normal {
        /// Mean of the values.
        mean: f64,
        /// Standard deviation of the values.
        sd: f64,
    },
    /// Exponential: many small, few large.
    Exponential {
        /// Mean of the values.
        mean: f64,
    },
    /// Zipf: value k of 1 to `n` with a probability proportional to 1/k^s.
    Zipf {
        /// Greatest value, at least 1.
        n: u64,
        /// Exponent, above 0.
        s: f64,
    },
}

/// The rule by which a column gets one of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The lesser of the two values.
    Lesser,
    /// The greater of the two values, or either if they are equal.
    Greater,
    /// The greater of the two values, or the next value if they are equal.
    Above,
}

/// A value of a [`Values::List`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weighted {
    /// In the type's input syntax.
    pub value: String,
    /// Relative to the others', above 0.
    pub weight: f64,
}

/// The content of a filler; it decides how well the filler compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// Spaces, as pgbench's fillers are stored. (Bytes 0 in `bytea`.)
    Blank,
    /// English-like words: compress to about a third.
    Text,
    /// Random characters of 64, 6 bits in each; in `bytea` random bytes.
    Random,
}

/// One column of a foreign key, or of combinations that conditions allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The rows that can be referenced.
    pub keys: Arc<Keys>,
    /// The column of the key, from 0.
    pub column: usize,
    /// Choice of a row's key. All columns of a foreign key have the same.
    pub pick: Pick,
    /// Whether the keys are not of rows but values, or combinations of values, that conditions allow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_allowed: bool,
}

/// The keys of the rows that a foreign key can refer to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Keys {
    /// A single-column key that has every value from `low` to `high`.
    Interval {
        /// Least value, in the type's units.
        low: i64,
        /// Greatest value, in the type's units.
        high: i64,
    },
    /// Keys with all their columns, in the types' input syntax; none stands for NULL. Not empty.
    Listed(Vec<Vec<Option<String>>>),
    /// Keys of a table whose rows are made by this crate too. They need not be there yet.
    Made {
        /// The table, with the key's columns only.
        table: Table,
        /// Number of its first row that can be referenced; its last one is `table.rows - 1`.
        first: u64,
    },
}

/// Choice of a foreign key's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pick {
    /// At random: columns that give the same name in the same row get the same key.
    Random {
        /// The constraint's name.
        name: String,
    },
    /// At random, some keys more often than others, in an order that correlates with the row
    /// number.
    Spread {
        /// The constraint's name.
        name: String,
        /// How often each key is referenced. `distinct` is relative to the number of keys, not of
        /// rows: -0.5 is half of the keys.
        spread: Spread,
    },
    /// An earlier row of the same table, at random: a tree, whose root is the first row. The keys are those of the
    /// table's rows from row 0 on.
    Earlier {
        /// The constraint's name: columns that give the same name in the same row get the same key.
        name: String,
        /// Number of the first row.
        first: u64,
        /// Whether the first row has NULL; otherwise it references itself.
        null: bool,
    },
    /// By turns, for foreign keys that are unique or part of a unique key.
    InTurn(Turn),
    /// By groups that divide the rows evenly, for one of two parts of a unique key.
    Shared(Shared),
    /// By pairs that differ from row to row, for one of two foreign keys that are a unique key together.
    Paired(Box<Paired>),
}

/// Pairs of keys that differ from row to row. Each key comes about as often as its side's spread says; a key never comes more often
/// than the other side has keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The unique key's name: both sides give the same.
    pub name: String,
    /// Number of rows, at most the number of all pairs.
    pub rows: u64,
    /// The side whose correlation decides on the order of the rows.
    pub first: PairedKeys,
    /// The other side: its keys ascend within the rows of a key of the first one.
    pub second: PairedKeys,
    /// Whether the row gets its key of the second side, instead of the first one.
    pub is_second: bool,
}

/// The keys of one side of [`Paired`] rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedKeys {
    /// Number of keys, at least 1.
    pub keys: u64,
    /// How often each one comes; `distinct` is relative to the number of keys.
    pub spread: Spread,
}

impl Payload {
    /// The word for it in column specifications.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Text => "text",
            Self::Random => "random",
        }
    }
}

impl Turn {
    /// A turn of its own for every row.
    pub const EACH: Self = Self { every: 1, of: u64::MAX };

    /// Index of the value that this row (from 0) takes.
    pub fn of_row(self, row: u64) -> u64 {
        row / self.every % self.of
    }
}

impl Shared {
    /// The number for a row where all groups have the same number of rows. The first member of a group is by `step` further than that of the group
    /// before.
    pub(crate) fn number(&self, row: u64, step: u64) -> u64 {
        let &Self { rows, groups, member, .. } = self;
        let wide = |number: u64| u128::from(number);
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        let group = narrow(wide(row) * wide(groups) / wide(rows));
        let Some(member) = member else { return group };
        let place = row - narrow((wide(group) * wide(rows)).div_ceil(wide(groups)));
        match member {
            Member::Counted => place,
            Member::Of(count) => {
                let apart = (count / rows.div_ceil(groups)).max(1);
                let start = narrow(wide(group) * wide(step) % wide(count));
                (start + place * apart) % count
            }
        }
    }
}

impl Keys {
    /// Number of keys.
    pub fn count(&self) -> u64 {
        match self {
            Self::Interval { low, high } => high.abs_diff(*low).saturating_add(1),
            Self::Listed(keys) => keys.len() as u64,
            Self::Made { table, first } => table.rows.saturating_sub(*first),
        }
    }
}

impl Values {
    /// 1, 2, 3 …
    pub const SERIAL: Self = Self::Serial { start: 1, step: 1 };

    /// Whether the values are given in the type's input syntax.
    pub(crate) fn is_literal(&self) -> bool {
        match self {
            Self::Text(_) | Self::List(_) | Self::Cycle(_) | Self::Elements(_) => true,
            Self::Repeated { values, .. } => values.is_literal(),
            // Literals among the values decide: all encoders of literals also take values of the kind.
            Self::Leading { leading, others, .. } => {
                leading.without_nulls().is_literal() || others.without_nulls().is_literal()
            }
            Self::Ranked { values, .. } => values.without_nulls().is_literal(),
            Self::Reference(Reference { keys, column, .. }) => match &**keys {
                Keys::Interval { .. } => false,
                Keys::Listed(_) => true,
                Keys::Made { table, .. } => table.columns[*column].values.is_literal(),
            },
            _ => false,
        }
    }

    /// The values that are given in the type's input syntax; NULLs aside.
    pub(crate) fn literals(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Text(text) => Box::new(std::iter::once(text.as_str())),
            Self::List(list) => Box::new(list.iter().map(|weighted| weighted.value.as_str())),
            Self::Cycle(values) => Box::new(values.iter().map(String::as_str)),
            Self::Repeated { values, .. } => values.literals(),
            Self::Leading { leading, others, .. } => {
                Box::new(leading.without_nulls().literals().chain(others.without_nulls().literals()))
            }
            Self::Ranked { values, .. } => values.without_nulls().literals(),
            Self::Reference(Reference { keys, column, .. }) => match &**keys {
                Keys::Listed(keys) => Box::new(keys.iter().filter_map(|key| key[*column].as_deref())),
                Keys::Interval { .. } => Box::new(std::iter::empty()),
                Keys::Made { table, .. } => table.columns[*column].values.literals(),
            },
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The values without their NULLs.
    pub(crate) fn without_nulls(&self) -> &Self {
        match self {
            Self::Nulls { values, .. } => values,
            Self::Ranked { values, .. } if matches!(**values, Self::Nulls { .. }) => values.without_nulls(),
            values => values,
        }
    }

    /// Whether some rows may have NULL.
    pub fn may_be_null(&self) -> bool {
        match self {
            Self::Null
            | Self::Nulls { .. }
            | Self::Reference(Reference { pick: Pick::Earlier { null: true, .. }, .. }) => true,
            Self::Repeated { values, .. } | Self::Ordered { values, .. } | Self::Ranked { values, .. } => {
                values.may_be_null()
            }
            Self::Leading { leading, others, .. } => leading.may_be_null() || others.may_be_null(),
            Self::Reference(Reference { keys, column, .. }) => match &**keys {
                Keys::Interval { .. } => false,
                Keys::Listed(keys) => keys.iter().any(|key| key[*column].is_none()),
                Keys::Made { table, .. } => table.columns[*column].values.may_be_null(),
            },
            _ => false,
        }
    }

    /// Whether rows have keys of earlier rows of the same table, which must be there first.
    pub fn are_of_earlier_rows(&self) -> bool {
        match self {
            Self::Reference(reference) => matches!(reference.pick, Pick::Earlier { .. }),
            Self::Nulls { values, .. } => values.are_of_earlier_rows(),
            Self::Leading { leading, others, .. } => {
                leading.are_of_earlier_rows() || others.are_of_earlier_rows()
            }
            _ => false,
        }
    }

    /// Whether every row has the same value, so that it need not be sent row by row.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Text(_) | Self::Null)
    }
}
