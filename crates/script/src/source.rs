//! Scripts as they are given, and those that come with pgbench.

use crate::option::{OptionError, weighted};

/// A script that is not yet parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) weight: u32,
}

/// pgbench's built-in scripts: name, description, text.
const BUILTIN: [(&str, &str, &str); 3] = [
    ("tpcb-like", "<builtin: TPC-B (sort of)>", include_str!("builtin/tpcb-like.sql")),
    ("simple-update", "<builtin: simple update>", include_str!("builtin/simple-update.sql")),
    ("select-only", "<builtin: select only>", include_str!("builtin/select-only.sql")),
];

impl Source {
    /// A script from the text of a file. [`Source::weighted_file`] reads name and weight from an
    /// option.
    pub fn file(name: impl Into<String>, text: impl Into<String>, weight: u32) -> Self {
        Self { name: name.into(), text: text.into(), weight }
    }

    /// The file and the weight of `file@3`, as -f takes it; 1 without a weight.
    ///
    /// # Errors
    ///
    /// If the text after the last `@` is not a weight.
    pub fn weighted_file(option: &str) -> Result<(&str, u32), OptionError> {
        weighted(option)
    }

    /// The built-in script whose name begins with this text, and its weight, as -b takes it:
    /// `se@2`.
    ///
    /// # Errors
    ///
    /// If no script or several begin with it, or if the text after the `@` is not a weight.
    pub fn builtin(option: &str) -> Result<Self, OptionError> {
        let (prefix, weight) = weighted(option)?;
        let found: Vec<_> = BUILTIN.into_iter().filter(|(name, ..)| name.starts_with(prefix)).collect();
        match found.as_slice() {
            [] => Err(OptionError::NoScript(prefix.to_owned())),
            [(_, description, text)] => Ok(Self::file(*description, *text, weight)),
            several => {
                let names = several.iter().map(|(name, ..)| *name).collect();
                Err(OptionError::SeveralScripts { names, prefix: prefix.to_owned() })
            }
        }
    }

    /// Names and descriptions of the built-in scripts.
    pub fn builtins() -> impl Iterator<Item = (&'static str, &'static str)> {
        BUILTIN.into_iter().map(|(name, description, _)| (name, description))
    }

    /// The file's name, or pgbench's name of a built-in script.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole script.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its weight among the scripts.
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_scripts_are_found_by_prefix() {
        let found = |option| Source::builtin(option).map(|source| (source.name, source.weight));
        assert_eq!(found("t"), Ok(("<builtin: TPC-B (sort of)>".to_owned(), 1)));
        assert_eq!(found("se@7"), Ok(("<builtin: select only>".to_owned(), 7)));
        let said = |option| Source::builtin(option).unwrap_err().to_string();
        assert_eq!(said("s"), "2 built-in scripts begin with \"s\": give simple-update or select-only");
        assert_eq!(
            said("x@2"),
            "there is no built-in script \"x\": give one of tpcb-like, simple-update, select-only"
        );
    }
}
