//! Better ways, where one is known for work that was measured.

use ddl::find::LockMode;
use ddl::{Found, Outcome, StatementKind, StatementOutcome, better_way, is_in_transaction};

/// Hints for the statements, each once.
pub(crate) fn of(outcome: &Outcome) -> Vec<String> {
    let mut hints = Vec::new();
    let mut has_timeout = false;
    let mut wants_timeout = None;
    let mut in_transaction: Vec<String> = Vec::new();
    for one in &outcome.statements {
        let text = one.statement.in_one_line().to_ascii_lowercase();
        has_timeout |= one.statement.kind == StatementKind::Session && text.contains("lock_timeout");
        let Some(found) = &one.found else { continue };
        if let Some(way) = better_way(found, &one.statement) {
            hints.push(format!("hint: statement {}: {way}", one.number));
            if is_in_transaction(&outcome.statements, one.number) {
                in_transaction.push(one.number.to_string());
            }
        }
        if !has_timeout && blocks_readers(one) {
            wants_timeout.get_or_insert(one.number);
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
    if let Some(number) = wants_timeout {
        hints.push(format!(
            "hint: statement {number} waits for open transactions, and all other sessions wait for it: write SET lock_timeout \
             = '2s'; before it, and repeat it if it fails"
        ));
    }
    hints
}

fn blocks_readers(one: &StatementOutcome) -> bool {
    one.found.as_ref().and_then(Found::strongest) == Some(LockMode::AccessExclusive)
}
