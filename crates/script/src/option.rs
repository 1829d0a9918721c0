//! Options of the command line: weights and variables.

use thiserror::Error;

use crate::source::Source;
use crate::variables;

/// An error in an option.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionError {
    /// In -f or -b, the text after the `@` is not a number.
    #[error("invalid weight @{0}: give a whole number, for example @2")]
    Weight(String),
    /// In -f or -b, the number after the `@` is out of range.
    #[error("weight specification out of range (0 .. {max}): {0}; give 0 to {max}", max = i32::MAX)]
    WeightRange(String),
    /// In -b, no built-in script has this name.
    #[error("there is no built-in script \"{0}\": give one of {names}", names = names())]
    NoScript(String),
    /// In -b, several built-in scripts begin with this text.
    #[error("{} built-in scripts begin with \"{prefix}\": give {}", names.len(), names.join(" or "))]
    SeveralScripts {
        /// The scripts that begin so.
        names: Vec<&'static str>,
        /// Their common prefix.
        prefix: String,
    },
    /// In -D, the argument is not `name=value`.
    #[error("invalid variable definition: \"{0}\"")]
    Definition(String),
    /// In -D, the name is not valid.
    #[error("{0}")]
    Name(#[from] variables::InvalidName),
}

fn names() -> String {
    Source::builtins().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// The part before the last `@`, and the weight after it; 1 if there is none.
pub(crate) fn weighted(option: &str) -> Result<(&str, u32), OptionError> {
    let Some((name, weight)) = option.rsplit_once('@') else {
        return Ok((option, 1));
    };
    let digits = weight.strip_prefix(['+', '-']).unwrap_or(weight);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(OptionError::Weight(weight.to_owned()));
    }
    match weight.parse::<i32>().ok().and_then(|weight| u32::try_from(weight).ok()) {
        Some(weight) => Ok((name, weight)),
        None => Err(OptionError::WeightRange(weight.to_owned())),
    }
}

/// A variable given with -D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Definition {
    /// Reads `name=value`.
    ///
    /// # Errors
    ///
    /// If a part is missing, or the name is not valid.
    pub fn parse(option: &str) -> Result<Self, OptionError> {
        let parts = option.split_once('=').filter(|(name, text)| !name.is_empty() && !text.is_empty());
        let (name, text) = parts.ok_or_else(|| OptionError::Definition(option.to_owned()))?;
        if !variables::is_valid(name) {
            return Err(variables::InvalidName(name.to_owned()).into());
        }
        Ok(Self { name: name.to_owned(), text: text.to_owned() })
    }

    /// Name of the variable.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value, as text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_after_the_last_at() {
        assert_eq!(weighted("a.sql"), Ok(("a.sql", 1)));
        assert_eq!(weighted("a@b@0"), Ok(("a@b", 0)));
        assert_eq!(weighted("a@2147483647"), Ok(("a", 2_147_483_647)));
        let said = |option| weighted(option).unwrap_err().to_string();
        assert_eq!(said("a@one"), "invalid weight @one: give a whole number, for example @2");
        assert_eq!(said("a@"), "invalid weight @: give a whole number, for example @2");
        assert_eq!(
            said("a@-1"),
            "weight specification out of range (0 .. 2147483647): -1; give 0 to 2147483647"
        );
        assert_eq!(
            said("a@99999999999"),
            "weight specification out of range (0 .. 2147483647): 99999999999; give 0 to 2147483647"
        );
    }

    #[test]
    fn definitions_have_name_and_value() {
        let definition = Definition::parse("a=b=c").unwrap();
        assert_eq!((definition.name.as_str(), definition.text.as_str()), ("a", "b=c"));
        for option in ["foobla", "=1", "a="] {
            let message = Definition::parse(option).unwrap_err().to_string();
            assert_eq!(message, format!("invalid variable definition: \"{option}\""));
        }
        let message = Definition::parse("1=2").unwrap_err().to_string();
        assert_eq!(message, "invalid variable name: \"1\"");
    }
}
