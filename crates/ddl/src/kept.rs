//! DROP TABLE that blocks another table until the end of a long transaction.

use sql::Kind;

use crate::find::Lock;
use crate::outcome::{AtSize, StatementOutcome};
use crate::parts::names;
use crate::script::{StatementKind, tokens};
use crate::transaction::is_committed;

/// Least seconds of later statements for which a hint is worth it.
const LEAST: f64 = 0.1;
/// Words before the name of a relation that a statement makes.
const MAKING: [&str; 9] =
    ["table", "exists", "to", "into", "view", "index", "sequence", "type", "constraint"];
/// Words before the name of a table whose rows are only read.
const READING: [&str; 3] = ["references", "from", "join"];

/// Statements of a transaction that could come at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    /// Their numbers.
    pub numbers: Vec<usize>,
    /// The tables that they block until the end of the transaction, for people.
    pub tables: Vec<String>,
    /// The place at which the transaction ends.
    end: usize,
}

/// Those of each transaction: DROP TABLE that blocks readers or writers of other tables, for example of those that its foreign keys reference,
/// if later statements take most of the transaction's time, and can do so before it.
pub fn keepers(statements: &[StatementOutcome]) -> Vec<Keeper> {
    let mut keepers: Vec<Keeper> = Vec::new();
    for (place, one) in statements.iter().enumerate() {
        let is_edge = |one: &StatementOutcome| one.statement.kind == StatementKind::Transaction;
        if is_edge(one) || !is_committed(statements, place) {
            continue;
        }
        let begin = statements[..place].iter().rposition(is_edge).map_or(0, |edge| edge + 1);
        let end =
            statements.iter().skip(place).position(is_edge).map_or(statements.len(), |edge| place + edge);
        let later = &statements[place + 1..end];
        let rest = seconds(later);
        let tables = blocked(one, later);
        if tables.is_empty() || rest < LEAST || rest * 2.0 < seconds(&statements[begin..end]) {
            continue;
        }
        match keepers.last_mut().filter(|last| last.end == end) {
            Some(last) => {
                last.numbers.push(one.number);
                let others: Vec<String> =
                    tables.into_iter().filter(|table| !last.tables.contains(table)).collect();
                last.tables.extend(others);
            }
            None => keepers.push(Keeper { numbers: vec![one.number], tables, end }),
        }
    }
    keepers
}

fn seconds(statements: &[StatementOutcome]) -> f64 {
    let of_one = |one: &StatementOutcome| one.largest().and_then(AtSize::seconds).map(|all| all.median);
    statements.iter().filter_map(of_one).sum()
}

/// The tables that DROP TABLE blocks, and that stay; nothing if a later statement may need that it came before.
fn blocked(one: &StatementOutcome, later: &[StatementOutcome]) -> Vec<String> {
    let words = words(&one.statement.sql);
    let is_drop = words.starts_with(&["drop".to_owned(), "table".to_owned()]);
    // With CASCADE, it drops what later statements may not find any more.
    if !is_drop || words.iter().any(|word| word == "cascade") {
        return Vec::new();
    }
    let next = later.iter().find_map(|one| one.found.as_ref());
    let (Some(found), Some(next)) = (&one.found, next) else { return Vec::new() };
    let stays = |lock: &&Lock| {
        let is_same = |kept: &Lock| kept.relation == lock.relation && kept.mode == lock.mode;
        !lock.is_new && lock.blocks().is_some() && next.inherited.iter().any(is_same)
    };
    let (tables, gone): (Vec<&Lock>, Vec<&Lock>) = found.locks.iter().partition(stays);
    let last_names = |locks: &[&Lock]| -> Vec<String> {
        locks.iter().filter_map(|lock| names(&lock.relation).last()).collect()
    };
    let mut free = last_names(&gone);
    free.extend(words.into_iter().skip(2));
    let used = last_names(&tables);
    let may_come_before =
        |one: &StatementOutcome| one.failed.is_none() && is_independent(&one.statement.sql, &free, &used);
    if later.iter().all(may_come_before) {
        tables.into_iter().map(|lock| lock.relation.clone()).collect()
    } else {
        Vec::new()
    }
}

/// Whether a later statement surely succeeds before DROP TABLE: it makes nothing with a name that only this drop makes `free`, and does no
/// more with the tables that stay than to read them or to reference them.
fn is_independent(sql: &str, free: &[String], used: &[String]) -> bool {
    let words = words(sql);
    let is = |at: usize, known: &[&str]| words.get(at).is_some_and(|word| known.contains(&word.as_str()));
    // Code may do anything; a type, schema or function may be in use; a partition may take the place of one that is dropped.
    let may_be_other = is(0, &["do", "call"])
        || (is(0, &["drop"]) && !is(1, &["table", "index", "view", "materialized", "trigger", "policy"]))
        || words.iter().any(|word| word == "partition");
    let is_fine = |(at, word): (usize, &String)| {
        let mut first = at;
        while first >= 2 && is(first - 1, &["."]) {
            first -= 2;
        }
        let is_after = |known: &[&str]| first.checked_sub(1).is_some_and(|before| is(before, known));
        let is_deleted = first.checked_sub(2).is_some_and(|before| is(before, &["delete"]));
        let is_made = free.contains(word) && is_after(&MAKING);
        let is_changed = used.contains(word) && (!is_after(&READING) || is_deleted);
        !is_made && !is_changed
    };
    !may_be_other && words.iter().enumerate().all(is_fine)
}

/// The tokens, names as the server has them.
fn words(sql: &str) -> Vec<String> {
    let meant = tokens(sql).into_iter().filter(|(kind, _)| !matches!(kind, Kind::Blank | Kind::Comment));
    let word = |(kind, token): (Kind, &str)| {
        let name = sql::name(kind, token.as_bytes()).and_then(|name| String::from_utf8(name).ok());
        name.unwrap_or_else(|| token.to_owned())
    };
    meant.map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::better::tests::found;
    use crate::find::{Class, Kind as RelationKind, LockMode, WorkKind};
    use crate::outcome::{Cost, Effects};
    use crate::script::Script;

    fn lock(relation: &str, kind: RelationKind) -> Lock {
        let (relation, mode) = (relation.to_owned(), LockMode::AccessExclusive);
        Lock { relation, kind, mode, is_new: false, is_dead: false }
    }

    /// Of a script whose DROP TABLE locks `person`, each statement with its seconds.
    fn of(text: &str, times: &[f64]) -> Vec<(Vec<usize>, Vec<String>)> {
        let script = Script::read(text, None).unwrap();
        let mut statements = StatementOutcome::of_all(&script.statements);
        let mut inherited = Vec::new();
        for (one, seconds) in statements.iter_mut().zip(times) {
            if one.statement.kind == StatementKind::Transaction {
                inherited.clear();
                continue;
            }
            let is_drop = one.statement.sql.trim_start().starts_with("DROP TABLE");
            let mut locks = Vec::new();
            if is_drop && inherited.is_empty() {
                locks.push(lock("person", RelationKind::Table));
            }
            if is_drop {
                locks.extend([lock("liked", RelationKind::Table), lock("liked_pkey", RelationKind::Index)]);
            }
            let found = found(Class::CatalogOnly, WorkKind::Scan);
            one.found = Some(Effects { locks, inherited: inherited.clone(), ..found });
            if is_drop {
                inherited = vec![lock("person", RelationKind::Table)];
            }
            let runs = vec![Cost { seconds: *seconds, ..Cost::default() }];
            one.measured = vec![AtSize { bytes: 1, rows: 1, runs }];
        }
        keepers(&statements).into_iter().map(|one| (one.numbers, one.tables)).collect()
    }

    #[test]
    fn a_drop_before_long_work_could_come_later() {
        let wanted = [(vec![2], vec!["person".to_owned()])];
        for later in [
            "ALTER TABLE actions ADD FOREIGN KEY (person_id) REFERENCES person",
            "CREATE INDEX actions_saved ON actions (liked) WHERE liked IS NOT NULL",
            "CREATE TABLE counts AS SELECT * FROM public.person JOIN actions USING (id)",
            "DROP TABLE others",
        ] {
            let text = format!("BEGIN; DROP TABLE liked; {later}; COMMIT; SELECT 1");
            assert_eq!(of(&text, &[0.0, 0.1, 2.0, 0.0, 0.0]), wanted, "{later}");
            assert_eq!(of(&text, &[0.0, 3.0, 2.0, 0.0, 9.0]), [], "{later}");
            assert_eq!(of(&text, &[0.0, 0.001, 0.01, 0.0, 9.0]), [], "{later}");
        }
    }

    #[test]
    fn a_drop_on_which_later_statements_may_depend_stays() {
        for later in [
            "ALTER TABLE fresh RENAME TO liked",
            "CREATE TABLE IF NOT EXISTS public.liked (id int)",
            "CREATE INDEX liked_pkey ON fresh (id)",
            "ALTER TABLE fresh ADD CONSTRAINT liked_pkey PRIMARY KEY (id)",
            "ALTER TABLE person DROP COLUMN id",
            "DELETE FROM public.person",
            "UPDATE person SET id = 1",
            "DROP TABLE person",
            "DROP TYPE mood",
            "CREATE TABLE new_part PARTITION OF parted FOR VALUES IN (1)",
            "DO $$ BEGIN PERFORM 1; END $$",
        ] {
            let text = format!("BEGIN; DROP TABLE liked; {later}; COMMIT");
            assert_eq!(of(&text, &[0.0, 0.1, 2.0, 0.0]), [], "{later}");
        }
        for text in [
            "BEGIN; DROP TABLE liked CASCADE; CREATE INDEX ON t (a); COMMIT",
            "BEGIN; DROP TABLE liked; CREATE INDEX ON t (a); ROLLBACK",
        ] {
            assert_eq!(of(text, &[0.0, 0.1, 2.0, 0.0]), [], "{text}");
        }
        assert_eq!(of("DROP TABLE liked; CREATE INDEX ON t (a)", &[0.1, 2.0]), []);
    }
}
