//! Names of tables.

/// `[schema.]table` as SQL writes it: folded to lower case unless quoted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub(crate) schema: Option<Vec<u8>>,
    pub(crate) table: Vec<u8>,
}
