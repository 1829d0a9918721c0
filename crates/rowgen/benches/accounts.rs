//! How fast rows are made, without a server.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rowgen::{
    Column, Constants, Encoder, Format, Kind, Payload, Table, TupleEncoder, Tuples, Values, pgbench,
};

const ROWS: u64 = 100_000;

fn accounts(criterion: &mut Criterion) {
    let filled = |payload| pgbench::accounts(ROWS * 100, 100, payload);
    let empty = filled(Payload::Blank);
    let mut padded = empty.clone();
    padded.columns[3].values = Values::Text(" ".repeat(84));

    bytes(criterion, "binary, 84-byte filler", &padded, Format::Binary);
    bytes(criterion, "text, random filler", &filled(Payload::Random), Format::Text);
    bytes(criterion, "binary, random filler", &filled(Payload::Random), Format::Binary);
    bytes(criterion, "text, filler of words", &filled(Payload::Text), Format::Text);
    rows(criterion, "text, empty filler", &empty, Format::Text, Constants::Sent);
    rows(criterion, "binary, constants as defaults", &empty, Format::Binary, Constants::Defaulted);
    tuples(criterion, "tuples, blank filler", &empty);
    tuples(criterion, "tuples, random filler", &filled(Payload::Random));
}

fn others(criterion: &mut Criterion) {
    for (name, payload) in [("1 kB of random text", Payload::Random), ("1 kB of words", Payload::Text)] {
        let column = Column::new("filler", Kind::Text, Values::Payload { payload, low: 1_000, high: 1_000 });
        let table = table(vec![column]);
        bytes(criterion, name, &table, Format::Text);
        tuples(criterion, &format!("{name}, tuples"), &table);
    }
    let orders = orders();
    bytes(criterion, "mixed, text", &orders, Format::Text);
    bytes(criterion, "mixed, binary", &orders, Format::Binary);
    let mut storable = orders;
    storable.columns[2].kind = Kind::Int2;
    tuples(criterion, "mixed, tuples", &storable);
}

/// As applications have them.
fn orders() -> Table {
    let status = ["new", "paid", "sent", "returned"].map(str::to_owned).to_vec();
    table(vec![
        Column::new("id", Kind::Int8, Values::SERIAL),
        Column::new("customer", Kind::Int4, Values::Between { low: 1, high: 1_000_000 }),
        Column::new(
            "status",
            Kind::Enum { name: "status".into(), labels: status, oids: Vec::new(), oid: 0 },
            Values::Any,
        ),
        Column::new("price", Kind::Numeric(None), Values::Between { low: 1_000_000, high: 999_000_000 }),
        Column::new("created", Kind::TimestampTz, Values::Serial { start: 0, step: 1_000_000 }),
        Column::new("token", Kind::Uuid, Values::Any),
        Column::new(
            "paid",
            Kind::Bool,
            Values::Nulls { fraction: 0.2, by: None, values: Box::new(Values::Any) },
        ),
        Column::new("note", Kind::Text, Values::Any),
    ])
}

fn table(columns: Vec<Column>) -> Table {
    Table { name: "t".to_owned(), columns, rows: ROWS, seed: 0 }
}

fn bytes(criterion: &mut Criterion, name: &str, table: &Table, format: Format) {
    let mut out = Vec::new();
    Encoder::new(table, format, Constants::Sent).encode(0..ROWS, &mut out);
    measure(criterion, name, Throughput::Bytes(out.len() as u64), table, format, Constants::Sent);
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
    let mut group = criterion.benchmark_group(&table.name);
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

/// Time per row, and bytes of bodies.
fn tuples(criterion: &mut Criterion, name: &str, table: &Table) {
    let encoder = TupleEncoder::new(table).expect("of types that have a form");
    let mut out = Tuples::new();
    encoder.encode(0..ROWS, &mut out);
    let mut group = criterion.benchmark_group(&table.name);
    group.throughput(Throughput::ElementsAndBytes { elements: ROWS, bytes: out.bytes() as u64 });
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            for start in (0..ROWS).step_by(1_000) {
                out.clear();
                encoder.encode(start..start + 1_000, &mut out);
            }
            // As a page is filled from them.
            out.bodies().map(|body| body.bytes.len()).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, accounts, others);
criterion_main!(benches);
