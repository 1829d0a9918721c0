//! Better ways, where one is known for work that was measured.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ddl::find::LockMode;
use ddl::{
    Deadlock, Effects, Keeper, Outcome, Statement, StatementOutcome, better_statements, better_way,
    is_in_transaction, is_left_open, keepers,
};

use crate::cmd::ddl::limits::{self, ADVISED, InForce, Timeout};

/// Most statements of a better way that a hint shows.
const MOST: usize = 12;

/// Hints for the statements, each once. `version` is the server's.
pub(crate) fn of(outcome: &Outcome, version: u32) -> Vec<String> {
    let mut hints = Vec::new();
    let mut timeout = Timeout::of(limits::LOCKS);
    let mut in_force = InForce::new();
    let mut wants_timeout = None;
    let mut in_transaction: Vec<String> = Vec::new();
    for one in &outcome.statements {
        timeout.after(&one.statement);
        in_force.after(&one.statement);
        let Some(found) = &one.found else { continue };
        let wants = !timeout.is_set() && blocks_readers(one) && !limits::is_concurrent(&one.statement);
        if wants && wants_timeout.is_none() {
            wants_timeout = Some((one.number, timeout.is_in_transaction()));
            in_force.advise();
        }
        if let Some(way) = better_way(found, &one.statement) {
            let failure = failure(outcome, one.number);
            if failure.is_none() && is_in_transaction(&outcome.statements, one.number) {
                in_transaction.push(one.number.to_string());
            }
            let statements =
                failure.unwrap_or_else(|| pasted(&better_statements(one, version), &in_force.of_session()));
            hints.push(format!("hint: statement {}: {way}{statements}", one.number));
        }
    }
    if !in_transaction.is_empty() {
        hints.push(format!(
            "hint: {} {} in a transaction: the better way needs a migration of its own, without a transaction (Rails: \
             disable_ddl_transaction!; Django: atomic = False; Alembic: autocommit_block; Flyway: executeInTransaction=false)",
            if in_transaction.len() == 1 { "statement" } else { "statements" },
            match &in_transaction[..] {
                [one] => format!("{one} is"),
                several => format!("{} are", several.join(", ")),
            },
        ));
    }
    hints.extend(keepers(&outcome.statements).iter().map(moving));
    hints.extend(deadlocks(outcome));
    let statements: Vec<&Statement> = outcome.statements.iter().map(|one| &one.statement).collect();
    if let Some((number, is_in_transaction)) = wants_timeout {
        // The better ways lift this limit.
        let mut first = limiting(&statements, number, is_in_transaction);
        first.append(&mut hints);
        hints = first;
    }
    hints.extend(limits::under(&statements));
    if is_left_open(statements.iter().copied()) {
        hints.push(
            "hint: the migration ends in its transaction, which psql would then roll back: add COMMIT at its end".to_owned(),
        );
    }
    hints
}

/// A hint for each statement with which readers or writers have a deadlock.
fn deadlocks(outcome: &Outcome) -> Vec<String> {
    let lost = |one: &StatementOutcome| -> BTreeSet<String> {
        let stalls = one.stall.iter().chain(&one.blocked);
        let named = |lost: &Deadlock| format!("the {} of {}", lost.kind.name(), lost.name);
        stalls.flat_map(|stall| stall.deadlocks.iter().map(named)).collect()
    };
    let hint = |one: &StatementOutcome| {
        let sessions: Vec<String> = lost(one).into_iter().collect();
        if sessions.is_empty() {
            return None;
        }
        let remedy = if is_in_transaction(&outcome.statements, one.number) {
            "An earlier statement of the transaction holds locks for which they wait: commit it before this statement (for example, fill a \
             column in a transaction of its own), or take the strongest lock of the transaction at its beginning with LOCK TABLE"
        } else {
            "Take its locks in the order in which your application takes them"
        };
        Some(format!(
            "hint: statement {} and {} wait for each other (deadlock). The server ends one of them with an error: a session of your application, \
             or the migration. {remedy}",
            one.number,
            sessions.join(", ")
        ))
    };
    outcome.statements.iter().filter_map(hint).collect()
}

/// The hint to drop tables at the end of a long transaction.
fn moving(keeper: &Keeper) -> String {
    let numbers: Vec<String> = keeper.numbers.iter().map(ToString::to_string).collect();
    let (subject, verb, object) = match &numbers[..] {
        [one] => (format!("statement {one}"), "blocks", "it"),
        several => (format!("statements {}", several.join(", ")), "block", "them"),
    };
    format!(
        "hint: {subject} {verb} reads and writes of {} until the end of the transaction, and later statements take most of the \
         transaction's time: move \
         {object} to the end of the transaction, or into a later migration",
        keeper.tables.join(", ")
    )
}

/// The hints to limit the waits of the statement with this number, but not those of later statements that wait for old transactions.
fn limiting(statements: &[&Statement], number: usize, is_in_transaction: bool) -> Vec<String> {
    let repeated = if is_in_transaction { "transaction" } else { "statement" };
    let mut hints = vec![format!(
        "hint: statement {number} waits for open transactions on its table, and other sessions that use the table wait \
         behind it. To limit this wait, put the following statement before it, and repeat the {repeated} after a \
         time-out:\n  SET lock_timeout = {ADVISED};"
    )];
    hints.extend(limits::to_lift(statements, number).map(|later| {
        format!(
            "hint: this SET lock_timeout stays in force. If an older transaction stays open longer than that, statement {later} fails: \
             put the following statement before statement {later}:\n  RESET lock_timeout;"
        )
    }));
    hints
}

/// Why the better way of a statement is not to be pasted, if it failed when it was measured.
fn failure(outcome: &Outcome, number: usize) -> Option<String> {
    let measured = outcome.alternatives.iter().filter(|way| way.number == number);
    let (step, failed) =
        measured.flat_map(|way| &way.statements).find_map(|step| Some((step, step.failed.as_ref()?)))?;
    Some(format!(
        ". But this way failed when pgrig measured it, so adapt it to your schema: \"{}\" failed: {}",
        step.statement.in_one_line(),
        failed.message
    ))
}

/// The statements of a better way, to paste; the updates of its batches as a comment, because their sizes are the user's choice. `in_force` are the
/// time-outs that apply, each with its value: statements that wait for older transactions run without them.
fn pasted(statements: &[String], in_force: &[(&str, &str)]) -> String {
    let lift: String =
        in_force.iter().fold(String::new(), |text, (name, _)| text + &format!("\n  RESET {name};"));
    let restore: String = in_force
        .iter()
        .fold(String::new(), |text, (name, value)| text + &format!("\n  SET {name} = {value};"));
    if statements.len() > MOST {
        let is_under = !lift.is_empty() && statements.iter().any(|sql| limits::waits_concurrently(sql));
        let advice = if is_under { format!(". Put before them:{lift}") } else { String::new() };
        return format!(
            " ({} statements: --alternatives measures them, --json FILE writes them){advice}",
            statements.len()
        );
    }
    let is_batch = |sql: &String| sql.starts_with("UPDATE ");
    let (mut text, mut is_lifted) = (String::new(), false);
    for (at, sql) in statements.iter().enumerate() {
        let is_concurrent = limits::waits_concurrently(sql);
        if is_concurrent != is_lifted {
            text.push_str(if is_concurrent { &lift } else { &restore });
            is_lifted = is_concurrent;
        }
        if !is_batch(sql) {
            let _ = write!(text, "\n  {sql};");
        } else if !at.checked_sub(1).is_some_and(|before| is_batch(&statements[before])) {
            text.push_str("\n  -- here, update the existing rows in batches");
        }
    }
    if is_lifted {
        text.push_str(&restore);
    }
    if text.is_empty() { text } else { format!(":{text}") }
}

fn blocks_readers(one: &StatementOutcome) -> bool {
    one.found.as_ref().and_then(Effects::strongest) == Some(LockMode::AccessExclusive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_concurrently_run_without_time_outs_and_the_others_with_them() {
        let statements =
            ["CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "ALTER TABLE t ADD UNIQUE USING INDEX i"];
        let statements = statements.map(str::to_owned);
        let [index, key] = &statements;
        assert_eq!(pasted(&statements, &[]), format!(":\n  {index};\n  {key};"));
        let limits = [("lock_timeout", "'2s'"), ("statement_timeout", "500")];
        let lift = "\n  RESET lock_timeout;\n  RESET statement_timeout;";
        let restore = "\n  SET lock_timeout = '2s';\n  SET statement_timeout = 500;";
        assert_eq!(pasted(&statements, &limits), format!(":{lift}\n  {index};{restore}\n  {key};"));
        assert_eq!(pasted(&statements[..1], &limits), format!(":{lift}\n  {index};{restore}"));
        assert_eq!(pasted(&statements[1..], &limits), format!(":\n  {key};"));
        let many = vec![index.clone(); MOST + 1];
        assert!(pasted(&many, &limits).ends_with(&format!(". Put before them:{lift}")));
        // It waits for no older transactions.
        let view = ["REFRESH MATERIALIZED VIEW CONCURRENTLY v".to_owned()];
        assert_eq!(pasted(&view, &limits), format!(":\n  {};", view[0]));
    }
}
