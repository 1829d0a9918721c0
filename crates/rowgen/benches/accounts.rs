//! How fast rows of pgbench_accounts are made, without a server.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rowgen::{Constants, Encoder, Format, Table, Values, pgbench};

const ROWS: u64 = 100_000;

fn accounts(criterion: &mut Criterion) {
    let empty = pgbench::accounts(ROWS * 100, 100);
    let mut padded = empty.clone();
    padded.columns[3].values = Values::Text(" ".repeat(84));

    bytes(criterion, "binary, 84-byte filler", &padded, Format::Binary, Constants::Sent);
    rows(criterion, "text, empty filler", &empty, Format::Text, Constants::Sent);
    rows(criterion, "binary, constants as defaults", &empty, Format::Binary, Constants::Defaulted);
}

fn bytes(criterion: &mut Criterion, name: &str, table: &Table, format: Format, constants: Constants) {
    let mut out = Vec::new();
    Encoder::new(table, format, constants).encode(0..ROWS, &mut out);
    measure(criterion, name, Throughput::Bytes(out.len() as u64), table, format, constants);
}

fn rows(criterion: &mut Criterion, name: &str, table: &Table, format: Format, constants: Constants) {
    measure(criterion, name, Throughput::Elements(ROWS), table, format, constants);
}

fn measure(
    criterion: &mut Criterion,
    name: &str,
    throughput: Throughput,
    table: &Table,
    format: Format,
    constants: Constants,
) {
    let encoder = Encoder::new(table, format, constants);
    let mut out = Vec::new();
    // As the load does it: a buffer that stays in the processor's cache, used again and again.
    let step = 1_000;
    let mut group = criterion.benchmark_group("pgbench_accounts");
    group.throughput(throughput);
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for start in (0..ROWS).step_by(1_000) {
                out.clear();
                encoder.encode(start..start + step, &mut out);
            }
            out.len()
        });
    });
    group.finish();
}

criterion_group!(benches, accounts);
criterion_main!(benches);
