//! The values that suit each type, and for how many rows.

use thiserror::Error;

use crate::generate::{Form, TOPIC_NUMBERS, steps};
use crate::spread::{Buckets, Described, Elements, Letters, Spread, Statistics};
use crate::{
    Column, Distribution, Keys, Kind, Member, Pick, Ranking, Reference, Shared, Side, Turn, Units, Values,
};

/// Values that a column of this type cannot have.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Unsuited {
    /// They are made for other types.
    #[error("{values} does not suit {kind}; it is for {suited}")]
    Kind {
        /// Name of the values.
        values: &'static str,
        /// The column's type.
        kind: String,
        /// The types that they are for.
        suited: &'static str,
    },
    /// A parameter is outside the range of the type or the values.
    #[error("{values} of {kind}: {reason}")]
    Parameter {
        /// Name of the values.
        values: &'static str,
        /// The column's type.
        kind: String,
        /// The problem of the parameter.
        reason: String,
    },
    /// An enum type that has no labels.
    #[error("{0} has no labels, so only NULL fits")]
    NoLabels(String),
    /// NULL in a column that has NOT NULL.
    #[error("null does not suit a NOT NULL column")]
    NotNull,
}

const COUNTED: &str = "numbers, dates and times, text, boolean and enums";
const INTEGERS: &str = "smallint, int and bigint";
const FILLABLE: &str = "text, varchar, char, name and bytea";
const MEASURED: &str = "numbers, dates and times, boolean and enums";
const TOPICAL: &str =
    "text of sufficient length; latitude, longitude, price, percent, age and year are for numbers";
const UNIQUE: &str = "types that can have a unique index";

impl Column {
    /// Whether the column's values suit its type.
    ///
    /// # Errors
    /// [`Unsuited`] names the mismatch.
    pub fn check(&self) -> Result<(), Unsuited> {
        self.values.check(&self.kind)?;
        if self.not_null && self.values.may_be_null() { Err(Unsuited::NotNull) } else { Ok(()) }
    }

    /// For how many rows, from row 0 on, the column's values all differ; `u64::MAX` stands for that
    /// many or more. None if values may come again at any time.
    pub fn unique_rows(&self) -> Option<u64> {
        match &self.values {
            Values::Serial { start, step } => Some(steps(*start, *step, self.kind.units()?)),
            Values::Unique(Turn { every: 1, of }) => Some(self.kind.distinct()?.min(*of)),
            Values::Long { turn: Turn { every: 1, of }, .. } => Some(*of),
            Values::Topic { turn: Some(Turn { every: 1, of }), .. } => Some(TOPIC_NUMBERS.min(*of)),
            Values::Shuffle { low, high } => Some(Units { low: *low, high: *high }.count()),
            Values::Letters(letters) => Some(letters.distinct(&self.kind)),
            Values::Repeated { spread, values } => {
                let is_each = spread.distinct <= -1.0 && spread.common.is_empty();
                let column = Self { values: (**values).clone(), ..self.clone() };
                is_each.then(|| column.unique_rows())?
            }
            Values::Reference(reference) => match reference.pick {
                Pick::InTurn(Turn { every: 1, of }) => Some(reference.keys.count().min(of)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Values {
    /// Whether these values suit a type.
    ///
    /// # Errors
    /// [`Unsuited`] names the mismatch.
    pub fn check(&self, kind: &Kind) -> Result<(), Unsuited> {
        let check = Check { kind, values: self.name() };
        match self {
            Self::Any => any(kind),
            Self::Server | Self::Null | Self::Text(_) => Ok(()),
            Self::Int(value) => {
                check.integer()?;
                check.counted(&[*value])
            }
            Self::Serial { start, step } => {
                check.counted(&[*start])?;
                check.that(*step != 0, "the step must not be 0")
            }
            Self::Group { size, groups } => {
                check.integer()?;
                check.that(*size > 0 && *groups > 0, "size and number of groups must not be 0")?;
                check.counted(&[1, i64::try_from(*groups).unwrap_or(i64::MAX)])
            }
            Self::Unique(turn) => check.unique(*turn),
            Self::Long { turn, length } => check.long(*turn, *length),
            Self::Shuffle { low, high } | Self::Between { low, high } => {
                check.counted(&[*low, *high])?;
                check.that(low <= high, "the low end is above the high end")
            }
            Self::Drawn(distribution) => {
                check.counted(&[])?;
                check.distribution(*distribution)
            }
            Self::List(list) => {
                check.that(!list.is_empty(), "it has no value")?;
                let weights = list.iter().all(|item| item.weight.is_finite() && item.weight > 0.0);
                check.that(weights, "a weight must be above 0")
            }
            Self::Cycle(values) => check.that(!values.is_empty(), "it has no value"),
            Self::Payload { low, high, .. } => check.payload(*low, *high),
            Self::Topic { topic, turn } => {
                if let Some(turn) = turn {
                    check.turn(*turn)?;
                    check.that(topic.can_be_unique(), "the values cannot be unique: leave out unique")?;
                }
                Form::new(*topic, kind, turn.is_some()).map(|_| ()).ok_or_else(|| check.unsuited(TOPICAL))
            }
            Self::Reference(reference) => {
                check.pick(reference)?;
                check.keys(&reference.keys, reference.column)
            }
            Self::Repeated { spread, values } => {
                check.spread(spread)?;
                let plain = !matches!(**values, Self::Nulls { .. } | Self::Server | Self::Repeated { .. });
                check.that(plain, "repeated(…) cannot contain nulls(…), default or repeated(…)")?;
                values.check(kind)
            }
            Self::Statistics(statistics) => check.statistics(statistics),
            Self::Ranked { ranking, values } => {
                if let Some(problem) = ranking.problem() {
                    check.that(false, problem)?;
                }
                check.that(
                    values.has_ranks(),
                    "its values must be statistics, repeated or keys, with or without nulls",
                )?;
                values.check(kind)
            }
            Self::Ordered { others, values, .. } => {
                check.that(
                    self.is_ordered(),
                    "both specifications must be statistics, with or without nulls",
                )?;
                check.both(others, values)
            }
            Self::Elements(elements) => check.elements(elements),
            Self::Leading { leading, others, .. } => check.both(leading, others),
            Self::Letters(letters) => check.letters(letters),
            Self::Nulls { fraction, by, values } => {
                check.that((0.0..=1.0).contains(fraction), "the fraction must be from 0 to 1")?;
                if let Some(problem) = by.as_ref().and_then(Ranking::problem) {
                    check.that(false, problem)?;
                }
                let plain = !matches!(**values, Self::Nulls { .. } | Self::Server);
                check.that(plain, "its values must be neither nulls nor default")?;
                values.check(kind)
            }
        }
    }

    /// Whether the values can be those of ranks.
    pub(crate) fn has_ranks(&self) -> bool {
        match self {
            Self::Nulls { by: None, values, .. } => values.has_ranks(),
            Self::Statistics(_) | Self::Repeated { .. } => true,
            Self::Reference(reference) => matches!(reference.pick, Pick::Spread { .. }),
            _ => false,
        }
    }

    /// Whether both sides are numbers that can be compared.
    fn is_ordered(&self) -> bool {
        // The other side of a chain is above a third column.
        let is_side = |others: &Self| others.is_counted() || others.is_ordered();
        matches!(self, Self::Ordered { others, values, .. } if is_side(others) && values.is_counted())
    }

    fn is_counted(&self) -> bool {
        match self {
            Self::Nulls { values, .. } | Self::Ranked { values, .. } => values.is_counted(),
            values => matches!(values, Self::Statistics(_)),
        }
    }

    /// The word for these values in column specifications and errors.
    fn name(&self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Server => "default",
            Self::Null => "null",
            Self::Int(_) | Self::Text(_) => "constant",
            Self::Serial { .. } => "serial",
            Self::Group { .. } => "group",
            Self::Unique(_) | Self::Long { .. } => "unique",
            Self::Shuffle { .. } => "shuffle",
            Self::Between { .. } | Self::Drawn(Distribution::Uniform { .. }) => "uniform",
            Self::Drawn(Distribution::Normal { .. }) => "normal",
            Self::Drawn(Distribution::Exponential { .. }) => "exponential",
            Self::Drawn(Distribution::Zipf { .. }) => "zipf",
            Self::List(_) => "list",
            Self::Cycle(_) => "cycle",
            Self::Payload { payload, .. } => payload.name(),
            Self::Topic { topic, .. } => topic.name(),
            Self::Reference(_) => "reference",
            Self::Nulls { .. } => "nulls",
            Self::Repeated { .. } => "repeated",
            Self::Ranked { .. } => "ranked",
            Self::Ordered { side: Side::Lesser, .. } => "lesser",
            Self::Ordered { side: Side::Greater, .. } => "greater",
            Self::Ordered { side: Side::Above, .. } => "above",
            Self::Statistics(_) => "statistics",
            Self::Elements(_) => "elements",
            Self::Leading { .. } => "leading",
            Self::Letters(letters) => letters.alphabet.name(),
        }
    }
}

/// The values to check, for the error.
struct Check<'a> {
    kind: &'a Kind,
    values: &'static str,
}

impl Check<'_> {
    fn unsuited(&self, suited: &'static str) -> Unsuited {
        Unsuited::Kind { values: self.values, kind: self.kind.sql(), suited }
    }

    fn that(&self, fine: bool, reason: &str) -> Result<(), Unsuited> {
        let wrong =
            || Unsuited::Parameter { values: self.values, kind: self.kind.sql(), reason: reason.to_owned() };
        fine.then_some(()).ok_or_else(wrong)
    }

    /// Two kinds of values of one column.
    fn both(&self, one: &Values, other: &Values) -> Result<(), Unsuited> {
        let are_made = ![one, other].contains(&&Values::Server);
        self.that(are_made, "its values must not be default")?;
        one.check(self.kind)?;
        other.check(self.kind)
    }

    fn integer(&self) -> Result<(), Unsuited> {
        let integer = matches!(self.kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
        integer.then_some(()).ok_or_else(|| self.unsuited(INTEGERS))
    }

    /// The kind is counted, and has these numbers of units.
    fn counted(&self, numbers: &[i64]) -> Result<(), Unsuited> {
        let units = self.kind.units().ok_or_else(|| self.unsuited(COUNTED))?;
        let within = numbers.iter().all(|number| units.contains(*number));
        self.that(within, "a value is out of the type's range")
    }

    /// Values that need not be counted: they may be infinite.
    fn valued(&self, numbers: impl IntoIterator<Item = i64>) -> Result<(), Unsuited> {
        self.counted(&[])?;
        self.that(
            numbers.into_iter().all(|number| self.kind.has(number)),
            "a value is out of the type's range",
        )
    }

    fn unique(&self, turn: Turn) -> Result<(), Unsuited> {
        self.turn(turn)?;
        let distinct = self.kind.distinct().ok_or_else(|| self.unsuited(UNIQUE))?;
        let enough = turn.of == u64::MAX || turn.of <= distinct;
        let values = if distinct == 1 { "value" } else { "values" };
        self.that(enough, &format!("the type has only {distinct} {values}"))
    }

    fn long(&self, turn: Turn, length: u32) -> Result<(), Unsuited> {
        self.turn(turn)?;
        let least = self.kind.unique_length().ok_or_else(|| self.unsuited(FILLABLE))?;
        let fits = self.kind.characters().is_none_or(|most| length <= most);
        self.that(fits, &format!("length {length} is more than the type allows"))?;
        self.that(length > least, &format!("its values have {least} characters or bytes by themselves"))
    }

    fn turn(&self, turn: Turn) -> Result<(), Unsuited> {
        self.that(turn.every > 0 && turn.of > 0, "the number of rows in a turn must be at least 1")
    }

    fn distribution(&self, distribution: Distribution) -> Result<(), Unsuited> {
        match distribution {
            Distribution::Uniform { low, high } => {
                self.that((high - low).is_finite(), "a bound is out of range")?;
                self.that(low <= high, "the low end is above the high end")
            }
            Distribution::Normal { mean, sd } => {
                self.that(mean.is_finite() && sd.is_finite(), "mean or standard deviation is out of range")?;
                self.that(sd >= 0.0, "the standard deviation must not be below 0")
            }
            Distribution::Exponential { mean } => self.that(mean.is_finite(), "the mean is out of range"),
            Distribution::Zipf { n, s } => {
                self.that(n > 0, "n must be at least 1")?;
                self.that(s.is_finite() && s > 0.0, "s must be above 0")
            }
        }
    }

    fn pick(&self, reference: &Reference) -> Result<(), Unsuited> {
        match &reference.pick {
            Pick::InTurn(turn) => self.turn(*turn)?,
            Pick::Spread { spread, .. } => self.spread(spread)?,
            Pick::Shared(Shared { rows, groups, member, sizes }) => {
                // Of groups with sizes, some may have no rows.
                let has_rows =
                    if sizes.is_empty() { groups <= rows } else { sizes.iter().any(|size| *size > 0) };
                self.that(0 < *groups && has_rows, "a group must have at least one row")?;
                let fits = !matches!(member, Some(Member::Of(count)) if *count < rows.div_ceil(*groups));
                self.that(fits, "a group has more rows than the member column has values: give a larger number of these values")?;
            }
            Pick::Paired(paired) => {
                self.spread(&paired.first.spread)?;
                self.spread(&paired.second.spread)?;
                let pairs = paired.first.keys.saturating_mul(paired.second.keys);
                self.that(
                    (1..=pairs).contains(&paired.rows),
                    "there must be rows, and no more of them than pairs of keys",
                )?;
            }
            Pick::Random { .. } => {}
            Pick::Earlier { first, .. } => {
                let made = matches!(&*reference.keys, Keys::Made { table, first: 0 } if *first < table.rows);
                self.that(made, "the keys must be those of the table's own rows")?;
            }
        }
        Ok(())
    }

    fn spread(&self, spread: &Spread) -> Result<(), Unsuited> {
        self.counts(spread.distinct, spread.correlation)?;
        let shares = spread.common.iter().map(|common| common.share);
        self.shares(shares, spread.common_share())?;
        let places = spread.common.iter().all(|common| (0.0..=1.0).contains(&common.place));
        self.that(places, "the place of a common value must be from 0 to 1")?;
        let within = spread.bounds.iter().all(|bound| (0.0..=1.0).contains(bound));
        let bounds = within && spread.bounds.is_sorted() && spread.bounds.len() != 1;
        let weights =
            spread.weights.iter().all(|(weight, fraction)| (0.0..=1e12).contains(weight) && *fraction >= 0.0);
        let some = spread.weights.iter().any(|(weight, fraction)| *weight > 0.0 && *fraction > 0.0);
        self.that(
            weights && (some || spread.weights.is_empty()),
            "rows must be numbers, 0 or more, and at least one above 0",
        )?;
        self.that(bounds, "give at least two bounds, from 0 to 1 and ascending")
    }

    fn counts(&self, distinct: f64, correlation: f64) -> Result<(), Unsuited> {
        let is_number = distinct.is_finite() && distinct != 0.0 && distinct >= -1.0;
        self.that(is_number, "the number of different values must be above 0, or at least -1 and below 0")?;
        self.that((-1.0..=1.0).contains(&correlation), "the correlation must be from -1 to 1")
    }

    fn shares(&self, mut shares: impl Iterator<Item = f64>, all: f64) -> Result<(), Unsuited> {
        self.that(shares.all(|share| share > 0.0), "a share must be above 0")?;
        // Rounded shares may add up to a little more.
        self.that(all <= 1.001, "shares must not add up to more than 1")
    }

    fn statistics(&self, statistics: &Statistics) -> Result<(), Unsuited> {
        if self.kind.is_text() {
            return Err(self.unsuited(MEASURED));
        }
        self.counts(statistics.distinct, statistics.correlation)?;
        match &statistics.values {
            Described::Units(buckets) => {
                self.buckets(buckets)?;
                self.valued(buckets.common.iter().map(|(value, _)| *value))?;
                // Values lie between bounds, which are therefore finite.
                let all = self.kind.extent();
                let within = all.is_some_and(|all| buckets.bounds.iter().all(|bound| all.contains(*bound)));
                self.that(within, "a bound is out of the type's range")
            }
            Described::Reals(buckets) => {
                self.buckets(buckets)?;
                let is_real = matches!(self.kind, Kind::Float4 | Kind::Float8);
                is_real.then_some(()).ok_or_else(|| self.unsuited("floating point"))
            }
        }
    }

    fn buckets<T: PartialOrd>(&self, buckets: &Buckets<T>) -> Result<(), Unsuited> {
        self.shares(buckets.common.iter().map(|(_, share)| *share), buckets.common_share())?;
        let has_values = !buckets.common.is_empty() || buckets.bounds.len() > 1;
        self.that(has_values && buckets.bounds.len() != 1, "it has neither common values nor two bounds")?;
        let ascend = buckets.bounds.is_sorted() && buckets.common.is_sorted_by(|one, other| one.0 < other.0);
        self.that(ascend, "values must ascend")
    }

    fn letters(&self, letters: &Letters) -> Result<(), Unsuited> {
        if !self.kind.is_text() && !matches!(self.kind, Kind::Json | Kind::Jsonb) {
            return Err(self.unsuited("text, varchar, char, name, json and jsonb"));
        }
        let lengths = &letters.lengths;
        let within = !lengths.is_empty() && lengths.iter().all(|length| (1..=1_000_000).contains(length));
        self.that(within, "a length must be from 1 to 1000000")?;
        self.that(lengths.is_sorted(), "lengths must ascend")
    }

    fn elements(&self, elements: &Elements) -> Result<(), Unsuited> {
        let Kind::Array(element) = self.kind else { return Err(self.unsuited("arrays")) };
        let counts = &elements.counts;
        let within = !counts.is_empty() && counts.is_sorted() && counts.iter().all(|count| *count <= 10_000);
        self.that(within, "counts must be numbers of elements up to 10000, in ascending order")?;
        let shares = elements.listed.iter().all(|(_, share)| (0.0..=1.0).contains(share) && *share > 0.0);
        self.that(
            shares && elements.listed.len() <= 10_000,
            "the share of an element must be above 0, and at most 1",
        )?;
        let has_forms = matches!(
            *elements.others,
            Values::Any
                | Values::Letters(_)
                | Values::Between { .. }
                | Values::Drawn(_)
                | Values::Statistics(_)
        );
        self.that(has_forms, "other elements must be any, letters, uniform or statistics")?;
        elements.others.check(element)
    }

    fn payload(&self, low: u32, high: u32) -> Result<(), Unsuited> {
        if !self.kind.is_text() && *self.kind != Kind::Bytea {
            return Err(self.unsuited(FILLABLE));
        }
        let fits = self.kind.characters().is_none_or(|most| high <= most);
        self.that(fits, &format!("length {high} is more than the type allows"))?;
        self.that(low <= high, "the minimum length is above the maximum")
    }

    fn keys(&self, keys: &Keys, column: usize) -> Result<(), Unsuited> {
        match keys {
            Keys::Interval { low, high } => {
                self.counted(&[*low, *high])?;
                self.that(low <= high && column == 0, "the referenced table has no keys")
            }
            Keys::Listed(keys) => {
                let there = !keys.is_empty() && keys.iter().all(|key| column < key.len());
                self.that(there, "the referenced table has no keys")
            }
            Keys::Made { table, first } => {
                let there = *first < table.rows && column < table.columns.len();
                self.that(there, "the referenced table has no keys")?;
                table.columns[column].values.check(&table.columns[column].kind)
            }
        }
    }
}

/// Every kind has values, but for enums without labels.
fn any(kind: &Kind) -> Result<(), Unsuited> {
    match kind {
        Kind::Enum { name, labels, .. } if labels.is_empty() => Err(Unsuited::NoLabels(name.clone())),
        Kind::Array(element) | Kind::Range { element, .. } | Kind::Multirange { element, .. } => any(element),
        Kind::Composite { fields, .. } => fields.iter().try_for_each(any),
        _ => Ok(()),
    }
}
