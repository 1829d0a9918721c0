//! Types whose values can be counted, and how many different values a type has.

use crate::{Kind, Precision};

/// The values of a type that can be counted: each stands for a whole number of units.
///
/// | type | unit |
/// |---|---|
/// | `smallint`, `int`, `bigint`, `oid` | 1 |
/// | `real`, `double precision` | 1 |
/// | `numeric(p,s)` | its last digit, or the last that 18 digits reach |
/// | `numeric` | a millionth |
/// | `money` | a cent |
/// | `text`, `varchar`, `char`, `name` | 1, as decimal digits |
/// | `date` | a day, from 2000-01-01 |
/// | `timestamp`, `timestamptz` | a microsecond, from 2000-01-01 00:00 (UTC) |
/// | `time`, `timetz`, `interval` | a microsecond |
/// | `pg_lsn` | a byte |
/// | `boolean` | 0 is false, 1 is true |
/// | enums | a label, from 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// The least value.
    pub low: i64,
    /// The greatest value, included.
    pub high: i64,
}

/// A day, in microseconds.
pub(crate) const DAY: i64 = 86_400_000_000;
/// 0001-01-01, in days from 2000-01-01.
const FIRST_DAY: i64 = -730_119;
/// The last day that `timestamp` has, 294276-12-31 (`END_TIMESTAMP` in `datatype/timestamp.h`).
const LAST_DAY: i64 = 106_751_982;

/// Decimal digits that every `i64` has room for.
const DIGITS: i16 = 18;
/// Decimals of `numeric` without a scale.
const FREE_DECIMALS: i16 = 6;

impl Units {
    /// Number of values.
    pub fn count(self) -> u64 {
        self.high.abs_diff(self.low).saturating_add(1)
    }

    /// Whether the value is one of these.
    pub fn contains(self, value: i64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl Kind {
    /// The type's values in units; none if they cannot be counted.
    pub fn units(&self) -> Option<Units> {
        let (low, high) = match self {
            Self::Bool => (0, 1),
            Self::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::Int8 | Self::Money | Self::Text | Self::Varchar(None) | Self::Name => (i64::MIN, i64::MAX),
            // As far as every integer has a value of its own.
            Self::Float4 => (-(1 << 24), 1 << 24),
            Self::Float8 => (-(1 << 53), 1 << 53),
            Self::Numeric(precision) => {
                let most = most_of(*precision);
                (-most, most)
            }
            Self::Varchar(Some(length)) | Self::Char(length) => digits(*length),
            Self::Date => (FIRST_DAY, LAST_DAY),
            Self::Timestamp | Self::TimestampTz => (FIRST_DAY * DAY, LAST_DAY * DAY + (DAY - 1)),
            Self::Time | Self::TimeTz => (0, DAY - 1),
            // Some releases read no more hours than an int holds.
            Self::Interval => (0, i64::from(i32::MAX) * (DAY / 24)),
            Self::Oid => (0, i64::from(u32::MAX)),
            Self::PgLsn => (0, i64::MAX),
            Self::Enum { labels, .. } if !labels.is_empty() => (0, i64::try_from(labels.len()).ok()? - 1),
            _ => return None,
        };
        Some(Units { low, high })
    }

    /// `-infinity` and `infinity` as units, for types that have them: the numbers by which the server stores them (`DATEVAL_NOEND`,
    /// `DT_NOEND`). They are no values that can be counted, and lie outside of [`units`](Self::units).
    pub fn infinities(&self) -> Option<[i64; 2]> {
        match self {
            Self::Date => Some([i64::from(i32::MIN), i64::from(i32::MAX)]),
            Self::Timestamp | Self::TimestampTz => Some([i64::MIN, i64::MAX]),
            _ => None,
        }
    }

    /// The values that can be given: those of [`units`](Self::units), and negative intervals, which no value begins or ends with.
    pub fn extent(&self) -> Option<Units> {
        let units = self.units()?;
        Some(if *self == Self::Interval { Units { low: -units.high, ..units } } else { units })
    }

    /// Whether the type has this value, infinite ones included.
    pub(crate) fn has(&self, units: i64) -> bool {
        self.extent().is_some_and(|all| all.contains(units))
            || self.infinities().is_some_and(|both| both.contains(&units))
    }

    /// The units of a value in the type's input syntax, as the server prints it with `DateStyle = ISO` in UTC; decimals
    /// below the unit are rounded. None if it has none, such as `NaN`.
    pub fn read_units(&self, text: &str) -> Option<i64> {
        let rounded = || {
            let (whole, fraction) = text.split_once('.')?;
            let kept = fraction.get(..usize::try_from(self.decimals()).ok()?)?;
            crate::spec::units(self, &format!("{whole}.{kept}"))
        };
        crate::spec::units(self, text).or_else(rounded)
    }

    /// A number of units as the type's input syntax has it.
    pub fn write_units(&self, units: i64) -> String {
        let mut text = Vec::new();
        crate::render::value(self, crate::value::Value::Units(units), &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Decimals of a numeric's or an amount's unit; 0 of other types.
    pub fn decimals(&self) -> i16 {
        match self {
            Self::Numeric(precision) => decimals(*precision),
            Self::Money => 2,
            _ => 0,
        }
    }
}

/// Decimals of a numeric's unit: all that it has if 18 digits hold them beside its integral digits,
/// of which at most 12 are kept room for.
pub(crate) fn decimals(precision: Option<Precision>) -> i16 {
    precision.map_or(FREE_DECIMALS, |Precision { precision, scale }| {
        let integral = (i32::from(precision) - i32::from(scale)).clamp(0, 12);
        let all_fit = i32::from(precision) <= i32::from(DIGITS);
        if all_fit { scale } else { scale.min(DIGITS - i16::try_from(integral).expect("at most 12")) }
    })
}

/// The greatest number of units in such a numeric.
fn most_of(precision: Option<Precision>) -> i64 {
    let digits = precision.map_or(i32::from(DIGITS), |known| {
        i32::from(known.precision) - i32::from(known.scale) + i32::from(decimals(precision))
    });
    10_i64.pow(u32::try_from(digits.clamp(0, i32::from(DIGITS))).expect("not negative")) - 1
}

/// Integers of at most so many characters.
fn digits(length: u32) -> (i64, i64) {
    let most = |digits: u32| 10_i64.checked_pow(digits).map_or(i64::MAX, |power| power - 1);
    // A minus sign takes one.
    (-most(length.saturating_sub(1)), most(length))
}
