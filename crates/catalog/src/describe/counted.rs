//! Counts a column whose statistics say that it differs in all rows, where a unique key would otherwise allow fewer rows than wanted.
//!
//! A key of a table's rows in a model, `UNIQUE (id, day)`, has statistics of each column if the original does not have the key. Values by
//! statistics may repeat, and there may be few days.

use rowgen::ColumnSpec;

use super::partial::Look;
use super::{DescribeRequest, Described, nulls};
use crate::error::CatalogError;
use crate::info::KeyInfo;

/// From this number of different values on, relative to the rows, nearly all rows differ.
const ALL: f64 = -0.999;

/// The rows, with columns of a key that are counted although they have statistics.
pub(super) async fn described(look: Look<'_>) -> Result<Described, CatalogError> {
    let outcome = nulls::described(look).await;
    let Err(CatalogError::TooManyRows { key: Some(name), .. }) = &outcome else { return outcome };
    let key = look.info.keys.iter().find(|key| key.name == *name);
    match key.and_then(|key| without_statistics(look.request, key)) {
        Some(counted) => nulls::described(Look { request: &counted, ..look }).await,
        None => outcome,
    }
}

/// The request without the statistics of the key's columns that differ in all rows; none if there are no such columns, or rows may be
/// added later.
fn without_statistics(request: &DescribeRequest, key: &KeyInfo) -> Option<DescribeRequest> {
    let differs = |given: &&ColumnSpec| given.spec.distinct().is_some_and(|distinct| distinct <= ALL);
    let is_in_key = |given: &&ColumnSpec| key.columns().any(|name| name == given.column);
    let is_kept = |given: &&ColumnSpec| !(differs(given) && is_in_key(given));
    let columns: Vec<ColumnSpec> = request.columns.iter().filter(is_kept).cloned().collect();
    let has_fewer = columns.len() < request.columns.len();
    (request.uses_all_keys && has_fewer).then(|| DescribeRequest { columns, ..request.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_of_the_key_that_differ_in_all_rows_are_counted() {
        let specs = [
            "id=statistics(-1,1,common(),histogram(1,9))",
            "day=statistics(20,1,common(),histogram(1,9))",
            "other=statistics(-1,1,common(),histogram(1,9))",
        ];
        let request = DescribeRequest {
            columns: specs.iter().map(|spec| spec.parse().unwrap()).collect(),
            uses_all_keys: true,
            ..DescribeRequest::default()
        };
        let key = KeyInfo::unique("t_key", &["id".to_owned(), "day".to_owned()]);
        let left = without_statistics(&request, &key).unwrap().columns;
        let names: Vec<&str> = left.iter().map(|given| given.column.as_str()).collect();
        assert_eq!(names, ["day", "other"]);
        assert!(without_statistics(&request, &KeyInfo::unique("t_key", &["day".to_owned()])).is_none());
        let may_grow = DescribeRequest { uses_all_keys: false, ..request };
        assert!(without_statistics(&may_grow, &key).is_none());
    }
}
