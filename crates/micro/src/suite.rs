//! Suites: candidates and their requirements, as TOML.

use serde::Deserialize;

use crate::candidate::{Body, Candidate, FILL};
use crate::error::MicroError;

/// Content of a suite file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Title of the suite.
    pub title: String,
    /// As [`Request::candidates`](crate::Request::candidates).
    pub candidates: Vec<Candidate>,
    /// Statement whose time is subtracted from each candidate's; none: expressions have their own.
    pub empty: Option<String>,
    /// SQL that runs once before the measurement, in the same session.
    pub setup: Option<String>,
    /// SQL that runs once at the end, also after an error.
    pub teardown: Option<String>,
    /// Extensions that the candidates need; pgrig creates those that are missing.
    pub extensions: Vec<String>,
    /// Rows of a sample; none: pgrig chooses.
    pub rows: Option<u64>,
}

/// Content of a suite file as TOML has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    empty: Option<String>,
    setup: Option<String>,
    teardown: Option<String>,
    #[serde(default)]
    extensions: Vec<String>,
    rows: Option<u64>,
    /// The statement of candidates that have a table and no statement of their own.
    statement: Option<String>,
    candidate: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    expression: Option<String>,
    statement: Option<String>,
    ddl: Option<String>,
    #[serde(default)]
    optional: bool,
}

/// The suites that come with pgrig, by name: the article's comparisons.
pub fn shipped() -> [(&'static str, &'static str); 6] {
    [
        ("uuid", include_str!("suites/uuid.toml")),
        ("defaults", include_str!("suites/defaults.toml")),
        ("uuid-defaults", include_str!("suites/uuid-defaults.toml")),
        ("integer-keys", include_str!("suites/integer-keys.toml")),
        ("uuid-keys", include_str!("suites/uuid-keys.toml")),
        ("indexes", include_str!("suites/indexes.toml")),
    ]
}

impl Suite {
    /// Reads a suite; `name` is shown in errors.
    ///
    /// # Errors
    /// [`MicroError::Suite`].
    pub fn read(name: &str, text: &str) -> Result<Self, MicroError> {
        let refuse = |why: String| MicroError::Suite { name: name.to_owned(), why };
        let file: File =
            toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        let candidates = file
            .candidate
            .into_iter()
            .enumerate()
            .map(|(number, entry)| {
                entry
                    .candidate(file.statement.as_deref())
                    .map_err(|why| refuse(format!("candidate {}: {why}", number + 1)))
            })
            .collect::<Result<_, _>>()?;
        let File { title, empty, setup, teardown, extensions, rows, .. } = file;
        let suite = Self { title, candidates, empty, setup, teardown, extensions, rows };
        if suite.texts().any(|text| text.contains('\0')) {
            return Err(refuse(
                "it has a NUL character (\\u0000) in a string, which PostgreSQL does not accept".to_owned(),
            ));
        }
        Ok(suite)
    }

    /// All SQL texts that are sent to the server.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let of_candidates = self.candidates.iter().flat_map(|candidate| match &candidate.body {
            Body::Expression(text) | Body::Statement(text) => [Some(text.as_str()), None],
            Body::Table { ddl, statement } => [Some(ddl.as_str()), Some(statement.as_str())],
        });
        let own = [&self.empty, &self.setup, &self.teardown].into_iter().map(Option::as_deref);
        of_candidates.chain(own).flatten().chain(self.extensions.iter().map(String::as_str))
    }
}

impl Entry {
    fn candidate(self, statement: Option<&str>) -> Result<Candidate, &'static str> {
        let own = self.statement.or_else(|| statement.map(str::to_owned));
        let body = match (self.expression, own, self.ddl) {
            (Some(expression), None, None) => Body::Expression(expression),
            (None, Some(statement), None) => Body::Statement(statement),
            (None, own, Some(ddl)) => Body::Table { ddl, statement: own.unwrap_or_else(|| FILL.to_owned()) },
            (None, None, None) => return Err("it has no expression, statement or ddl"),
            (Some(_), ..) => return Err("it has more than one of expression, statement and ddl: give one"),
        };
        let mut candidate = Candidate::new(body);
        if let Some(name) = self.name {
            candidate.name = name;
        }
        candidate.optional = self.optional;
        Ok(candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_come_with_pgrig_can_be_read() {
        for (name, text) in shipped() {
            let suite = Suite::read(name, text).unwrap();
            assert!(suite.candidates.len() > 1, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            ("title = 'x'", "missing field `candidate`"),
            ("title = 'x'\n[[candidate]]\nexpresion = 'i'", "expresion"),
            ("title = 'x'\n[[candidate]]\nexpression = \"i + \\u0000\"", "NUL"),
            ("title = 'x'\n[[candidate]]\nname = 'n'", "candidate 1: it has no"),
            (
                "title = 'x'\n[[candidate]]\nexpression = 'i'\nddl = 'd'",
                "candidate 1: it has more than one of",
            ),
        ] {
            let error = Suite::read("mine.toml", text).unwrap_err().to_string();
            assert!(error.starts_with("suite mine.toml: ") && error.contains(expected), "{error}");
        }
    }
}
