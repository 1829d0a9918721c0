//! How fast a B-tree is built, without a disk: the sink gathers blocks, as a writer does.

use std::convert::Infallible;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use page::{BtreeBuilder, BtreeKey, Geometry, LEAF_FILLFACTOR, TupleId};

const ROWS: u32 = 6_100_000;
/// Blocks that are written at once: 4 MiB.
const PIECE: usize = 512;

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("btree");
    group.throughput(Throughput::Elements(ROWS.into())).sample_size(20);
    // pgbench_accounts has 61 rows in a heap block, 6 at fillfactor 10.
    for (name, rows_per_block, fillfactor, by_keys) in [
        ("61 rows at once", 61, LEAF_FILLFACTOR, false),
        ("6 rows at once", 6, LEAF_FILLFACTOR, false),
        ("61 rows by their keys", 61, LEAF_FILLFACTOR, true),
        ("61 rows at once, leaves 10 % full", 61, 10, false),
    ] {
        let mut piece = vec![0; PIECE * 8192];
        group.bench_function(name, |bencher| {
            bencher.iter(|| accounts(black_box(rows_per_block), fillfactor, by_keys, &mut piece));
        });
    }
    group.finish();
}

/// Builds the primary key of so many rows with the keys 1, 2, ….
fn accounts(rows_per_block: u16, fillfactor: u8, by_keys: bool, piece: &mut [u8]) -> u32 {
    let mut sink = |block: u32, page: &[u8]| {
        let at = block as usize % PIECE * 8192;
        piece[at..at + 8192].copy_from_slice(page);
        Ok::<_, Infallible>(())
    };
    let mut builder = BtreeBuilder::new(Geometry::new(8192), BtreeKey::Int4, fillfactor);
    let mut key = 1;
    let mut keys: Vec<i64> = (0..i64::from(rows_per_block)).collect();
    for block in 0..ROWS.div_ceil(rows_per_block.into()) {
        if by_keys {
            for key in &mut keys {
                *key += i64::from(rows_per_block);
            }
            let Ok(()) = builder.push_keys(&keys, TupleId { block, offset: 1 }, &mut sink);
        } else {
            let Ok(()) = builder.push_run(key, TupleId { block, offset: 1 }, rows_per_block, &mut sink);
            key += i64::from(rows_per_block);
        }
    }
    let Ok(blocks) = builder.finish(&mut sink);
    blocks
}

criterion_group!(benches, build);
criterion_main!(benches);
