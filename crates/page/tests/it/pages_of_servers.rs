//! Pages as `page` builds them, beside those that real servers wrote: the oldest and the newest
//! that are supported, with and without checksums.

use crate::support::{BLOCK, Database, Table, Way, is_new, normalised, stored_checksum, tuples, written};
use page::{Geometry, HeapPage, TUPLE_HEADER, checksum, set_checksum, visibility_map_page};

#[test]
fn postgresql_13() {
    written(13, compare);
}

#[test]
fn postgresql_18() {
    written(18, compare);
}

fn compare(database: &Database) {
    checksums_are_the_servers(database);
    for table in &database.tables {
        heap_is_the_servers(database, table);
        visibility_map_is_the_servers(database, table);
        if table.way == Way::Copied {
            pages_break_where_copy_breaks_them(table);
        }
    }
}

/// In all files of the database, catalogs and indexes included.
fn checksums_are_the_servers(database: &Database) {
    let mut pages = 0;
    for (path, bytes) in database.files() {
        for (page, block) in bytes.chunks_exact(BLOCK).zip(0..).filter(|(page, _)| !is_new(page)) {
            let expected = if database.checksums { checksum(page, block) } else { 0 };
            assert_eq!(stored_checksum(page), expected, "{database}: {}, block {block}", path.display());
            pages += 1;
        }
    }
    assert!(pages > 1_000, "{database}: {pages} pages");
}

fn heap_is_the_servers(database: &Database, table: &Table) {
    let mut ours = vec![0xAA; BLOCK];
    for (theirs, block) in table.heap.chunks_exact(BLOCK).zip(0..) {
        let mut page = HeapPage::begin(&mut ours, block, table.fillfactor);
        for tuple in tuples(theirs) {
            page.push(tuple.body, tuple.flags);
        }
        page.finish(database.checksums);
        same(&ours, &normalised(theirs, block, database.checksums), &format!("{database}: {table}, {block}"));
    }
}

fn visibility_map_is_the_servers(database: &Database, table: &Table) {
    let heap_blocks = (table.heap.len() / BLOCK) as u64;
    let blocks = Geometry::new(8192).visibility_map_blocks(heap_blocks);
    assert_eq!((table.visibility_map.len() / BLOCK) as u64, blocks, "{database}: {table}");
    let mut ours = vec![0xAA; BLOCK];
    for (theirs, block) in table.visibility_map.chunks_exact(BLOCK).zip(0..) {
        visibility_map_page(&mut ours, block, heap_blocks, database.checksums);
        let mut theirs = theirs.to_vec();
        crate::support::clear_lsn(&mut theirs);
        if database.checksums {
            set_checksum(&mut theirs, block);
        }
        same(&ours, &theirs, &format!("{database}: {table}'s visibility map, {block}"));
    }
}

fn pages_break_where_copy_breaks_them(table: &Table) {
    let pages: Vec<Vec<u32>> = table
        .heap
        .chunks_exact(BLOCK)
        .map(|page| tuples(page).map(|tuple| u32::try_from(tuple.body.len()).unwrap()).collect())
        .collect();
    assert!(pages.len() > 1, "{table}");
    let rows = pages.iter().map(|bodies| u32::try_from(bodies.len()).unwrap());
    let bodies: Vec<u32> = pages.concat();
    let geometry = Geometry::new(8192);
    assert!(geometry.rows_of_pages(bodies.iter().copied(), table.fillfactor).eq(rows), "{table}");

    if bodies.iter().all(|body| *body == bodies[0]) {
        let rows = geometry.rows_per_page(TUPLE_HEADER + bodies[0], table.fillfactor);
        assert_eq!(pages[0].len(), rows as usize, "{table}");
    }
}

/// Says where two pages differ.
fn same(ours: &[u8], theirs: &[u8], what: &str) {
    let differs = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
    if let Some(at) = differs {
        let part = |page: &[u8]| page[at.saturating_sub(16)..(at + 32).min(page.len())].to_vec();
        panic!("{what}: at byte {at}, ours {:02x?}, theirs {:02x?}", part(ours), part(theirs));
    }
}
