//! The values that the statistics of an original have of a column, and whether another type takes them.

use std::collections::BTreeMap;

use model::{Facts, Model, Statistics, Values};

/// Characters of texts that follow each other in the order of a column, at most, if the statistics have shorter ones: each text needs its place.
const ORDERED: u32 = 8;
/// Characters that a text has at least of which ANALYZE keeps no value: it has more than 1024 bytes, a character up to 4.
const LONG: u32 = 257;

/// The values of a column, as far as statistics tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    /// The least and the greatest value, if all are numbers.
    numbers: Option<[f64; 2]>,
    /// Characters of the longest value, without blanks at its end.
    pub(crate) longest: u32,
    /// The same of the values that a fill makes by the statistics; none if it does not make them so.
    made: Option<u32>,
}

/// Extents by table, `schema.name`, and column.
pub(crate) type Extents = BTreeMap<(String, String), Extent>;

impl Extent {
    /// Those of all columns. The model is that of the facts.
    pub(crate) fn of_all(facts: &Facts, model: &Model) -> Extents {
        let mut extents = Extents::new();
        for (table, made) in facts.tables.iter().zip(&model.tables) {
            for (column, made) in table.columns.iter().zip(&made.columns) {
                let extent = column.statistics.as_ref().and_then(|of| Self::of(of, &made.values));
                extents.extend(extent.map(|extent| ((table.name.clone(), column.name.clone()), extent)));
            }
        }
        extents
    }

    /// None if the statistics have no values.
    fn of(statistics: &Statistics, made: &Values) -> Option<Self> {
        let values = || statistics.common.iter().map(|(value, _)| value).chain(&statistics.bounds);
        let has_values = values().next().is_some();
        // ANALYZE leaves out values above 1 kB.
        let are_long = !has_values && statistics.n_distinct < 0.0 && matches!(made, Values::Letters { .. });
        let longest = values().map(characters).max().or(are_long.then_some(LONG))?;
        let numbers: Option<Vec<f64>> = values().map(|value| value.trim().parse().ok()).collect();
        let numbers = numbers.filter(|_| has_values);
        let ends = |numbers: Vec<f64>| {
            // NaN is in no order.
            let numbers = || numbers.iter().copied().filter(|number| !number.is_nan());
            [numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max)]
        };
        let made = match made {
            Values::Letters { lengths, .. } => lengths.iter().max().map(|most| ORDERED.max(*most)),
            Values::List { values, .. } => values.iter().map(|(value, _)| characters(value)).max(),
            Values::Statistics { common, bounds, .. } => {
                common.iter().map(|(value, _)| value).chain(bounds).map(characters).max()
            }
            _ => None,
        };
        // PostgreSQL's statistics have no long values. Of the mean width, a header takes up to 4 bytes, and a character up to 4.
        let mean = statistics.avg_width.saturating_sub(4) / 4;
        Some(Self { numbers: numbers.map(ends), longest: longest.max(mean), made })
    }
}

fn characters(value: impl AsRef<str>) -> u32 {
    u32::try_from(value.as_ref().trim_end_matches(' ').chars().count()).unwrap_or(u32::MAX)
}

/// The values that a type of numbers or texts takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Whole numbers of so many bytes.
    Whole(u32),
    /// Numbers with so many digits before and after the point; all without a limit.
    Decimal(Option<(i32, i32)>),
    /// Floating-point numbers.
    Real,
    /// Texts of so many characters; all without a limit.
    Text(Option<u32>),
}

impl Takes {
    /// Those of a built-in type, as format_type() prints it; none of other types.
    pub(crate) fn of(data_type: &str) -> Option<Self> {
        let (name, arguments) = match data_type.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')')?)),
            None => (data_type, None),
        };
        Some(match (name, arguments) {
            ("smallint", None) => Self::Whole(2),
            ("integer", None) => Self::Whole(4),
            ("bigint", None) => Self::Whole(8),
            ("real" | "double precision", None) => Self::Real,
            ("numeric", None) => Self::Decimal(None),
            ("numeric", Some(digits)) => {
                let (all, scale) = digits.split_once(',').unwrap_or((digits, "0"));
                let (all, scale): (i32, i32) = (all.trim().parse().ok()?, scale.trim().parse().ok()?);
                Self::Decimal(Some((all - scale, scale)))
            }
            ("text" | "character varying", None) => Self::Text(None),
            ("character varying" | "character", Some(most)) => Self::Text(Some(most.parse().ok()?)),
            _ => return None,
        })
    }

    /// Whether the type takes all values of another one, perhaps rounded.
    pub(crate) fn takes_all_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(others)) | (Self::Text(Some(own)), Self::Text(Some(others))) => {
                own >= others
            }
            (Self::Decimal(None), Self::Whole(_) | Self::Decimal(_)) | (Self::Text(None), Self::Text(_)) => {
                true
            }
            (Self::Decimal(Some((before, scale))), Self::Whole(bytes)) => {
                before >= longest(bytes) + i32::from(scale < 0)
            }
            // Rounded, 9.99 is 10.0.
            (Self::Decimal(Some((before, scale))), Self::Decimal(Some((others, of)))) => {
                before >= others + i32::from(scale < of)
            }
            (Self::Whole(bytes), Self::Decimal(Some((others, of)))) => {
                longest(bytes) > others + i32::from(of > 0)
            }
            _ => false,
        }
    }

    /// Whether the type takes the values of a column; none if that is not known.
    pub(crate) fn takes(self, extent: &Extent) -> Option<bool> {
        if let Self::Text(most) = self {
            return Some(most.is_none_or(|most| extent.longest <= most));
        }
        let [least, greatest] = extent.numbers?;
        Some(match self {
            Self::Whole(bytes) => {
                let end = 2_f64.powi(i32::try_from(bytes).ok()? * 8 - 1);
                least.round_ties_even() >= -end && greatest.round_ties_even() < end
            }
            Self::Decimal(Some((before, scale))) => {
                let most = least.abs().max(greatest.abs());
                (most * 10_f64.powi(scale)).round() < 10_f64.powi(before + scale)
            }
            Self::Decimal(None) | Self::Real | Self::Text(_) => true,
        })
    }

    /// Whether the type takes the values that a fill makes by the statistics of a column.
    pub(crate) fn takes_made(self, extent: &Extent) -> bool {
        let fits = |made: u32| match self {
            Self::Text(most) => most.is_none_or(|most| made <= most),
            _ => made <= extent.longest,
        };
        self.takes(extent) == Some(true) && extent.made.is_some_and(fits)
    }

    /// Whether both are numbers, or both texts.
    pub(crate) fn is_like(self, other: Self) -> bool {
        matches!(self, Self::Text(_)) == matches!(other, Self::Text(_))
    }
}

/// Digits of the longest whole number of so many bytes.
fn longest(bytes: u32) -> i32 {
    match bytes {
        2 => 5,
        4 => 10,
        _ => 19,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(data_type: &str) -> Takes {
        Takes::of(data_type).unwrap_or_else(|| panic!("{data_type}"))
    }

    fn extent(values: &[&str], made: &Values) -> Extent {
        let bounds = values.iter().map(|value| (*value).to_owned()).collect();
        Extent::of(&Statistics { bounds, ..Statistics::default() }, made).unwrap()
    }

    #[test]
    fn a_wider_type_takes_all_values() {
        for (old, new, wanted) in [
            ("integer", "bigint", true),
            ("bigint", "integer", false),
            ("numeric(12,2)", "numeric(14,2)", true),
            ("numeric(12,2)", "numeric(12,4)", false),
            ("numeric(12,2)", "numeric(10,0)", false),
            ("numeric(12,2)", "numeric(11,0)", true),
            ("integer", "numeric(12,2)", true),
            ("integer", "numeric(11,2)", false),
            ("numeric", "numeric(30,2)", false),
            ("numeric(9)", "integer", true),
            ("numeric(9,2)", "integer", true),
            ("numeric(11,1)", "integer", false),
            ("character varying(10)", "character varying(20)", true),
            ("character varying(10)", "text", true),
            ("text", "character varying(20)", false),
            ("text", "integer", false),
        ] {
            assert_eq!(takes(new).takes_all_of(takes(old)), wanted, "{old} {new}");
        }
        for other in ["integer[]", "numeric(12,2)[]", "shop.price", "timestamp(3) without time zone", "money"]
        {
            assert_eq!(Takes::of(other), None, "{other}");
        }
    }

    #[test]
    fn values_of_the_statistics_fit_or_do_not() {
        let list = |values: &[&str]| Values::List {
            correlation: 0.0,
            values: values.iter().map(|value| ((*value).to_owned(), 0.1)).collect(),
            kept: true,
        };
        let numbers = extent(&["-3", "70000", "NaN"], &list(&["5"]));
        for (data_type, wanted) in [
            ("smallint", false),
            ("integer", true),
            ("numeric(5,0)", true),
            ("numeric(6,2)", false),
            ("numeric", true),
            ("character varying(5)", true),
            ("character varying(4)", false),
        ] {
            assert_eq!(takes(data_type).takes(&numbers), Some(wanted), "{data_type}");
        }
        let texts = extent(&["a", "abcdef  "], &list(&["xyz"]));
        assert_eq!(texts.longest, 6);
        assert_eq!(takes("integer").takes(&texts), None);
        assert!(takes("character varying(6)").takes_made(&texts));
        assert!(!takes("character varying(5)").takes_made(&texts));
        let letters = Values::Letters {
            distinct: -1.0,
            correlation: 0.0,
            common: Vec::new(),
            alphabet: "lower".to_owned(),
            lengths: vec![1, 12],
        };
        let made = extent(&["a", "abcdef"], &letters);
        assert!(takes("character varying(12)").takes_made(&made));
        assert!(!takes("character varying(11)").takes_made(&made));
        let filled = extent(&["1"], &Values::Fill { why: "a key".to_owned() });
        assert!(!takes("smallint").takes_made(&filled));
    }
}
