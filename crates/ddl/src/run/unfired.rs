//! Triggers of the original that statements fire there, and not in the copy.

use super::cascades::Cascades;
use super::changes::{Changes, events_on};
use super::rehearse::Tables;
use crate::outcome::StatementOutcome;
use crate::schema::Schema;
use crate::triggers::RowTrigger;

/// Triggers that are named of a statement.
const NAMED: usize = 8;

/// A warning about the statements that fire them, also by foreign keys; none if there is none.
pub(super) fn warning(
    schema: &Schema,
    statements: &[StatementOutcome],
    (changes, cascades, tables): (&Changes, &Cascades, &Tables),
) -> Option<String> {
    let of_statement = |(place, one): (usize, &StatementOutcome)| {
        let written = changes.with_code(place, one);
        let by_keys = cascades.of(&one.statement, &written, tables);
        let is_on = |trigger: &RowTrigger, table: u32| {
            let mut of = tables.all().filter(|(_, one)| trigger.is_of(&one.schema, &one.name));
            of.any(|(oid, _)| oid == table || tables.is_below(oid, table))
        };
        let is_met = |trigger: &RowTrigger| {
            let by_itself = |table: &u32| {
                is_on(trigger, *table) && trigger.may_fire(events_on(&one.statement, *table, tables))
            };
            written.iter().any(by_itself)
                || by_keys.iter().any(|(table, event)| trigger.fires_on(*event) && is_on(trigger, *table))
        };
        let earlier = || statements[..place].iter().map(|one| &one.statement);
        let fires = |trigger: &&RowTrigger| {
            one.statement.runs_code() && is_met(trigger) && trigger.is_left_by(earlier())
        };
        let names: Vec<String> = schema.triggers.iter().filter(fires).map(RowTrigger::shown).collect();
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("statement {} ({first}{more})", one.number))
    };
    let found: Vec<String> = statements.iter().enumerate().filter_map(of_statement).collect();
    (!found.is_empty()).then(|| {
        format!(
            "in {}, triggers that the copy lacks may fire for each row of {}: there, these statements take longer than measured. To measure them with \
             the triggers, give --schema-file with the output of pg_dump --schema-only",
            schema.origin,
            found.join(", ")
        )
    })
}
