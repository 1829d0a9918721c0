//! Evaluates expressions (`evaluateExpr` and its callees in `pgbench.c`).

use std::f64::consts::PI;

use thiserror::Error;

use crate::expression::{Expression, Function, MOST_ARGUMENTS, Node, Operator};
use crate::run::Client;
use crate::value::Value;
use crate::{hash, number};

/// Why an expression has no value. The messages are pgbench's.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EvaluationError {
    /// The variable is not defined.
    #[error("undefined variable \"{0}\"")]
    Undefined(String),
    /// A variable's text is not a value.
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    Malformed {
        /// Name of the variable.
        name: String,
        /// Text of the variable.
        text: String,
    },
    /// A variable's text is an integer of more than 64 bits.
    #[error("value \"{0}\" is out of range for type bigint")]
    OutOfRange(String),
    /// A value of a type that cannot stand here.
    #[error("cannot coerce {from} to {to}")]
    Coercion {
        /// The type it has.
        from: &'static str,
        /// The type needed.
        to: &'static str,
    },
    /// A double that is too large for an integer of 64 bits.
    #[error("double to int overflow for {}", number::fixed(*.0))]
    DoubleToInteger(f64),
    /// The result of add, sub, mul or div has more than 64 bits.
    #[error("bigint {0} out of range")]
    Overflow(&'static str),
    /// Division by zero, by `/` or `%` of integers.
    #[error("division by zero")]
    DivisionByZero,
    /// The upper bound of a range is below the lower one.
    #[error("empty range given to random")]
    EmptyRange,
    /// The range has more numbers than 63 bits can count.
    #[error("random range is too large")]
    RangeTooLarge,
    /// The parameter of a gaussian distribution is not finite or below 2.
    #[error("gaussian parameter must be at least 2.000000 (not {})", number::fixed(*.0))]
    GaussianParameter(f64),
    /// The parameter of a zipfian distribution is not between 1.001 and 1000.
    #[error("zipfian parameter must be in range [1.001, 1000] (not {})", number::fixed(*.0))]
    ZipfianParameter(f64),
    /// The parameter of an exponential distribution is not above 0.
    #[error("exponential parameter must be greater than zero (not {})", number::fixed(*.0))]
    ExponentialParameter(f64),
    /// The size of a permutation is not above 0.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
}

use EvaluationError as Error;

type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn malformed(name: &str, text: &str) -> Self {
        if !text.is_empty() && number::is_integer(text) {
            Self::OutOfRange(text.to_owned())
        } else {
            Self::Malformed { name: name.to_owned(), text: text.to_owned() }
        }
    }
}

impl Client {
    /// The value of an expression, computed with this client's variables and random numbers.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Value> {
        self.node(&expression.0)
    }

    fn node(&mut self, node: &Node) -> Result<Value> {
        match node {
            Node::Constant(value) => Ok(*value),
            Node::Variable(slot) => self.variables.value(*slot),
            Node::Binary(operator, operands) => {
                let (left, right) = (self.node(&operands[0])?, self.node(&operands[1])?);
                binary(*operator, left, right)
            }
            Node::Not(operand) => match self.node(operand)? {
                Value::Null => Ok(Value::Null),
                value => Ok(Value::Boolean(!boolean(value)?)),
            },
            // null is the result of whatever is asked first, not SQL's three-valued logic.
            Node::And(operands) => match self.condition(&operands[0])? {
                Some(true) => Ok(self.condition(&operands[1])?.map_or(Value::Null, Value::Boolean)),
                decided => Ok(decided.map_or(Value::Null, Value::Boolean)),
            },
            Node::Or(operands) => match self.condition(&operands[0])? {
                Some(false) => Ok(self.condition(&operands[1])?.map_or(Value::Null, Value::Boolean)),
                decided => Ok(decided.map_or(Value::Null, Value::Boolean)),
            },
            Node::Is(operand, expected) => Ok(Value::Boolean(self.node(operand)? == *expected)),
            Node::Case(branches, otherwise) => {
                for [condition, result] in branches {
                    if self.node(condition)?.is_true() {
                        return self.node(result);
                    }
                }
                self.node(otherwise)
            }
            Node::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    /// The value of an operand of `AND` or `OR`; none if it is null.
    fn condition(&mut self, node: &Node) -> Result<Option<bool>> {
        match self.node(node)? {
            Value::Null => Ok(None),
            value => boolean(value).map(Some),
        }
    }

    fn call(&mut self, function: Function, nodes: &[Node]) -> Result<Value> {
        let mut values = [Value::Null; MOST_ARGUMENTS];
        let values = &mut values[..nodes.len()];
        for (value, node) in values.iter_mut().zip(nodes) {
            *value = self.node(node)?;
        }
        if function == Function::Debug {
            self.debugged.push(values[0]);
            return Ok(values[0]);
        }
        if values.contains(&Value::Null) {
            return Ok(Value::Null);
        }
        match function {
            Function::Random
            | Function::RandomExponential
            | Function::RandomGaussian
            | Function::RandomZipfian => self.random(function, values).map(Value::Integer),
            _ => pure(function, values),
        }
    }

    fn random(&mut self, function: Function, values: &[Value]) -> Result<i64> {
        let (min, max) = (integer(values[0])?, integer(values[1])?);
        if min > max {
            return Err(Error::EmptyRange);
        }
        max.checked_sub(min).and_then(|more| more.checked_add(1)).ok_or(Error::RangeTooLarge)?;
        if function == Function::Random {
            return Ok(self.random.uniform(min, max));
        }
        // A parameter that is not a number is refused; pgbench does not check it.
        let parameter = double(values[2])?;
        match function {
            Function::RandomGaussian if !(2.0..f64::INFINITY).contains(&parameter) => {
                Err(Error::GaussianParameter(parameter))
            }
            Function::RandomGaussian => Ok(self.random.gaussian(min, max, parameter)),
            Function::RandomZipfian if !(1.001..=1000.0).contains(&parameter) => {
                Err(Error::ZipfianParameter(parameter))
            }
            Function::RandomZipfian => Ok(self.random.zipfian(min, max, parameter)),
            _ if parameter.is_nan() || parameter <= 0.0 => Err(Error::ExponentialParameter(parameter)),
            _ => Ok(self.random.exponential(min, max, parameter)),
        }
    }
}

fn binary(operator: Operator, left: Value, right: Value) -> Result<Value> {
    use Operator::{BitAnd, BitOr, BitXor, Modulo, ShiftLeft, ShiftRight};
    let integers_only = matches!(operator, Modulo | BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight);
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Double(_), _) | (_, Value::Double(_)) if !integers_only => {
            Ok(of_doubles(operator, double(left)?, double(right)?))
        }
        _ => of_integers(operator, integer(left)?, integer(right)?),
    }
}

#[expect(clippy::float_cmp, reason = "scripts ask for exact equality")]
fn of_doubles(operator: Operator, left: f64, right: f64) -> Value {
    match operator {
        Operator::Add => Value::Double(left + right),
        Operator::Subtract => Value::Double(left - right),
        Operator::Multiply => Value::Double(left * right),
        Operator::Divide => Value::Double(left / right),
        Operator::Equal => Value::Boolean(left == right),
        Operator::Unequal => Value::Boolean(left != right),
        Operator::Less => Value::Boolean(left < right),
        Operator::LessOrEqual => Value::Boolean(left <= right),
        _ => unreachable!("of integers only"),
    }
}

fn of_integers(operator: Operator, left: i64, right: i64) -> Result<Value> {
    let checked = |result: Option<i64>, name| result.ok_or(Error::Overflow(name));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shifts take the low six bits, as the processor does where C leaves it open"
    )]
    let distance = right as u32;
    let result = match operator {
        Operator::Add => checked(left.checked_add(right), "add")?,
        Operator::Subtract => checked(left.checked_sub(right), "sub")?,
        Operator::Multiply => checked(left.checked_mul(right), "mul")?,
        Operator::Divide | Operator::Modulo if right == 0 => return Err(Error::DivisionByZero),
        Operator::Divide => checked(left.checked_div(right), "div")?,
        Operator::Modulo => left.wrapping_rem(right),
        Operator::BitAnd => left & right,
        Operator::BitOr => left | right,
        Operator::BitXor => left ^ right,
        Operator::ShiftLeft => left.wrapping_shl(distance),
        Operator::ShiftRight => left.wrapping_shr(distance),
        Operator::Equal => return Ok(Value::Boolean(left == right)),
        Operator::Unequal => return Ok(Value::Boolean(left != right)),
        Operator::Less => return Ok(Value::Boolean(left < right)),
        Operator::LessOrEqual => return Ok(Value::Boolean(left <= right)),
    };
    Ok(Value::Integer(result))
}

/// The value of a function that depends only on its arguments, none of which is null.
fn pure(function: Function, values: &[Value]) -> Result<Value> {
    let first = values.first().copied().unwrap_or(Value::Null);
    Ok(match function {
        Function::Abs => match first {
            Value::Integer(value) => Value::Integer(value.wrapping_abs()),
            value => Value::Double(double(value)?.abs()),
        },
        Function::Double => Value::Double(double(first)?),
        Function::Exp => Value::Double(double(first)?.exp()),
        Function::Ln => Value::Double(double(first)?.ln()),
        Function::Sqrt => Value::Double(double(first)?.sqrt()),
        Function::Pi => Value::Double(PI),
        Function::Power => Value::Double(double(first)?.powf(double(values[1])?)),
        Function::Int => Value::Integer(integer(first)?),
        Function::Modulo => of_integers(Operator::Modulo, integer(first)?, integer(values[1])?)?,
        Function::Least => extreme(values, |a, b| a < b, |a, b| a < b)?,
        Function::Greatest => extreme(values, |a, b| a > b, |a, b| a > b)?,
        Function::HashFnv1a => Value::Integer(hash::fnv1a(integer(first)?, integer(values[1])?)),
        Function::HashMurmur2 => Value::Integer(hash::murmur2(integer(first)?, integer(values[1])?)),
        Function::Permute => {
            let (value, size, seed) = (integer(first)?, integer(values[1])?, integer(values[2])?);
            if size <= 0 {
                return Err(Error::PermuteSize);
            }
            Value::Integer(hash::permute(value, size, seed))
        }
        Function::Debug
        | Function::Random
        | Function::RandomExponential
        | Function::RandomGaussian
        | Function::RandomZipfian => unreachable!("depends on more than its arguments"),
    })
}

/// The value that wins over all others; of doubles if one of them is a double.
fn extreme(
    values: &[Value],
    of_doubles: fn(f64, f64) -> bool,
    of_integers: fn(i64, i64) -> bool,
) -> Result<Value> {
    if values.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut best = double(values[0])?;
        for value in &values[1..] {
            let value = double(*value)?;
            // This way round, because neither wins where one is no number.
            best = if of_doubles(best, value) { best } else { value };
        }
        Ok(Value::Double(best))
    } else {
        let mut best = integer(values[0])?;
        for value in &values[1..] {
            let value = integer(*value)?;
            best = if of_integers(best, value) { best } else { value };
        }
        Ok(Value::Integer(best))
    }
}

fn coercion(from: Value, to: &'static str) -> Error {
    Error::Coercion { from: from.type_name(), to }
}

fn boolean(value: Value) -> Result<bool> {
    match value {
        Value::Boolean(value) => Ok(value),
        value => Err(coercion(value, "boolean")),
    }
}

fn integer(value: Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(value),
        Value::Double(value) => {
            let rounded = value.round_ties_even();
            // From -2^63 up to but not 2^63.
            let limit = i64::MIN as f64;
            if !(limit..-limit).contains(&rounded) {
                return Err(Error::DoubleToInteger(rounded));
            }
            #[expect(clippy::cast_possible_truncation, reason = "compared with the limits above")]
            Ok(rounded as i64)
        }
        value => Err(coercion(value, "int")),
    }
}

fn double(value: Value) -> Result<f64> {
    match value {
        Value::Double(value) => Ok(value),
        Value::Integer(value) => Ok(value as f64),
        value => Err(coercion(value, "double")),
    }
}
