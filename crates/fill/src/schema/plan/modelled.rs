//! Specifications that a model makes: their errors, and keys of cycles.

use catalog::{CatalogError, TableInfo};
use rowgen::{ColumnSpec, Keyed, Values};

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

/// How often rows refer to each key, if the model says so of this column.
pub(super) fn keyed(info: &TableInfo, column: &str, request: &SchemaRequest) -> Option<Keyed> {
    let modelled = request.modelled.iter().filter(|one| is_named(info, &one.table));
    let mut specs = modelled.filter_map(|one| one.spec.parse::<ColumnSpec>().ok());
    specs.find(|spec| spec.column == column)?.spec.keyed()
}

/// The keys in the order of the model, with its NULLs.
pub(super) fn ordered(values: Values, keyed: Option<Keyed>) -> Values {
    let Some(Keyed { nulls, nulls_by, ranking, .. }) = keyed else { return values };
    let ranked = |values| match ranking {
        Some(ranking) => Values::Ranked { ranking, values: Box::new(values) },
        None => values,
    };
    match nulls.filter(|fraction| *fraction > 0.0) {
        None => ranked(values),
        // NULLs with an order of their own stand before the order of the values.
        Some(fraction) if nulls_by.is_some() => {
            Values::Nulls { fraction, by: nulls_by, values: Box::new(ranked(values)) }
        }
        Some(fraction) => ranked(Values::Nulls { fraction, by: None, values: Box::new(values) }),
    }
}
