//! Foreign keys that are NULL in all rows, because a unique key with their columns does not hold otherwise: NULLs do not conflict. And
//! columns whose fraction of NULLs is given.

use std::sync::Arc;

use failure::Classified;
use rowgen::{ColumnSpec, Keys};

use super::Described;
use super::partial::Look;
use crate::error::CatalogError;
use crate::references::{Group, Origin};
use crate::slot::Slot;

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
        request.columns.retain(|given| given.spec.only_nulls().is_none() || !columns.contains(&given.column));
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

/// The group of values that the server accepts, without those with NULL in a column whose fraction of NULLs is given: a column by itself
/// gets its NULLs apart from the group; of several, a column without NULLs has none.
pub(super) fn apart(mut group: Group, slots: &[Slot<'_>]) -> Group {
    let Keys::Listed(keys) = &*group.keys else { return group };
    let is_alone = group.columns.len() == 1;
    let is_without = |name: &String| {
        let given = slots.iter().find(|slot| slot.name() == name).and_then(|slot| slot.nulls);
        given.is_some_and(|nulls| is_alone || nulls <= 0.0)
    };
    let without: Vec<bool> = group.columns.iter().map(is_without).collect();
    let is_kept = |key: &&Vec<Option<String>>| {
        key.iter().zip(&without).all(|(value, without)| value.is_some() || !without)
    };
    let kept: Vec<Vec<Option<String>>> = keys.iter().filter(is_kept).cloned().collect();
    if group.origin != Origin::References && !kept.is_empty() && kept.len() < keys.len() {
        group.keys = Arc::new(Keys::Listed(kept));
    }
    group
}
