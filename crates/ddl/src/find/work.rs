//! Work on relations, each piece with its proof.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::lock::LockMode;
use super::relation::{Kind, Read, Relation, Relations};

/// Work on a table or index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// OID of the table or index.
    #[serde(skip)]
    pub oid: u32,
    /// OID of the table, of an index its table's.
    #[serde(skip)]
    pub(crate) table: u32,
    /// Name of the table or index for people.
    pub relation: String,
    /// Kind of the work.
    pub kind: WorkKind,
    /// Why pgrig says so.
    pub proof: Proof,
}

/// Kinds of work, the heaviest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    /// The table has a new file, made from the rows of the old one.
    Rewrite,
    /// The file was copied to another tablespace.
    Copy,
    /// An index of a table that was there has a new file.
    IndexBuild,
    /// Rows were inserted, updated or deleted.
    Rows,
    /// The whole table was read.
    Scan,
}

/// Evidence of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// `relfilenode` before and after, if it has changed; 0 before for a new relation.
    pub file: Option<(u32, u32)>,
    /// Reads and writes of the statement, if they were counted.
    pub read: Option<Read>,
    /// Whether the server raised the event `table_rewrite` for it.
    pub is_event: bool,
    /// Whether the server counted a VACUUM or ANALYZE of the table.
    pub is_vacuumed: bool,
}

/// Bytes of a page, as servers are built. With other pages, the number of rows decides.
const PAGE: i64 = 8192;

/// Part of a statement's reads and writes that the difference of the readings' counters has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// None.
    Nothing,
    /// Those of the session's own process, without those of parallel workers.
    WithoutWorkers,
    /// All.
    All,
}

/// Facts about a statement that the two readings do not show.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Part of its reads and writes that is counted.
    pub counted: Counted,
    /// Whether it is REINDEX.
    pub is_reindex: bool,
    /// Whether it is TRUNCATE.
    pub is_truncate: bool,
    /// Tables for which the server counted a VACUUM or ANALYZE.
    pub vacuumed: &'a BTreeSet<u32>,
}

/// The work between two readings.
pub fn works(before: &Relations, after: &Relations, known: Known<'_>) -> Vec<Work> {
    let Known { counted, is_reindex, is_truncate, vacuumed } = known;
    let is_counted = counted != Counted::Nothing;
    let mut works = Vec::new();
    let files: BTreeSet<u32> = before.0.values().map(|relation| relation.file).collect();
    let read = |oid: u32| {
        let of = |relations: &Relations| relations.get(oid).map(|found| found.read);
        is_counted.then(|| of(after).unwrap_or_default().since(of(before).unwrap_or_default()))
    };
    let mut anew = BTreeSet::new();
    for (&oid, relation) in after.0.iter().filter(|(_, relation)| relation.kind.has_rows()) {
        // A table that the statement makes has no rows that anybody waits for.
        let Some(earlier) = before.get(oid) else { continue };
        let read = read(oid);
        let mut add = |kind, proof| {
            works.push(Work { oid, table: oid, relation: relation.name.clone(), kind, proof });
        };
        if relation.file != earlier.file {
            anew.insert(oid);
            let file = Some((earlier.file, relation.file));
            let proof = Proof { file, read, is_event: relation.is_rewritten, is_vacuumed: false };
            let is_read = !is_truncate && read.is_none_or(|read| reads_rows(read, earlier));
            if relation.tablespace != earlier.tablespace && read.is_none_or(|read| read.scans == 0) {
                add(WorkKind::Copy, proof);
            } else if relation.bytes > 0 || is_read {
                add(WorkKind::Rewrite, proof);
            }
            continue;
        }
        let is_vacuumed = vacuumed.contains(&oid);
        let by_index = if is_counted { entries(before, after, oid) } else { 0 };
        let is_scanned =
            read.is_some_and(|read| is_scan(read, earlier, counted)) || is_whole(by_index, earlier.rows);
        let proof = Proof { file: None, read, is_event: false, is_vacuumed };
        if read.is_some_and(|read| read.written() > 0) {
            add(WorkKind::Rows, proof);
        }
        if is_scanned || is_vacuumed {
            add(WorkKind::Scan, proof);
        }
    }
    for (&oid, relation) in after.0.iter().filter(|(_, relation)| relation.kind == Kind::Index) {
        let earlier = before.get(oid);
        let table = after.table_of(oid);
        let is_new = relation.file != 0 && !files.contains(&relation.file);
        // An index of a new table, a new TOAST table too, has no rows to read.
        let is_of_new = [table, relation.owner].iter().any(|of| before.get(*of).is_none());
        if !is_new || anew.contains(&table) || is_of_new {
            continue;
        }
        // To build it in another tablespace, the table is read; to copy it there, it is not.
        let is_built = is_reindex || read(table).is_some_and(|read| read.scans > 0);
        let is_moved = !is_built && earlier.is_some_and(|earlier| earlier.tablespace != relation.tablespace);
        let file = Some((earlier.map_or(0, |earlier| earlier.file), relation.file));
        works.push(Work {
            oid,
            table,
            relation: relation.name.clone(),
            kind: if is_moved { WorkKind::Copy } else { WorkKind::IndexBuild },
            proof: Proof { file, read: read(oid), is_event: false, is_vacuumed: false },
        });
    }
    works.sort_by_key(|work| work.kind);
    works
}

/// Adds writes that nothing counted: those of a statement that took the lock for them (ROW EXCLUSIVE) on a table that was there.
pub(crate) fn add_uncounted(works: &mut Vec<Work>, held: &BTreeMap<u32, Vec<LockMode>>, before: &Relations) {
    let anew: BTreeSet<u32> = works.iter().map(|work| work.table).collect();
    let locked =
        held.iter().filter(|(oid, modes)| !anew.contains(oid) && modes.contains(&LockMode::RowExclusive));
    for (&oid, _) in locked {
        if let Some(relation) = before.get(oid).filter(|relation| relation.kind.has_rows()) {
            let proof = Proof { file: None, read: None, is_event: false, is_vacuumed: false };
            let relation = relation.name.clone();
            works.push(Work { oid, table: oid, relation, kind: WorkKind::Rows, proof });
        }
    }
    works.sort_by_key(|work| work.kind);
}

/// Leaves out work on tables that the migration made and that have no rows: there is nothing to read, whatever the size of the others.
/// `was_there` are the relations before the migration. Rows that are written count.
pub(crate) fn drop_work_on_empty(
    works: &mut Vec<Work>,
    [before, after]: [&Relations; 2],
    was_there: &BTreeSet<u32>,
) {
    let is_empty =
        |table: u32, relations: &Relations| relations.get(table).is_none_or(|relation| relation.bytes == 0);
    works.retain(|work| {
        let has_rows = match work.kind {
            WorkKind::Rows => true,
            WorkKind::Scan | WorkKind::IndexBuild => !is_empty(work.table, before),
            // REFRESH MATERIALIZED VIEW may fill it.
            WorkKind::Rewrite | WorkKind::Copy => {
                !is_empty(work.table, before) || !is_empty(work.table, after)
            }
        };
        has_rows || was_there.contains(&work.table)
    });
}

/// Whether a statement that gave a table an empty file read the rows of the old one. TRUNCATE does not, also in a body: it builds the indexes of
/// the empty file, with a scan that finds no page. A rewrite of a table without rows is such a scan, too.
fn reads_rows(read: Read, earlier: &Relation) -> bool {
    read.blocks > 0 || read.returned > 0 || (read.scans > 0 && earlier.bytes == 0)
}

/// Whether sequential scans read a table as a whole: at least half of its pages or rows. A LIMIT or a cursor ends them earlier. One page is no
/// proof if the number of rows is known.
fn is_scan(read: Read, earlier: &Relation, counted: Counted) -> bool {
    if read.scans <= 0 {
        return false;
    }
    // Of a table without pages, all is read. The process of the session may have left most pages to workers.
    if earlier.bytes == 0 || counted == Counted::WithoutWorkers {
        return true;
    }
    let are_most_pages = read.blocks * 2 >= earlier.bytes / PAGE && (read.blocks > 1 || earlier.rows <= 0.0);
    are_most_pages || is_part(read.returned, earlier.rows, 0.5)
}

/// Entries that the statement read of a table's indexes.
fn entries(before: &Relations, after: &Relations, table: u32) -> i64 {
    let indexes = after.0.iter().filter(|(_, index)| index.kind == Kind::Index && index.owner == table);
    let read = indexes.filter_map(|(oid, index)| {
        let earlier = before.get(*oid)?.read;
        Some(index.read.since(earlier).returned)
    });
    read.sum()
}

/// Whether so many entries are all rows of a table: the planner's number of rows is an estimate.
fn is_whole(entries: i64, rows: f64) -> bool {
    is_part(entries, rows, 0.9)
}

/// Whether a number is at least this part of a table's rows, if these are known.
#[expect(clippy::cast_precision_loss, reason = "a count of rows, compared roughly")]
fn is_part(number: i64, rows: f64, part: f64) -> bool {
    rows > 0.0 && number as f64 >= rows * part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::Relation;

    fn table(bytes: i64) -> Relation {
        Relation {
            name: "t".to_owned(),
            schema: "\"public\"".to_owned(),
            sql: "\"public\".\"t\"".to_owned(),
            kind: Kind::Table,
            file: 1,
            tablespace: 0,
            owner: 0,
            parent: 0,
            bytes,
            rows: 0.0,
            is_temporary: false,
            is_rewritten: false,
            read: Read::default(),
        }
    }

    fn relation(bytes: i64, rows: f64) -> Relation {
        Relation { rows, ..table(bytes) }
    }

    #[test]
    fn a_scan_reads_most_pages_or_rows() {
        for (scans, blocks, returned, bytes, rows, wanted) in [
            (1, 100, 5000, 100 * PAGE, 5000.0, true),
            (1, 1, 1, 100 * PAGE, 5000.0, false),
            (1, 50, 2500, 100 * PAGE, 5000.0, true),
            (1, 40, 2000, 100 * PAGE, 5000.0, false),
            (0, 100, 0, 100 * PAGE, 5000.0, false),
            // Most rows are gone since the last ANALYZE.
            (1, 100, 10, 100 * PAGE, 5000.0, true),
            // One page.
            (1, 1, 200, PAGE, 200.0, true),
            (1, 1, 1, PAGE, 200.0, false),
            (1, 1, 1, 2 * PAGE, 400.0, false),
            (1, 1, 1, PAGE, 0.0, true),
            (1, 0, 0, 0, 0.0, true),
        ] {
            let read = Read { scans, returned, blocks, ..Read::default() };
            let found = is_scan(read, &relation(bytes, rows), Counted::All);
            assert_eq!(found, wanted, "{read:?} of {bytes} bytes, {rows} rows");
        }
        let few = Read { scans: 1, blocks: 1, returned: 1, ..Read::default() };
        assert!(is_scan(few, &relation(100 * PAGE, 5000.0), Counted::WithoutWorkers));
    }

    #[test]
    fn the_empty_file_of_truncate_is_no_rewrite() {
        let of = |bytes: i64, read: Read, is_truncate: bool| {
            let before = Relations(BTreeMap::from([(1, table(bytes))]));
            let after = Relations(BTreeMap::from([(1, Relation { file: 2, read, ..table(0) })]));
            let vacuumed = BTreeSet::new();
            let known = Known { counted: Counted::All, is_reindex: false, is_truncate, vacuumed: &vacuumed };
            works(&before, &after, known).iter().map(|work| work.kind).collect::<Vec<_>>()
        };
        let of_indexes = Read { scans: 1, ..Read::default() };
        let of_rows = Read { scans: 1, blocks: 1, ..Read::default() };
        assert_eq!(of(PAGE, of_indexes, true), []);
        assert_eq!(of(0, of_indexes, true), []);
        // In a body.
        assert_eq!(of(PAGE, of_indexes, false), []);
        // Rewrites: all rows were deleted before, or there was none.
        assert_eq!(of(PAGE, of_rows, false), [WorkKind::Rewrite]);
        assert_eq!(of(0, of_indexes, false), [WorkKind::Rewrite]);
    }

    #[test]
    fn work_on_an_empty_table_of_the_migration_is_none() {
        let is_kept = |table_oid: u32, kind: WorkKind, bytes: [i64; 2]| {
            let [before, after] = bytes.map(|bytes| Relations(BTreeMap::from([(table_oid, table(bytes))])));
            let proof = Proof { file: None, read: None, is_event: false, is_vacuumed: false };
            let relation = "t".to_owned();
            let mut works = vec![Work { oid: 9, table: table_oid, relation, kind, proof }];
            drop_work_on_empty(&mut works, [&before, &after], &BTreeSet::from([1]));
            !works.is_empty()
        };
        let all = [WorkKind::Rewrite, WorkKind::Copy, WorkKind::IndexBuild, WorkKind::Rows, WorkKind::Scan];
        for kind in all {
            assert!(is_kept(1, kind, [0, 0]), "{kind:?} of a table that was there");
            assert!(is_kept(2, kind, [8192, 8192]), "{kind:?} of a table that the migration filled");
            assert_eq!(is_kept(2, kind, [0, 0]), kind == WorkKind::Rows, "{kind:?}");
        }
        assert!(is_kept(2, WorkKind::Rewrite, [0, 8192]));
        assert!(!is_kept(2, WorkKind::Scan, [0, 8192]));
    }
}
