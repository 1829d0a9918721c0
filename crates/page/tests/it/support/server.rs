//! Has servers write tables.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use connect::Connection;
use pgserver::Major;
use tempfile::TempDir;
use testkit::{Server, block_on, cache, quoted};

use super::{BLOCK, Database, Table, Way, is_new};

/// Rows of one shape: a tuple's shape depends on the number of columns, on NULLs and lengths.
struct Sample {
    name: &'static str,
    columns: &'static str,
    /// A query.
    rows: &'static str,
}

const SAMPLES: &[Sample] = &[
    Sample {
        name: "accounts",
        columns: "aid int, bid int, abalance int, filler char(84)",
        rows: "SELECT i, 1, 0, '' FROM generate_series(1, 2500) i",
    },
    Sample { name: "no columns", columns: "", rows: "SELECT FROM generate_series(1, 1000)" },
    Sample {
        name: "fixed lengths",
        columns: "a bool, b int8, c int2, d uuid, e float4, f timestamptz",
        rows: "SELECT i % 2 = 0, i, i, md5(i::text)::uuid, i, to_timestamp(i) FROM generate_series(1, 2500) i",
    },
    Sample {
        name: "NULLs in 9 columns",
        columns: "a int, b text, c int8, d bool, e int, f text, g int2, h int8, i text",
        rows: "SELECT nullif(i % 2, 0), CASE WHEN i % 3 > 0 THEN 'b' || i END, nullif(i % 5, 0), NULL, i,
                      CASE WHEN i % 7 > 0 THEN repeat('f', i % 200) END, NULL, nullif(i % 11, 0), NULL
               FROM generate_series(1, 2500) i",
    },
    Sample {
        name: "nothing but NULLs",
        columns: "a int, b text",
        rows: "SELECT NULL, NULL FROM generate_series(1, 1000)",
    },
    Sample {
        name: "short and long text",
        columns: "a text, b int8, c text",
        rows: "SELECT repeat('a', 150 + i * 7 % 150), i, repeat('c', i * 101 % 1600)
               FROM generate_series(1, 1500) i",
    },
    Sample {
        name: "up to the longest tuple",
        columns: "a text, b int",
        rows: "SELECT repeat('a', 8128 - i * i % 7900), i FROM generate_series(0, 300) i",
    },
];

/// Percent.
const FILLFACTORS: [u8; 3] = [100, 45, 10];

/// Shows the test what servers of this version wrote, with checksums and without.
pub(crate) fn written(version: u16, test: impl Fn(&Database)) {
    // The first start fetches the binaries, whose own initdb decides on the checksums.
    let usual = write(version, None, &test);
    let option = match (version, usual) {
        (_, false) => "--data-checksums",
        (_, true) => "--no-data-checksums",
    };
    let binaries = WrappedBinaries::new(version, option);
    let other = write(version, Some(binaries.0.path()), &test);
    assert_ne!(usual, other);
}

/// Returns whether there were checksums.
fn write(version: u16, binaries: Option<&Path>, test: &impl Fn(&Database)) -> bool {
    // Its transactions would keep VACUUM from freezing.
    let mut spec = testkit::spec(version, &[("autovacuum", "off")]);
    spec.pg_bin = binaries.map(Path::to_owned);
    let server = Server::start(spec);
    let database = all_written(server, version);
    test(&database);
    database.checksums
}

/// The fetched binaries with an initdb that takes an option more.
struct WrappedBinaries(TempDir);

impl WrappedBinaries {
    fn new(version: u16, option: &str) -> Self {
        let pinned = Major::from_number(version).unwrap().pinned();
        let fetched = cache().join(pinned).join("bin");
        let directory = tempfile::tempdir().unwrap();
        symlink(fetched.join("postgres"), directory.path().join("postgres")).unwrap();
        let initdb = directory.path().join("initdb");
        let script = format!("#!/bin/sh\nexec '{}' \"$@\" {option}\n", fetched.join("initdb").display());
        fs::write(&initdb, script).unwrap();
        // For the account that root lends the server too.
        for path in [directory.path(), &initdb] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        Self(directory)
    }
}

/// Has all tables written and stops, so that the files are complete.
fn all_written(mut server: Server, version: u16) -> Database {
    let data = server.data_dir();
    let (checksums, forks) = block_on(async {
        let connection = server.connect("postgres").await;
        let checksums: String = value(&connection, "SHOW data_checksums").await;
        let mut forks = Vec::new();
        for sample in SAMPLES {
            for fillfactor in FILLFACTORS {
                forks.extend(tables(&connection, sample, fillfactor, &data).await);
            }
        }
        connection.close().await;
        (checksums == "on", forks)
    });
    server.stop();
    let directory = forks[0].path.parent().unwrap().to_owned();
    let tables = forks.into_iter().map(BlockLocation::read).collect();
    Database { version, checksums, tables, directory, _server: server }
}

/// Where a table is.
struct BlockLocation {
    name: String,
    fillfactor: u8,
    way: Way,
    path: PathBuf,
}

impl BlockLocation {
    fn read(self) -> Table {
        let Self { name, fillfactor, way, path } = self;
        let mut heap = fs::read(&path).unwrap();
        // COPY extends a heap by more than it needs.
        while heap.rchunks_exact(BLOCK).next().is_some_and(is_new) {
            heap.truncate(heap.len() - BLOCK);
        }
        let visibility_map = fs::read(format!("{}_vm", path.display())).unwrap();
        Table { name, fillfactor, way, heap, visibility_map }
    }
}

/// Writes the sample's rows in both ways.
async fn tables(connection: &Connection, sample: &Sample, fillfactor: u8, data: &Path) -> [BlockLocation; 2] {
    let Sample { name, columns, rows } = sample;
    // The longest that is possible, so that nothing is compressed or goes elsewhere.
    let options = format!("(fillfactor = {fillfactor}, toast_tuple_target = 8160)");
    let [inserted, copied] =
        ["inserted", "copied"].map(|way| quoted(&format!("{name}, {fillfactor}, {way}")));
    let file = format!("'{}'", data.join("rows").display());
    for statement in [
        format!("CREATE TABLE {inserted} ({columns}) WITH {options}"),
        format!("INSERT INTO {inserted} {rows}"),
        format!("VACUUM (FREEZE) {inserted}"),
        format!("COPY ({rows}) TO {file}"),
        "BEGIN".to_owned(),
        format!("CREATE TABLE {copied} ({columns}) WITH {options}"),
        format!("COPY {copied} FROM {file} (FREEZE)"),
        "COMMIT".to_owned(),
        // PostgreSQL 13's COPY does not mark the pages.
        format!("VACUUM {copied}"),
    ] {
        if let Err(error) = connection.client.batch_execute(&statement).await {
            panic!("{statement}: {error:?}");
        }
    }
    let mut places = Vec::new();
    for (way, table) in [(Way::Inserted, inserted), (Way::Copied, copied)] {
        let query = format!("SELECT pg_relation_filepath('{table}')");
        let path = data.join(value(connection, &query).await);
        places.push(BlockLocation { name: (*name).to_owned(), fillfactor, way, path });
    }
    places.try_into().ok().unwrap()
}

async fn value(connection: &Connection, query: &str) -> String {
    connection.client.query_one_scalar(query, &[]).await.unwrap()
}
