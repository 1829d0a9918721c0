//! How often values come again, and in which order: statistics of a column, in PostgreSQL's terms.

use serde::{Deserialize, Serialize};

use crate::{Kind, Values};

/// How the numbers from 0 on are distributed over the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of different numbers. Below 0: that many times the rows, as `n_distinct` in `pg_stats`.
    pub distinct: f64,
    /// Correlation of row number and number, -1 to 1, as `correlation` in `pg_stats`.
    pub correlation: f64,
    /// Numbers that are more frequent than the others.
    pub common: Vec<Common>,
    /// Positions, 0 to 1 in ascending order. The numbers between two neighbouring positions have
    /// the same share of the rows. Empty, or at least two; empty means that all numbers are equally
    /// frequent.
    #[serde(default)]
    pub bounds: Vec<f64>,
    /// Relative frequencies of the other numbers, each with the fraction of the numbers that have
    /// it, in no order. Empty means that all are equally frequent.
    #[serde(default)]
    pub weights: Vec<(f64, f64)>,
}

/// A frequent number of a [`Spread`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Common {
    /// Its position among all numbers, 0 (the first) to 1 (the last).
    pub place: f64,
    /// Share of the rows, above 0 and at most 1.
    pub share: f64,
}

/// Numbers, dates or times as `pg_stats` describes a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of different values. Below 0: that many times the rows.
    pub distinct: f64,
    /// Correlation of row number and value, -1 to 1.
    pub correlation: f64,
    /// Frequent values and the bounds of the other ones' buckets.
    pub values: Described,
}

/// Values of [`Statistics`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Described {
    /// Of types with whole units, see [`crate::Units`].
    Units(Buckets<i64>),
    /// Of floating-point types.
    Reals(Buckets<f64>),
}

/// Frequent values, and buckets that all have the same share of the other rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buckets<T> {
    /// Values with their share of the rows, in ascending order.
    pub common: Vec<(T, f64)>,
    /// Bounds of the buckets, in ascending order: empty, or at least two.
    pub bounds: Vec<T>,
}

/// Text whose order is known: values ascend with the number that they are made from, compared byte by byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letters {
    /// Characters of the texts.
    pub alphabet: Alphabet,
    /// Quantiles of the length, characters: equally many texts have a length between two
    /// neighbours.
    pub lengths: Vec<u32>,
}

/// Arrays of which it is known how many elements they have, and which are frequent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elements {
    /// Quantiles of the number of different elements, in ascending order: equally many arrays have each.
    pub counts: Vec<u32>,
    /// Frequent elements in the input syntax of their type, each with the share of the arrays that have it.
    pub listed: Vec<(String, f64)>,
    /// Values of other elements.
    pub others: Box<Values>,
    /// Number of different other elements. Below 0: that many times the rows. 0: a few times as many as the frequent ones.
    #[serde(default)]
    pub distinct: f64,
}

/// Characters that [`Letters`] consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alphabet {
    /// `0` to `9`.
    Digits,
    /// `0` to `9` and `a` to `f`.
    Hex,
    /// `A` to `Z`.
    Upper,
    /// `a` to `z`.
    Lower,
    /// `0` to `9` and `a` to `z`.
    Mixed,
    /// After the first letters (`a` to `z`), English-like words with a blank between them: so texts compress as prose does.
    Words,
}

impl Letters {
    /// How many different texts a column of this kind has room for.
    pub(crate) fn distinct(&self, kind: &Kind) -> u64 {
        let base = self.alphabet.characters().len() as u64;
        kind.characters().map_or(u64::MAX, |most| base.saturating_pow(most))
    }
}

impl Spread {
    /// Shares of all frequent numbers together.
    pub(crate) fn common_share(&self) -> f64 {
        self.common.iter().map(|common| common.share).sum()
    }
}

impl<T> Buckets<T> {
    /// Shares of all frequent values together.
    pub(crate) fn common_share(&self) -> f64 {
        self.common.iter().map(|(_, share)| share).sum()
    }
}

impl Alphabet {
    /// All, with their words in column specifications.
    const ALL: [(Self, &'static str, &'static [u8]); 6] = [
        (Self::Digits, "digits", b"0123456789"),
        (Self::Hex, "hex", b"0123456789abcdef"),
        (Self::Upper, "upper", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        (Self::Lower, "lower", b"abcdefghijklmnopqrstuvwxyz"),
        (Self::Mixed, "mixed", b"0123456789abcdefghijklmnopqrstuvwxyz"),
        (Self::Words, "words", b"abcdefghijklmnopqrstuvwxyz"),
    ];

    /// The alphabet that is written so.
    pub fn find(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name, _)| *name == word).map(|(alphabet, ..)| *alphabet)
    }

    /// Its name in specifications and model files.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// The characters, in ascending order.
    pub(crate) fn characters(self) -> &'static [u8] {
        self.entry().2
    }

    fn entry(self) -> (Self, &'static str, &'static [u8]) {
        *Self::ALL.iter().find(|(alphabet, ..)| *alphabet == self).expect("all alphabets are listed")
    }
}
