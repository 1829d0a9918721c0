//! Sizes that PostgreSQL itself gave, and what must hold for any size.
//!
//! The blocks below were read with pg_relation_size from PostgreSQL 18 after COPY (FREEZE),
//! VACUUM and ADD PRIMARY KEY on pgbench_accounts; `pages_of_servers` compares with live servers.

use page::{Attribute, Geometry, LEAF_FILLFACTOR, tuple_length};
use proptest::prelude::*;

const INT: Attribute = Attribute::Fixed { length: 4, align: 4 };
const BIGINT: Attribute = Attribute::Fixed { length: 8, align: 8 };

/// rows, heap, free space map, visibility map, primary key: blocks.
const SEEN: &[(u64, u64, u64, u64, u64)] = &[
    (1, 1, 3, 1, 2),
    (61, 1, 3, 1, 2),
    (62, 2, 3, 1, 2),
    (1000, 17, 3, 1, 5),
    (1100, 19, 3, 1, 6),
    (5000, 82, 3, 1, 16),
    (100_000, 1640, 3, 1, 276),
    (222_222, 3643, 3, 1, 613),
    (333_333, 5465, 4, 1, 917),
    (1_000_000, 16394, 7, 1, 2745),
    (2_500_000, 40984, 13, 2, 6858),
    (5_000_000, 81968, 23, 3, 13713),
];

#[test]
fn sizes_are_those_that_postgresql_gave() {
    let geometry = Geometry::new(8192);
    let tuple = tuple_length(&[INT, INT, INT, Attribute::Text { length: 84 }]);
    for &(rows, heap, free_space_map, visibility_map, primary_key) in SEEN {
        assert_eq!(geometry.heap_blocks(rows, tuple, 100), heap, "heap of {rows} rows");
        assert_eq!(geometry.free_space_map_blocks(heap), free_space_map, "fsm of {rows} rows");
        assert_eq!(geometry.visibility_map_blocks(heap), visibility_map, "vm of {rows} rows");
        assert_eq!(geometry.btree_blocks(rows, 4, LEAF_FILLFACTOR), primary_key, "index of {rows} rows");
    }
}

#[test]
fn tuples_have_the_length_that_pageinspect_shows() {
    // bigint aid; NULL filler; a text past a short varlena header.
    assert_eq!(tuple_length(&[BIGINT, INT, INT, Attribute::Text { length: 84 }]), 125);
    assert_eq!(tuple_length(&[INT, INT, Attribute::Null]), 32);
    assert_eq!(tuple_length(&[INT, INT, INT, Attribute::Null]), 36);
    assert_eq!(tuple_length(&[INT, Attribute::Text { length: 126 }]), 24 + 4 + 127);
    assert_eq!(tuple_length(&[INT, Attribute::Text { length: 127 }]), 24 + 4 + 4 + 127);
    assert_eq!(tuple_length(&[INT, BIGINT]), 24 + 16);
}

#[test]
fn tuples_are_toasted_from_where_postgresql_does() {
    // 2032 is what every server with the usual blocks has (`heaptoast.h`); the others by its formula.
    let thresholds = [(8192, 2032), (1024, 240), (32768, 8176)];
    for (block, threshold) in thresholds {
        assert_eq!(Geometry::new(block).toast_threshold(), threshold, "blocks of {block} bytes");
    }
}

#[test]
fn an_empty_table_takes_nothing_but_its_index_s_metapage() {
    let geometry = Geometry::new(8192);
    assert_eq!(geometry.heap_blocks(0, 121, 100), 0);
    assert_eq!(geometry.visibility_map_blocks(0), 0);
    assert_eq!(geometry.free_space_map_blocks(0), 0);
    assert_eq!(geometry.btree_blocks(0, 4, LEAF_FILLFACTOR), 1);
}

#[test]
fn extension_ends_where_postgresql_ended_it() {
    // Heap sizes seen right after COPYs of 1,000 to 1,000,000 rows: 17, 34, 68, 132 … blocks.
    let geometry = Geometry::new(8192);
    for seen in [17, 34, 68, 132, 196, 388, 516, 1028, 1668, 3652, 5508, 16452] {
        assert_eq!(geometry.blocks_without_waste(121, 100, seen), seen);
        assert!(geometry.blocks_without_waste(121, 100, seen + 16) == seen);
    }
    assert_eq!(geometry.blocks_without_waste(121, 10, 200), 192);
}

proptest! {
    #[test]
    fn a_page_holds_its_rows_and_keeps_its_reserve(
        tuple in 24_u32..2000,
        fillfactor in 10_u8..=100,
        shift in 12_u32..=15,
    ) {
        let block = 1 << shift;
        let geometry = Geometry::new(block);
        let rows = geometry.rows_per_page(tuple, fillfactor);
        let aligned = tuple.next_multiple_of(8);
        let used = 24 + rows * (aligned + 4);
        prop_assert!(used <= block, "{rows} rows of {tuple} bytes overflow {block}");
        let reserve = block * u32::from(100 - fillfactor) / 100;
        prop_assert!(rows == 1 || used + reserve <= block, "the reserve is not kept");
        prop_assert!(used + aligned + 4 + 4 + reserve > block, "one more row would fit");
    }

    #[test]
    fn more_rows_or_more_air_never_take_less(
        rows in 0_u64..5_000_000_000,
        more in 0_u64..1_000_000,
        fillfactor in 11_u8..=100,
    ) {
        let geometry = Geometry::new(8192);
        let heap = |rows, fillfactor| geometry.heap_blocks(rows, 121, fillfactor);
        prop_assert!(heap(rows + more, fillfactor) >= heap(rows, fillfactor));
        prop_assert!(heap(rows, fillfactor - 1) >= heap(rows, fillfactor));
        let index = |rows| geometry.btree_blocks(rows, 4, LEAF_FILLFACTOR);
        prop_assert!(index(rows + more) >= index(rows));
        prop_assert!(geometry.free_space_map_blocks(rows + more) >= geometry.free_space_map_blocks(rows));
    }
}
