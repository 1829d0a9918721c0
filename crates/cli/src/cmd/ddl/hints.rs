//! Better ways, where one is known for work that was measured.

use ddl::find::{Class, LockMode, WorkKind};
use ddl::{Found, Outcome, StatementKind, StatementOutcome};

/// Hints for the statements, each once.
pub(crate) fn of(outcome: &Outcome) -> Vec<String> {
    let mut hints = Vec::new();
    let mut has_timeout = false;
    let mut wants_timeout = None;
    for one in &outcome.statements {
        let text = one.statement.in_one_line().to_ascii_lowercase();
        has_timeout |= one.statement.kind == StatementKind::Session && text.contains("lock_timeout");
        let Some(found) = &one.found else { continue };
        if let Some(way) = way(found, &text) {
            hints.push(format!("hint: statement {}: {way}", one.number));
        }
        if !has_timeout && blocks_readers(one) {
            wants_timeout.get_or_insert(one.number);
        }
    }
    if let Some(number) = wants_timeout {
        hints.push(format!(
            "hint: statement {number} queues behind open transactions, and everybody else queues behind it: SET lock_timeout \
             before it, and repeat it if it fails"
        ));
    }
    hints
}

fn blocks_readers(one: &StatementOutcome) -> bool {
    one.found.as_ref().and_then(Found::strongest) == Some(LockMode::AccessExclusive)
}

/// A better way for the work of a statement.
fn way(found: &Found, text: &str) -> Option<&'static str> {
    let has = |words: &str| text.contains(words);
    let builds = found.works.iter().any(|work| work.kind == WorkKind::IndexBuild);
    let blocks = found.strongest().is_some_and(|mode| mode.blocks().is_some());
    if !blocks {
        return None;
    }
    match found.class {
        Class::IndexBuild if text.starts_with("create ") => {
            Some("CREATE INDEX CONCURRENTLY, outside of a transaction, does not block writes")
        }
        Class::IndexBuild if text.starts_with("reindex") => {
            Some("REINDEX … CONCURRENTLY does not block writes")
        }
        Class::IndexBuild if builds && has("alter table") && (has("unique") || has("primary key")) => Some(
            "build the index first with CREATE UNIQUE INDEX CONCURRENTLY, then ADD CONSTRAINT … USING INDEX is catalog only",
        ),
        Class::Scan | Class::SeveralTables if has("set not null") => Some(
            "first ADD CONSTRAINT … CHECK (… IS NOT NULL) NOT VALID, then VALIDATE CONSTRAINT, which blocks nobody: SET NOT NULL \
             is then catalog only",
        ),
        Class::Scan | Class::SeveralTables
            if has(" add ") && (has("check") || has("foreign key") || has("references")) =>
        {
            Some(
                "ADD CONSTRAINT … NOT VALID is catalog only; VALIDATE CONSTRAINT in a later transaction blocks no writes",
            )
        }
        Class::ScanOfAnother if has("attach partition") && is_attached(found, text) => Some(
            "first add to the attached table a CHECK constraint that implies the new bounds (and IS NOT NULL): the server then \
             skips the scan",
        ),
        Class::ScanOfAnother if has("attach partition") => Some(
            "first add to the default partition a CHECK constraint that excludes the new bounds, NOT VALID, and validate it: the \
             server then skips the scan",
        ),
        Class::SeveralTables if has("attach partition") => Some(
            "first add CHECK constraints, NOT VALID, and validate them: to the attached table one that implies the new bounds (and \
             IS NOT NULL), to the default partition one that excludes them; the server then skips the scans",
        ),
        Class::Rewrite if has(" add ") && has("default") => Some(
            "a constant default does not rewrite the table: add the column without the volatile default, SET DEFAULT, then \
             update the rows in batches",
        ),
        Class::Rewrite if has(" type ") => Some(
            "add a column of the new type, copy the values in batches (a trigger keeps it current), and swap the names",
        ),
        _ => None,
    }
}

/// Whether the scanned table is the one that ATTACH PARTITION names: otherwise it is the default partition.
fn is_attached(found: &Found, text: &str) -> bool {
    let plain = |name: &str| name.trim().replace('"', "").to_lowercase();
    let named = text.split("attach partition ").nth(1).and_then(|rest| rest.split(" for values").next());
    let named = plain(named.unwrap_or_default());
    let is_named =
        |name: &str| named == name || named.strip_suffix(name).is_some_and(|schema| schema.ends_with('.'));
    found.works.iter().any(|work| is_named(&plain(&work.relation)))
}
