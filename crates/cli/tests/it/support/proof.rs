//! Proof that tables' files are as PostgreSQL itself would have written them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use page::checksum;

use super::Server;
use testkit::until_some as until;
use tokio_postgres::{Client, Row};

/// Pages of all servers here, bytes.
const BLOCK: usize = 8192;
/// Pages in a segment of theirs.
const SEGMENT: u32 = 131_072;

/// Tables and indexes of one schema.
pub struct Proof<'a> {
    server: &'a Server<'a>,
    /// One session for everything: a proof asks much.
    client: Client,
    data: &'a Path,
    schema: &'a str,
    pub major: i64,
}

/// A table, a leaf or an index.
#[derive(Debug)]
pub struct Relation {
    oid: u32,
    /// As SQL names it.
    pub name: String,
    is_index: bool,
    /// Of its main fork.
    first: PathBuf,
}

impl Relation {
    /// Whether it is pgbench_accounts or a leaf of it, or a key of those.
    pub fn is_bulk(&self) -> bool {
        self.name.contains("pgbench_accounts")
    }

    /// Segments of all its forks.
    pub fn files(&self) -> Vec<PathBuf> {
        let name = self.first.file_name().unwrap().to_str().unwrap();
        let belongs = |path: &PathBuf| {
            let rest = path.file_name().unwrap().to_str().unwrap().strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '_']))
        };
        entries(self.first.parent().unwrap()).into_iter().filter(belongs).collect()
    }
}

impl<'a> Proof<'a> {
    /// `data` is the server's directory.
    pub fn of(server: &'a Server<'a>, data: &'a Path, schema: &'a str) -> Self {
        let client = server.rig.connect(&server.url);
        let mut proof = Self { server, client, data, schema, major: 0 };
        proof.execute(
            "CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA pg_catalog; \
             CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA pg_catalog",
        );
        proof.major = proof.number("SELECT current_setting('server_version_num')::bigint / 10000");
        proof
    }

    fn row(&self, query: &str) -> Row {
        self.server.rig.block_on(self.client.query_one(query, &[])).unwrap()
    }

    fn rows(&self, query: &str) -> Vec<Row> {
        self.server.rig.block_on(self.client.query(query, &[])).unwrap()
    }

    fn number(&self, query: &str) -> i64 {
        self.row(query).get(0)
    }

    fn execute(&self, sql: &str) {
        self.server.rig.block_on(self.client.batch_execute(sql)).unwrap();
    }

    /// Those that have files, by their names.
    fn relations(&self) -> Vec<Relation> {
        let query = format!(
            "SELECT c.oid, c.oid::regclass::text AS name, relkind = 'i' AS is_index, \
                    pg_relation_filepath(c.oid) AS file \
               FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
              WHERE nspname = '{}' AND relkind IN ('r', 'i') ORDER BY relname",
            self.schema.replace('\'', "''")
        );
        let relation = |row: &Row| Relation {
            oid: row.get("oid"),
            name: row.get("name"),
            is_index: row.get("is_index"),
            first: self.data.join(row.get::<_, &str>("file")),
        };
        self.rows(&query).iter().map(relation).collect()
    }

    pub fn tables(&self) -> Vec<Relation> {
        self.relations().into_iter().filter(|relation| !relation.is_index).collect()
    }

    pub fn indexes(&self) -> Vec<Relation> {
        self.relations().into_iter().filter(|relation| relation.is_index).collect()
    }

    /// amcheck and pg_visibility find nothing, with all that they can do.
    pub fn assert_sound(&self) {
        let toasts = self.rows(&format!(
            "SELECT t.oid, t.oid::regclass::text AS name FROM pg_class t JOIN pg_class c ON c.reltoastrelid = t.oid \
                                                JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = '{}'",
            self.schema.replace('\'', "''")
        ));
        let toasts = toasts.iter().map(|row| (row.get("oid"), row.get("name")));
        let tables = self.tables().into_iter().map(|table| (table.oid, table.name));
        for (oid, name) in tables.chain(toasts) {
            let mut checks = vec![
                format!("SELECT string_agg(t::text, ' ') FROM pg_check_visible({oid}) t"),
                format!("SELECT string_agg(t::text, ' ') FROM pg_check_frozen({oid}) t"),
            ];
            if self.major >= 14 {
                checks.push(format!(
                    "SELECT string_agg(concat_ws(' ', blkno, offnum, attnum, msg), E'\\n') \
                       FROM verify_heapam({oid}, on_error_stop => false, check_toast => true, skip => 'none')"
                ));
            }
            for check in checks {
                let found: Option<String> = self.row(&check).get(0);
                assert_eq!(found, None, "{name}: {check}");
            }
        }
        let of_toasts = "SELECT i.indexrelid FROM pg_index i JOIN pg_class t ON t.oid = indrelid WHERE t.relkind = 't' AND t.oid >= 16384";
        let of_toasts = self.rows(of_toasts).into_iter().map(|row| row.get(0));
        for oid in self.indexes().into_iter().map(|index| index.oid).chain(of_toasts) {
            // It fails if it finds something. What bt_index_check looks for is part of it (amcheck's documentation).
            self.execute(&format!(
                "SELECT bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true) \
                   FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE c.oid = {oid} AND amname = 'btree'"
            ));
        }
    }

    /// All blocks of the bulk table are frozen, and the catalogs know how much there is.
    pub fn assert_settled(&self) {
        for relation in self.relations() {
            let table = self.table_of(&relation);
            let row = self.row(&format!(
                "SELECT pg_relation_size(oid) / {BLOCK}, relpages::bigint, relallvisible::bigint, reltuples::bigint, \
                        (SELECT count(*) FROM {table}) FROM pg_class WHERE oid = {}",
                relation.oid
            ));
            let [blocks, pages, visible, tuples, rows] =
                [0, 1, 2, 3, 4].map(|column| row.get::<_, i64>(column));
            let maps = if relation.is_index { 0 } else { blocks };
            assert_eq!((pages, tuples, visible), (blocks, rows, maps), "{relation:?}");
            if !relation.is_index && relation.is_bulk() {
                let marked = self.row(&format!(
                    "SELECT all_visible, all_frozen FROM pg_visibility_map_summary({})",
                    relation.oid
                ));
                assert_eq!((marked.get(0), marked.get(1)), (blocks, blocks), "{relation:?}");
            }
        }
    }

    fn table_of(&self, relation: &Relation) -> String {
        let oid = relation.oid;
        let index = format!("(SELECT indrelid FROM pg_index WHERE indexrelid = {oid})");
        self.row(&format!("SELECT coalesce({index}, {oid})::regclass::text")).get(0)
    }

    /// The rows are the same, and those of the bulk table in the same order.
    pub fn assert_same(&self, other: &Proof) {
        let bulk = |relation: &Relation| relation.is_bulk();
        let rest = |relation: &Relation| !relation.is_bulk();
        let place = "row_number() OVER (ORDER BY ctid)";
        assert_eq!(self.summed(place, bulk), other.summed(place, bulk));
        assert_eq!(self.summed("0", rest), other.summed("0", rest));
    }

    /// The rows are the same, in whatever order.
    pub fn assert_same_unordered(&self, other: &Proof) {
        assert_eq!(self.summed("0", |_| true), other.summed("0", |_| true));
    }

    /// Tables' names, numbers of rows, and a checksum of them and a number of theirs.
    fn summed(&self, number: &str, of: impl Fn(&Relation) -> bool) -> Vec<(String, i64, String)> {
        let sum = |Relation { oid, name, .. }: Relation| {
            let row = self.row(&format!(
                "SELECT (SELECT relname::text FROM pg_class WHERE oid = {oid}), count(*), \
                        coalesce(sum(hashtextextended(t::text, number)), 0)::text \
                   FROM (SELECT t, {number} AS number FROM {name} t) t"
            ));
            (row.get(0), row.get(1), row.get(2))
        };
        self.tables().into_iter().filter(of).map(sum).collect()
    }

    /// All files have the mode, owner and group that the server gives its own.
    pub fn assert_files(&self) {
        let look = |path: &Path| {
            let file = fs::metadata(path).unwrap();
            (file.mode(), file.uid(), file.gid())
        };
        let catalog: String = self.row("SELECT pg_relation_filepath('pg_class')").get(0);
        let theirs = look(&self.data.join(catalog));
        for relation in self.relations() {
            for file in relation.files() {
                assert_eq!(look(&file), theirs, "{} of {}", file.display(), relation.name);
            }
        }
    }

    /// Waits until the database's directory has no file of a relation that is not there: what was dropped goes
    /// with a checkpoint.
    pub fn until_no_orphans(&self) {
        until("only files of relations are left", || {
            self.execute("CHECKPOINT");
            self.orphans().is_empty().then_some(())
        });
    }

    /// Files in the database's directory that are of no relation.
    pub fn orphans(&self) -> Vec<PathBuf> {
        let oid = self.number("SELECT oid::bigint FROM pg_database WHERE datname = current_database()");
        let files = fs::read_dir(self.data.join(format!("base/{oid}"))).unwrap();
        // Looked for first: a relation that comes later is no orphan.
        let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        let known = self.rows("SELECT pg_relation_filenode(oid) FROM pg_class WHERE relkind <> 'v'");
        let known: Vec<u32> = known.iter().filter_map(|row| row.get(0)).collect();
        let is_orphan = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let number = name.split(['.', '_']).next().and_then(|number| number.parse().ok());
            number.is_some_and(|number| !known.contains(&number))
        };
        files.into_iter().filter(is_orphan).collect()
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// All pages of all relations of a stopped server have the checksum that they ought to have; returns how many
/// there are.
pub fn assert_checksums(data: &Path) -> u64 {
    let in_each = |of: Vec<PathBuf>| of.iter().flat_map(|directory| entries(directory)).collect::<Vec<_>>();
    let databases = entries(&data.join("base"));
    // Below each tablespace there is a directory for the server's version.
    let in_spaces = in_each(in_each(entries(&data.join("pg_tblspc"))));
    let places = databases.into_iter().chain(in_spaces).chain([data.join("global")]).collect();
    let mut pages = 0;
    for file in in_each(places) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if !name.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let segment: u32 = name.split_once('.').map_or(0, |(_, number)| number.parse().unwrap());
        for (block, page) in (segment * SEGMENT..).zip(fs::read(&file).unwrap().chunks(BLOCK)) {
            // A page by which the file was extended and no more has none.
            if page.iter().any(|byte| *byte != 0) {
                let there = u16::from_le_bytes([page[8], page[9]]);
                assert_eq!(there, checksum(page, block), "{} block {block}", file.display());
                pages += 1;
            }
        }
    }
    pages
}
