//! How fast pages are made, without a server.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use page::{HeapPage, TupleFlags, set_checksum};

const BLOCK: usize = 8192;
/// Stays in the processor's cache, as the writer's buffers do.
const PAGES: usize = 32;
/// Of a row of pgbench_accounts, bytes, and how many of them a page holds.
const ACCOUNT: usize = 98;
const ACCOUNTS_PER_PAGE: usize = 61;

fn pages(criterion: &mut Criterion) {
    let mut buffer = vec![0; PAGES * BLOCK];
    let mut group = criterion.benchmark_group("pages");

    group.throughput(Throughput::Elements((PAGES * ACCOUNTS_PER_PAGE) as u64));
    let bodies: Vec<u8> = (0..=u8::MAX).cycle().take(PAGES * ACCOUNTS_PER_PAGE * ACCOUNT).collect();
    group.bench_function("dense accounts, rows", |bencher| {
        bencher.iter(|| fill(&mut buffer, &bodies));
    });

    group.throughput(Throughput::Bytes(buffer.len() as u64));
    group.bench_function("checksums, bytes", |bencher| {
        bencher.iter(|| {
            for (page, block) in buffer.chunks_exact_mut(BLOCK).zip(0..) {
                set_checksum(page, block);
            }
        });
    });
    group.finish();
}

fn fill(buffer: &mut [u8], bodies: &[u8]) {
    let flags = TupleFlags { has_varwidth: true, ..TupleFlags::of(4) };
    let mut bodies = bodies.chunks_exact(black_box(ACCOUNT)).peekable();
    for (page, block) in buffer.chunks_exact_mut(BLOCK).zip(0..) {
        let mut page = HeapPage::begin(page, block, 100);
        while let Some(body) = bodies.next_if(|body| page.fits(body.len())) {
            page.push(body, flags);
        }
        page.finish(false);
    }
    assert!(bodies.next().is_none());
}

criterion_group!(benches, pages);
criterion_main!(benches);
