//! Classes, work and locks of many statements, as PostgreSQL's source has them: on the oldest and on the newest release, and with
//! `PGRIG_TEST_RELEASES=all` on all between (`just test-ddl-releases`). The table in the guide is made from them:
//! `DOCS=overwrite cargo test -p pgrig-ddl statements`.
//!
//! Each line of `statements.txt` is `[RELEASES: ][!]STATEMENT | class | work | locks`. With releases (`13`, `14-17`), the line is for
//! those alone. With `!` the statement runs outside of transactions, in the order of the file; others are rolled back. Lock levels
//! are those of AlterTableGetLockLevel (tablecmds.c), and of the functions behind the other commands.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ddl::Amount;
use ddl::Effects;
use ddl::find::{Class, LockMode, WorkKind};

use crate::support::{measured, request, server};

/// Statements that run first, each in a transaction of its own.
const PREPARE: &str = "
    SET TimeZone = 'UTC';
    UPDATE t SET n = id, checked = id, v = 'abc', ts = '2026-01-01', num = 1, d = 1, u_id = id % 10 + 1;
    UPDATE parted SET n = k;
    ALTER TABLE t ADD CONSTRAINT t_not_valid CHECK (n > -1) NOT VALID;
    ALTER TABLE t ADD CONSTRAINT t_checked CHECK (checked IS NOT NULL);
    ALTER TABLE t ADD CONSTRAINT t_u_not_valid FOREIGN KEY (u_id) REFERENCES u NOT VALID;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE TRIGGER t_trigger BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION nothing();
    CREATE SCHEMA other;
";

/// All releases that pgrig works with.
const ALL: RangeInclusive<u16> = testkit::RELEASES[0]..=testkit::RELEASES[1];

/// A line of the table.
struct Line {
    releases: RangeInclusive<u16>,
    is_alone: bool,
    statement: String,
    expected: String,
}

impl Line {
    fn read(line: &str) -> Self {
        let (statement, expected) = line.split_once(" | ").unwrap_or((line, ""));
        let limited = statement.split_once(": ").and_then(|(text, rest)| Some((releases(text)?, rest)));
        let (releases, statement) = limited.unwrap_or((ALL, statement));
        let (is_alone, statement) = match statement.strip_prefix('!') {
            Some(statement) => (true, statement),
            None => (false, statement),
        };
        Self { releases, is_alone, statement: statement.to_owned(), expected: expected.trim().to_owned() }
    }
}

/// Releases as a line names them: `13` or `14-17`.
fn releases(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// The releases that are tested here.
fn tested() -> Vec<u16> {
    match std::env::var("PGRIG_TEST_RELEASES") {
        Ok(all) if all == "all" => ALL.collect(),
        _ => testkit::RELEASES.to_vec(),
    }
}

fn lines() -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/statements.txt");
    fs::read_to_string(path).unwrap().lines().map(Line::read).collect()
}

/// `class | work | locks`, as the file has it.
fn found(found: &Effects) -> String {
    let mut works: BTreeMap<WorkKind, Vec<&str>> = BTreeMap::new();
    found.works.iter().for_each(|work| works.entry(work.kind).or_default().push(&work.relation));
    let work = |(kind, names): (&WorkKind, &Vec<&str>)| {
        let kind = match kind {
            WorkKind::Rewrite | WorkKind::Copy | WorkKind::IndexBuild => "new file",
            WorkKind::Rows => "rows",
            WorkKind::Scan => "scan",
        };
        format!("{kind}: {}", names.join(", "))
    };
    let works: Vec<String> = works.iter().map(work).collect();
    let mut locks: BTreeMap<LockMode, Vec<&str>> = BTreeMap::new();
    let others = found.locks.iter().filter(|lock| !lock.is_new);
    others.for_each(|lock| locks.entry(lock.mode).or_default().push(&lock.relation));
    let locks: Vec<String> =
        locks.iter().rev().map(|(mode, names)| format!("{mode} {}", names.join(", "))).collect();
    format!("{} | {} | {}", found.class, works.join("; "), locks.join("; ")).trim_end().to_owned()
}

#[test]
fn classes_and_locks_are_those_of_the_source() {
    let lines = lines();
    let mut different = String::new();
    for release in tested() {
        let server = server(release);
        server.sql("CREATE ROLE other_owner");
        let of_release: Vec<&Line> = lines.iter().filter(|line| line.releases.contains(&release)).collect();
        let mut script = PREPARE.to_owned();
        for line in &of_release {
            let sql = &line.statement;
            let (begin, end) = if line.is_alone { ("", "") } else { ("BEGIN;\n", "ROLLBACK;\n") };
            script.extend([begin, sql, ";\n", end]);
        }
        let request = request(include_str!("statements.sql"), &script, Amount::Rows(200));
        let outcome = measured(&server, &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let measured = outcome.statements.iter().filter_map(|one| Some((one, one.found.as_ref()?)));
        let measured: Vec<_> = measured.skip(8).collect();
        assert_eq!(measured.len(), of_release.len());
        for (line, (one, measured)) in of_release.iter().zip(measured) {
            assert_eq!(format!("{};", line.statement), one.statement.sql);
            // The server raises table_rewrite for what ALTER TABLE rewrites, and for nothing else.
            let by_alter = line.statement.starts_with("ALTER TABLE");
            for work in measured.works.iter().filter(|work| work.kind == WorkKind::Rewrite) {
                assert_eq!(work.proof.is_event, by_alter, "{release}: {}: {work:?}", line.statement);
            }
            let measured = found(measured);
            if measured != line.expected {
                let _ = writeln!(different, "{release}: {} | {measured}", line.statement);
            }
        }
    }
    assert!(different.is_empty(), "differ from statements.txt:\n{different}");
    assert!(lines.len() >= 60);
}

/// The guide has the table.
#[test]
fn the_guide_has_all_statements() {
    const BEGIN: &str =
        "<!-- The table is generated: DOCS=overwrite cargo test -p pgrig-ddl statements -->\n";
    const END: &str = "<!-- End of the table -->\n";
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/verbs/ddl.md");
    let guide = fs::read_to_string(&path).unwrap();
    let (before, rest) = guide.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table =
        "\n| statement | PostgreSQL | class | proof | locks |\n|---|---|---|---|---|\n".to_owned();
    for line in lines() {
        let (first, last) = (line.releases.start(), line.releases.end());
        let releases = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let statement = line.statement.replace('|', "\\|");
        let _ = writeln!(table, "| `{statement}` | {releases} | {} |", line.expected);
    }
    let wanted = format!("{before}{BEGIN}{table}\n{END}{after}");
    if std::env::var_os("DOCS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == wanted, "docs/src/verbs/ddl.md: DOCS=overwrite");
}

#[test]
fn every_class_but_copy_occurs() {
    let lines = lines();
    for class in Class::ALL.into_iter().filter(|class| *class != Class::Copy) {
        assert!(lines.iter().any(|line| line.expected.starts_with(&format!("{class} |"))), "{class}");
    }
}
