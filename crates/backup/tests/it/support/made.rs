//! Backups of each kind, made by PostgreSQL's own programs.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backup::Programs;
use testkit::{Server, block_on};

use super::server;

/// Directory of client programs of another version: that of a release that pg_dump's formats have changed since.
pub(crate) const CLIENTS: &str = "PGRIG_TEST_CLIENTS";

const SCHEMA: &str = r#"
    CREATE TABLE t (id int PRIMARY KEY, "a,b" text, at timestamptz, twice int GENERATED ALWAYS AS (id * 2) STORED);
    INSERT INTO t SELECT i, CASE WHEN i % 7 > 0 THEN md5(i::text) || E'\t\\ö' || md5((i * 3)::text) END, now() FROM generate_series(1, 4000) i;
    CREATE TABLE two (id int, v text);
    INSERT INTO two SELECT i, repeat(md5(i::text), 3) FROM generate_series(1, 2000) i;
    CREATE TABLE three (id int, v text, w text);
    INSERT INTO three SELECT i, md5(i::text), '' FROM generate_series(1, 3000) i;
    CREATE TABLE empty (id int);
    CREATE TABLE no_columns ();
    INSERT INTO no_columns DEFAULT VALUES;
    CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
COPY t (id) FROM stdin;
    RETURN E'-- PostgreSQL database dump complete'; END $$;
    SELECT lo_from_bytea(0, decode(repeat(md5(i::text), 100), 'hex')) FROM generate_series(1, 4) i;
    SELECT lo_from_bytea(0, '');
"#;

/// The server, and a directory for backups.
pub(crate) struct Made {
    pub(crate) server: Server,
    pub(crate) programs: PathBuf,
    /// Compressions that the programs have, beside gzip.
    methods: Vec<&'static str>,
    pub(crate) directory: tempfile::TempDir,
}

impl Made {
    /// With client programs of this machine and an earlier server, or with those that the environment names, and their server.
    pub(crate) fn new() -> Self {
        let named = std::env::var_os(CLIENTS).map(PathBuf::from);
        let release = if named.is_some() { 18 } else { 13 };
        Self::by(named.as_deref(), release)
    }

    /// With these client programs; none for those of this machine.
    pub(crate) fn by(named: Option<&Path>, release: u16) -> Self {
        let server = server(release);
        block_on(async {
            let connection = server.connect("postgres").await;
            connection.client.batch_execute(SCHEMA).await.unwrap();
            connection.close().await;
        });
        let programs = Programs::find(named, release).unwrap();
        let mut methods = if programs.major >= 16 { vec!["lz4", "zstd"] } else { Vec::new() };
        methods.retain(|method| !programs.lacks.contains(method));
        Self { server, programs: programs.dir, methods, directory: testkit::directory() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .env("PGHOST", self.server.socket_dir())
            .env("PGPORT", self.server.port().to_string())
            .env("PGUSER", "postgres")
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }

    /// Runs a program on the server; `FILE` stands for the backup's path.
    pub(crate) fn make(&self, name: &str, line: &str) -> PathBuf {
        let path = self.path(name);
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().unwrap());
        command.args(words.map(|word| word.replace("FILE", path.to_str().unwrap())));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        path
    }

    /// Compresses a file, with a checksum.
    pub(crate) fn compress(&self, from: &Path, name: &str) -> PathBuf {
        let path = self.path(name);
        let mut input = BufReader::new(File::open(from).unwrap());
        let mut encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        io::copy(&mut input, &mut encoder).unwrap();
        encoder.finish().unwrap();
        path
    }

    /// One of each kind: its name, the path, and whether checksums cover all of it.
    pub(crate) fn all(&self) -> Vec<(&'static str, PathBuf, bool)> {
        let dump = |name, format: &str| {
            (name, self.make(name, &format!("pg_dump --format={format} --file=FILE postgres")), false)
        };
        let base = "pg_basebackup --pgdata=FILE --checkpoint=fast";
        let custom = dump("custom.dump", "custom --compress=6");
        let none = dump("none.dump", "custom --compress=0");
        let packed = ("custom.dump.zst", self.compress(&none.1, "custom.dump.zst"), true);
        let gzip = self.make("plain.sql.gz", "pg_dump --format=plain --compress=6 --file=FILE postgres");
        let cluster = self.make("cluster.sql", "pg_dumpall --file=FILE");
        let packed_cluster = ("cluster.sql.zst", self.compress(&cluster, "cluster.sql.zst"), true);
        let mut all = vec![
            dump("plain.sql", "plain"),
            ("plain.sql.gz", gzip, true),
            ("cluster.sql", cluster, false),
            packed_cluster,
            custom,
            none,
            packed,
            dump("tar.tar", "tar"),
            dump("directory", "directory --compress=6 --jobs=2"),
            dump("directory-none", "directory --compress=0"),
            ("base", self.make("base", base), true),
            (
                "base-tar",
                self.make("base-tar", &format!("{base} --format=tar --gzip --manifest-checksums=SHA256")),
                true,
            ),
        ];
        let one = File::create(self.path("one.tar")).unwrap();
        let mut command = self.command("pg_basebackup");
        command.args(["--pgdata=-", "--format=tar", "--wal-method=fetch", "--checkpoint=fast"]).stdout(one);
        assert!(command.status().unwrap().success());
        all.push(("one.tar", self.path("one.tar"), true));
        for method in &self.methods {
            let [custom, directory] = if *method == "lz4" {
                ["custom-lz4.dump", "directory-lz4"]
            } else {
                ["custom-zstd.dump", "directory-zstd"]
            };
            all.push(dump(custom, &format!("custom --compress={method}")));
            all.push(dump(directory, &format!("directory --compress={method}")));
        }
        if self.methods.contains(&"zstd") {
            let zstd = format!("{base} --format=tar --compress=client-zstd");
            all.push(("base-tar-zstd", self.make("base-tar-zstd", &zstd), true));
        }
        all
    }
}

/// Sizes of a directory's files, with their paths below it.
pub(crate) fn files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let size = path.metadata().unwrap().len();
            found.push((path, size));
        }
    }
    found.sort();
    found
}
