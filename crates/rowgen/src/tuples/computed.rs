//! Values of generated columns.

use super::attribute::write_numeric;
use super::literal;
use super::longest::payloads;
use crate::formula::{Class, Formula, Function, Operator, Scalar};
use crate::generate::{Generator, Reader};
use crate::units::decimals;
use crate::value::Value;
use crate::{Kind, Table};

/// Decimal digits of any number that is computed here, with its sign and point.
const NUMBER: u32 = 42;
/// Payload of a numeric of so many digits.
const NUMERIC: u32 = 4 + 2 * 12;

/// A generated column, with the generators of the columns that it needs.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    formula: Formula,
    kind: Kind,
    inputs: Vec<Option<Generator>>,
    /// Length of the longest payload, bytes.
    pub(super) longest: u32,
}

/// A column being computed.
pub(super) struct Computing<'a> {
    computed: &'a Computed,
    inputs: Vec<Option<Reader<'a>>>,
    /// The row computed last, and its value.
    last: Option<(u64, Option<Scalar>)>,
}

impl Computed {
    /// The values of a formula that suits the kind.
    pub(super) fn new(table: &Table, kind: &Kind, formula: &Formula) -> Self {
        let needed = formula.inputs();
        let input = |(position, column)| needed.contains(&position).then(|| Generator::new(table, column));
        let longest = match (kind.fixed_width(), kind) {
            (Some((length, _)), _) => length,
            (None, Kind::Numeric(_)) => NUMERIC,
            _ => longest(formula, table),
        };
        let inputs = table.columns.iter().enumerate().map(input).collect();
        Self { formula: formula.clone(), kind: kind.clone(), inputs, longest }
    }
}

/// Bytes of a formula's text.
fn longest(formula: &Formula, table: &Table) -> u32 {
    match formula {
        Formula::Null => 0,
        Formula::Column(position) => {
            let column = &table.columns[*position];
            if column.kind.is_text() { payloads(&column.kind, &column.values).1 } else { NUMBER }
        }
        Formula::Constant(Scalar::Text(text)) => u32::try_from(text.len()).unwrap_or(u32::MAX),
        Formula::Constant(_) => NUMBER,
        Formula::Operation { left, right, .. } => longest(left, table).saturating_add(longest(right, table)),
        Formula::Call { argument: value, .. } | Formula::Cast { value, .. } => {
            longest(value, table).max(NUMBER)
        }
        Formula::Coalesce(values) => values.iter().map(|value| longest(value, table)).max().unwrap_or(0),
    }
}

impl<'a> From<&'a Computed> for Computing<'a> {
    fn from(computed: &'a Computed) -> Self {
        let inputs = computed.inputs.iter().map(|input| input.as_ref().map(Reader::new)).collect();
        Self { computed, inputs, last: None }
    }
}

impl Computing<'_> {
    pub(super) fn is_null(&mut self, row: u64) -> bool {
        self.value(row).is_none()
    }

    /// Appends the payload of a value that is not NULL.
    pub(super) fn write(&mut self, row: u64, out: &mut Vec<u8>) {
        let kind = &self.computed.kind;
        if let Some(value) = self.value(row) {
            write(kind, value, out);
        }
    }

    fn value(&mut self, row: u64) -> Option<&Scalar> {
        let Self { computed, inputs, last } = self;
        if last.as_ref().is_none_or(|(known, _)| *known != row) {
            *last = Some((row, evaluate(&computed.formula, inputs, row)));
        }
        last.as_ref().and_then(|(_, value)| value.as_ref())
    }
}

/// The value of a formula; none for NULL. None also for numbers that are too great to be computed
/// here: the check by the server finds such rows.
fn evaluate(formula: &Formula, inputs: &mut [Option<Reader<'_>>], row: u64) -> Option<Scalar> {
    match formula {
        Formula::Null => None,
        Formula::Column(position) => inputs[*position].as_mut().and_then(|reader| input(reader, row)),
        Formula::Constant(value) => Some(value.clone()),
        Formula::Operation { operator, left, right } => {
            operation(*operator, evaluate(left, inputs, row)?, evaluate(right, inputs, row)?)
        }
        Formula::Call { function, argument } => {
            let Scalar::Text(mut text) = evaluate(argument, inputs, row)? else { return None };
            match function {
                Function::Lower => text.make_ascii_lowercase(),
                Function::Upper => text.make_ascii_uppercase(),
                Function::Length => return Some(Scalar::Integer(i128::try_from(text.chars().count()).ok()?)),
            }
            Some(Scalar::Text(text))
        }
        Formula::Coalesce(values) => values.iter().find_map(|value| evaluate(value, inputs, row)),
        Formula::Cast { to, value } => Some(cast(*to, evaluate(value, inputs, row)?)),
    }
}

fn input(reader: &mut Reader<'_>, row: u64) -> Option<Scalar> {
    let kind = reader.kind();
    let text = match reader.value(row) {
        Value::Units(units) => return Some(of_units(kind, units)),
        Value::Plain(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::Text(text) => text,
        value @ (Value::Json(_) | Value::Elements(_)) => {
            let mut text = Vec::new();
            crate::render::value(kind, value, &mut text);
            return String::from_utf8(text).ok().map(Scalar::Text);
        }
        _ => return None,
    };
    match kind {
        Kind::Numeric(precision) => {
            let (number, places) = literal::decimal(text)?;
            let value = Scalar::Decimal { number: number.into(), scale: u16::try_from(places).ok()? };
            match precision {
                Some(known) => rescaled(&value, known.scale),
                None => Some(value),
            }
        }
        Kind::Int2 | Kind::Int4 | Kind::Int8 => text.parse().ok().map(Scalar::Integer),
        _ => Some(Scalar::Text(text.to_owned())),
    }
}

fn of_units(kind: &Kind, units: i64) -> Scalar {
    match kind {
        Kind::Numeric(None) => {
            let (number, places) = crate::numeric::trimmed(units, decimals(None));
            Scalar::Decimal { number: number.into(), scale: places.max(0).cast_unsigned() }
        }
        Kind::Numeric(Some(precision)) => {
            // Units may have fewer decimals than the type, where an `i64` has no room for all.
            let missing = precision.scale - decimals(Some(*precision));
            let number = i128::from(units) * 10_i128.pow(u32::from(missing.max(0).cast_unsigned()));
            Scalar::Decimal { number, scale: precision.scale.max(0).cast_unsigned() }
        }
        kind if kind.is_text() => Scalar::Text(units.to_string()),
        _ => Scalar::Integer(units.into()),
    }
}

fn operation(operator: Operator, left: Scalar, right: Scalar) -> Option<Scalar> {
    match (left, right) {
        (Scalar::Integer(left), Scalar::Integer(right)) => {
            let number = match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                Operator::Multiply => left.checked_mul(right),
                Operator::Divide => left.checked_div(right),
                Operator::Remainder => left.checked_rem(right),
                Operator::Concatenate => None,
            };
            number.and_then(bounded).map(Scalar::Integer)
        }
        (
            Scalar::Decimal { number: left, scale: left_scale },
            Scalar::Decimal { number: right, scale: right_scale },
        ) => {
            let scale = left_scale.max(right_scale);
            let aligned = |number: i128, from: u16| number.checked_mul(power(scale - from)?);
            match operator {
                Operator::Add => aligned(left, left_scale)?.checked_add(aligned(right, right_scale)?),
                Operator::Subtract => aligned(left, left_scale)?.checked_sub(aligned(right, right_scale)?),
                Operator::Multiply => {
                    let number = left.checked_mul(right).and_then(bounded)?;
                    return Some(Scalar::Decimal { number, scale: left_scale + right_scale });
                }
                _ => None,
            }
            .and_then(bounded)
            .map(|number| Scalar::Decimal { number, scale })
        }
        (Scalar::Text(left), Scalar::Text(right)) if operator == Operator::Concatenate => {
            Some(Scalar::Text(left + &right))
        }
        _ => None,
    }
}

/// The number, if it has few enough digits for [`write_numeric`].
fn bounded(number: i128) -> Option<i128> {
    const MOST: u128 = 10_u128.pow(34);
    Some(number).filter(|number| number.unsigned_abs() < MOST)
}

fn power(decimals: u16) -> Option<i128> {
    10_i128.checked_pow(decimals.into())
}

fn cast(to: Class, value: Scalar) -> Scalar {
    match (to, value) {
        (Class::Integer, Scalar::Decimal { number, scale }) => Scalar::Integer(rounded(number, scale)),
        (Class::Decimal, Scalar::Integer(number)) => Scalar::Decimal { number, scale: 0 },
        (Class::Text, Scalar::Integer(number)) => Scalar::Text(number.to_string()),
        (Class::Text, Scalar::Decimal { number, scale }) => Scalar::Text(shown(number, scale)),
        (_, value) => value,
    }
}

/// The number with so many decimals removed, rounded half away from zero.
fn rounded(number: i128, decimals: u16) -> i128 {
    let Some(power) = power(decimals) else { return 0 };
    let (whole, rest) = (number / power, number % power);
    if rest.abs() >= power - rest.abs() { whole + number.signum() } else { whole }
}

/// With exactly so many decimals.
fn rescaled(value: &Scalar, decimals: i16) -> Option<Scalar> {
    let (number, scale) = match *value {
        Scalar::Integer(number) => (number, 0),
        Scalar::Decimal { number, scale } => (number, scale),
        Scalar::Text(_) => return None,
    };
    let wanted = u16::try_from(decimals).ok()?;
    let number = if wanted >= scale {
        number.checked_mul(power(wanted - scale)?)?
    } else {
        rounded(number, scale - wanted)
    };
    Some(Scalar::Decimal { number: bounded(number)?, scale: wanted })
}

fn shown(number: i128, scale: u16) -> String {
    let digits = format!("{:0width$}", number.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    let (sign, point) = (if number < 0 { "-" } else { "" }, if scale > 0 { "." } else { "" });
    format!("{sign}{whole}{point}{fraction}")
}

/// Appends a value as the column stores it: an assignment casts it.
fn write(kind: &Kind, value: &Scalar, out: &mut Vec<u8>) {
    match (kind, value) {
        (Kind::Numeric(precision), value) => {
            let scale = match (precision, value) {
                (Some(known), _) => known.scale,
                (None, Scalar::Decimal { scale, .. }) => i16::try_from(*scale).unwrap_or(i16::MAX),
                (None, _) => 0,
            };
            let number = match rescaled(value, scale) {
                Some(Scalar::Decimal { number, .. }) => number,
                // Too great: the server finds that it is wrong.
                _ => 0,
            };
            write_numeric(number, scale, scale, out);
        }
        (kind, value) if kind.is_text() => {
            if let Scalar::Text(text) = cast(Class::Text, value.clone()) {
                out.extend_from_slice(text.as_bytes());
            }
        }
        (kind, value) => {
            let (length, _) = kind.fixed_width().expect("an integer");
            let Scalar::Integer(number) = cast(Class::Integer, value.clone()) else { return };
            out.extend_from_slice(&number.to_le_bytes()[..length as usize]);
        }
    }
}
