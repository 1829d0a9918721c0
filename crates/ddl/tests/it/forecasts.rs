//! Forecasts, tried at ten times the largest measured size.

use ddl::{Amount, Cause, Effort, Figure, Outcome, Request, Schema, Script, StatementOutcome};
use testkit::{RELEASES, Server, block_on, spec};

use crate::support::{measured, request, server};

const SCHEMA: &str = "
    CREATE TABLE events (id bigint PRIMARY KEY, kind int NOT NULL, note text, at timestamptz);
    CREATE TABLE unused (id int PRIMARY KEY, note text);
";
const MIGRATION: &str = "
    ALTER TABLE events ALTER kind TYPE bigint;
    CREATE INDEX ON events (kind, at);
    UPDATE events SET kind = kind + 1;
    ALTER TABLE events ADD c int;
";
const ROWS: u64 = 200_000;

#[test]
fn wal_at_ten_times_the_size_is_within_its_interval() {
    for release in RELEASES {
        let server = server(release);
        let whole = measured(&server, &request(SCHEMA, MIGRATION, Amount::Rows(ROWS))).unwrap();
        let small = Request {
            effort: Effort::Full,
            up_to: whole.bytes / 10,
            ..request(SCHEMA, MIGRATION, Amount::Rows(ROWS))
        };
        let small = measured(&server, &small).unwrap();
        for (one, real) in small.statements.iter().zip(&whole.statements) {
            let (at, real) = (&one.measured, real.largest().unwrap());
            let runs: Vec<usize> = at.iter().map(|at| at.runs.len()).collect();
            assert_eq!(runs, [5, 5, 3], "{release}: {one:#?}");
            assert!(at[0].bytes < at[1].bytes && at[1].bytes < at[2].bytes, "{release}: {at:?}");
            let ratio = real.bytes as f64 / at[2].bytes as f64;
            assert!((5.0..20.0).contains(&ratio), "{release}: {ratio}");
            let forecast = one.forecast.as_ref().unwrap();
            let off = forecast.bytes as f64 / real.bytes as f64;
            assert!((0.95..1.05).contains(&off), "{release}: {forecast:?}, really {real:?}");
            let wal = real.runs[0].wal as f64;
            let Figure::Value { value, low, high } = forecast.wal else { panic!("{release}: {forecast:?}") };
            // A change of catalogs alone writes a few pages, however large the table is.
            if one.number < 4 {
                assert!(
                    (low..=high).contains(&wal),
                    "{release}: statement {}: {wal} {forecast:?}",
                    one.number
                );
            } else {
                assert!(value < 1e6 && wal < 1e6, "{release}: {wal} {forecast:?}");
            }
        }
    }
}

/// The sizes beside the costs are those of the same tables, though the statement uses another one while they are small.
#[test]
fn a_statement_that_uses_fewer_tables_at_a_larger_size_has_the_sizes_of_these() {
    let server = server(18);
    let schema = "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY, note text)";
    let migration = "DO $$ BEGIN
        IF (SELECT count(*) FROM a) < 2000 THEN UPDATE b SET note = 'new'; END IF;
        UPDATE a SET id = -id;
    END $$";
    let request = request(schema, migration, Amount::Rows(4000));
    let outcome = measured(&server, &Request { effort: Effort::Full, ..request }).unwrap();
    let one = &outcome.statements[0];
    assert_eq!(one.tables, ["public.a"]);
    let rows: Vec<u64> = one.measured.iter().map(|at| at.rows).collect();
    assert_eq!(rows, [250, 1000, 4000]);
}

/// Sorts leave their memory, and changed rows the shared buffers and the WAL of a checkpoint, at a few MB.
#[test]
fn the_size_that_is_advised_gives_the_figure() {
    let set = [
        ("wal_level", "replica"),
        ("autovacuum", "off"),
        ("maintenance_work_mem", "1MB"),
        ("shared_buffers", "1MB"),
        ("max_wal_size", "32MB"),
    ];
    let server = Server::start(spec(18, &set));
    // In two files.
    let read = |text: &str, file: &str| Script::read(text, Some(file)).unwrap();
    let files = [
        read("CREATE INDEX ON events (kind, at);", "1_index.sql"),
        read("UPDATE events SET kind = kind + 1;", "2_update.sql"),
    ];
    let script = Script::of(files).unwrap();
    let of = |up_to: u64| {
        let request = request(SCHEMA, "SELECT 1", Amount::Rows(5_000_000));
        let request = Request { script: script.clone(), effort: Effort::Full, up_to, ..request };
        measured(&server, &request).unwrap()
    };
    let advised = |outcome: &Outcome, one: &StatementOutcome, figure: Figure| match figure {
        Figure::Beyond { measure, .. } => Some(outcome.up_to(one, measure)),
        _ => None,
    };
    let small = of(2_000_000);
    for one in &small.statements {
        let forecast = one.forecast.as_ref().unwrap();
        let advice = [forecast.seconds, forecast.wal].map(|figure| advised(&small, one, figure));
        let up_to = advice.into_iter().flatten().max().unwrap();
        assert!(small.advised(one) >= Some(up_to), "{up_to} {forecast:?}");
        assert!((4_000_000..120_000_000).contains(&up_to), "{up_to} {forecast:?}");
        let large = of(up_to);
        let one = &large.statements[one.number - 1];
        let forecast = one.forecast.as_ref().unwrap();
        for figure in [forecast.seconds, forecast.wal] {
            // A busy machine may hide the growth.
            let is_known = matches!(figure, Figure::Value { .. } | Figure::TooSmall);
            assert!(is_known, "{up_to}: {:?} {forecast:?}", one.measured);
        }
        // The sort of the index writes temporary files.
        if one.number == 1 {
            assert!(matches!(forecast.temporary, Some(Figure::Value { .. })), "{up_to}: {forecast:?}");
        }
    }
}

/// Its tables are larger only because of free space, and no `--up-to` fills more rows than it has.
#[test]
fn no_size_is_advised_if_all_rows_of_the_original_are_measured() {
    let set = [("wal_level", "replica"), ("autovacuum", "off"), ("shared_buffers", "1MB")];
    let server = Server::start(spec(18, &set));
    let schema = block_on(async {
        let connection = server.database().await.target.connect().await.unwrap();
        let rows = "INSERT INTO events SELECT i, i % 7, 'note ' || i, now() FROM generate_series(1, 20000) i";
        for sql in [SCHEMA, rows, "UPDATE events SET kind = kind + 1", "ANALYZE"] {
            connection.client.batch_execute(sql).await.unwrap();
        }
        Schema::of_database(&connection, "shop").await.unwrap()
    });
    let request = request("", "UPDATE events SET kind = 0", Amount::AsOriginal);
    let outcome = measured(&server, &Request { schema, effort: Effort::Full, ..request }).unwrap();
    let one = &outcome.statements[0];
    let forecast = one.forecast.as_ref().unwrap();
    let Figure::Beyond { boundary, .. } = forecast.seconds else { panic!("{forecast:?}") };
    assert_eq!(boundary.cause, Cause::SharedBuffers, "{forecast:?}");
    assert_eq!((outcome.is_whole, outcome.advised(one)), (true, None), "{forecast:?}");
}

/// After a checkpoint, a scan writes whole pages for the hint bits of changed rows, and for those that it removes.
#[test]
fn across_a_checkpoint_that_was_not_measured_there_is_no_figure() {
    let schema = "CREATE TABLE ord (id bigint PRIMARY KEY, cust_id bigint NOT NULL, note text, st text);
                  CREATE TABLE other (id bigint PRIMARY KEY, note text)";
    let migration = "UPDATE ord SET note = 'x';
        ALTER TABLE ord ADD CHECK (cust_id > -5000000000);
        CREATE INDEX ON ord (cust_id);
        ALTER TABLE other ADD CHECK (id > -5000000000);";
    let request = Request {
        effort: Effort::Full,
        up_to: 3_000_000,
        ..request(schema, migration, Amount::Rows(130_000))
    };
    for (max_wal_size, is_across) in [("64MB", true), ("1GB", false)] {
        let set = [
            ("wal_level", "replica"),
            ("autovacuum", "off"),
            ("min_wal_size", "32MB"),
            ("max_wal_size", max_wal_size),
        ];
        let server = Server::start(spec(18, &set));
        let outcome = measured(&server, &request).unwrap();
        for one in &outcome.statements {
            let forecast = one.forecast.as_ref().unwrap();
            let is_of_checkpoint = matches!(
                forecast.wal,
                Figure::Beyond { boundary, .. } if boundary.cause == Cause::MaxWalSize
            );
            // No statement changes rows of the other table.
            assert_eq!(is_of_checkpoint, is_across && one.number < 4, "{max_wal_size}: {one:#?}");
        }
    }
}
