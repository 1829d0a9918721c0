//! The values that a column's constraints allow.

use rowgen::{Distribution, Kind, Payload, Units, Values, Weighted};

/// Values of one column that fulfil the conditions known of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allowed {
    /// The values themselves, whatever their length.
    pub(super) set: Set,
    /// Least number of characters.
    pub(super) shortest: u32,
    /// Greatest number of characters.
    pub(super) longest: Option<u32>,
    /// Whether NULL fulfils them.
    pub(super) null: bool,
}

/// A set of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Set {
    /// Every value of the type.
    All,
    /// Values of a type whose values are counted: these stretches, ascending and apart from each other.
    Units(Vec<Units>),
    /// Values of a floating-point type from `low` to `high`.
    Floats {
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
    },
    /// Only these values, in the type's input syntax.
    Listed(Vec<String>),
    /// NULL and nothing else.
    NullOnly,
}

/// Range of values with only one bound: large enough for different values, small enough for a plausible quantity or
/// price.
const SPREAD: i64 = 1_000_000;
/// The same for dates, days: ten years.
const SPREAD_DAYS: i64 = 3_653;
/// Values that are worth a list.
const MOST_LISTED: u64 = 10_000;
/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;

impl Allowed {
    /// No condition at all.
    pub(super) fn anything() -> Self {
        Self { set: Set::All, shortest: 0, longest: None, null: true }
    }

    /// The values of this set, of any length, and NULL.
    pub(super) fn only(set: Set) -> Self {
        Self { set, ..Self::anything() }
    }

    /// Values that fulfil both.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            set: self.set.and(&other.set),
            shortest: self.shortest.max(other.shortest),
            longest: [self.longest, other.longest].into_iter().flatten().min(),
            null: self.null && other.null,
        }
    }

    /// Values that fulfil one of the two; lengths must fulfil both.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            set: self.set.or(&other.set),
            shortest: self.shortest.max(other.shortest),
            longest: [self.longest, other.longest].into_iter().flatten().min(),
            null: self.null || other.null,
        }
    }

    /// Whether no value is left, not even NULL.
    pub(super) fn is_empty(&self) -> bool {
        let no_length = self.longest.is_some_and(|longest| longest < self.shortest);
        let none = match &self.set {
            Set::Units(stretches) => stretches.is_empty(),
            Set::Floats { low, high } => low > high,
            Set::Listed(values) => values.is_empty(),
            Set::NullOnly => !self.null,
            Set::All => false,
        };
        none || no_length
    }

    /// The kind with the greatest allowed length, if it is a text.
    pub(super) fn shortened(&self, kind: &Kind) -> Kind {
        match (kind, self.longest) {
            (Kind::Text | Kind::Varchar(_), Some(longest)) if longest < characters(kind) => {
                Kind::Varchar(Some(longest))
            }
            _ => kind.clone(),
        }
    }

    /// The set as a list of its values, if the values are few and not consecutive and pgrig knows
    /// their text.
    pub(super) fn listed(self, kind: &Kind) -> Self {
        let Set::Units(stretches) = &self.set else { return self };
        let text = |unit: i64| match kind {
            Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => Some(unit.to_string()),
            Kind::Enum { labels, .. } => labels.get(usize::try_from(unit).ok()?).cloned(),
            _ => None,
        };
        let is_few = self.count(kind).is_some_and(|count| count <= MOST_LISTED);
        let apart = stretches.len() > 1 || matches!(kind, Kind::Enum { .. });
        let units = stretches.iter().flat_map(|stretch| stretch.low..=stretch.high);
        let listed = (is_few && apart).then(|| units.map(text).collect::<Option<Vec<_>>>()).flatten();
        match listed {
            Some(values) if !values.is_empty() => Self { set: Set::Listed(values), ..self },
            _ => self,
        }
    }

    /// Number of different values; none if the set is unbounded.
    pub(super) fn count(&self, kind: &Kind) -> Option<u64> {
        match &self.set {
            Set::Listed(values) => Some(values.len() as u64),
            Set::Units(stretches) => {
                Some(stretches.iter().fold(0_u64, |sum, stretch| sum.saturating_add(stretch.count())))
            }
            Set::NullOnly => Some(1),
            Set::Floats { .. } => None,
            Set::All => match kind {
                Kind::Bool | Kind::Int2 | Kind::Enum { .. } => kind.units().map(Units::count),
                _ => None,
            },
        }
    }

    /// The stretch that its values are taken from in turn, if the type counts its values: the longest.
    pub(super) fn stretch(&self, kind: &Kind) -> Option<Units> {
        match &self.set {
            Set::Units(stretches) => stretches.iter().copied().max_by_key(|stretch| stretch.count()),
            _ => kind.units(),
        }
    }

    /// A stretch for random values of a type that counts its values. Where the conditions leave an
    /// end open, the stretch ends at a plausible value.
    pub(super) fn window(&self, kind: &Kind) -> Option<Units> {
        let whole = kind.units()?;
        let stretch = self.stretch(kind)?;
        let from_zero = Units { low: stretch.low.max(0), ..stretch };
        Some(narrowed(if stretch == whole { from_zero } else { stretch }, kind))
    }

    /// Random values that fulfil the conditions.
    pub(super) fn random(&self, kind: &Kind) -> Values {
        match &self.set {
            Set::NullOnly => Values::Null,
            Set::Listed(values) => equally(values.clone()),
            Set::Floats { low, high } => Values::Drawn(floats(*low, *high)),
            Set::Units(_) => self.of_stretch(kind),
            Set::All if self.shortest > 0 || self.longest.is_some() => {
                let low = self.shortest.max(1);
                let plausible = LONGEST.max(low.saturating_mul(2));
                let longest = self.longest.unwrap_or(u32::MAX).min(characters(kind)).min(plausible);
                let payload = if *kind == Kind::Bytea { Payload::Random } else { Payload::Text };
                Values::Payload { payload, low: low.min(longest), high: longest }
            }
            Set::All => Values::Any,
        }
    }

    fn of_stretch(&self, kind: &Kind) -> Values {
        match self.stretch(kind).map(|stretch| (narrowed(stretch, kind), kind)) {
            Some((stretch, Kind::Bool)) if stretch.low == stretch.high => {
                Values::Text(if stretch.low == 1 { "true" } else { "false" }.to_owned())
            }
            Some((Units { low, high }, _)) => Values::Between { low, high },
            None => Values::Any,
        }
    }
}

/// Characters that texts whose length is limited have at most, unless their least length is half of this or more: then
/// twice the least length.
const LONGEST: u32 = 40;

/// The most characters that a text type takes.
fn characters(kind: &Kind) -> u32 {
    match kind {
        Kind::Varchar(Some(length)) | Kind::Char(length) => *length,
        _ => u32::MAX,
    }
}

impl Set {
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, set) | (set, Self::All) => set.clone(),
            (Self::NullOnly, _) | (_, Self::NullOnly) => Self::NullOnly,
            (Self::Units(left), Self::Units(right)) => Self::Units(
                left.iter()
                    .flat_map(|a| {
                        right.iter().map(|b| Units { low: a.low.max(b.low), high: a.high.min(b.high) })
                    })
                    .filter(|both| both.low <= both.high)
                    .collect(),
            ),
            (Self::Floats { low: a, high: b }, Self::Floats { low, high }) => {
                Self::Floats { low: a.max(*low), high: b.min(*high) }
            }
            (Self::Listed(left), Self::Listed(right)) => {
                Self::Listed(left.iter().filter(|value| right.contains(value)).cloned().collect())
            }
            // A type's conditions are all of one form.
            (set, _) => set.clone(),
        }
    }

    fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::Units(left), Self::Units(right)) => {
                Self::Units(united(left.iter().chain(right).copied().collect()))
            }
            (Self::Floats { low: a, high: b }, Self::Floats { low, high }) => {
                Self::Floats { low: a.min(*low), high: b.max(*high) }
            }
            (Self::Listed(left), Self::Listed(right)) => {
                let more = right.iter().filter(|value| !left.contains(value));
                Self::Listed(left.iter().chain(more).cloned().collect())
            }
            // With NULL alone; a type's other conditions are all of one form.
            (Self::NullOnly, set) | (set, _) => set.clone(),
        }
    }
}

/// Stretches sorted, those that touch made one.
fn united(mut stretches: Vec<Units>) -> Vec<Units> {
    stretches.sort_by_key(|stretch| stretch.low);
    let mut apart: Vec<Units> = Vec::new();
    for next in stretches {
        match apart.last_mut() {
            Some(last) if next.low <= last.high.saturating_add(1) => last.high = last.high.max(next.high),
            _ => apart.push(next),
        }
    }
    apart
}

/// A stretch that is bounded on one side only, cut to a sensible length on the other.
fn narrowed(stretch: Units, kind: &Kind) -> Units {
    let Some(whole) = kind.units() else { return stretch };
    let spread = match kind {
        Kind::Date => SPREAD_DAYS,
        Kind::Timestamp | Kind::TimestampTz => SPREAD_DAYS * DAY,
        Kind::Time | Kind::TimeTz | Kind::Interval => DAY,
        _ => SPREAD,
    };
    match (stretch.low == whole.low, stretch.high == whole.high) {
        (false, true) => Units { high: stretch.high.min(stretch.low.saturating_add(spread)), ..stretch },
        (true, false) => Units { low: stretch.low.max(stretch.high.saturating_sub(spread)), ..stretch },
        _ => stretch,
    }
}

fn floats(low: f64, high: f64) -> Distribution {
    let spread = SPREAD as f64;
    match (low.is_finite(), high.is_finite()) {
        (true, false) => Distribution::Uniform { low, high: low + spread },
        (false, true) => Distribution::Uniform { low: high - spread, high },
        (false, false) => Distribution::Uniform { low: 0.0, high: spread },
        (true, true) => Distribution::Uniform { low, high },
    }
}

fn equally(values: Vec<String>) -> Values {
    Values::List(values.into_iter().map(|value| Weighted { value, weight: 1.0 }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(stretches: &[(i64, i64)]) -> Allowed {
        Allowed::only(Set::Units(stretches.iter().map(|&(low, high)| Units { low, high }).collect()))
    }

    #[test]
    fn stretches_meet_and_unite() {
        let both = units(&[(0, 10), (20, 30)]).and(&units(&[(5, 25)]));
        assert_eq!(both, units(&[(5, 10), (20, 25)]));
        assert_eq!(units(&[(11, 20)]).or(&units(&[(0, 10)])), units(&[(0, 20)]));
        assert_eq!(units(&[(12, 20)]).or(&units(&[(0, 10)])).count(&Kind::Int4), Some(20));
        assert!(units(&[(0, 1)]).and(&units(&[(2, 3)])).is_empty());
    }

    #[test]
    fn one_sided_bounds_stay_near_their_bound() {
        let positive = units(&[(1, i64::from(i32::MAX))]);
        assert_eq!(positive.random(&Kind::Int4), Values::Between { low: 1, high: 1 + SPREAD });
        assert_eq!(units(&[(3, 7)]).random(&Kind::Int4), Values::Between { low: 3, high: 7 });
    }

    #[test]
    fn lengths_are_spread() {
        let length = |shortest, longest| Allowed { shortest, longest, ..Allowed::anything() };
        for (allowed, low, high) in [
            (length(100, Some(150)), 100, 150),
            (length(100, Some(900)), 100, 200),
            (length(100, None), 100, 200),
            (length(5, Some(5)), 5, 5),
            (length(0, Some(300)), 1, 40),
        ] {
            let text = Values::Payload { payload: Payload::Text, low, high };
            assert_eq!(allowed.random(&Kind::Text), text);
            let bytes = Values::Payload { payload: Payload::Random, low, high };
            assert_eq!(allowed.random(&Kind::Bytea), bytes);
        }
    }

    #[test]
    fn null_alone_is_a_value() {
        let null = Allowed::only(Set::NullOnly);
        assert!(!null.is_empty());
        assert!(null.and(&Allowed { null: false, ..Allowed::anything() }).is_empty());
    }
}
