//! Default partitions that get rows, and statements whose time is not measured: those on partitions without generated rows, those that change no
//! row, and those whose time zone is not known.

use ddl::{Outcome, PlannedDefault, StatementOutcome, Unchanged, Untimed};

/// A warning for each statement; one about the time zone came before the tables were filled. `is_copy` tells whether the tables are those of a
/// database or a model.
pub(crate) fn warnings(outcome: &Outcome, is_copy: bool) -> Vec<String> {
    let of_statement = |one: &StatementOutcome| {
        let untimed = one.untimed()?;
        let (number, reason, remedy) = (one.number, untimed.reason(), untimed.remedy());
        match untimed {
            Untimed::Zone(_) => None,
            Untimed::Partition(_) => Some(format!(
                "statement {number} works on a partition without rows, so its time in the original is not measured: {reason}. To measure it, {remedy}"
            )),
            Untimed::Write(unmatched) => {
                let is_replaced = is_copy && unmatched.why == Unchanged::Conditions;
                let replaced = if is_replaced { " (pgrig replaces the texts of the original)" } else { "" };
                Some(format!(
                    "the class and the time of statement {number} in the original are not measured: {reason}{replaced}. To measure them, {remedy}"
                ))
            }
        }
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
    let untimed = one.untimed()?;
    Some(format!("\n   at any size  not known: {}; {}", untimed.reason(), untimed.remedy()))
}

/// The line of a step of a better way. The sum of all steps is known even if the time of a single one is not.
pub(crate) fn of_step(step: &StatementOutcome) -> Option<String> {
    Some(format!("\n           time in the original not known: {}", step.untimed()?.reason()))
}
