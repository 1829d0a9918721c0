//! What the user says about columns.

use rowgen::{Kind, Values};

use super::error::CatalogError;
use super::info::ColumnInfo;

/// `--column NAME=SPEC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The column's name, unquoted.
    pub column: String,
    /// As typed.
    pub spec: String,
}

impl Given {
    /// The values for the column; of a type that rowgen does not know only what is given as text.
    pub(super) fn values(&self, column: &ColumnInfo, kind: Option<&Kind>) -> Result<Values, CatalogError> {
        let _ = (column, kind);
        Ok(match self.spec.as_str() {
            "null" => Values::Null,
            "default" => Values::Server,
            "unique" => Values::Unique(rowgen::Turn::EACH),
            other => Values::Text(other.trim_start_matches("constant(").trim_end_matches(')').to_owned()),
        })
    }
}
