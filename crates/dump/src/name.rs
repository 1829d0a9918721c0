//! Names of tables and sequences.

use std::fmt;
use std::str::FromStr;

use sql::Syntax;

use crate::DumpError;
use crate::parse::Parser;

/// `[schema.]table` as SQL writes it: folded to lower case unless quoted. In the dump's encoding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    pub(crate) schema: Option<Vec<u8>>,
    pub(crate) table: Vec<u8>,
}

impl FromStr for TableName {
    type Err = DumpError;

    fn from_str(text: &str) -> Result<Self, DumpError> {
        let mut parser = Parser::new(text.as_bytes(), Syntax::default());
        match (parser.table(), parser.peek()) {
            (Some(name), None) => Ok(name),
            _ => Err(DumpError::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", quoted_if_needed(schema))?;
        }
        f.write_str(&quoted_if_needed(&self.table))
    }
}

/// A table or sequence of a dump, which may hold several databases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Relation {
    /// Number of `\connect` commands before.
    database: u32,
    schema: Vec<u8>,
    name: Vec<u8>,
}

impl Relation {
    /// Whether it has this name. A name without a schema fits any schema.
    pub(crate) fn is_called(&self, name: &TableName) -> bool {
        self.name == name.table && name.schema.as_ref().is_none_or(|schema| *schema == self.schema)
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", quoted_if_needed(&self.schema), quoted_if_needed(&self.name))
    }
}

/// The schema of names without a schema, at a place of a dump.
#[derive(Debug)]
pub(crate) struct Scope {
    database: u32,
    schema: Vec<u8>,
}

impl Default for Scope {
    fn default() -> Self {
        Self { database: 0, schema: b"public".to_vec() }
    }
}

impl Scope {
    /// To be called after `\connect`.
    pub(crate) fn next_database(&mut self) {
        *self = Self { database: self.database + 1, ..Self::default() };
    }

    /// To be called after SET search_path.
    pub(crate) fn set_schema(&mut self, schema: Vec<u8>) {
        self.schema = schema;
    }

    pub(crate) fn resolve(&self, name: TableName) -> Relation {
        let schema = name.schema.unwrap_or_else(|| self.schema.clone());
        Relation { database: self.database, schema, name: name.table }
    }
}

/// For people: as SQL would write it, but for keywords.
fn quoted_if_needed(name: &[u8]) -> String {
    let is_plain = name.first().is_some_and(|&first| first == b'_' || first.is_ascii_lowercase())
        && name.iter().all(|&byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'$'));
    let name = String::from_utf8_lossy(name);
    if is_plain { name.into_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
