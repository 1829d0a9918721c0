//! Errors of specifications that a model makes.

use catalog::{CatalogError, TableInfo};
use rowgen::ColumnSpec;

use super::amounts::is_named;
use super::design::table_and_column;
use crate::error::FillError;
use crate::schema::request::SchemaRequest;

/// Errors of a column that the model describes begin so.
pub const OF_MODEL: &str = "the model's column";

/// The error of a table's rows. If the model describes the column that is wrong, the error names table and column, not the option
/// --column.
pub(super) fn explained(error: CatalogError, info: &TableInfo, request: &SchemaRequest) -> FillError {
    let names = |text: &str, column: &str| text.parse::<ColumnSpec>().is_ok_and(|spec| spec.column == column);
    let is_modelled = |column: &str| {
        let mut modelled = request.modelled.iter().filter(|one| is_named(info, &one.table));
        modelled.any(|one| names(&one.spec, column))
    };
    let is_given = |column: &str| {
        let mut given = request.columns.iter().filter_map(|text| table_and_column(text));
        given.any(|(table, text)| is_named(info, table) && names(text, column))
    };
    match error {
        CatalogError::Spec { column, why } if is_modelled(&column) && !is_given(&column) => {
            FillError::Combination(format!("{OF_MODEL} {}.{column}: {why}", info.shown()))
        }
        error => error.among_tables(info).into(),
    }
}
