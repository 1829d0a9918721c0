//! Probes and samples of tables on real servers, the oldest release and the newest.

use std::time::Duration;

use connect::Connection;
use fill::{Compression, ProbeError, ProbeKind, ProbePoint, ProbeTable, Prober, turning_point};
use page::Geometry;
use testkit::spec;
use tokio_postgres::error::SqlState;

/// Room for all executions that a point may have.
const PLENTY: Duration = Duration::from_mins(1);
const TABLE: &str = "\"Mixed \"\"Case\".accounts";
const ROWS: u64 = 300_000;
const BLOCK: u32 = 8192;

/// A server with fewer buffers than the table has blocks.
struct Server {
    major: u16,
    running: testkit::Server,
}

impl Server {
    fn start(major: u16) -> Self {
        Self { major, running: testkit::Server::start(spec(major, &[])) }
    }

    async fn connect(&self) -> Connection {
        self.running.connect("postgres").await
    }

    fn prober(&self, probe: &str) -> Prober {
        self.prober_of(TABLE, probe)
    }

    fn prober_of(&self, table: &str, probe: &str) -> Prober {
        let table = ProbeTable { name: table.to_owned(), key: "Aid".to_owned(), first_key: 1 };
        Prober::new(probe.parse().unwrap(), table, Geometry::new(BLOCK), self.major.into(), 7)
    }
}

/// Runs a test on either server.
fn on_servers(test: &impl AsyncFn(&Server, &Connection)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for major in [13, 18] {
        let server = Server::start(major);
        runtime.block_on(async { test(&server, &server.connect().await).await });
    }
}

async fn execute(connection: &Connection, sql: &str) {
    connection.client.batch_execute(sql).await.unwrap();
}

async fn number(connection: &Connection, query: &str) -> u64 {
    let number: i64 = connection.client.query_one_scalar(query, &[]).await.unwrap();
    number.unsigned_abs()
}

/// 61 rows a block, with an index.
async fn make_accounts(connection: &Connection) -> u64 {
    let name = TABLE;
    execute(connection, "CREATE SCHEMA \"Mixed \"\"Case\"").await;
    execute(connection, &format!("CREATE TABLE {name} (\"Aid\" int, filler char(88))")).await;
    execute(connection, &format!("INSERT INTO {name} SELECT i, '' FROM generate_series(1, {ROWS}) AS i"))
        .await;
    execute(connection, &format!("CREATE INDEX ON {name} (\"Aid\")")).await;
    number(connection, &format!("SELECT pg_relation_size('{name}')")).await
}

#[track_caller]
fn assert_ordered(point: &ProbePoint) {
    let latency = &point.latency;
    let values = [0.0, latency.p50, latency.p90, latency.p95, latency.p99, latency.max];
    assert!(values[1] > 0.0 && values.is_sorted(), "{point:?}");
    assert!(latency.mean > 0.0 && latency.mean <= latency.max * 1.001, "{point:?}");
}

#[test]
fn points_say_how_long_it_took_and_what_was_read() {
    on_servers(&async |server, connection| {
        let bytes = make_accounts(connection).await;
        let blocks = bytes as f64 / f64::from(BLOCK);
        let expectations = [
            // Two or three blocks of the index, one of the table. The first execution also reads the index's metapage and catalogs; under
            // load, there are only two.
            ("lookup", 3.0..=8.0),
            ("batch", 150.0..=500.0),
            // 4 MB; more or less where the blocks are drawn.
            ("scan", if server.major == 13 { 420.0..=610.0 } else { 512.0..=512.0 }),
            ("SELECT count(*) FROM \"Mixed \"\"Case\".accounts WHERE $1 <= $2", blocks..=blocks + 3.0),
        ];
        for (probe, expected) in expectations {
            let mut prober = server.prober(probe);
            prober.check(&connection.client).await.unwrap();
            let point = prober.run(&connection.client, ROWS, bytes, PLENTY / 600).await.unwrap();
            assert_ordered(&point);
            assert!(point.executions >= 1, "{probe}: {point:?}");
            assert!(expected.contains(&(point.hits + point.reads)), "{probe}: {point:?}");
            // The table is more than twice the buffers; a single execution may find its blocks there by chance.
            assert!(point.executions == 1 || point.hit_ratio().unwrap() < 1.0, "{probe}: {point:?}");
            assert!(point.bytes_per_second() > 0.0);
            assert_eq!(prober.points(), [point]);
        }
    });
}

#[test]
fn a_lookup_answers_by_the_index_whatever_the_size_was() {
    on_servers(&async |server, connection| {
        execute(connection, "CREATE TABLE grown (\"Aid\" bigint PRIMARY KEY, filler text)").await;
        let mut prober = server.prober_of("grown", "batch");
        prober.check(&connection.client).await.unwrap();
        // All in the transaction that fills it, without statistics.
        execute(connection, "BEGIN").await;
        for rows in [100, 200_000] {
            let grow = "INSERT INTO grown SELECT i, repeat('x', 100) FROM generate_series";
            execute(connection, &format!("{grow}((SELECT count(*) + 1 FROM grown), {rows}) AS i")).await;
            let size = number(connection, "SELECT pg_table_size('grown')").await;
            prober.run(&connection.client, rows, size, PLENTY).await.unwrap();
        }
        execute(connection, "COMMIT").await;
        let [small, large] = prober.points() else { panic!("{:?}", prober.points()) };
        assert!(large.hits + large.reads < 1000.0, "{large:?}");
        assert_eq!((small.executions, large.executions), (1000, 1000));
        assert!(!prober.due(large.table_bytes) && prober.due(4 * large.table_bytes));
        assert!(!prober.due_at_end(large.table_bytes) && prober.due_at_end(large.table_bytes + 1));
        let series = ProbePoint::series(&ProbeKind::Batch, prober.points());
        let medians = series.iter().find(|series| series.name == "probe-batch-p50").unwrap();
        assert_eq!(medians.points[1], (large.table_bytes as f64, large.latency.p50));
        assert_eq!(turning_point(&ProbeKind::Batch, prober.points()), None);
    });
}

#[test]
fn a_point_without_budget_is_still_a_point() {
    on_servers(&async |server, connection| {
        let bytes = make_accounts(connection).await;
        let mut prober = server.prober("lookup");
        let point = prober.run(&connection.client, ROWS, bytes, Duration::ZERO).await.unwrap();
        assert!((1..=3).contains(&point.executions), "{point:?}");
        let slow = "SELECT pg_sleep(0.02), $1";
        let point = server.prober(slow).run(&connection.client, ROWS, bytes, Duration::ZERO).await.unwrap();
        assert_eq!((point.executions, point.hit_ratio()), (1, None));
        assert!(prober.spent() > Duration::ZERO);
    });
}

#[test]
fn a_partitioned_table_is_probed() {
    on_servers(&async |server, connection| {
        execute(
            connection,
            "CREATE TABLE parts (\"Aid\" int PRIMARY KEY, filler text) PARTITION BY RANGE (\"Aid\");
             CREATE TABLE \"Part 1\" PARTITION OF parts FOR VALUES FROM (1) TO (101);
             CREATE TABLE \"Part 2\" PARTITION OF parts FOR VALUES FROM (101) TO (50001);
             INSERT INTO parts SELECT i, repeat('x', 100) FROM generate_series(1, 20000) AS i",
        )
        .await;
        let largest = number(connection, "SELECT pg_relation_size('\"Part 2\"') / 8192").await;
        for probe in ["lookup", "batch", "scan"] {
            let mut prober = server.prober_of("parts", probe);
            prober.check(&connection.client).await.unwrap();
            let point = prober.run(&connection.client, 20_000, 1 << 20, Duration::ZERO).await.unwrap();
            assert_ordered(&point);
            if probe == "scan" {
                assert!(
                    (point.hits + point.reads - largest as f64).abs() < 0.5,
                    "{point:?} of {largest} blocks"
                );
            }
        }
        assert!(
            Compression::sample([&connection.client; 2], "parts", Duration::ZERO).await.unwrap().is_some()
        );
    });
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_loaded() {
    on_servers(&async |server, connection| {
        execute(connection, "CREATE TABLE bare (\"Aid\" int, filler text)").await;
        let check = async |probe: &str| server.prober_of("bare", probe).check(&connection.client).await;
        for probe in ["lookup", "batch"] {
            let error = check(probe).await.unwrap_err();
            assert!(matches!(error, ProbeError::NoIndex { .. }), "{error}");
            assert!(error.to_string().contains("--init-steps"), "{error}");
        }
        for (query, state) in [
            ("SELEC 1", SqlState::SYNTAX_ERROR),
            ("SELECT * FROM missing", SqlState::UNDEFINED_TABLE),
            ("SELECT $3 FROM bare", SqlState::SYNTAX_ERROR),
            ("SELECT 1; DROP TABLE bare", SqlState::SYNTAX_ERROR),
        ] {
            let ProbeError::Query(error) = check(query).await.unwrap_err() else { panic!("{query}") };
            assert_eq!(error.code(), Some(&state), "{query}: {error:?}");
        }
        for query in [
            "DELETE FROM bare WHERE \"Aid\" = $1",
            "WITH gone AS (DELETE FROM bare RETURNING *) SELECT * FROM gone",
            "SELECT * FROM bare FOR UPDATE",
        ] {
            let error = check(query).await.unwrap_err();
            assert!(matches!(error, ProbeError::Writes { .. }), "{query}: {error}");
        }
        // Whatever was refused, the session is as good as new.
        check("scan").await.unwrap();
        check("SELECT * FROM bare WHERE \"Aid\" = $1 LIMIT 1 ;").await.unwrap();
        execute(connection, "CREATE INDEX ON bare (\"Aid\", filler)").await;
        check("lookup").await.unwrap();
    });
}

#[test]
fn a_query_that_fails_while_filling_leaves_the_session_usable() {
    on_servers(&async |server, connection| {
        execute(connection, "CREATE TABLE bare (\"Aid\" int)").await;
        let mut prober = server.prober_of("bare", "SELECT 1 / (1000 - $2)");
        prober.check(&connection.client).await.unwrap();
        let error = prober.run(&connection.client, 1000, 1 << 20, PLENTY).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::DIVISION_BY_ZERO));
        assert_eq!(prober.points(), []);
        prober.run(&connection.client, 1001, 1 << 20, Duration::ZERO).await.unwrap();
    });
}

#[test]
fn blanks_compress_and_random_text_does_not() {
    on_servers(&async |_, connection| {
        let client = &connection.client;
        for (table, filler) in
            [("blank", "''"), ("random", "md5(random()::text) || md5(random()::text)"), ("nothing", "NULL")]
        {
            let rows = if table == "nothing" { 0 } else { 200_000 };
            execute(
                connection,
                &format!(
                    "CREATE TABLE {table} WITH (fillfactor = 10) AS
                     SELECT i, {filler}::char(84) FROM generate_series(1, {rows}) AS i"
                ),
            )
            .await;
        }
        assert_eq!(Compression::sample([client; 2], "nothing", Duration::ZERO).await.unwrap(), None);
        let blank = Compression::sample([client; 2], "blank", Duration::ZERO).await.unwrap().unwrap();
        let random = Compression::sample([client; 2], "random", Duration::ZERO).await.unwrap().unwrap();
        assert!(blank.rows.ratio() > 10.0 && random.rows.ratio() < 3.0, "{blank:?}, {random:?}");
        // All of its 200,000 rows of 71 bytes, as it is small.
        assert!((14_000_000..15_000_000).contains(&random.rows.plain), "{random:?}");
        assert_eq!(random.blocks, None);

        execute(connection, "CREATE SCHEMA \"Look\"; CREATE EXTENSION pageinspect SCHEMA \"Look\"").await;
        let random = Compression::sample([client; 2], "random", Duration::ZERO).await.unwrap().unwrap();
        let blocks = random.blocks.unwrap();
        assert_eq!(blocks.plain, 32 * 128 * 1024);
        // The air that fillfactor 10 leaves goes.
        assert!(blocks.ratio() > 2.0 * random.rows.ratio(), "{random:?}");
        execute(
            connection,
            "CREATE TABLE tiny AS SELECT 1; CREATE ROLE plain; GRANT SELECT ON tiny TO plain",
        )
        .await;
        let tiny = Compression::sample([client; 2], "tiny", Duration::ZERO).await.unwrap().unwrap();
        assert_eq!((tiny.rows.plain, tiny.blocks.unwrap().plain), (2, 8192));
        execute(connection, "SET ROLE plain").await;
        let tiny = Compression::sample([client; 2], "tiny", Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(tiny.blocks, None);
    });
}
