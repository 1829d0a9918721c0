//! Triggers of the original that statements fire there, and not in the copy.

use super::changes::Changes;
use super::rehearse::Tables;
use crate::outcome::StatementOutcome;
use crate::schema::Schema;
use crate::triggers::RowTrigger;

/// Triggers that are named of a statement.
const NAMED: usize = 8;

/// A warning about the statements that fire them; none if there is none.
pub(super) fn warning(
    schema: &Schema,
    statements: &[StatementOutcome],
    (changes, tables): (&Changes, &Tables),
) -> Option<String> {
    let of_statement = |(place, one): (usize, &StatementOutcome)| {
        let of_place = changes.tables_of(place);
        let is_of_changed = |trigger: &RowTrigger| {
            let mut of = tables.all().filter(|(_, table)| trigger.is_of(&table.schema, &table.name));
            of.any(|(oid, _)| of_place.iter().any(|table| *table == oid || tables.is_below(oid, *table)))
        };
        let earlier = || statements[..place].iter().map(|one| &one.statement);
        let fires = |trigger: &&RowTrigger| {
            one.statement.runs_code()
                && is_of_changed(trigger)
                && trigger.may_fire(&one.statement)
                && trigger.is_left_by(earlier())
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
