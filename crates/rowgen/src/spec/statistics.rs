//! Specifications in terms of statistics.

use super::amount::{real, value};
use super::{Form, SpecError, syntax, weighted};
use crate::spread::{Buckets, Common, Described, Spread, Statistics};
use crate::{Kind, Unsuited, Values, Weighted};

/// `(distinct,correlation,common(value*share,…),histogram(bound,…))`.
pub(super) fn statistics(arguments: &[&str]) -> Result<Form, SpecError> {
    let (distinct, correlation) = counts(arguments)?;
    let common = list(arguments[2], "common")?.into_iter().map(weighted).collect::<Result<_, _>>()?;
    let bounds = list(arguments[3], "histogram")?.into_iter().map(syntax::unquoted).collect();
    Ok(Form::Statistics { distinct, correlation, common, bounds })
}

/// `(distinct,correlation,common(place*share,…)`, and the rest after it.
pub(super) fn spread(arguments: &[&str]) -> Result<Spread, SpecError> {
    let (distinct, correlation) = counts(arguments)?;
    let place = |argument: &str| {
        let Weighted { value, weight: share } = weighted(argument)?;
        Ok(Common { place: real(&value, "a place from 0 to 1")?, share })
    };
    let common = list(arguments[2], "common")?.into_iter().map(place).collect::<Result<_, SpecError>>()?;
    Ok(Spread { distinct, correlation, common, bounds: Vec::new(), weights: Vec::new() })
}

/// The same, and after it perhaps `histogram(place,…)` and `rows(number*fraction,…)`.
pub(super) fn keys(arguments: &[&str]) -> Result<Spread, SpecError> {
    let place = |text: &&str| real(text, "a place from 0 to 1");
    let rows = |argument: &str| {
        let Weighted { value, weight: fraction } = weighted(argument)?;
        Ok((real(&value, "a number of rows")?, fraction))
    };
    let (mut bounds, mut weights) = (Vec::new(), Vec::new());
    for argument in arguments.iter().skip(3) {
        match list(argument, "rows") {
            Ok(list) => weights = list.into_iter().map(rows).collect::<Result<_, SpecError>>()?,
            Err(_) => bounds = list(argument, "histogram")?.iter().map(place).collect::<Result<_, _>>()?,
        }
    }
    Ok(Spread { bounds, weights, ..spread(arguments)? })
}

/// A fraction of the rows.
pub(super) fn fraction(text: &str) -> Result<f64, SpecError> {
    let expected = "a fraction from 0 to 1";
    let wrong = || SpecError::Argument { argument: text.to_owned(), expected: expected.to_owned() };
    let fraction = real(text, expected)?;
    (0.0..=1.0).contains(&fraction).then_some(fraction).ok_or_else(wrong)
}

/// `(counts(number,…),listed(element*share,…)`, and the rest after it.
pub(super) fn elements(arguments: &[&str]) -> Result<(Vec<u32>, Vec<Weighted>), SpecError> {
    let wrong = |text: &str| SpecError::Argument {
        argument: text.to_owned(),
        expected: "a number of elements".to_owned(),
    };
    let counts =
        list(arguments[0], "counts")?.into_iter().map(|text| text.trim().parse().map_err(|_| wrong(text)));
    let listed = list(arguments[1], "listed")?.into_iter().map(weighted);
    Ok((counts.collect::<Result<_, _>>()?, listed.collect::<Result<_, _>>()?))
}

/// The number of different elements that are not listed, after the others' specification; 0 if it is left out.
pub(super) fn others(arguments: &[&str]) -> Result<f64, SpecError> {
    let expected = "a number of different elements, or below 0 a multiple of the rows";
    arguments.get(3).map_or(Ok(0.0), |text| real(text, expected))
}

fn counts(arguments: &[&str]) -> Result<(f64, f64), SpecError> {
    let distinct = real(arguments[0], "a number of different values, or -1 to 0: a fraction of the rows")?;
    Ok((distinct, real(arguments[1], "a correlation from -1 to 1")?))
}

/// The arguments of a part with this name.
pub(super) fn list<'a>(text: &'a str, name: &'static str) -> Result<Vec<&'a str>, SpecError> {
    let wrong = |reason: String| SpecError::Syntax { spec: text.to_owned(), reason };
    match syntax::call(text).map_err(|reason| wrong(reason.to_owned()))? {
        (found, arguments) if found.eq_ignore_ascii_case(name) => Ok(arguments),
        _ => Err(wrong(format!("write {name}(…) here; {name}() for none"))),
    }
}

/// The values for a type.
pub(super) fn values(
    kind: &Kind,
    distinct: f64,
    correlation: f64,
    common: &[Weighted],
    bounds: &[String],
) -> Result<Values, SpecError> {
    if kind.units().is_none() || kind.is_text() {
        let suited = "numbers, dates and times, boolean and enums; others take repeated(…)";
        return Err(Unsuited::Kind { values: "statistics", kind: kind.sql(), suited }.into());
    }
    let values = if matches!(kind, Kind::Float4 | Kind::Float8) {
        Described::Reals(buckets(common, bounds, |text| real(text, "a number"))?)
    } else {
        Described::Units(buckets(common, bounds, |text| value(kind, text))?)
    };
    Ok(Values::Statistics(Statistics { distinct, correlation, values }))
}

fn buckets<T: PartialOrd + Copy>(
    common: &[Weighted],
    bounds: &[String],
    read: impl Fn(&str) -> Result<T, SpecError>,
) -> Result<Buckets<T>, SpecError> {
    let mut common = common
        .iter()
        .map(|Weighted { value, weight }| Ok((read(value)?, *weight)))
        .collect::<Result<Vec<_>, SpecError>>()?;
    common.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    let bounds = bounds.iter().map(|bound| read(bound)).collect::<Result<_, _>>()?;
    Ok(Buckets { common, bounds })
}
