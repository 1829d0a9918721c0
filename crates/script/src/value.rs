//! Values of expressions and variables.

use std::fmt::{self, Display, Formatter};

use crate::number;

/// A value of one of the language's four types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// An integer of 64 bits; an overflow is an error.
    Integer(i64),
    /// A floating-point number: `double` of C.
    Double(f64),
}

impl Value {
    /// The type's name in pgbench's messages.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Its truth value for `\if` and `CASE WHEN`: numbers other than zero are true, null is false.
    pub(crate) fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => value,
            Self::Integer(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// Type and value, as pgbench's `debug()` prints them: `int 5`, `null`.
    pub fn described(self) -> impl Display {
        std::fmt::from_fn(move |f| match self {
            Self::Null => f.write_str("null"),
            value => write!(f, "{} {value}", value.type_name()),
        })
    }

    /// Appends the text that stands for a variable with this value in SQL.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Self::Integer(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            Self::Double(value) => out.extend_from_slice(number::general(value).as_bytes()),
        }
    }

    /// The value of a variable's text, read as pgbench's `makeVariableValue` does; none if the text
    /// is not a value.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let begins =
            |word: &str| word.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if text.is_empty() {
            None
        } else if is("null") {
            Some(Self::Null)
        } else if begins("true") || begins("yes") || is("on") {
            Some(Self::Boolean(true))
        } else if begins("false") || begins("no") || is("off") || is("of") {
            Some(Self::Boolean(false))
        } else if number::is_integer(text) {
            number::integer(text).map(Self::Integer)
        } else {
            number::double(text).map(Self::Double)
        }
    }
}

/// The text that stands for a variable with this value in SQL.
impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => Display::fmt(value, f),
            Self::Integer(value) => Display::fmt(value, f),
            Self::Double(value) => f.write_str(&number::general(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_pgbench_does() {
        let boolean = |value| Some(Value::Boolean(value));
        for (text, value) in [
            ("", None),
            ("NULL", Some(Value::Null)),
            ("t", boolean(true)),
            ("Tru", boolean(true)),
            ("truex", None),
            ("y", boolean(true)),
            ("on", boolean(true)),
            ("o", None),
            ("of", boolean(false)),
            ("n", boolean(false)),
            ("nu", None),
            ("  -17", Some(Value::Integer(-17))),
            ("-17 ", None),
            ("9223372036854775807", Some(Value::Integer(i64::MAX))),
            ("9223372036854775808", None),
            (" 1.5e3", Some(Value::Double(1500.0))),
            ("inf", Some(Value::Double(f64::INFINITY))),
            ("1e999", None),
            ("+", None),
            ("1e", None),
            ("größe", None),
        ] {
            assert_eq!(Value::from_text(text), value, "{text}");
        }
    }

    #[test]
    fn values_are_described_by_type() {
        let described = |value: Value| value.described().to_string();
        assert_eq!(described(Value::Null), "null");
        assert_eq!(described(Value::Boolean(true)), "boolean true");
        assert_eq!(described(Value::Integer(-5)), "int -5");
        assert_eq!(described(Value::Double(0.1)), "double 0.1");
        assert_eq!(Value::Null.to_string(), "NULL");
    }
}
