//! Observations of a server while transactions would run: on real servers, the oldest release and the newest.

use connect::{Connection, Target};
use testkit::{RELEASES, Server, block_on, spec, until_async};
use tokio::task::JoinHandle;
use tps::watch::{Watch, Watched, Watching};

/// How the run's own sessions are called here.
const CLIENTS: &str = "the run's own";

fn watching() -> Watching {
    Watching { clients: CLIENTS.to_owned(), of_all_parts: None, jobs: 1 }
}

fn on_servers(test: &impl AsyncFn(&Server, &Connection)) {
    for major in RELEASES {
        // Nothing but what the test does.
        let server = Server::start(spec(major, &[("autovacuum", "off")]));
        block_on(async { test(&server, &server.connect("postgres").await).await });
    }
}

/// A watch that has begun to count.
async fn watch(target: &Target, admin: &Connection) -> Watch {
    let watch = Watch::start(target, watching()).await;
    let now = admin.client.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap();
    watch.measured();
    // It looks at what the run's sessions wait for as soon as all else has been looked at. It has prepared the query
    // for that before.
    let last = format!(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'pgrig watch' \
         AND state = 'idle' AND query LIKE '%running on CPU%' AND query_start > '{}')",
        now.get::<_, String>(0)
    );
    until(admin, &last).await;
    watch
}

/// Until the query says true.
async fn until(connection: &Connection, query: &str) {
    until_async(query, async || connection.client.query_one(query, &[]).await.unwrap().get(0)).await;
}

/// A session that runs a statement until it is cancelled, seen at work.
async fn at_work(
    server: &Server,
    admin: &Connection,
    name: &str,
    sql: &'static str,
) -> (connect::Canceller, JoinHandle<()>) {
    let session = server.target("postgres").with_application_name(name).connect().await.unwrap();
    let canceller = session.canceller();
    let task = tokio::spawn(async move {
        session.client.batch_execute(sql).await.unwrap_err();
        session.close().await;
    });
    until(
        admin,
        &format!(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $${name}$$ AND state = 'active')"
        ),
    )
    .await;
    (canceller, task)
}

fn notes(watched: &Watched) -> String {
    watched.notes.join("\n")
}

/// No session but the test's own.
async fn assert_nothing_left(admin: &Connection) {
    until(
        admin,
        "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' \
                            AND pid <> pg_backend_pid())",
    )
    .await;
}

#[test]
fn a_checkpoint_and_a_vacuum_are_told() {
    on_servers(&async |server, admin| {
        let execute = async |sql: &str| admin.client.batch_execute(sql).await.unwrap();
        execute("CREATE TABLE \"Told \"\"So\" AS SELECT generate_series(1, 10000) AS n").await;
        execute("CREATE TABLE before AS SELECT 1 AS n").await;
        execute("VACUUM before").await;
        let watch = watch(&server.target("postgres"), admin).await;
        execute("CHECKPOINT").await;
        execute("VACUUM \"Told \"\"So\"").await;
        execute("ANALYZE \"Told \"\"So\"").await;
        // Before PostgreSQL 15 statistics take a while to arrive.
        until(
            admin,
            "SELECT last_vacuum IS NOT NULL AND last_analyze IS NOT NULL \
             FROM pg_stat_user_tables WHERE relname = 'Told \"So'",
        )
        .await;
        let watched = watch.finish().await;
        let notes = notes(&watched);
        assert_eq!(watched.checkpoints.len(), 1, "{watched:?}");
        let parts = ["a checkpoint ran ", "VACUUM ran on \"Told \"\"So\"", "ANALYZE ran on \"Told \"\"So\""];
        for part in parts {
            assert!(notes.contains(part), "{notes}");
        }
        assert!(!notes.contains("before") && !notes.contains("not"), "{notes}");
        assert!(watched.wal.unwrap() > 0);
        assert_nothing_left(admin).await;
    });
}

#[test]
fn a_vacuum_at_work_and_others_at_work_are_told() {
    on_servers(&async |server, admin| {
        admin
            .client
            .batch_execute("CREATE TABLE slow AS SELECT generate_series(1, 100000) AS n")
            .await
            .unwrap();
        let slow = "SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1";
        let session = server.connect("postgres").await;
        session.client.batch_execute(slow).await.unwrap();
        let canceller = session.canceller();
        let vacuum = tokio::spawn(async move {
            session.client.batch_execute("VACUUM slow").await.unwrap_err();
            session.close().await;
        });
        until(admin, "SELECT EXISTS (SELECT FROM pg_stat_progress_vacuum)").await;
        let (sleeper, sleep) = at_work(server, admin, "somebody", "SELECT pg_sleep(600)").await;
        let watched = watch(&server.target("postgres"), admin).await.finish().await;
        let notes = notes(&watched);
        assert!(notes.contains("VACUUM ran on slow all the time"), "{notes}");
        assert!(notes.contains("up to 2 other sessions ran during the measurement"), "{notes}");
        canceller.cancel().await.unwrap();
        sleeper.cancel().await.unwrap();
        vacuum.await.unwrap();
        sleep.await.unwrap();
        assert_nothing_left(admin).await;
    });
}

#[test]
fn what_the_runs_sessions_wait_for_is_told() {
    on_servers(&async |server, admin| {
        let (sleeper, sleep) = at_work(server, admin, CLIENTS, "SELECT pg_sleep(600)").await;
        let watched = watch(&server.target("postgres"), admin).await.finish().await;
        assert_eq!(watched.waits, [("Timeout:PgSleep".to_owned(), 1.0)]);
        assert!(watched.wait_samples >= 1);
        assert!(!notes(&watched).contains("session"), "{watched:?}");
        sleeper.cancel().await.unwrap();
        sleep.await.unwrap();
        assert_nothing_left(admin).await;
    });
}

#[test]
fn waits_are_told_over_time() {
    on_servers(&async |server, admin| {
        let started = |when: &str| {
            format!(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'pgrig watch' \
                 AND query LIKE '%pg_stat_get_progress_info%' AND query_start > '{when}')"
            )
        };
        let now = async || -> String {
            admin.client.query_one("SELECT clock_timestamp()::text", &[]).await.unwrap().get(0)
        };
        let (sleeper, sleep) = at_work(server, admin, CLIENTS, "SELECT pg_sleep(600)").await;
        let watch = watch(&server.target("postgres"), admin).await;
        // The next look at the server ends the first interval.
        until(admin, &started(&now().await)).await;
        admin.client.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
        let (waiter, wait) = at_work(server, admin, CLIENTS, "SELECT pg_advisory_lock(1)").await;
        until(admin, &started(&now().await)).await;
        until(admin, &started(&now().await)).await;
        let watched = watch.finish().await;
        let over_time = &watched.waits_over_time;
        let points = |event: &str| &over_time.events.iter().find(|one| one.0 == event).unwrap().1;
        let (slept, locked) = (points("Timeout:PgSleep"), points("Lock:advisory"));
        // One session slept in each look; the other came later.
        assert_eq!(*slept, over_time.looks);
        assert!(locked[0].0 > slept[0].0, "{watched:?}");
        let last = locked.last().unwrap();
        let together = slept.iter().find(|point| point.0.to_bits() == last.0.to_bits()).unwrap();
        assert!(last.1 > 0 && together.1 >= last.1, "{watched:?}");
        let all = over_time.events.iter().flat_map(|event| &event.1).map(|point| point.1).sum::<u64>();
        assert_eq!(all, watched.wait_samples);
        sleeper.cancel().await.unwrap();
        waiter.cancel().await.unwrap();
        sleep.await.unwrap();
        wait.await.unwrap();
        assert_nothing_left(admin).await;
    });
}

#[test]
fn an_ordinary_role_sees_its_own() {
    on_servers(&async |server, admin| {
        let execute = async |sql: &str| admin.client.batch_execute(sql).await.unwrap();
        execute("CREATE ROLE ordinary LOGIN").await;
        execute("CREATE TABLE seen AS SELECT 1 AS n").await;
        let target = server.target("postgres").with_user("ordinary");
        let client = target.clone().with_application_name(CLIENTS).connect().await.unwrap();
        let watch = watch(&target, admin).await;
        execute("CHECKPOINT").await;
        execute("VACUUM seen").await;
        until(admin, "SELECT last_vacuum IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'seen'").await;
        let watched = watch.finish().await;
        let notes = notes(&watched);
        assert!(notes.contains("GRANT pg_read_all_stats TO ordinary"), "{notes}");
        assert!(notes.contains("a checkpoint ran"), "{notes}");
        assert!(notes.contains("VACUUM ran on seen"), "{notes}");
        assert!(!notes.contains("pgrig could not watch everything"), "{notes}");
        assert_eq!(watched.waits, [("Client:ClientRead".to_owned(), 1.0)]);
        assert_eq!(watched.seconds.last().unwrap().others, None);
        client.close().await;
        assert_nothing_left(admin).await;
    });
}

#[test]
fn a_watch_that_cannot_look_fails_nothing() {
    on_servers(&async |server, admin| {
        // Nobody there.
        let nowhere = server.target("postgres").with_database("nowhere");
        let started = Watch::start(&nowhere, watching()).await;
        started.measured();
        let watched = started.finish().await;
        assert_eq!(watched.waits, []);

        // Ended in the middle.
        let cut = watch(&server.target("postgres"), admin).await;
        let end = "SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE application_name = 'pgrig watch'";
        assert!(admin.client.query_one(end, &[]).await.unwrap().get::<_, bool>(0));
        let watched = cut.finish().await;
        assert!(notes(&watched).contains("pgrig could not watch everything"), "{watched:?}");

        // Given up: the session ends too.
        drop(watch(&server.target("postgres"), admin).await);
        // Ended before anything was measured.
        let unused = Watch::start(&server.target("postgres"), watching()).await;
        assert_eq!(unused.finish().await, Watched::default());
        assert_nothing_left(admin).await;
    });
}
