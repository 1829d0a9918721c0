//! Better ways, where one is known for work that was measured.

use std::fmt::Write as _;

use ddl::find::LockMode;
use ddl::{
    Effects, Outcome, StatementKind, StatementOutcome, better_statements, better_way, is_in_transaction,
};

/// Most statements of a better way that a hint shows.
const MOST: usize = 12;

/// Hints for the statements, each once. `version` is the server's.
pub(crate) fn of(outcome: &Outcome, version: u32) -> Vec<String> {
    let mut hints = Vec::new();
    let mut has_timeout = false;
    let mut wants_timeout = None;
    let mut in_transaction: Vec<String> = Vec::new();
    for one in &outcome.statements {
        let text = one.statement.in_one_line().to_ascii_lowercase();
        has_timeout |= one.statement.kind == StatementKind::Session && text.contains("lock_timeout");
        let Some(found) = &one.found else { continue };
        if let Some(way) = better_way(found, &one.statement) {
            let statements = pasted(&better_statements(one, version));
            hints.push(format!("hint: statement {}: {way}{statements}", one.number));
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
            "hint: statement {number} waits for open transactions on its table, and other sessions that use the table wait \
             behind it. To limit this wait, put the following statement before it, and repeat the migration after a \
             time-out:\n  SET lock_timeout = '2s';"
        ));
    }
    hints
}

/// The statements of a better way, to paste; the updates of its batches as a comment, because their sizes are the user's choice.
fn pasted(statements: &[String]) -> String {
    if statements.len() > MOST {
        return format!(
            " ({} statements: --alternatives measures them, --json FILE writes them)",
            statements.len()
        );
    }
    let is_batch = |sql: &String| sql.starts_with("UPDATE ");
    let mut text = String::new();
    for (at, sql) in statements.iter().enumerate() {
        if !is_batch(sql) {
            let _ = write!(text, "\n  {sql};");
        } else if !at.checked_sub(1).is_some_and(|before| is_batch(&statements[before])) {
            text.push_str("\n  -- here, update the existing rows in batches");
        }
    }
    if text.is_empty() { text } else { format!(":{text}") }
}

fn blocks_readers(one: &StatementOutcome) -> bool {
    one.found.as_ref().and_then(Effects::strongest) == Some(LockMode::AccessExclusive)
}
