//! Statements whose time is not measured, because their partition has no generated rows.

use ddl::{Outcome, StatementOutcome};

/// A warning for each.
pub(crate) fn warnings(outcome: &Outcome) -> Vec<String> {
    let of_statement = |one: &StatementOutcome| {
        let rowless = one.rowless.first()?;
        Some(format!(
            "statement {} works on a partition without rows, so its time in the original is not measured: {}. To measure it, {}",
            one.number,
            rowless.reason(),
            rowless.remedy()
        ))
    };
    outcome.statements.iter().filter_map(of_statement).collect()
}

/// The line in the place of a forecast.
pub(crate) fn forecast(one: &StatementOutcome) -> Option<String> {
    let rowless = one.rowless.first()?;
    Some(format!("\n   at any size  not known: {}; {}", rowless.reason(), rowless.remedy()))
}
