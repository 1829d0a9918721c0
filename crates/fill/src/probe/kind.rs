//! The query of a probe.

use std::str::FromStr;

use fastrand::Rng;
use page::Geometry;
use serde::Serialize;

use super::ProbeTable;
use crate::leaf::Leaf;
use server::quote::identifier;

/// Keys of one batch.
const BATCH: usize = 100;
/// Bytes that one scan reads: many times the kernel's read-ahead, but few enough to repeat at many places and to
/// evict little from the cache.
const STRETCH: u64 = 4 << 20;

/// A kind of probe query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// One row by a random existing key.
    Lookup,
    /// A hundred rows by random existing keys, in one statement.
    Batch,
    /// `count(*)` of 4 MB at a random place of the table (of its largest leaf): consecutive
    /// blocks or, before PostgreSQL 14, which has no range scan by ctid, blocks sampled all over it.
    /// A scan of all would cost more than the fill.
    Scan,
    /// The user's own query, in which `$1` is a random existing key and `$2` the number of rows so
    /// far, both bigint.
    Sql(String),
}

impl ProbeKind {
    /// Its name in tables and run documents.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Batch => "batch",
            Self::Scan => "scan",
            Self::Sql(_) => "sql",
        }
    }

    /// The plural, for sentences.
    pub(super) fn plural(&self) -> &'static str {
        match self {
            Self::Lookup => "lookups",
            Self::Batch => "batches",
            Self::Scan => "scans",
            Self::Sql(_) => "probes",
        }
    }

    /// Whether it needs an index on the key while the table is filled.
    pub fn needs_index(&self) -> bool {
        matches!(self, Self::Lookup | Self::Batch)
    }

    /// The query to prepare, with its parameters' types; none for a scan, whose text differs each
    /// time.
    pub(super) fn prepared(&self, table: &ProbeTable) -> Option<String> {
        let (name, key) = (&table.name, identifier(&table.key));
        // A bigint finds its way into an index on smallint and integer, too.
        match self {
            Self::Lookup => Some(format!("(bigint) AS SELECT * FROM {name} WHERE {key} = $1")),
            Self::Batch => Some(format!("(bigint[]) AS SELECT * FROM {name} WHERE {key} = ANY ($1)")),
            Self::Scan => None,
            Self::Sql(query) => Some(format!("(bigint, bigint) AS {query}")),
        }
    }
}

impl FromStr for ProbeKind {
    type Err = UnknownProbe;

    /// Reads a kind's name; any text of more than one word is SQL.
    fn from_str(text: &str) -> Result<Self, UnknownProbe> {
        match text.trim() {
            "lookup" => Ok(Self::Lookup),
            "batch" => Ok(Self::Batch),
            "scan" => Ok(Self::Scan),
            query if query.contains(char::is_whitespace) => {
                Ok(Self::Sql(query.trim_end_matches([';', ' ', '\n']).to_owned()))
            }
            word => Err(UnknownProbe(word.to_owned())),
        }
    }
}

/// A word that is no kind of probe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no probe \"{0}\": give lookup, batch, scan or a query in SQL")]
pub struct UnknownProbe(String);

/// Makes the statements of one point: each at another random place.
pub(super) struct Statements<'a> {
    pub(super) kind: &'a ProbeKind,
    pub(super) table: &'a ProbeTable,
    pub(super) geometry: Geometry,
    /// Number of keys.
    pub(super) rows: u64,
    /// The leaf to scan.
    pub(super) leaf: &'a Leaf,
    /// Whether the server scans ranges of ctid.
    pub(super) scans_ranges: bool,
}

impl Statements<'_> {
    /// The next statement, to be run or explained.
    pub(super) fn next(&self, random: &mut Rng) -> String {
        let name = super::PREPARED;
        match self.kind {
            ProbeKind::Lookup => format!("EXECUTE {name} ({})", self.key(random)),
            ProbeKind::Batch => {
                let keys: Vec<String> = (0..BATCH).map(|_| self.key(random).to_string()).collect();
                format!("EXECUTE {name} ('{{{}}}')", keys.join(","))
            }
            ProbeKind::Scan => self.scan(random),
            ProbeKind::Sql(_) => format!("EXECUTE {name} ({}, {})", self.key(random), self.rows),
        }
    }

    fn key(&self, random: &mut Rng) -> i64 {
        let row = random.u64(0..self.rows.max(1));
        self.table.first_key.saturating_add_unsigned(row)
    }

    fn scan(&self, random: &mut Rng) -> String {
        let Leaf { name, blocks, .. } = self.leaf;
        let stretch = (STRETCH / u64::from(self.geometry.block_size())).min(*blocks);
        if self.scans_ranges {
            let start = random.u64(0..=blocks - stretch);
            let end = start + stretch;
            format!("SELECT count(*) FROM {name} WHERE ctid >= '({start},0)' AND ctid < '({end},0)'")
        } else {
            let percent = 100.0 * stretch as f64 / (*blocks).max(1) as f64;
            let seed = random.u32(..);
            format!("SELECT count(*) FROM {name} TABLESAMPLE SYSTEM ({percent}) REPEATABLE ({seed})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(kind: &ProbeKind, scans_ranges: bool, seed: u64) -> Vec<String> {
        let table = ProbeTable { name: "\"t\"".into(), key: "id".into(), first_key: 1 };
        let leaf = Leaf { name: "t".into(), blocks: 10_000 };
        let geometry = Geometry::new(8192);
        let statements = Statements { kind, table: &table, geometry, rows: 50, leaf: &leaf, scans_ranges };
        let mut random = Rng::with_seed(seed);
        (0..200).map(|_| statements.next(&mut random)).collect()
    }

    #[test]
    fn words_are_kinds_and_the_rest_is_sql() {
        assert_eq!("scan".parse(), Ok(ProbeKind::Scan));
        assert_eq!(" SELECT 1 ; ".parse(), Ok(ProbeKind::Sql("SELECT 1".into())));
        let error = "lockup".parse::<ProbeKind>().unwrap_err().to_string();
        assert_eq!(error, "there is no probe \"lockup\": give lookup, batch, scan or a query in SQL");
    }

    #[test]
    fn keys_are_those_that_exist() {
        let numbers =
            |text: &String| -> i64 { text.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap() };
        let keys: Vec<i64> = statements(&ProbeKind::Lookup, true, 7).iter().map(numbers).collect();
        assert!(keys.iter().all(|key| (1..=50).contains(key)));
        assert!(keys.contains(&1) && keys.contains(&50), "{keys:?}");
    }

    #[test]
    fn a_seed_gives_the_same_statements() {
        for kind in [ProbeKind::Lookup, ProbeKind::Batch, ProbeKind::Scan] {
            assert_eq!(statements(&kind, true, 7), statements(&kind, true, 7));
            assert_ne!(statements(&kind, true, 7), statements(&kind, true, 8));
        }
    }

    #[test]
    fn scans_stay_in_the_table() {
        for statement in statements(&ProbeKind::Scan, true, 7) {
            let numbers: Vec<u64> =
                statement.split(['(', ',', ')']).filter_map(|part| part.parse().ok()).collect();
            let [start, 0, end, 0] = numbers[..] else { panic!("{statement}") };
            assert!(end - start == 512 && end <= 10_000, "{statement}");
        }
        assert!(statements(&ProbeKind::Scan, false, 7)[0].contains("TABLESAMPLE SYSTEM (5.12) REPEATABLE ("));
    }
}
