//! Time-outs that a migration sets, and statements that wait for all older transactions: a time-out ends them, and can leave an invalid index.

use ddl::{Statement, StatementKind};

/// The limit of waits for locks, and for older transactions.
pub(super) const LOCKS: &str = "lock_timeout";
/// The limit of a whole statement.
const STATEMENTS: &str = "statement_timeout";
/// The lock_timeout that a hint advises.
pub(super) const ADVISED: &str = "'2s'";

/// Hints for statements that build an index CONCURRENTLY under a time-out of the migration's own.
pub(super) fn under(statements: &[&Statement]) -> Vec<String> {
    [LOCKS, STATEMENTS].into_iter().flat_map(|setting| under_one(statements, setting)).collect()
}

/// The same for one time-out. The advice for one statement also serves those after it.
fn under_one(statements: &[&Statement], setting: &'static str) -> Vec<String> {
    let mut timeout = Timeout::of(setting);
    let mut hints = Vec::new();
    for (number, statement) in (1_usize..).zip(statements) {
        if timeout.is_set() && leaves_index(statement) {
            hints.push(of_index(number, setting, timeout.value()));
            timeout.put("");
        }
        timeout.after(statement);
    }
    hints
}

fn of_index(number: usize, setting: &str, value: &str) -> String {
    let cause = if setting == LOCKS { "an older transaction stays open longer" } else { "it takes longer" };
    format!(
        "hint: statement {number} runs under {setting} = {value}: if {cause}, the server cancels it, and leaves an invalid index. Put the \
         following statement before it, and set {setting} again where later statements need it:\n  RESET {setting};"
    )
}

/// The number of the first statement that waits for older transactions under a lock_timeout which the session sets before statement `number`.
pub(super) fn to_lift(statements: &[&Statement], number: usize) -> Option<usize> {
    let mut timeout = Timeout::of(LOCKS);
    for (at, statement) in (1_usize..).zip(statements) {
        if at == number {
            timeout.put(ADVISED);
        } else if at > number && timeout.is_set() && (is_concurrent(statement) || is_vacuum(statement)) {
            return Some(at);
        }
        timeout.after(statement);
    }
    None
}

/// Whether it is a statement with CONCURRENTLY that waits for all older transactions.
pub(super) fn is_concurrent(statement: &Statement) -> bool {
    waits_concurrently(&statement.in_one_line())
}

/// Whether a line is a statement with CONCURRENTLY that waits for all older transactions. REFRESH MATERIALIZED VIEW does not: it takes its
/// locks like any statement in a transaction (matview.c: `refresh_by_match_merge`).
pub(super) fn waits_concurrently(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    match &words(&line)[..] {
        ["drop", "index", "concurrently", ..] => true,
        ["alter", "table", rest @ .., "concurrently"] => rest.contains(&"detach"),
        others => builds_index(others),
    }
}

/// Whether it builds an index CONCURRENTLY, which stays invalid if the statement fails.
fn leaves_index(statement: &Statement) -> bool {
    builds_index(&words(&statement.in_one_line().to_ascii_lowercase()))
}

/// Whether the words of a statement build an index CONCURRENTLY.
fn builds_index(words: &[&str]) -> bool {
    match words {
        ["create", "index", "concurrently", ..] | ["create", "unique", "index", "concurrently", ..] => true,
        ["reindex", rest @ ..] => rest.contains(&"concurrently"),
        _ => false,
    }
}

fn is_vacuum(statement: &Statement) -> bool {
    let line = statement.in_one_line().to_ascii_lowercase();
    words(&line).first() == Some(&"vacuum")
}

/// The words of a line, without parentheses and commas.
fn words(line: &str) -> Vec<&str> {
    line.split([' ', '(', ')', ',', ';']).filter(|word| !word.is_empty()).collect()
}

/// A time-out that the session of the migration sets.
#[derive(Clone, Debug)]
pub(super) struct Timeout {
    /// Its name.
    setting: &'static str,
    now: Limits,
    /// The limits before the transaction that is open, if one is.
    before: Option<Limits>,
    /// Its savepoints with the limits at each.
    savepoints: Vec<(String, Limits)>,
}

/// All time-outs that the session of the migration sets.
#[derive(Clone, Debug)]
pub(super) struct InForce([Timeout; 2]);

impl InForce {
    pub(super) fn new() -> Self {
        Self([LOCKS, STATEMENTS].map(Timeout::of))
    }

    /// Sets the lock_timeout that a hint advises.
    pub(super) fn advise(&mut self) {
        self.0[0].put(ADVISED);
    }

    /// Takes a statement of the migration into account.
    pub(super) fn after(&mut self, statement: &Statement) {
        for timeout in &mut self.0 {
            timeout.after(statement);
        }
    }

    /// Those in force outside of transactions: the name and the value of each.
    pub(super) fn of_session(&self) -> Vec<(&'static str, &str)> {
        let limits = self.0.iter().map(|timeout| (timeout.setting, timeout.now.session.as_str()));
        limits.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// Values of the time-out at one moment, as they stand in the migration. An empty one is no limit.
#[derive(Clone, Debug, Default)]
struct Limits {
    /// For the session.
    session: String,
    /// For the transaction that is open.
    local: Option<String>,
}

impl Timeout {
    pub(super) fn of(setting: &'static str) -> Self {
        Self { setting, now: Limits::default(), before: None, savepoints: Vec::new() }
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value().is_empty()
    }

    pub(super) fn is_in_transaction(&self) -> bool {
        self.before.is_some()
    }

    /// The value that applies now; empty if it is no limit.
    fn value(&self) -> &str {
        self.now.local.as_deref().unwrap_or(&self.now.session)
    }

    /// Sets the value for the session; an empty one is no limit.
    fn put(&mut self, value: &str) {
        self.now = Limits { session: value.to_owned(), local: None };
    }

    /// Takes a statement of the migration into account. SHOW changes nothing, and 0 is no limit.
    pub(super) fn after(&mut self, statement: &Statement) {
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
            ["set", "local", name, "to" | "=", value @ ..]
                if *name == self.setting && self.is_in_transaction() =>
            {
                self.now.local = Some(limit(value));
            }
            ["set", "session", name, "to" | "=", value @ ..] | ["set", name, "to" | "=", value @ ..]
                if *name == self.setting =>
            {
                self.put(&limit(value));
            }
            ["reset", name] if *name == self.setting || *name == "all" => self.put(""),
            ["discard", "all"] => self.put(""),
            _ => {}
        }
    }

    /// A transaction that is rolled back takes its settings with it, and SET LOCAL ends with each.
    fn edge(&mut self, words: &[&str]) {
        match words {
            ["begin" | "start", ..] => {
                self.before.get_or_insert_with(|| self.now.clone());
            }
            ["savepoint", name] => self.savepoints.push(((*name).to_owned(), self.now.clone())),
            ["rollback", .., "to", name] | ["rollback", .., "to", "savepoint", name] => self.back_to(name),
            ["commit" | "rollback", "prepared", ..] => {}
            ["commit" | "end" | "prepare", ..] => {
                self.end(Limits { local: None, ..self.now.clone() }, words);
            }
            ["rollback" | "abort", ..] => {
                let limits = self.before.clone().unwrap_or_else(|| self.now.clone());
                self.end(limits, words);
            }
            _ => {}
        }
    }

    fn back_to(&mut self, name: &str) {
        let Some(at) = self.savepoints.iter().rposition(|(saved, _)| saved == name) else { return };
        self.now = self.savepoints[at].1.clone();
        self.savepoints.truncate(at + 1);
    }

    /// The transaction ends with these limits. AND CHAIN begins the next one.
    fn end(&mut self, limits: Limits, words: &[&str]) {
        let is_chain = words.ends_with(&["and", "chain"]);
        self.before = is_chain.then(|| limits.clone());
        self.now = limits;
        self.savepoints.clear();
    }
}

/// A value of a time-out, with or without a unit; empty if it is no limit, as the default of the server.
fn limit(value: &[&str]) -> String {
    let text = value.concat();
    let number: String =
        text.trim_matches('\'').chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let is_limit = number.parse::<f64>().is_ok_and(|number| number > 0.0);
    if is_limit { value.join(" ") } else { String::new() }
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
            let mut timeout = Timeout::of(LOCKS);
            for one in &Script::read(migration, None).unwrap().statements {
                timeout.after(one);
            }
            assert_eq!(timeout.is_set(), is_set, "{migration}");
        }
    }

    /// The hints for a migration, and the statement before which a lock_timeout for the first one is to end.
    fn hints(migration: &str) -> (Vec<String>, Option<usize>) {
        let script = Script::read(migration, None).unwrap();
        let statements: Vec<&Statement> = script.statements.iter().collect();
        (under(&statements), to_lift(&statements, 1))
    }

    #[test]
    fn an_index_that_a_time_out_would_leave_invalid_is_named() {
        let of = |migration: &str| hints(migration).0;
        let one = of(
            "SET lock_timeout = '1 s'; CREATE INDEX CONCURRENTLY i ON t (a); REINDEX (CONCURRENTLY) TABLE t",
        );
        assert_eq!(one.len(), 1, "{one:?}");
        assert!(
            one[0].starts_with("hint: statement 2 runs under lock_timeout = '1 s': if an older"),
            "{one:?}"
        );
        assert!(one[0].ends_with("\n  RESET lock_timeout;"), "{one:?}");
        let both =
            of("SET lock_timeout = 500; SET statement_timeout TO '1min'; REINDEX TABLE CONCURRENTLY t");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[1].starts_with("hint: statement 3 runs under statement_timeout = '1min': if it takes"));
        for migration in [
            "SET lock_timeout = 0; CREATE INDEX CONCURRENTLY i ON t (a)",
            "SET lock_timeout = '1s'; RESET lock_timeout; CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)",
            "SET lock_timeout = '1s'; CREATE INDEX concurrently_i ON t (a); DROP INDEX CONCURRENTLY i",
            "BEGIN; SET LOCAL lock_timeout = '1s'; COMMIT; CREATE INDEX CONCURRENTLY i ON t (a)",
            "CREATE INDEX CONCURRENTLY i ON t (a)",
        ] {
            assert_eq!(of(migration), [""; 0], "{migration}");
        }
    }

    #[test]
    fn a_better_way_outside_of_the_transaction_runs_under_the_limits_of_the_session() {
        for (migration, is_advised, wanted) in [
            (
                "SET statement_timeout = '1min'; SET lock_timeout = 500",
                false,
                &["lock_timeout", "statement_timeout"][..],
            ),
            ("SET lock_timeout = '2s'; BEGIN; SET LOCAL lock_timeout = 0", false, &["lock_timeout"]),
            ("BEGIN; SET LOCAL statement_timeout = '2s'", false, &[]),
            ("BEGIN; SET LOCAL statement_timeout = '2s'", true, &["lock_timeout"]),
        ] {
            let mut limits = InForce::new();
            for one in &Script::read(migration, None).unwrap().statements {
                limits.after(one);
            }
            if is_advised {
                limits.advise();
            }
            let names: Vec<&str> = limits.of_session().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, wanted, "{migration}");
        }
    }

    #[test]
    fn a_time_out_ends_before_statements_that_wait_for_old_transactions() {
        for (later, wanted) in [
            ("SELECT 1; CREATE INDEX CONCURRENTLY i ON t (a)", Some(3)),
            ("DROP INDEX CONCURRENTLY i; VACUUM t", Some(2)),
            ("ALTER TABLE p DETACH PARTITION q CONCURRENTLY;", Some(2)),
            // It waits for sessions that lock the view, not for older transactions.
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY v", None),
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY v; VACUUM t", Some(3)),
            ("VACUUM(FULL) t", Some(2)),
            ("SET lock_timeout = 0; VACUUM t", None),
            ("ALTER TABLE t ADD b int; COMMENT ON TABLE t IS 'CREATE INDEX CONCURRENTLY'", None),
        ] {
            assert_eq!(hints(&format!("ALTER TABLE t ADD a int; {later}")).1, wanted, "{later}");
        }
        // SET outlasts the transaction that commits, and not one that is rolled back.
        let of = |end: &str| {
            let text = format!("BEGIN; ALTER TABLE t ADD a int; {end}; VACUUM t");
            let script = Script::read(&text, None).unwrap();
            to_lift(&script.statements.iter().collect::<Vec<_>>(), 2)
        };
        assert_eq!((of("COMMIT"), of("ROLLBACK")), (Some(4), None));
    }
}
