//! Better ways, where one is known for work that was measured.

use std::fmt::Write as _;

use ddl::find::LockMode;
use ddl::{
    Effects, Outcome, Statement, StatementKind, StatementOutcome, better_statements, better_way,
    is_in_transaction,
};

/// Most statements of a better way that a hint shows.
const MOST: usize = 12;

/// Hints for the statements, each once. `version` is the server's.
pub(crate) fn of(outcome: &Outcome, version: u32) -> Vec<String> {
    let mut hints = Vec::new();
    let mut timeout = Timeout::default();
    let mut wants_timeout = None;
    let mut in_transaction: Vec<String> = Vec::new();
    for one in &outcome.statements {
        timeout.after(&one.statement);
        let Some(found) = &one.found else { continue };
        if let Some(way) = better_way(found, &one.statement) {
            let failure = failure(outcome, one.number);
            if failure.is_none() && is_in_transaction(&outcome.statements, one.number) {
                in_transaction.push(one.number.to_string());
            }
            let statements = failure.unwrap_or_else(|| pasted(&better_statements(one, version)));
            hints.push(format!("hint: statement {}: {way}{statements}", one.number));
        }
        if !timeout.is_set() && blocks_readers(one) {
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

/// Whether the session of the migration limits its waits for locks.
#[derive(Clone, Debug, Default)]
struct Timeout {
    now: Limits,
    /// The limits before the transaction that is open, if one is.
    before: Option<Limits>,
    /// Its savepoints with the limits at each.
    savepoints: Vec<(String, Limits)>,
}

/// Limits of waits for locks at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    /// For the session.
    session: bool,
    /// For the transaction that is open.
    local: Option<bool>,
}

impl Timeout {
    fn is_set(&self) -> bool {
        self.now.local.unwrap_or(self.now.session)
    }

    /// Takes a statement of the migration into account. SHOW changes nothing, and 0 is no limit.
    fn after(&mut self, statement: &Statement) {
        let line = statement.in_one_line().to_ascii_lowercase().replace('=', " = ").replace('"', "");
        let line = line.replace(';', " ");
        let words: Vec<&str> = line.split_whitespace().collect();
        match statement.kind {
            StatementKind::Session => self.set(&words),
            StatementKind::Transaction => self.edge(&words),
            StatementKind::Measured | StatementKind::MeasuredAlone => {}
        }
    }

    fn set(&mut self, words: &[&str]) {
        match words {
            // Outside of a transaction, it has no effect.
            ["set", "local", "lock_timeout", "to" | "=", value @ ..] if self.before.is_some() => {
                self.now.local = Some(is_limit(value));
            }
            ["set", "session", "lock_timeout", "to" | "=", value @ ..]
            | ["set", "lock_timeout", "to" | "=", value @ ..] => {
                self.now = Limits { session: is_limit(value), local: None };
            }
            ["reset", "lock_timeout" | "all"] | ["discard", "all"] => self.now = Limits::default(),
            _ => {}
        }
    }

    /// A transaction that is rolled back takes its settings with it, and SET LOCAL ends with each.
    fn edge(&mut self, words: &[&str]) {
        match words {
            ["begin" | "start", ..] => {
                self.before.get_or_insert(self.now);
            }
            ["savepoint", name] => self.savepoints.push(((*name).to_owned(), self.now)),
            ["rollback", .., "to", name] | ["rollback", .., "to", "savepoint", name] => self.back_to(name),
            ["commit" | "rollback", "prepared", ..] => {}
            ["commit" | "end" | "prepare", ..] => self.end(Limits { local: None, ..self.now }, words),
            ["rollback" | "abort", ..] => self.end(self.before.unwrap_or(self.now), words),
            _ => {}
        }
    }

    fn back_to(&mut self, name: &str) {
        let Some(at) = self.savepoints.iter().rposition(|(saved, _)| saved == name) else { return };
        self.now = self.savepoints[at].1;
        self.savepoints.truncate(at + 1);
    }

    /// The transaction ends with these limits. AND CHAIN begins the next one.
    fn end(&mut self, limits: Limits, words: &[&str]) {
        let is_chain = words.ends_with(&["and", "chain"]);
        self.now = limits;
        self.before = is_chain.then_some(limits);
        self.savepoints.clear();
    }
}

/// Whether a value of lock_timeout, with or without a unit, is a limit. The default of the server is none.
fn is_limit(value: &[&str]) -> bool {
    let value = value.concat();
    let number: String =
        value.trim_matches('\'').chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse::<f64>().is_ok_and(|number| number > 0.0)
}

#[cfg(test)]
mod tests {
    use ddl::Script;

    use super::*;

    #[test]
    fn a_limit_of_waits_is_one_that_is_set_and_not_zero() {
        for (migration, is_set) in [
            ("SET lock_timeout = '2s'", true),
            ("SET SESSION \"lock_timeout\" TO 500", true),
            ("set lock_timeout='1.5 min';", true),
            ("SET lock_timeout = 0", false),
            ("SET lock_timeout = '0ms'", false),
            ("SET lock_timeout TO DEFAULT", false),
            ("SHOW lock_timeout", false),
            ("SET statement_timeout = '2s'", false),
            ("SET lock_timeout = '2s'; SHOW lock_timeout", true),
            ("SET lock_timeout = '2s'; RESET lock_timeout", false),
            ("SET lock_timeout = '2s'; DISCARD ALL", false),
            ("BEGIN; SET LOCAL lock_timeout = '2s'; SAVEPOINT a; ROLLBACK TO a", true),
            ("BEGIN; SET LOCAL lock_timeout = '2s'; COMMIT", false),
            ("SET lock_timeout = '2s'; BEGIN; SET LOCAL lock_timeout = 0; COMMIT", true),
            ("SET lock_timeout = '2s'; BEGIN; SET LOCAL lock_timeout = 0", false),
            ("BEGIN; SET lock_timeout = '2s'; ROLLBACK", false),
            ("BEGIN; SET lock_timeout = '2s'; ABORT WORK;", false),
            ("BEGIN; SET lock_timeout = '2s'; COMMIT;", true),
            ("SET lock_timeout = '2s'; BEGIN; SET lock_timeout = 0; ROLLBACK", true),
            ("SET LOCAL lock_timeout = '2s'", false),
            ("BEGIN; SAVEPOINT a; SET lock_timeout = '2s'; ROLLBACK TO SAVEPOINT a;", false),
            ("BEGIN; SET lock_timeout = '2s'; SAVEPOINT a; SET lock_timeout = 0; ROLLBACK WORK TO a", true),
            ("BEGIN; SET lock_timeout = '2s'; COMMIT AND CHAIN; ROLLBACK", true),
            ("BEGIN; SET LOCAL lock_timeout = '2s'; COMMIT AND CHAIN", false),
            ("BEGIN; SET lock_timeout = '2s'; ROLLBACK AND NO CHAIN", false),
        ] {
            let mut timeout = Timeout::default();
            for one in &Script::read(migration, None).unwrap().statements {
                timeout.after(one);
            }
            assert_eq!(timeout.is_set(), is_set, "{migration}");
        }
    }
}
