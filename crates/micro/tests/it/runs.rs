//! `micro` on real servers: artefacts that are planted are caught, by name; what is timed is what was
//! asked for; nothing is left.

use failure::Classified;
use std::future::pending;
use std::time::Duration;
use tokio::sync::oneshot;

use crate::support::{Server, expressions, on_each_release, request, statements};
use micro::{
    Body, Finding, Kind, MicroError, Observer, Outcome, Plan, Request, Role, Round, RunProgress, Suite,
    explain, run, shipped,
};

/// Keeps everything.
#[derive(Default)]
struct Recorder(Option<Outcome>);

impl Observer for Recorder {
    fn planned(&mut self, plan: &Plan) {
        self.0 = Some(Outcome::new(plan.clone()));
    }

    fn round(&mut self, round: &Round, _: RunProgress) {
        self.0.as_mut().unwrap().rounds.push(round.clone());
    }
}

async fn explained(server: &Server, request: &Request) -> Plan {
    request.check().unwrap();
    explain(&server.target, &server.connection, request, Box::pin(pending())).await.unwrap()
}

async fn findings(server: &Server, request: &Request) -> Vec<Finding> {
    explained(server, request).await.findings
}

async fn measured(server: &Server, request: &Request) -> Outcome {
    let mut recorder = Recorder::default();
    let ended =
        run(&server.target, &server.connection, request, &mut recorder, Box::pin(pending())).await.unwrap();
    ended.result.unwrap();
    assert_eq!(ended.left_behind, None);
    recorder.0.unwrap()
}

/// The error of a run that is refused before anything is timed.
async fn refused(server: &Server, request: &Request) -> String {
    let mut recorder = Recorder::default();
    let ended =
        run(&server.target, &server.connection, request, &mut recorder, Box::pin(pending())).await.unwrap();
    let error = ended.result.unwrap_err();
    assert!(error.is_usage(), "{error}");
    assert!(recorder.0.is_none_or(|outcome| outcome.rounds.is_empty()));
    error.to_string()
}

/// One finding, of this candidate.
fn is_only(findings: &[Finding], candidate: &str, kind: &Kind) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].candidate.as_str(), &findings[0].kind), (candidate, kind));
}

#[test]
fn constant_folding_is_refused_by_name() {
    on_each_release(async |server| {
        let folded = refused(&server, &expressions(&["md5(i::text)", "md5('x')"])).await;
        assert!(
            folded.contains("md5('x'): ") && folded.contains("9dd4e461268c8034f5c8564e155c67a6"),
            "{folded}"
        );
        assert!(folded.contains("--anyway") && folded.contains("use i in it"), "{folded}");
        let found = findings(&server, &expressions(&["1 + 1"])).await;
        is_only(&found, "1 + 1", &Kind::Folded { value: "2".to_owned() });
        // A constant in the user's text is meant to be one.
        for constant in ["1", "'x'::text", "date '2026-01-01'", "NULL", "-1.5"] {
            assert_eq!(findings(&server, &expressions(&[constant])).await, [], "{constant}");
        }
        // A part of it.
        let found = findings(&server, &expressions(&["upper(md5('x') || i)"])).await;
        is_only(&found, "upper(md5('x') || i)", &Kind::Dropped { functions: vec!["md5".to_owned()] });
        let found = findings(&server, &expressions(&["md5(md5('x') || i)"])).await;
        assert!(matches!(found[..], [Finding { kind: Kind::Dropped { .. }, .. }]), "{found:?}");
        // A branch that is never taken.
        let found = findings(&server, &expressions(&["CASE WHEN true THEN i ELSE abs(i) END"])).await;
        assert!(matches!(found[..], [Finding { kind: Kind::Dropped { .. }, .. }]), "{found:?}");
    });
}

#[test]
fn what_the_planner_leaves_alone_is_not_refused() {
    on_each_release(async |server| {
        for text in [
            "gen_random_uuid()",
            "now()",
            "clock_timestamp()",
            "\"left\"('abcdef', i)",
            "pg_catalog.md5(i::text)",
            "extract(epoch FROM now() + i * interval '1 s')",
            "coalesce(nullif(i, 3), abs(i))",
            "substring(i::text FROM 1 FOR 2)",
            "(SELECT max(x) FROM generate_series(1, i % 3) x)",
            "i -- a comment (with md5('x'))",
            "i BETWEEN abs(i) AND 5",
        ] {
            assert_eq!(findings(&server, &expressions(&[text])).await, [], "{text}");
        }
    });
}

#[test]
fn what_is_computed_once_is_refused() {
    on_each_release(async |server| {
        let text = "(SELECT count(*) FROM pg_class)";
        let found = findings(&server, &expressions(&[text])).await;
        assert!(
            matches!(&found[..], [Finding { kind: Kind::Once { what }, .. }] if what.contains("InitPlan")),
            "{found:?}"
        );
    });
}

#[test]
fn a_dropped_subquery_output_is_refused() {
    on_each_release(async |server| {
        let dropped = "SELECT count(*) FROM (SELECT md5(i::text) FROM generate_series(1, {rows}) g(i)) t";
        let found = findings(&server, &statements(&[dropped])).await;
        is_only(&found, dropped, &Kind::Dropped { functions: vec!["md5".to_owned()] });
        let kept = "SELECT count(m) FROM (SELECT md5(i::text) AS m FROM generate_series(1, {rows}) g(i)) t";
        assert_eq!(findings(&server, &statements(&[kept])).await, []);
    });
}

#[test]
fn a_parallel_plan_is_refused() {
    on_each_release(async |server| {
        let mut request = statements(&["SELECT count(n) FROM big"]);
        request.setup = Some(
            "CREATE TABLE big AS SELECT n FROM generate_series(1, 50000) n; ANALYZE big; \
             SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
             SET min_parallel_table_scan_size = 0"
                .to_owned(),
        );
        request.teardown = Some("DROP TABLE big".to_owned());
        is_only(&findings(&server, &request).await, "SELECT count(n) FROM big", &Kind::Parallel);
        assert!(refused(&server, &request).await.contains("max_parallel_workers_per_gather"));
        assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'big'").await, 0);
        // pgrig's own settings have none.
        request.setup = request.setup.map(|setup| setup.split("SET").next().unwrap().to_owned());
        assert_eq!(findings(&server, &request).await, []);
    });
}

#[test]
fn a_numeric_series_is_told() {
    on_each_release(async |server| {
        let numeric = "SELECT count(*) FROM generate_series(1, 3e5)";
        is_only(&findings(&server, &statements(&[numeric])).await, numeric, &Kind::NumericSeries);
        assert_eq!(
            findings(&server, &statements(&["SELECT count(*) FROM generate_series(1, 300000)"])).await,
            []
        );
        // An expression's own series counts in integers.
        let plan = explained(&server, &expressions(&["i"])).await;
        assert!(plan.arms[0].sql.contains("generate_series(1, 100000)"), "{plan:?}");
    });
}

#[test]
fn a_select_of_a_value_is_told() {
    on_each_release(async |server| {
        let subquery = "SELECT md5(i::text)";
        is_only(&findings(&server, &expressions(&[subquery])).await, subquery, &Kind::Subquery);
    });
}

#[test]
fn jit_that_kicks_in_is_refused() {
    on_each_release(async |server| {
        let mut request = expressions(&["i + 1"]);
        request.setup = Some("SET jit = on; SET jit_above_cost = 10".to_owned());
        is_only(&findings(&server, &request).await, "i + 1", &Kind::Compiled { above: Some(10) });
        assert!(refused(&server, &request).await.contains("jit_above_cost"));
        // By default a database has it on, and pgrig's session off.
        server
            .sql("ALTER DATABASE postgres SET jit = on; ALTER DATABASE postgres SET jit_above_cost = 0")
            .await;
        request.setup = None;
        assert_eq!(findings(&server, &request).await, []);
    });
}

#[test]
fn inlined_functions_spills_triggers_and_shapes_are_told() {
    on_each_release(async |server| {
        server
            .sql(
                "CREATE FUNCTION square(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * $1'; \
                 CREATE TABLE watched (n int); CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN RETURN NEW; END'; \
                 CREATE TRIGGER watcher BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION seen()",
            )
            .await;
        let plan = explained(&server, &expressions(&["square(i)"])).await;
        is_only(&plan.findings, "square(i)", &Kind::Inlined { functions: vec!["square".to_owned()] });
        assert_eq!(plan.arms[0].executed, "(i * i)");

        let other = "(SELECT max(x) FROM generate_series(1, i % 3) x)";
        let found = findings(&server, &expressions(&["abs(i)", other])).await;
        assert_eq!(found.len(), 1);
        assert!(
            matches!(&found[0].kind, Kind::OtherShape { first, this } if first == "Aggregate(Function Scan)" && this.contains("SubPlan")),
            "{found:?}"
        );

        let mut spilling = expressions(&["abs(i)"]);
        spilling.setup = Some("SET work_mem = '64kB'".to_owned());
        spilling.rows = Some(50_000);
        let found = measured(&server, &spilling).await.plan.findings;
        assert!(matches!(found[..], [Finding { kind: Kind::Spills { rows: 50_000, .. }, .. }]), "{found:?}");

        let mut watched = statements(&["INSERT INTO watched SELECT i FROM generate_series(1, {rows}) g(i)"]);
        watched.rows = Some(10);
        let found = measured(&server, &watched).await.plan.findings;
        assert!(
            matches!(&found[..], [Finding { kind: Kind::Triggers { names }, .. }] if names == &["watcher"]),
            "{found:?}"
        );
    });
}

#[test]
fn volatile_functions_of_the_user_are_told() {
    on_each_release(async |server| {
        server
            .sql(
                "CREATE TABLE noted (n int); \
                 CREATE FUNCTION note(int) RETURNS int LANGUAGE plpgsql AS \
                 'BEGIN INSERT INTO noted VALUES ($1); RETURN $1; END'; \
                 CREATE FUNCTION wrapped(int) RETURNS int LANGUAGE sql AS 'SELECT note($1)'; \
                 CREATE FUNCTION squared(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 * $1; END'",
            )
            .await;
        let volatile = Kind::Volatile { functions: vec!["note".to_owned()] };
        is_only(&findings(&server, &expressions(&["note(i)"])).await, "note(i)", &volatile);
        // Its body is inlined, and then calls note().
        let found = findings(&server, &expressions(&["wrapped(i)"])).await;
        assert!(found.iter().any(|finding| finding.kind == volatile), "{found:?}");
        for text in ["squared(i)", "random() + i", "clock_timestamp()", "now()"] {
            assert_eq!(findings(&server, &expressions(&[text])).await, [], "{text}");
        }
        assert_eq!(findings(&server, &statements(&["SELECT note(1)"])).await, []);
    });
}

#[test]
fn what_the_server_does_not_take_is_told_with_its_place() {
    on_each_release(async |server| {
        for (text, remedy, caret) in [
            ("i +", "the expression is incomplete", "  i +\n     ^"),
            ("random(", "the expression is incomplete", "  random(\n         ^"),
            ("abs(i))", "syntax error", "^"),
            ("i + nofunction(i)", "does not exist", "  i + nofunction(i)\n      ^"),
            ("generate_series(1, i)", "--statement", "^"),
            ("sum(i)", "--statement", "^"),
            ("row_number() OVER ()", "--statement", "^"),
            ("$1::int", "parameters", ""),
            ("i) FROM generate_series(1, 2) g(i); DROP TABLE x; SELECT (1", "", ""),
        ] {
            let error = refused(&server, &expressions(&[text])).await;
            assert!(
                error.starts_with(text) && error.contains(remedy) && error.contains(caret),
                "{text}: {error}"
            );
        }
        let uuid7 = expressions(&["gen_random_uuid()", "uuidv7()"]);
        if server.release < 18 {
            let error = refused(&server, &uuid7).await;
            assert!(error.contains("function uuidv7() does not exist"), "{error}");
        } else {
            assert_eq!(findings(&server, &uuid7).await, []);
        }
    });
}

#[test]
fn every_round_has_every_arm_once() {
    on_each_release(async |server| {
        let mut request = expressions(&["abs(i)", "md5(md5(md5(md5(i::text))))", "abs(i)"]);
        request.rows = Some(2_000);
        request.budget = Duration::from_secs(3);
        let outcome = measured(&server, &request).await;
        let roles: Vec<Role> = outcome.plan.arms.iter().map(|arm| arm.role).collect();
        let candidate = Role::Candidate;
        assert_eq!(roles, [candidate, candidate, candidate, Role::Empty, Role::Repeat]);
        assert_eq!(outcome.plan.candidates().last(), Some("abs(i) (2)"), "names differ");
        assert!(outcome.rounds.len() > 10 && outcome.rounds[0].cold, "{}", outcome.rounds.len());
        for round in &outcome.rounds {
            let mut order = round.order.clone();
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
            assert!(round.seconds.iter().all(|seconds| *seconds > 0.0));
        }
        assert!(outcome.rounds[1..].iter().any(|round| round.order != outcome.rounds[1].order));
        // Four hashes of a text are more than the sign of a number.
        let judged = outcome.judged(&request).unwrap();
        assert_eq!(judged.pairs[0].verdict, measure::Verdict::Regressed, "{judged:?}");
        assert!(judged.pairs[0].difference.low > 0.0);
    });
}

/// The plan of a run that ends before its rounds: their number of rows is chosen.
async fn sized(server: &Server, mut request: Request) -> Plan {
    struct Planned(Option<Plan>, Option<oneshot::Sender<()>>);
    impl Observer for Planned {
        fn planned(&mut self, plan: &Plan) {
            self.0 = Some(plan.clone());
            self.1.take().unwrap().send(()).unwrap();
        }
        fn round(&mut self, _: &Round, _: RunProgress) {}
    }
    // On a busy machine, whatever takes a statement long, samples have room to be longer.
    request.budget = Duration::from_mins(2);
    let (stop, stopped) = oneshot::channel();
    let mut planned = Planned(None, Some(stop));
    let interrupt = Box::pin(async { stopped.await.unwrap() });
    let ended = run(&server.target, &server.connection, &request, &mut planned, interrupt).await.unwrap();
    assert!(matches!(ended.result, Err(MicroError::Interrupted { .. })), "{:?}", ended.result);
    planned.0.unwrap()
}

#[test]
fn the_number_of_rows_makes_the_fixed_cost_small() {
    on_each_release(async |server| {
        let plan = sized(&server, expressions(&["abs(i)"])).await;
        assert!(plan.rows > 1_000, "{plan:?}");
        assert!(plan.findings.is_empty(), "nothing spills: {plan:?}");
        // Nothing is subtracted: the fixed cost itself has to be small.
        let whole = statements(&["SELECT count(md5(i::text)) FROM generate_series(1, {rows}) g(i)"]);
        let plan = sized(&server, whole).await;
        assert!(plan.rows > 1_000 && plan.fixed_share().unwrap() < 0.25, "{plan:?}");
        let once = measured(&server, &statements(&["SELECT count(*) FROM pg_class"])).await;
        assert_eq!(once.plan.rows, 1);
        // The user's rows are the user's.
        let mut given = expressions(&["abs(i)"]);
        given.rows = Some(12_345);
        assert_eq!(measured(&server, &given).await.plan.rows, 12_345);
    });
}

#[test]
fn tables_are_made_anew_and_their_wal_is_told() {
    on_each_release(async |server| {
        let table = |columns: &str| Body::Table {
            ddl: format!("CREATE TABLE {{table}} ({columns}, n int)"),
            statement: "INSERT INTO {table} (n) SELECT i FROM generate_series(1, {rows}) g(i)".to_owned(),
        };
        let mut request =
            request([table("id int"), table("id uuid DEFAULT gen_random_uuid() PRIMARY KEY")].into_iter());
        request.rows = Some(1_000);
        // Too many rows for one round are left from the one before if tables are not made anew.
        request.teardown = Some(
            "DO $$ BEGIN IF (SELECT count(*) FROM pgrig_micro.pgrig_micro_2) <> 1000 THEN RAISE 'rows were left'; END IF; \
             IF (SELECT count(*) FROM pg_class WHERE relname ~ '^pgrig_micro_[123]$' \
                    AND reloptions @> '{autovacuum_enabled=off}') <> 3 THEN RAISE 'autovacuum is on'; END IF; END $$"
                .to_owned(),
        );
        let outcome = measured(&server, &request).await;
        assert!(!outcome.plan.has_empty());
        let wal = [0, 1].map(|arm| outcome.wal_per_row(arm).unwrap());
        // A tuple of 32 bytes and more is logged for each row, and an index entry beside it.
        assert!(wal[0] > 32.0 && wal[1] > wal[0] + 24.0, "{wal:?}");
        let left = "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig_micro') \
                         + (SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig_micro%')";
        assert_eq!(server.number(left).await, 0);
    });
}

#[test]
fn shipped_suites_are_taken() {
    on_each_release(async |server| {
        for (name, text) in shipped() {
            let suite = Suite::read(name, text).unwrap();
            let request = Request {
                candidates: suite.candidates,
                empty: suite.empty,
                setup: suite.setup,
                teardown: suite.teardown,
                extensions: suite.extensions,
                ..request(std::iter::empty())
            };
            let plan = explained(&server, &request).await;
            assert!(plan.findings.iter().all(|finding| !finding.kind.is_refused()), "{name}: {plan:?}");
            let left_out: Vec<&str> = plan.left_out.iter().map(|out| out.because.as_str()).collect();
            // Only what the release has not.
            assert!(
                left_out.iter().all(|why| server.release < 18 && why.contains("uuidv7")),
                "{name}: {left_out:?}"
            );
            assert!(plan.candidates().count() > 1, "{name}: {plan:?}");
        }
        let left = "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'pgrig_micro') \
                         + (SELECT count(*) FROM pg_extension WHERE extname = 'uuid-ossp')";
        assert_eq!(server.number(left).await, 0);
    });
}

#[test]
fn a_failed_setup_is_torn_down() {
    on_each_release(async |server| {
        let mut request = expressions(&["i"]);
        request.setup = Some("CREATE TABLE made (n int); COMMIT; SELECT 1 / 0".to_owned());
        request.teardown = Some("DROP TABLE made".to_owned());
        let mut recorder = Recorder::default();
        let ended = run(&server.target, &server.connection, &request, &mut recorder, Box::pin(pending()))
            .await
            .unwrap();
        assert!(
            matches!(ended.result, Err(MicroError::Script { what: "--setup", .. })),
            "{:?}",
            ended.result
        );
        assert_eq!(ended.left_behind, None);
        assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname = 'made'").await, 0);
    });
}

#[test]
fn an_expression_that_is_none_gets_a_remedy() {
    on_each_release(async |server| {
        for (text, said) in [
            ("date_trunc('month', i)", "write date '2020-01-01' + i"),
            ("select", "for a statement, give --statement 'SELECT 1'"),
            ("nosuch('x')", "check the spelling"),
            ("md5", "write a call: 'md5(i::text)', or 'md5(i)'"),
            ("abs(i);", "leave out the semicolon"),
            ("abs(x)", "one column: i, the number of the row"),
        ] {
            let error = refused(&server, &expressions(&["i", text])).await;
            assert!(error.contains(said), "{text}: {error}");
        }
        let error = refused(&server, &statements(&["SELECT md5(i::text)"])).await;
        assert!(
            error.contains("i exists only in expressions: give the expression without --statement"),
            "{error}"
        );
    });
}
