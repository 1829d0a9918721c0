//! `pgrig testdb unlog` of real dumps: only tables' persistence changes, in exactly the tables that it should.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Ran, Rig, Server};
use tempfile::TempDir;

/// Tables of tests/data/unlog.sql that become unlogged, with those that are; of sequences those of servers that can.
const UNLOGGED_TABLES: &[&str] = &[
    "app.customers",
    "app.orders",
    "app.hens",
    "app.eggs",
    "app.notes",
    "app.animals",
    "app.dogs",
    "app.pairs",
    "app.partition",
    "app.scratch",
    "\"Größe\".\"CREATE TABLE \"\"x\"\" ();\n-- second; line $$\"",
    "\"Größe\".\"Straße\"",
    "app.bookings",
    "app.empty",
];
/// Those that stay: cities and countries are referenced by a partitioned table, the others are published, visits with
/// its partitions.
const LOGGED_TABLES: &[&str] = &[
    "app.countries",
    "app.cities",
    "app.visits",
    "app.visits_new",
    "app.visits_new_0",
    "app.visits_new_1",
    "app.visits_old",
    "app.published",
    "app.partly",
];
/// Of identity columns, serial columns, and by itself. That of countries stays with its table.
const UNLOGGED_SEQUENCES: &[&str] =
    &["app.customers_id_seq", "app.orders_id_seq", "app.orders_number_seq", "app.lone"];

/// A PostgreSQL with the database `original`, and the client programs to dump it.
struct Dumped<'a> {
    rig: &'a Rig,
    _server: Server<'a>,
    version: u16,
    url: String,
    files: TempDir,
}

impl<'a> Dumped<'a> {
    /// None where the test is skipped.
    fn new(rig: &'a Rig, version: u16) -> Option<Self> {
        if !testkit::require(testkit::Need::Clients) {
            return None;
        }
        let server = rig.server(&format!("--pg-version {version} --set wal_level=logical"));
        let dumped =
            Self { rig, _server: server, version, url: rig.url(), files: tempfile::tempdir().unwrap() };
        dumped.create("original");
        dumped.psql("original", &["-f", "tests/data/unlog.sql"]);
        Some(dumped)
    }

    /// How a database is reached.
    fn database(&self, name: &str) -> String {
        self.url.replace("dbname=postgres", &format!("dbname={name}"))
    }

    fn create(&self, database: &str) {
        self.psql("postgres", &["-c", &format!("CREATE DATABASE {database} TEMPLATE template0")]);
    }

    fn psql(&self, database: &str, arguments: &[&str]) -> String {
        let url = self.database(database);
        let options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url];
        text(&client("psql").args(options).args(arguments).output().unwrap())
    }

    /// The output of pg_dump as a file.
    fn dump(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.files.path().join(name);
        self.dump_command(options).arg("-f").arg(&path).output().map(|output| text(&output)).unwrap();
        path
    }

    fn dump_command(&self, options: &[&str]) -> Command {
        let mut command = client("pg_dump");
        command.args(options).arg("-d").arg(self.database("original"));
        command
    }

    /// Makes a new database of a script.
    fn restore(&self, script: &Path, database: &str) {
        self.create(database);
        self.psql(database, &["-f", script.to_str().unwrap()]);
    }

    /// The catalog's contents that are equal in a database and in its restored copy.
    fn catalog(&self, database: &str) -> String {
        self.psql(database, &["-f", "tests/data/catalog.sql"])
    }

    /// Names of relations of these kinds and this persistence, as SQL writes them.
    fn relations(&self, database: &str, kinds: &str, persistence: char) -> BTreeSet<String> {
        let query = format!(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind = ANY ('{{{kinds}}}') AND relpersistence = '{persistence}' \
             AND relnamespace::regnamespace::text IN ('app', '\"Größe\"')"
        );
        let found = self.psql(database, &["-R", "\u{1}", "-c", &query]);
        found
            .trim_end_matches('\n')
            .split('\u{1}')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// All rows, and where sequences are.
    fn rows(&self, database: &str) -> String {
        self.psql(database, &["-f", "tests/data/rows.sql"])
    }

    fn unlog(&self, arguments: &[&str]) -> Ran {
        let ran = Ran::from(
            self.rig.command("testdb unlog").args(arguments).stdin(Stdio::null()).output().unwrap(),
        );
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran
    }
}

/// A client program, without anything of its surroundings that could lead it elsewhere.
fn client(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
        command.env_remove(name);
    }
    command.env("PGOPTIONS", "-c client_min_messages=warning");
    command
}

/// Standard output of a program that must succeed.
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// `\restrict` has a key that is made anew each time.
fn without_restrict(dump: &str) -> String {
    dump.lines()
        .filter(|line| !line.starts_with("\\restrict ") && !line.starts_with("\\unrestrict "))
        .fold(String::new(), |text, line| text + line + "\n")
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A form of plain dumps: a name, settings of pg_dump's session, and its options.
type Form = (&'static str, &'static str, &'static [&'static str]);

const PLAIN: Form = ("plain", "", &[]);
const FORMS: &[Form] = &[
    PLAIN,
    ("inserts", "", &["--inserts"]),
    ("quotes", "", &["--column-inserts", "--disable-dollar-quoting", "--quote-all-identifiers"]),
    ("escapes", "-c standard_conforming_strings=off", &[]),
    ("escaped_inserts", "-c standard_conforming_strings=off", &["--inserts", "--disable-dollar-quoting"]),
];

/// A dump and what becomes of it are restored: nothing differs but persistence, where it should.
fn only_persistence_differs(dumped: &Dumped<'_>, target: &Dumped<'_>, (name, settings, options): Form) {
    let dump = dumped.files.path().join(name);
    let mut command = dumped.dump_command(options);
    text(&command.env("PGOPTIONS", settings).arg("-f").arg(&dump).output().unwrap());
    assert_eq!(std::fs::read_to_string(&dump).unwrap().contains("strings = off;"), !settings.is_empty());
    let changed = dumped.files.path().join("changed.sql");
    let ran = dumped.unlog(&[dump.to_str().unwrap(), "-o", changed.to_str().unwrap()]);
    let has_sequences = dumped.version >= 15;
    // One was unlogged before; two sequences are of identity columns, and follow their tables.
    let (tables, sequences) = (UNLOGGED_TABLES.len() - 1, if has_sequences { 2 } else { 0 });
    let [before, after] = [&dump, &changed].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(after.len() - before.len(), (tables + sequences) * "UNLOGGED ".len(), "{ran:#?}");
    let told = format!("{tables} tables and {sequences} sequences made unlogged");
    assert!(ran.stderr.contains(&told), "{ran:#?}");
    assert!(ran.stderr.contains("1 table unchanged: unlogged already"), "{ran:#?}");

    let (plain, fast) = (format!("{name}_plain"), format!("{name}_fast"));
    target.restore(&dump, &plain);
    target.restore(&changed, &fast);
    let (catalog, rows) = (target.catalog(&plain), target.rows(&plain));
    assert!(catalog.lines().count() > 300, "{catalog}");
    assert!(rows.lines().count() > 400, "{rows}");
    assert_eq!(target.catalog(&fast), catalog, "{name}");
    assert_eq!(target.rows(&fast), rows, "{name}");
    assert_eq!(dumped.rows("original"), rows, "{name}");
    assert_eq!(target.relations(&fast, "r", 'u'), set(UNLOGGED_TABLES), "{name}");
    assert_eq!(target.relations(&fast, "r,p", 'p'), set(LOGGED_TABLES), "{name}");
    let sequences = if has_sequences { UNLOGGED_SEQUENCES } else { &[] };
    assert_eq!(target.relations(&fast, "S", 'u'), set(sequences), "{name}");
    assert_eq!(target.relations(&plain, "r,S", 'u'), set(&["app.scratch"]), "{name}");
}

#[test]
fn only_persistence_differs_13() {
    let rig = Rig::new();
    let Some(dumped) = Dumped::new(&rig, 13) else { return };
    for form in FORMS {
        only_persistence_differs(&dumped, &dumped, *form);
    }
}

#[test]
fn only_persistence_differs_15() {
    let rig = Rig::new();
    let Some(dumped) = Dumped::new(&rig, 15) else { return };
    for form in FORMS {
        only_persistence_differs(&dumped, &dumped, *form);
    }
    // A form that 13 cannot load: several rows with a generated column.
    only_persistence_differs(&dumped, &dumped, ("rows", "", &["--inserts", "--rows-per-insert=7"]));
}

#[test]
fn only_persistence_differs_from_15_to_18() {
    let (rig, other) = (Rig::new(), Rig::new());
    let (Some(dumped), Some(target)) = (Dumped::new(&rig, 15), Dumped::new(&other, 18)) else { return };
    only_persistence_differs(&dumped, &target, PLAIN);
}

/// The three forms of archives, named, from a file as standard input, and through a pipe; and what a pipe cannot have.
#[test]
fn archives_give_what_their_sql_gives() {
    let rig = Rig::new();
    let Some(dumped) = Dumped::new(&rig, 15) else { return };
    let read = |path: &Path| without_restrict(&std::fs::read_to_string(path).unwrap());
    let expected = dumped.files.path().join("expected.sql");
    let plain = dumped.dump("plain.sql", &[]);
    dumped.unlog(&[plain.to_str().unwrap(), "-o", expected.to_str().unwrap()]);
    let expected = read(&expected);
    for (name, format) in [("custom", "-Fc"), ("tar", "-Ft"), ("directory", "-Fd")] {
        let archive = dumped.dump(name, &[format]);
        let ran = dumped.unlog(&[archive.to_str().unwrap()]);
        assert_eq!(without_restrict(&ran.stdout), expected, "{name}");
        if format == "-Fd" {
            continue;
        }
        assert!(testkit::does("gzip", &["-k", archive.to_str().unwrap()]));
        let ran = dumped.unlog(&[&format!("{}.gz", archive.to_str().unwrap())]);
        assert_eq!(without_restrict(&ran.stdout), expected, "{name} within gzip");
        let file = std::fs::File::open(&archive).unwrap();
        let ran = Ran::from(rig.command("testdb unlog").stdin(file).output().unwrap());
        assert_eq!(without_restrict(&ran.stdout), expected, "{name} as standard input: {}", ran.stderr);
    }
    // The options replace the first pass, which a pipe cannot have; sequences of logged tables become unlogged without
    // it.
    let logged =
        LOGGED_TABLES.iter().map(|table| format!("--exclude-table {table}")).collect::<Vec<_>>().join(" ");
    for format in ["-Fp", "-Fc", "-Ft"] {
        let archive = std::fs::read(dumped.dump("piped", &[format])).unwrap();
        let ran = through_pipe(&rig, &format!("testdb unlog {logged}"), &archive);
        assert_eq!(ran.code, Some(0), "{format}: {ran:#?}");
        let countries = ("UNLOGGED SEQUENCE app.countries_capital_seq", "SEQUENCE app.countries_capital_seq");
        let published = ("UNLOGGED SEQUENCE app.published_id_seq", "SEQUENCE app.published_id_seq");
        let visits = ("UNLOGGED SEQUENCE app.visits_id_seq", "SEQUENCE app.visits_id_seq");
        let found =
            [countries, published, visits].iter().fold(ran.stdout, |text, (from, to)| text.replace(from, to));
        assert_eq!(without_restrict(&found), expected, "{format} through a pipe");
        assert!(ran.stderr.contains("sequence app.countries_capital_seq is unlogged"), "{}", ran.stderr);
        let ran = through_pipe(&rig, "testdb unlog", &archive);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(
            ran.stderr.contains(
                "pgrig has already made table app.cities unlogged, but partitioned table app.visits"
            ),
            "{}",
            ran.stderr
        );
    }

    // One that is cut off.
    let archive = std::fs::read(dumped.dump("whole", &["-Fc"])).unwrap();
    let cut = dumped.files.path().join("cut");
    std::fs::write(&cut, &archive[..archive.len() - 2000]).unwrap();
    let output = dumped.files.path().join("cut.sql");
    let arguments = format!("testdb unlog {} -o {}", cut.display(), output.display());
    let ran = rig.run(&arguments);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stderr.contains("pg_restore (PostgreSQL)") && ran.stderr.contains("could not read"),
        "{ran:#?}"
    );
    assert_leaves_nothing(&dumped, "cut.sql");
    let ran = through_pipe(&rig, "testdb unlog", &archive[..archive.len() - 2000]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");

    // No pg_restore.
    let ran = Ran::from(rig.command(&arguments).env("PATH", dumped.files.path()).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("needs pg_restore") && ran.stderr.contains("postgresql-client"), "{ran:#?}");
    // One that is killed.
    let killed = "#!/bin/sh\n[ \"$1\" = --version ] && echo pg_restore 15 && exit\necho 'CREATE TABLE t ();'\nkill -9 $$\n";
    let program = dumped.files.path().join("pg_restore");
    std::fs::write(&program, killed).unwrap();
    assert!(testkit::does("chmod", &["+x", program.to_str().unwrap()]));
    let ran = Ran::from(rig.command(&arguments).env("PATH", dumped.files.path()).output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("signal: 9"), "{ran:#?}");
    assert_leaves_nothing(&dumped, "cut.sql");
}

/// No file whose name begins so, whole or half.
fn assert_leaves_nothing(dumped: &Dumped<'_>, name: &str) {
    let files = std::fs::read_dir(dumped.files.path()).unwrap().map(|file| file.unwrap().file_name());
    let left = files.filter(|file| file.to_string_lossy().starts_with(name)).collect::<Vec<_>>();
    assert!(left.is_empty(), "{left:?}");
}

/// Runs pgrig with these bytes coming through a pipe.
fn through_pipe(rig: &Rig, arguments: &str, input: &[u8]) -> Ran {
    let mut child = rig
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // It need not read all of it.
        scope.spawn(move || drop(stdin.write_all(input)));
        Ran::from(child.wait_with_output().unwrap())
    })
}

/// Dumps that name databases cannot be restored beside the original; nothing but the word is added to them.
#[test]
fn dumps_of_databases_and_of_all_are_read() {
    let rig = Rig::new();
    let Some(dumped) = Dumped::new(&rig, 15) else { return };
    dumped.psql("postgres", &["-c", "CREATE TABLE t (a serial); CREATE TABLE \"connect \\ b\" ()"]);
    let unlogged = UNLOGGED_TABLES.len() - 1 + 2;
    let all = dumped.files.path().join("all.sql");
    let mut dump_all = client("pg_dumpall");
    text(&dump_all.arg("-f").arg(&all).arg("-d").arg(dumped.database("postgres")).output().unwrap());
    let created = dumped.dump("created.sql", &["--create", "--clean", "--if-exists", "--no-owner"]);
    let schema = dumped.dump("schema.sql", &["--schema-only", "--no-comments"]);
    for (dump, expected) in [(all, unlogged + 3), (created, unlogged), (schema, unlogged)] {
        let before = std::fs::read_to_string(&dump).unwrap();
        let ran = dumped.unlog(&[dump.to_str().unwrap()]);
        let added =
            ran.stdout.matches("CREATE UNLOGGED ").count() - before.matches("CREATE UNLOGGED ").count();
        assert_eq!(added, expected, "{}: {}", dump.display(), ran.stderr);
        assert_eq!(
            ran.stdout.replace("CREATE UNLOGGED ", "CREATE "),
            before.replace("CREATE UNLOGGED ", "CREATE ")
        );
        assert!(!ran.stderr.contains("truncated"), "{}", ran.stderr);
    }
}

/// gzip and zstd, in and out, by name, by option, and as the input.
#[test]
fn compressed_dumps_are_read_and_written() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let dump = "CREATE TABLE t (a text);\nCOPY t (a) FROM stdin;\nCREATE TABLE u ();\n\\.\n".to_owned();
    let expected = dump.replacen("TABLE", "UNLOGGED TABLE", 1);
    std::fs::write(path("plain"), &dump).unwrap();
    let done = |arguments: &str| {
        let output = rig.command(&format!("testdb unlog {arguments}")).output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let magic = |name: &str| std::fs::read(path(name)).unwrap()[..2].to_vec();
    let (gzip, zstd) = (vec![0x1f, 0x8b], vec![0x28, 0xb5]);

    done(&format!("{} -o {}", path("plain"), path("a.gz")));
    done(&format!("{} -o {}", path("plain"), path("a.zst")));
    done(&format!("{} -o {} --compress gzip", path("plain"), path("other")));
    assert_eq!([magic("a.gz"), magic("a.zst"), magic("other")], [gzip.clone(), zstd.clone(), gzip.clone()]);
    // Unlogged ones are not unlogged again.
    for name in ["a.gz", "a.zst", "other"] {
        let again = done(&format!("{} --compress none", path(name)));
        assert_eq!(String::from_utf8(again).unwrap(), expected, "{name}");
    }
    assert_eq!(done(&path("a.gz"))[..2], gzip);
    assert_eq!(done(&path("a.zst"))[..2], zstd);
    done(&format!("{} -o {}", path("a.gz"), path("a.sql")));
    assert_eq!(std::fs::read_to_string(path("a.sql")).unwrap(), expected);
    // In its own place, and where it may not be renamed to.
    done(&format!("{} -o {}", path("plain"), path("plain")));
    assert_eq!(std::fs::read_to_string(path("plain")).unwrap(), expected);
    done(&format!("{} -o /dev/null", path("plain")));
    assert_eq!(
        through_pipe(&rig, "testdb unlog -", &std::fs::read(path("a.gz")).unwrap()[..20]).code,
        Some(2)
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let dump = files.path().join("dump.sql");
    std::fs::write(&dump, "CREATE TABLE t ();\nSELECT 'a").unwrap();
    let dump = dump.to_str().unwrap();
    let output = files.path().join("output.sql");
    let cases = [
        (format!("{dump} --schema s"), 2, "--schema is for a live database"),
        (format!("{dump} --back"), 2, "--back is for a live database"),
        ("--dry-run".to_owned(), 2, "--explain is for a live database"),
        (format!("-d postgres {dump}"), 2, "FILE is for a dump"),
        (format!("{dump} --set fsync=off"), 2, "--profile and --set are for a live database"),
        (format!("-d postgres -o {dump}"), 2, "--output is for a dump"),
        ("-d postgres --compress gzip".to_owned(), 2, "--compress is for a dump"),
        (
            format!("{dump} --exclude-table u"),
            2,
            "the dump ends inside a string, which began at or after line 2",
        ),
        (format!("{dump} --exclude-table a.b.'c'"), 2, "is not a table name"),
        (format!("{dump} -o {}", output.display()), 2, "ends inside a string"),
        (
            format!("{} --exclude-table u", whole(&files)),
            2,
            "--exclude-table u: the dump does not create a logged table",
        ),
        (
            format!("{}/missing", files.path().display()),
            2,
            "missing: the file does not exist; check the path",
        ),
        (format!("{}", files.path().display()), 2, "a directory without toc.dat"),
        ("/proc/self/exe".to_owned(), 2, "bytes that are not text"),
        (format!("{} -o {}/missing/a", whole(&files), files.path().display()), 2, "there is no directory"),
    ];
    for (arguments, code, told) in cases {
        let ran = rig.run(&format!("testdb unlog {arguments}"));
        assert_eq!(ran.code, Some(code), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(told), "{arguments}: {}", ran.stderr);
    }
    assert!(!output.exists());
    // A script that meant the live database shall not go on as if it were done.
    let ran = rig.run("testdb unlog");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("standard input is empty") && ran.stderr.contains("-d mydb"), "{ran:#?}");
}

/// A dump that is whole.
fn whole(files: &TempDir) -> String {
    let path = files.path().join("whole.sql");
    std::fs::write(&path, "CREATE TABLE t ();\n").unwrap();
    path.to_str().unwrap().to_owned()
}

/// Nobody types a dump, and nobody reads a compressed one.
#[test]
fn terminals_are_no_place_for_dumps() {
    let rig = Rig::new();
    let files = tempfile::tempdir().unwrap();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = rig.command("testdb unlog");
    let ran = Ran::from(command.stdin(terminal.slave).output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("< dump.sql") && ran.stderr.contains("-d mydb"), "{ran:#?}");

    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = rig.command(&format!("testdb unlog {} --compress zstd", whole(&files)));
    command.stdout(terminal.slave).stderr(Stdio::piped());
    let ran = Ran::from(command.spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("compressed output does not go to a terminal"), "{ran:#?}");
}
