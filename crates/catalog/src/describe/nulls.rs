//! Foreign keys that are NULL in all rows, because a unique key with their columns does not hold otherwise: NULLs do not conflict.

use failure::Classified;
use rowgen::ColumnSpec;

use super::Described;
use super::partial::Look;
use crate::error::CatalogError;

/// The rows. If pgrig finds no unique values for a key, a foreign key with columns of this key is NULL, where it may be.
pub(super) async fn described(look: Look<'_>) -> Result<Described, CatalogError> {
    let request = look.request;
    let outcome = look.described().await;
    let Err(CatalogError::Key { key, nulls, .. }) = &outcome else { return outcome };
    for columns in nulls {
        // No row can be referenced by columns that are NULL.
        if columns.iter().any(|name| request.referenced.contains(name)) {
            continue;
        }
        let null = |column: &String| Some(ColumnSpec { column: column.clone(), spec: "null".parse().ok()? });
        let mut request = request.clone();
        request.columns.extend(columns.iter().filter_map(null));
        match Box::pin(described(Look { request: &request, ..look })).await {
            Ok(mut rows) => {
                let are = if columns.len() == 1 { "is" } else { "are" };
                rows.warnings.push(format!(
                    "{} {are} NULL in all rows, because pgrig finds no unique values for {key}: to give other values, describe all columns of \
                     the foreign key with --column",
                    columns.join(", ")
                ));
                return Ok(rows);
            }
            Err(error) if !error.is_usage() => return Err(error),
            Err(_) => {}
        }
    }
    outcome
}
