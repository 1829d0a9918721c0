//! Databases with a rich schema, on the oldest and the newest release, and what their catalogs say.

use std::collections::BTreeMap;

use connect::{Connection, Target};
use testkit::{RELEASES, Server, block_on, shared};

/// A schema with everything that a change of persistence could trip over.
pub(crate) const RICH: &str = include_str!("rich.sql");

/// An empty database of a test's own.
pub(crate) struct Database {
    pub(crate) server: &'static Server,
    pub(crate) target: Target,
}

/// Runs a test on the oldest and on the newest release that pgrig works with.
pub(crate) fn on_each_release<F: Future<Output = ()>>(test: impl Fn(Database) -> F) {
    for release in RELEASES {
        block_on(async { test(database(release).await).await });
    }
}

/// An empty database of the server of this release that the tests share.
pub(crate) async fn database(release: u16) -> Database {
    Database { target: shared(release).database().await.target, server: shared(release) }
}

/// Runs psql or pg_dump, which must succeed, and returns what it printed.
pub(crate) fn client(program: &str, arguments: &[&str]) -> Vec<u8> {
    let ran = std::process::Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

impl Database {
    /// With the rich schema in it.
    pub(crate) async fn rich(self) -> Self {
        self.sql(RICH).await;
        self
    }

    pub(crate) fn has_unlogged_sequences(&self) -> bool {
        self.server.major() >= 15
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.target.connect().await.unwrap()
    }

    pub(crate) async fn sql(&self, script: &str) {
        let connection = self.connect().await;
        let done = connection.client.batch_execute(script).await;
        done.unwrap_or_else(|error| panic!("{error:?}: {script}"));
        connection.close().await;
    }

    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        let connection = self.connect().await;
        let rows = connection.client.query(query, &[]).await.unwrap();
        connection.close().await;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// All that is in the catalogs, and a checksum of each table's rows.
    pub(crate) async fn everything(&self) -> BTreeMap<String, Vec<String>> {
        let connection = self.connect().await;
        let mut everything: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in connection.client.query(include_str!("catalogs.sql"), &[]).await.unwrap() {
            let value: Option<String> = row.get("value");
            everything.entry(row.get("what")).or_default().push(value.unwrap_or_default());
        }
        let tables = "SELECT format('%I.%I', n.nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
                      WHERE relkind = 'r' AND relpersistence <> 't' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";
        for row in connection.client.query(tables, &[]).await.unwrap() {
            let table: String = row.get(0);
            let query = format!(
                "SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM ONLY {table} t"
            );
            let sum: String = connection.client.query_one(&query, &[]).await.unwrap().get(0);
            everything.insert(format!("rows of {table}"), vec![sum]);
        }
        connection.close().await;
        everything
    }

    /// Tables and sequences of this persistence, `schema.name`; those of indexes and TOAST do not count.
    pub(crate) async fn of_persistence(&self, persistence: char) -> Vec<String> {
        let query = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                     WHERE c.relkind IN ('r', 'S') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
                     AND c.relpersistence =";
        self.texts(&format!("{query} '{persistence}' ORDER BY 1")).await
    }
}

/// Asserts that nothing differs, and shows the differences.
pub(crate) fn assert_same(one: &BTreeMap<String, Vec<String>>, other: &BTreeMap<String, Vec<String>>) {
    let whats: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = whats.into_iter().filter(|what| one.get(*what) != other.get(*what));
    let told: Vec<String> =
        differing.map(|what| format!("{what}: {:?}, {:?}", one.get(what), other.get(what))).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Without the lines that say which persistence something has.
pub(crate) fn but_persistence(everything: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let kept = everything.iter().filter(|(what, _)| !what.starts_with("persistence "));
    kept.map(|(what, values)| (what.clone(), values.clone())).collect()
}
