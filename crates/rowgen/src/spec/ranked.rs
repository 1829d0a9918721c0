//! Specifications of ranks that follow from other columns.

use super::amount::real;
use super::{SpecError, list, syntax};
use crate::levels::Level;
use crate::ranking::{Correlated, Joint, Line, Link, Ranking};

const CORRELATION: &str = "a correlation from -1 to 1";

/// `by(column,correlation,nulls,links(link,…))`.
pub(super) fn by(text: &str) -> Result<Ranking, SpecError> {
    let arguments = list(text, "by")?;
    let wrong = || SpecError::Argument {
        argument: text.to_owned(),
        expected: "by(column,correlation,nulls,links(link,…))".to_owned(),
    };
    if arguments.len() == 4 { ranking(&arguments) } else { Err(wrong()) }
}

/// `(column,correlation,nulls,links(link,…)`, and the rest after it.
pub(super) fn ranking(arguments: &[&str]) -> Result<Ranking, SpecError> {
    let links = list(arguments[3], "links")?.into_iter().map(link).collect::<Result<_, _>>()?;
    let Correlated { correlation, levels } = if is_correlated(arguments[1]) {
        correlated(arguments[1])?
    } else {
        Correlated { correlation: real(arguments[1], CORRELATION)?, levels: Vec::new() }
    };
    Ok(Ranking {
        first: syntax::unquoted(arguments[0]),
        correlation,
        levels,
        nulls: real(arguments[2], "a fraction from 0 to 1")?,
        links,
    })
}

fn is_correlated(text: &str) -> bool {
    syntax::call(text).is_ok_and(|(name, _)| name.eq_ignore_ascii_case("rows"))
}

/// `rows(correlation,share*values,…)`.
fn correlated(text: &str) -> Result<Correlated, SpecError> {
    let arguments = list(text, "rows")?;
    let Some((correlation, levels)) = arguments.split_first() else {
        let expected = "rows(correlation,share*values,…)".to_owned();
        return Err(SpecError::Argument { argument: text.to_owned(), expected });
    };
    let levels = levels.iter().map(|text| level(text)).collect::<Result<_, _>>()?;
    Ok(Correlated { correlation: real(correlation, CORRELATION)?, levels })
}

/// `share*values`.
fn level(text: &str) -> Result<Level, SpecError> {
    let (share, values) = text.split_once('*').ok_or_else(|| SpecError::Argument {
        argument: text.to_owned(),
        expected: "a share of the rows with its number of values, such as 0.12*3".to_owned(),
    })?;
    Ok(Level { share: real(share, "a share from 0 to 1")?, values: real(values, "a number of values")? })
}

fn link(text: &str) -> Result<Link, SpecError> {
    let wrong = |reason: &str| SpecError::Syntax { spec: text.to_owned(), reason: reason.to_owned() };
    let fraction = |text: &str| real(text, "a fraction from 0 to 1");
    let plain = |nulls: &str| Ok::<_, SpecError>(Line { nulls: fraction(nulls)?, cuts: Vec::new() });
    let (kind, mut arguments) = syntax::call(text).map_err(wrong)?;
    let last = arguments.pop_if(|last| is_correlated(last));
    let correlated = last.map(correlated).transpose()?;
    let (joint, name, other, own) = match (kind, arguments) {
        ("cells", arguments) if arguments.len() == 4 => {
            let cells = list(arguments[3], "pairs")?.into_iter().map(cell).collect::<Result<_, _>>()?;
            (Joint::Cells(cells), arguments[0], line(arguments[1])?, line(arguments[2])?)
        }
        ("normal", arguments) if arguments.len() == 4 => {
            let correlation = real(arguments[1], CORRELATION)?;
            (Joint::Normal { correlation }, arguments[0], plain(arguments[2])?, plain(arguments[3])?)
        }
        ("stretches", arguments) if arguments.len() == 6 => {
            let count = arguments[1].parse().map_err(|_| wrong("the number of stretches is 1 to 1000"))?;
            let joint =
                Joint::Stretches { count, window: fraction(arguments[2])?, share: fraction(arguments[3])? };
            (joint, arguments[0], plain(arguments[4])?, plain(arguments[5])?)
        }
        _ => {
            let forms = "write cells(column,line(…),line(…),pairs(…)), normal(column,correlation,nulls,nulls) or \
                         stretches(column,count,window,share,nulls,nulls); rows(…) may follow as the last argument";
            return Err(wrong(forms));
        }
    };
    Ok(Link { name: syntax::unquoted(name), joint, other, own, correlated })
}

/// `line(nulls,cut,…)`.
fn line(text: &str) -> Result<Line, SpecError> {
    let numbers = list(text, "line")?;
    let mut numbers = numbers.into_iter().map(|number| real(number, "a place from 0 to 1"));
    let nulls = numbers.next().unwrap_or(Ok(0.0))?;
    Ok(Line { nulls, cuts: numbers.collect::<Result<_, _>>()? })
}

/// `stratum:stratum*share`.
fn cell(text: &str) -> Result<(u16, u16, f64), SpecError> {
    let wrong = || SpecError::Argument {
        argument: text.to_owned(),
        expected: "a pair of strata with its share, such as 0:3*0.12".to_owned(),
    };
    let (pair, share) = text.split_once('*').ok_or_else(wrong)?;
    let (other, own) = pair.split_once(':').ok_or_else(wrong)?;
    let stratum = |text: &str| text.trim().parse().map_err(|_| wrong());
    Ok((stratum(other)?, stratum(own)?, real(share, "a share from 0 to 1")?))
}
