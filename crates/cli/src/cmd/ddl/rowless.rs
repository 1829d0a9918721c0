//! Default partitions that get rows, and statements whose time is not measured, because their partition has no generated rows.

use ddl::{Outcome, PlannedDefault, StatementOutcome};

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

/// The rows of a default partition: a phrase for the plan.
pub(crate) fn planned(default: &PlannedDefault) -> String {
    let PlannedDefault { partition, table, share, is_assumed } = default;
    let percent = share * 100.0;
    // The share of the original may be small.
    let shown = if percent < 1.0 { format!("{percent:.2}") } else { format!("{percent:.0}") };
    let source = if *is_assumed { "assumed share" } else { "share in the original" };
    format!("{shown} % of the rows of {table} in {partition} ({source})")
}

/// The line in the place of a forecast.
pub(crate) fn forecast(one: &StatementOutcome) -> Option<String> {
    let rowless = one.rowless.first()?;
    Some(format!("\n   at any size  not known: {}; {}", rowless.reason(), rowless.remedy()))
}
