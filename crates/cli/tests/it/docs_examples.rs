//! Examples of README and of the book run. A block of `sh` runs as it stands. Of a transcript (`console`) the commands
//! run, at a small size and for a short time. A block marked `not-run` has its reason in a comment before it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::docs::{Block, blocks, guides};
use crate::support::{Ran, Rig};

/// Values of a small run in place of those that the reader sees: verb, option, value. Other lines get the option.
const SMALL: [(&str, &str, &str); 13] = [
    ("blockio", "--trials", "1"),
    ("micro", "--budget", "1s"),
    ("tps", "-T", "1"),
    ("tps --matrix", "--trials", "1"),
    ("testdb bench", "--trials", "1"),
    ("testdb bench", "--variants", "unlogged"),
    ("fill --scale", "--scale", "1"),
    ("ddl", "--up-to", "1MB"),
    ("ddl", "--quick", ""),
    ("ab", "--rounds", "1"),
    ("ab", "--no-warm-up", ""),
    ("fill --ladder", "--trials", "1"),
    ("fill --probe", "--chunk", "1MB"),
];
/// The server that examples name and nobody has.
const ELSEWHERE: &str = "postgresql://me@db.example.com/mydb";
/// A suite that uses the database which the example gives it.
const SUITE: &str = r#"
import os, subprocess, urllib.request

def test_database():
    service = os.environ.get("PGRIG_TESTDB_URL")
    if service:
        urllib.request.urlopen(service + "/database").read()
    else:
        url = os.environ.get("DATABASE_URL", "")
        subprocess.run(["psql", url, "-qc", "SELECT 1"], check=True)
"#;
/// Empties the database of the own server.
const EMPTY: &str =
    "pgrig server psql -- -qc 'DROP SCHEMA IF EXISTS public CASCADE' -c 'CREATE SCHEMA public'";

/// Page by page, in two homes: a page's blocks follow on one another, as for its reader.
#[test]
fn examples_run() {
    if ![testkit::Need::Clients, testkit::Need::Pytest].into_iter().all(testkit::require) {
        return;
    }
    let pages = Mutex::new(guides());
    let ran = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| run_pages(&pages)));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert!(ran >= 25, "{ran} examples");
}

fn run_pages(pages: &Mutex<Vec<PathBuf>>) -> usize {
    let rig = Rig::new();
    let mut ran = 0;
    loop {
        let Some(page) = pages.lock().unwrap().pop() else { return ran };
        let text = fs::read_to_string(&page).unwrap();
        let examples: Vec<Block> = blocks(&text).1.into_iter().filter(Block::is_run).collect();
        if examples.is_empty() {
            continue;
        }
        let directory = reader(&rig, &text);
        for example in &examples {
            let script =
                if example.is("console") { commands(&rig, &example.text) } else { example.text.clone() };
            let result = shell(&rig, directory.path(), &script);
            assert_eq!(result.code, Some(0), "{}: {script}\n{result:#?}", page.display());
            if rig.home.path().join("testdb").exists() {
                // Its keeper would wait for more requests.
                rig.done("testdb drop --all");
            }
        }
        ran += examples.len();
    }
}

/// The directory of a reader, with files of the names that examples give, and databases `postgres`, `mydb`, `shop` (with
/// rows, if the page captures it) and `shop_test` as they are before the first example of the page.
pub(crate) fn reader(rig: &Rig, page: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let shop = fs::read_to_string(crate::docs::root().join("bench/schema.sql")).unwrap();
    for name in ["shop.sql", "schema.sql", "app.sql"] {
        fs::write(directory.path().join(name), &shop).unwrap();
    }
    let insert = "INSERT INTO products VALUES (1, 1, 1, 1)";
    fs::create_dir(directory.path().join("api")).unwrap();
    for suite in ["suite.sh", "api/suite.sh"] {
        fs::write(directory.path().join(suite), format!("psql -qc '{insert}'\n")).unwrap();
    }
    for script in ["old.sql", "new.sql"] {
        fs::write(directory.path().join(script), "SELECT count(*) FROM pgbench_branches").unwrap();
    }
    fs::write(directory.path().join("migration.sql"), "ALTER TABLE orders ADD COLUMN remark text").unwrap();
    let lookups = "\\set id random(1, 100)\nSELECT * FROM orders WHERE id = :id;\n";
    fs::write(directory.path().join("lookups.sql"), lookups).unwrap();
    fs::write(directory.path().join("test_suite.py"), SUITE).unwrap();
    fs::create_dir(directory.path().join("queries")).unwrap();
    fs::write(directory.path().join("queries/1.sql"), "SELECT count(*) FROM products WHERE id < 100")
        .unwrap();
    let rows = if page.contains("-d shop -o") {
        "pgrig fill -q --instance default -d shop --all-tables --rows 5000;"
    } else {
        ""
    };
    let script = format!(
        "gzip -k shop.sql; pgrig server start -q --set shared_buffers=128MB --set max_wal_size=1GB; {EMPTY}; \
         pgrig server psql -- -qc 'DROP DATABASE IF EXISTS mydb' -c 'CREATE DATABASE mydb'; \
         pgrig server psql mydb -- -qf shop.sql -c 'CREATE TABLE audit_log (at timestamp)'; \
         for name in shop_test shop copy; do \
           pgrig server psql -- -qc \"DROP DATABASE IF EXISTS $name\"; done; \
         pgrig server psql -- -qc 'CREATE DATABASE shop_test TEMPLATE mydb' \
         -c 'CREATE DATABASE shop TEMPLATE mydb' \
         -c \"DO 'BEGIN CREATE ROLE me LOGIN; EXCEPTION WHEN duplicate_object THEN END'\"; \
         {rows}
         pgrig server stop -q"
    );
    let result = shell(rig, directory.path(), &script);
    assert_eq!(result.code, Some(0), "{script}\n{result:#?}");
    directory
}

/// The commands of a transcript, made small. It begins with an empty database, or with pgbench's tables if it measures
/// transactions. A server that it names is reached in the way of psql.
pub(crate) fn commands(rig: &Rig, transcript: &str) -> String {
    let lines: Vec<String> =
        transcript.lines().filter_map(|line| line.strip_prefix("$ ")).map(small).collect();
    let mut script = lines.join("\n");
    let is_reached = ["mydb", "-d shop", "shop copy", "-d copy", "toml copy", "psql "]
        .iter()
        .any(|word| script.contains(word));
    if script.contains("pgrig tps") && !script.contains("pgrig fill") {
        script = format!("pgrig fill -q --scale 1\n{script}");
    }
    let script = format!("{EMPTY}\n{script}");
    let installed = testkit::templates_of(17).join("bin");
    let script = script.replace("/usr/lib/postgresql/17/bin", &installed.display().to_string());
    if !is_reached {
        return script;
    }
    let socket = rig.home.path().join("instances/default/socket");
    format!(
        "pgrig server start -q\nexport PGHOST={} PGUSER=postgres PGDATABASE=postgres\n{script}",
        socket.display()
    )
}

/// Sizes, rows and times of commands, made small.
fn small(line: &str) -> String {
    let line = line.replace(ELSEWHERE, "mydb");
    line.split(" && ").map(small_command).collect::<Vec<_>>().join(" && ")
}

fn small_command(line: &str) -> String {
    let mut line = line.to_owned();
    if line.starts_with("pgrig ab ") {
        line = line.replace("-T 10", "-T 1");
    }
    if line.starts_with("pgrig size") {
        return line;
    }
    for (verb, option, value) in SMALL {
        let mut words = verb.split(' ');
        let name = words.next().unwrap();
        let rest: Vec<&str> = words.collect();
        let verb = if name == "testdb" { verb.to_owned() } else { name.to_owned() };
        let is_it = |line: &str| name == "testdb" || rest.iter().all(|word| line.contains(word));
        if line.starts_with(&format!("pgrig {verb}")) && is_it(&line) {
            line = with(&line, &verb, option, value);
        }
    }
    let is_inside = |char: char| char.is_ascii_alphanumeric() || char == '.';
    let mut made = String::new();
    let mut rest = line.as_str();
    while let Some(start) = rest.find(is_inside) {
        let length = rest[start..].find(|char| !is_inside(char)).unwrap_or(rest.len() - start);
        made.push_str(&rest[..start]);
        made.push_str(&smaller(&rest[start..start + length]));
        rest = &rest[start + length..];
    }
    made + rest
}

/// The line with another value of the option, or with the option.
fn with(line: &str, verb: &str, option: &str, value: &str) -> String {
    match line.split_once(&format!(" {option} ")) {
        Some((before, after)) if !value.is_empty() => {
            let after = after.split_once(' ').map_or("", |(_, after)| after);
            format!("{before} {option} {value} {after}")
        }
        _ => line.replacen(&format!("pgrig {verb}"), &format!("pgrig {verb} {option} {value}"), 1),
    }
}

fn smaller(word: &str) -> String {
    let is_large = ["GB", "GiB", "TB", "TiB", "00MB"].iter().any(|unit| word.ends_with(unit));
    if word.starts_with(|first: char| first.is_ascii_digit()) && is_large {
        return "10MB".to_owned();
    }
    match word.parse::<u64>() {
        Ok(rows) if rows >= 10_000 => (rows / 1000).to_string(),
        _ => word.to_owned(),
    }
}

/// A shell in the reader's directory, where pgrig is on the path and has the rig's home.
pub(crate) fn shell(rig: &Rig, directory: &Path, script: &str) -> Ran {
    let pgrig = Path::new(env!("CARGO_BIN_EXE_pgrig")).parent().unwrap();
    let path = format!("{}:{}", pgrig.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    for (name, value) in rig.command("").get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(["-e", "-c", script]).env("PATH", path).current_dir(directory).stdin(Stdio::null());
    Ran::from(shell.output().unwrap())
}

/// The commands of a line of shell: what stands between unquoted separators.
fn split(line: &str) -> Vec<String> {
    let mut quote = None;
    let mut commands = vec![String::new()];
    for char in line.chars() {
        match (quote, char) {
            (None, '|' | ';' | '&' | '(' | ')' | '#') => {
                commands.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), char) if char == open => quote = None,
            _ => {}
        }
        commands.last_mut().unwrap().push(char);
    }
    commands.into_iter().map(|command| command.trim().to_owned()).collect()
}

/// An excerpt of another page stands there, and runs there.
#[test]
fn excerpts_stand_on_their_pages() {
    let mut excerpts = 0;
    for page in guides() {
        let (_, blocks) = blocks(&fs::read_to_string(&page).unwrap());
        for block in &blocks {
            let Some(of) = block.reason.as_ref().and_then(|reason| reason.strip_prefix("an excerpt of "))
            else {
                continue;
            };
            let of = of.trim_end_matches("-->").trim();
            let whole = fs::read_to_string(crate::docs::root().join(of)).unwrap();
            let run = crate::docs::blocks(&whole).1;
            let run: Vec<&str> =
                run.iter().filter(|block| block.is_run()).flat_map(|block| block.text.lines()).collect();
            for line in block.text.lines().filter(|line| *line != "…") {
                assert!(run.contains(&line), "{}: {of} has no {line}", page.display());
            }
            excerpts += 1;
        }
    }
    assert!(excerpts >= 5, "{excerpts} excerpts");
}

/// Commands that do not run, and those in sentences and tables, are read by pgrig at least: an unknown option or verb is
/// an error even before --help.
#[test]
fn other_commands_are_pgrig_s() {
    let rig = Rig::new();
    let directory = tempfile::tempdir().unwrap();
    let mut read = BTreeSet::new();
    for page in guides() {
        let text = fs::read_to_string(&page).unwrap();
        let (prose, blocks) = blocks(&text);
        for block in blocks.iter().filter(|block| !block.is_run() && (block.is("sh") || block.is("console")))
        {
            assert!(
                block.reason.is_some(),
                "{}: no comment says why this does not run:\n{}",
                page.display(),
                block.text
            );
            let lines = block
                .text
                .lines()
                .filter_map(|line| if block.is("console") { line.strip_prefix("$ ") } else { Some(line) });
            read.extend(lines.flat_map(split));
        }
        read.extend(prose.split('`').skip(1).step_by(2).flat_map(split));
    }
    read.retain(|command| {
        command.starts_with("pgrig ") && !command.contains("--help") && !command.contains("--version")
    });
    assert!(read.len() > 20, "{read:#?}");
    for command in read {
        let command = command.split(" -- ").next().unwrap();
        let result = shell(&rig, directory.path(), &format!("{command} --help"));
        assert_eq!(result.code, Some(0), "{command}: {result:#?}");
    }
}
