//! Column specifications as people write them: `price=uniform(1,999.99)`.
//!
//! | specification | values | for |
//! |---|---|---|
//! | `any` | random values that suit the type | all types |
//! | `unique` | values that all differ, in ascending order where the type has one | all types that can have a unique index |
//! | `serial`, `serial(start)`, `serial(start,step)` | start (1), start + step (1), … | numbers, text |
//! | `timeseries(start,step)` | start, start + step, …: `timeseries(2024-01-01, 1s)` | dates and times |
//! | `shuffle(low,high)` | each of low to high once, in random order | numbers, dates and times, text |
//! | `uniform(low,high)` | low to high, all equally often | numbers, dates and times, text |
//! | `normal(mean,sd)` | normal distribution | numbers, dates and times, text |
//! | `exponential(mean)` | exponential distribution: many small, few large | numbers, interval |
//! | `zipf(n)`, `zipf(n,s)` | 1 to n; the frequency of k is proportional to 1/k^s (default of s: 1) | integers, floating point, text |
//! | `list(a,b,…)`, `list(a*3,b)` | one of these values at random; `a*3` makes a three times as frequent | all types |
//! | `cycle(a,b,…)` | these in turn | all types |
//! | `constant(value)` | the same in every row | all types |
//! | `null` | NULL | all types |
//! | `nulls(fraction,specification)` | NULL in a fraction of the rows (0.1: every tenth), otherwise as specified. Without a specification (`nulls(0.1)`), pgrig chooses the other values. | all types |
//! | `text(n)`, `text(low,high)` | n characters (or low to high) of words; a compressed text has about a third of its size | text, `bytea` |
//! | `random(n)`, `random(low,high)` | random characters (in `bytea` bytes); compression saves little | text, `bytea` |
//! | `blank(n)`, `blank(low,high)` | spaces (in `bytea` zeros); compression removes nearly all of them | text, `bytea` |
//! | `email`, `user-name`, `url`, `domain`, `sku` | e-mail addresses, user names, URLs, domains, SKUs; `email(unique)` puts the row's number into each, so that all differ | text |
//! | `first-name`, `last-name`, `full-name`, `company`, `title`, `sentence`, `city`, `country`, `country-code`, `street`, `postcode`, `phone`, `ip`, `currency` | made-up values of this kind | text |
//! | `latitude`, `longitude`, `price`, `percent`, `age`, `year` | numbers in the usual range: -90 to 90, -180 to 180, 1.00 to 999.99, 0 to 100, 18 to 90, 1990 to 2025 | numbers |
//! | `reference(table.column)` | values of that column, at random | all types |
//! | `default` | none: left to the column's default, identity or generation expression | all types |
//!
//! Specifications of model files:
//!
//! | specification | values | for |
//! |---|---|---|
//! | `statistics(distinct,correlation,common(v*share,…),histogram(bound,…))` | values with these statistics: n_distinct, correlation, most common values with their frequencies, histogram bounds, as in `pg_stats`: `statistics(-0.5, 0.1, common(9.99*0.2), histogram(1,5,20,900))` | numbers, dates and times, boolean, enums |
//! | `repeated(distinct,correlation,common(place*share,…),specification)` | `distinct` different values of the inner specification. `common` names a frequent value by its place in the order of these values, from 0 (the first) to 1 (the last), and its share: `repeated(200, 0, common(0.5*0.3), letters(lower,5,9))` | all types |
//! | `letters(alphabet,length,…)` | texts over an alphabet (digits, hex, upper, lower, mixed or words), in ascending order of the rows; the lengths are quantiles of the text lengths | text |
//! | `elements(counts(number,…),listed(element*share,…),specification)` | arrays. The numbers are quantiles of the number of elements; each listed element is in this share of the arrays; the specification makes the other elements: `elements(counts(1,2,5), listed(red*0.5, blue*0.2), letters(lower,3,6))` | arrays |
//! | `keys(distinct,correlation,common(place*share,…),histogram(place,…),rows(number*fraction,…))` | keys of the referenced table. distinct: number of different keys (negative: fraction of all keys); common and histogram: the most frequent keys and the histogram's bounds, each by its place in the order of the keys (0 to 1); rows(number*fraction): of the other keys, this fraction has this number of rows each | columns of foreign keys |
//! | `greater(column,spec1,spec2)`, `above(…)`, `lesser(…)` | `greater`: the greater of the value of `column` (whose specification is spec1) and a value of spec2. `above`: the same, but the next greater value if both are equal. `lesser`: the lesser of the two. For CHECK (a <= b), give b `greater(a,…)`; for CHECK (a < b), `above(a,…)` | numbers, dates and times |
//! | `ranked(…)` | the specification's values, in an order that depends on another column; in `nulls`, a third argument `by(…)` makes the rows with NULL depend on other columns: [Models](../methodology/model.md#specifications) | columns with statistics, repeated or keys |
//!
//! Values are written as in SQL, without quotes; in single quotes they may hold commas, parentheses,
//! stars and blanks at the ends, with a quote doubled. Steps and widths of times have units:
//! `10ms`, `1s`, `5min`, `2h`, `1d`, `1w`. Times with a time zone are in UTC.

mod amount;
mod name;
mod ranked;
mod statistics;
mod suit;
mod syntax;

use std::str::FromStr;

use thiserror::Error;

use self::name::Name;
use self::statistics::list;
use crate::spread::Elements;
use crate::{Kind, Ranking, Reference, Side, Spread, Unsuited, Values, Weighted};

/// A column and its values: `name=specification`. A name that has `=` in it, or blanks at
/// its ends, is put in double quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Unquoted name.
    pub column: String,
    /// Values of the column.
    pub spec: Spec,
}

/// The values of a column, whatever its type; see the [table](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Spec(Form);

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Nulls {
        fraction: f64,
        by: Option<Ranking>,
        spec: Box<Spec>,
    },
    /// In a fraction of the rows; the other values are not specified.
    OnlyNulls(f64),
    List(Vec<Weighted>),
    Call {
        name: Name,
        arguments: Vec<String>,
    },
    Statistics {
        distinct: f64,
        correlation: f64,
        common: Vec<Weighted>,
        bounds: Vec<String>,
    },
    Repeated {
        spread: Spread,
        spec: Box<Spec>,
    },
    Keys(Spread),
    Elements {
        counts: Vec<u32>,
        listed: Vec<Weighted>,
        others: Box<Spec>,
        distinct: f64,
    },
    Ranked {
        ranking: Ranking,
        spec: Box<Spec>,
    },
    Ordered {
        other: String,
        side: Side,
        others: Box<Spec>,
        spec: Box<Spec>,
    },
}

/// How often the rows refer to the keys of a foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed {
    /// Fraction of the rows that refer to none, if it is given.
    pub nulls: Option<f64>,
    /// Columns that the rows that refer to none follow, if any.
    pub nulls_by: Option<Ranking>,
    /// How often each key comes; the number of different ones is relative to the keys.
    pub spread: Spread,
    /// Columns that the order of the keys follows, if any.
    pub ranking: Option<Ranking>,
}

/// Greatest depth of `nulls`.
const MOST_LEVELS: u32 = 8;

/// A specification that cannot be understood, or does not suit its column.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no `=`, or nothing before it.
    #[error("{0:?} is not of the form column=specification, for example price=uniform(1,999.99)")]
    NoColumn(String),
    /// The specification of a column is wrong.
    #[error("{column}: {source}")]
    OfColumn {
        /// The column.
        column: String,
        /// The fault.
        source: Box<SpecError>,
    },
    /// Parentheses or quotes do not fit together.
    #[error("{spec:?}: {reason}")]
    Syntax {
        /// The text.
        spec: String,
        /// The problem.
        reason: String,
    },
    /// No specification has this name.
    #[error("there is no specification {name:?}{}; the specifications are {known}", .alike.map_or_else(String::new, |alike| format!(" (did you mean {alike}?)")))]
    Unknown {
        /// The name.
        name: String,
        /// The name that is most like it, if one is.
        alike: Option<&'static str>,
        /// Names that exist.
        known: String,
    },
    /// Too few or too many arguments.
    #[error("{name} takes {arguments}")]
    Arguments {
        /// The specification's.
        name: &'static str,
        /// Arguments that it takes.
        arguments: &'static str,
    },
    /// An argument is no value of the kind that it should be.
    #[error("{argument:?} is not {expected}")]
    Argument {
        /// The argument.
        argument: String,
        /// The expected form.
        expected: String,
    },
    /// The specification is for other types than the column's.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// A reference was not resolved.
    #[error("pgrig does not know the values of {0}")]
    Unresolved(String),
}

impl FromStr for ColumnSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (column, spec) = syntax::column(text).ok_or_else(|| SpecError::NoColumn(text.to_owned()))?;
        match spec.parse() {
            Ok(spec) => Ok(Self { column, spec }),
            Err(error) => Err(SpecError::OfColumn { column, source: Box::new(error) }),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::read(text, 0)
    }
}

impl Spec {
    fn read(text: &str, depth: u32) -> Result<Self, SpecError> {
        let syntax = |reason: &str| SpecError::Syntax { spec: text.to_owned(), reason: reason.to_owned() };
        let (name, arguments) = syntax::call(text).map_err(syntax)?;
        let name = Name::find(name)?;
        name.check_count(arguments.len())?;
        let form = match name {
            Name::Nulls if depth == MOST_LEVELS => {
                return Err(syntax("nulls(…) must not contain nulls(…): remove one"));
            }
            Name::Nulls if arguments.len() == 1 => Form::OnlyNulls(statistics::fraction(arguments[0])?),
            Name::Nulls => Form::Nulls {
                fraction: amount::real(arguments[0], "a fraction from 0 to 1")?,
                by: arguments.get(2).map(|by| ranked::by(by)).transpose()?,
                spec: Box::new(Self::read(arguments[1], depth + 1)?),
            },
            Name::List => {
                Form::List(arguments.iter().map(|argument| weighted(argument)).collect::<Result<_, _>>()?)
            }
            Name::Statistics => statistics::statistics(&arguments)?,
            Name::Repeated if depth == MOST_LEVELS => {
                return Err(syntax("repeated(…) must not contain repeated(…): remove one"));
            }
            Name::Repeated => Form::Repeated {
                spread: statistics::spread(&arguments)?,
                spec: Box::new(Self::read(arguments[3], depth + 1)?),
            },
            Name::Lesser | Name::Greater | Name::Above => Form::Ordered {
                other: syntax::unquoted(arguments[0]),
                side: match name {
                    Name::Lesser => Side::Lesser,
                    Name::Above => Side::Above,
                    _ => Side::Greater,
                },
                others: Box::new(Self::read(arguments[1], MOST_LEVELS - 2)?),
                spec: Box::new(Self::read(arguments[2], MOST_LEVELS - 2)?),
            },
            Name::Ranked if depth == MOST_LEVELS => {
                return Err(syntax("ranked(…) must not contain ranked(…): remove one"));
            }
            Name::Ranked => Form::Ranked {
                ranking: ranked::ranking(&arguments)?,
                spec: Box::new(Self::read(arguments[4], depth + 1)?),
            },
            Name::Elements if depth == MOST_LEVELS => {
                return Err(syntax("elements(…) must not contain elements(…): remove one"));
            }
            Name::Elements => {
                let (counts, listed) = statistics::elements(&arguments)?;
                let others = Box::new(Self::read(arguments[2], depth + 1)?);
                Form::Elements { counts, listed, others, distinct: statistics::others(&arguments)? }
            }
            Name::Keys => Form::Keys(statistics::keys(&arguments)?),
            name => Form::Call { name, arguments: arguments.into_iter().map(syntax::unquoted).collect() },
        };
        Ok(Self(form))
    }
}

/// The units of a value, if it has some.
pub(crate) fn units(kind: &Kind, text: &str) -> Option<i64> {
    amount::value(kind, text).ok()
}

fn weighted(argument: &str) -> Result<Weighted, SpecError> {
    let (value, weight) = match syntax::weight(argument) {
        (value, None) => (value, 1.0),
        (value, Some(weight)) => (value, amount::real(weight, "a weight above 0")?),
    };
    Ok(Weighted { value: syntax::unquoted(value), weight })
}

impl Spec {
    /// The referenced column of a `reference`, as written: `table.column`.
    pub fn reference(&self) -> Option<&str> {
        match &self.0 {
            Form::Call { name: Name::Reference, arguments } => Some(&arguments[0]),
            Form::Nulls { spec, .. } | Form::Repeated { spec, .. } | Form::Ranked { spec, .. } => {
                spec.reference()
            }
            _ => None,
        }
    }

    /// How often keys are referenced, if this is a `keys`.
    pub fn keyed(&self) -> Option<Keyed> {
        match &self.0 {
            Form::Keys(spread) => {
                Some(Keyed { nulls: None, nulls_by: None, spread: spread.clone(), ranking: None })
            }
            Form::Nulls { fraction, by, spec } => {
                spec.keyed().map(|keyed| Keyed { nulls: Some(*fraction), nulls_by: by.clone(), ..keyed })
            }
            Form::Ranked { ranking, spec } => {
                spec.keyed().map(|keyed| Keyed { ranking: Some(ranking.clone()), ..keyed })
            }
            _ => None,
        }
    }

    /// The number of different values, as `n_distinct` in `pg_stats`, if the specification states one; none of a
    /// [`keyed`](Self::keyed) one, whose number is relative to the keys.
    pub fn distinct(&self) -> Option<f64> {
        match &self.0 {
            Form::Statistics { distinct, .. } => Some(*distinct),
            Form::Repeated { spread, .. } => Some(spread.distinct),
            Form::Nulls { spec, .. } | Form::Ranked { spec, .. } | Form::Ordered { spec, .. } => {
                spec.distinct()
            }
            Form::Call { name: Name::Serial | Name::Unique, .. } => Some(-1.0),
            Form::List(_)
            | Form::Call { .. }
            | Form::Keys(_)
            | Form::Elements { .. }
            | Form::OnlyNulls(_) => None,
        }
    }

    /// The fraction of NULLs, if nothing else is specified.
    pub fn only_nulls(&self) -> Option<f64> {
        match &self.0 {
            Form::OnlyNulls(fraction) => Some(*fraction),
            _ => None,
        }
    }

    /// The values for a column of this type; of a `reference`, the resolved one.
    ///
    /// # Errors
    /// If an argument is no value of the type, or the specification is for other types.
    pub fn values(&self, kind: &Kind, reference: Option<&Reference>) -> Result<Values, SpecError> {
        let values = match &self.0 {
            Form::Nulls { fraction, by, spec } => Values::Nulls {
                fraction: *fraction,
                by: by.clone(),
                values: Box::new(spec.values(kind, reference)?),
            },
            Form::List(values) => Values::List(values.clone()),
            Form::Repeated { spread, spec } => {
                Values::Repeated { spread: spread.clone(), values: Box::new(spec.values(kind, reference)?) }
            }
            Form::Statistics { distinct, correlation, common, bounds } => {
                statistics::values(kind, *distinct, *correlation, common, bounds)?
            }
            Form::Ordered { other, side, others, spec } => Values::Ordered {
                other: other.clone(),
                others: Box::new(others.values(kind, reference)?),
                side: *side,
                values: Box::new(spec.values(kind, reference)?),
            },
            Form::Ranked { ranking, spec } => {
                Values::Ranked { ranking: ranking.clone(), values: Box::new(spec.values(kind, reference)?) }
            }
            Form::Elements { counts, listed, others, distinct } => {
                let Kind::Array(element) = kind else {
                    return Err(
                        Unsuited::Kind { values: "elements", kind: kind.sql(), suited: "arrays" }.into()
                    );
                };
                Values::Elements(Elements {
                    counts: counts.clone(),
                    listed: listed.iter().map(|one| (one.value.clone(), one.weight)).collect(),
                    others: Box::new(others.values(element, None)?),
                    distinct: *distinct,
                })
            }
            Form::OnlyNulls(_) => {
                return Err(SpecError::Arguments {
                    name: "nulls",
                    arguments: "(fraction,specification) here",
                });
            }
            Form::Keys(_) => {
                let suited = "columns of a foreign key";
                return Err(Unsuited::Kind { values: "keys", kind: kind.sql(), suited }.into());
            }
            Form::Call { name, arguments } => suit::values(*name, arguments, kind, reference)?,
        };
        values.check(kind)?;
        Ok(values)
    }
}
