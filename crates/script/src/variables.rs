//! Variables. Names are resolved to slots while scripts are parsed, so that a run needs no search.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use crate::evaluate::EvaluationError;
use crate::value::Value;

/// Index of a variable in the [`Variables`] of any client that runs these scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(usize);

/// All names of variables that occur in some scripts.
#[derive(Clone, Debug, Default)]
pub struct Names {
    slots: HashMap<Arc<str>, Slot>,
    names: Vec<Arc<str>>,
}

/// A name that no variable can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid variable name: \"{0}\"")]
pub struct InvalidName(pub String);

impl Names {
    /// The slot of a name; none if no script uses the name.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// The slot for a column of a result under `\gset` or `\aset` with this prefix; none if no
    /// script reads it.
    ///
    /// # Errors
    ///
    /// If prefix and column together are not a valid name: `?column?`.
    pub fn receiving(&self, prefix: &str, column: &str) -> Result<Option<Slot>, InvalidName> {
        let name = format!("{prefix}{column}");
        if is_valid(&name) { Ok(self.slot(&name)) } else { Err(InvalidName(name)) }
    }

    /// The slot of a name; a new one if there is none.
    pub(crate) fn intern(&mut self, name: &str) -> Slot {
        self.slot(name).unwrap_or_else(|| {
            let (slot, name) = (Slot(self.names.len()), Arc::from(name));
            self.names.push(Arc::clone(&name));
            self.slots.insert(name, slot);
            slot
        })
    }

    pub(crate) fn name(&self, slot: Slot) -> &str {
        &self.names[slot.0]
    }
}

/// Whether a byte can begin a name (with digits, it can also be within a name). All non-ASCII bytes
/// can.
pub(crate) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

pub(crate) fn is_in_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

pub(crate) fn is_valid(name: &str) -> bool {
    name.bytes().next().is_some_and(begins_name) && name.bytes().all(is_in_name)
}

/// One client's variables. They keep their values from one transaction to the next.
#[derive(Debug)]
pub struct Variables {
    names: Arc<Names>,
    values: Vec<Variable>,
}

#[derive(Clone, Debug, Default)]
enum Variable {
    #[default]
    Undefined,
    Value(Value),
    /// A text, given with -D or by a query. It is put into SQL unchanged, whatever value
    /// expressions read from it.
    Text {
        text: String,
        value: Option<Value>,
    },
}

impl Clone for Variables {
    fn clone(&self) -> Self {
        Self { names: Arc::clone(&self.names), values: self.values.clone() }
    }

    /// Reuses the memory: transactions that may have to be repeated keep a copy each time.
    fn clone_from(&mut self, source: &Self) {
        self.names.clone_from(&source.names);
        self.values.clone_from(&source.values);
    }
}

impl Variables {
    /// Variables without values.
    pub fn new(names: Arc<Names>) -> Self {
        let values = vec![Variable::Undefined; names.names.len()];
        Self { names, values }
    }

    /// Names of the variables.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Gives a variable a value, as `\set` does.
    pub fn set(&mut self, slot: Slot, value: Value) {
        self.values[slot.0] = Variable::Value(value);
    }

    /// Gives a variable a text, as `\gset` and -D do.
    pub fn set_text(&mut self, slot: Slot, new: &str) {
        let parsed = Value::from_text(new);
        match &mut self.values[slot.0] {
            // The memory is used again.
            Variable::Text { text, value } => {
                text.clear();
                text.push_str(new);
                *value = parsed;
            }
            other => *other = Variable::Text { text: new.to_owned(), value: parsed },
        }
    }

    /// Gives the variable of this name a value, unless it has one or no script uses it.
    pub(crate) fn preset(&mut self, name: &str, value: i64) {
        let slot = self.names.slot(name);
        if let Some(slot) = slot.filter(|slot| !self.is_defined(*slot)) {
            self.set(slot, Value::Integer(value));
        }
    }

    /// Whether a variable has a value.
    pub(crate) fn is_defined(&self, slot: Slot) -> bool {
        !matches!(self.values[slot.0], Variable::Undefined)
    }

    /// A variable's value in expressions.
    ///
    /// # Errors
    ///
    /// If it is not defined, or if its text is not a value.
    pub fn value(&self, slot: Slot) -> Result<Value, EvaluationError> {
        match &self.values[slot.0] {
            Variable::Value(value) | Variable::Text { value: Some(value), .. } => Ok(*value),
            Variable::Undefined => Err(EvaluationError::Undefined(self.names.name(slot).to_owned())),
            Variable::Text { text, value: None } => {
                Err(EvaluationError::malformed(self.names.name(slot), text))
            }
        }
    }

    /// Appends the text that replaces a variable in SQL, or that is its parameter. False if it is
    /// not defined: `:name` then stays in SQL, and a parameter is NULL.
    pub fn write(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        match &self.values[slot.0] {
            Variable::Undefined => return false,
            Variable::Value(value) => value.write(out),
            Variable::Text { text, .. } => out.extend_from_slice(text.as_bytes()),
        }
        true
    }

    /// The text that stands for a variable; none if it is not defined.
    pub fn text(&self, slot: Slot) -> Option<String> {
        match &self.values[slot.0] {
            Variable::Undefined => None,
            Variable::Value(value) => Some(value.to_string()),
            Variable::Text { text, .. } => Some(text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pgbenchs() {
        for name in ["a", "_1", "größe", "Ab9_"] {
            assert!(is_valid(name), "{name}");
        }
        for name in ["", "1", "a-b", "?column?", "a b"] {
            assert!(!is_valid(name), "{name}");
        }
    }

    #[test]
    fn columns_are_received_by_who_is_read() {
        let mut names = Names::default();
        let slot = names.intern("p_one");
        assert_eq!(names.receiving("p_", "one"), Ok(Some(slot)));
        assert_eq!(names.receiving("p_", "two"), Ok(None));
        let message = names.receiving("", "?column?").unwrap_err().to_string();
        assert_eq!(message, "invalid variable name: \"?column?\"");
    }

    #[test]
    fn texts_stay_as_they_are_in_sql() {
        let mut names = Names::default();
        let (slot, other) = (names.intern("x"), names.intern("y"));
        let mut variables = Variables::new(Arc::new(names));
        variables.set_text(slot, " 007");
        assert_eq!(variables.value(slot), Ok(Value::Integer(7)));
        let mut out = Vec::new();
        assert!(variables.write(slot, &mut out) && !variables.write(other, &mut out));
        assert_eq!(out, b" 007");
        assert_eq!(variables.value(other).unwrap_err().to_string(), "undefined variable \"y\"");
        variables.set_text(slot, "blue");
        let message = variables.value(slot).unwrap_err().to_string();
        assert_eq!(message, "malformed variable \"x\" value: \"blue\"");
    }
}
