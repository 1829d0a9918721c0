//! Event triggers at login, which PostgreSQL has from version 17 on.

use std::time::Duration;

use backup::{Load, Outcome, Request, Shape, SizesRequest, SizesSite, Witness};
use pgserver::Home;
use script::Source;
use testkit::{
    CLIENTS_RELEASE, Need, Server, assert_says, block_on, clients, require, templates, templates_of,
};
use tps::Length;

use crate::support::{Unwatched, assert_nothing_is_left, rehearsed_by, server, ways};

const MB: u64 = 1_000_000;
/// Each login writes a row.
const LOGINS: &str = "CREATE TABLE public.logins (at timestamptz NOT NULL, who text NOT NULL); \
    CREATE FUNCTION public.note_login() RETURNS event_trigger SECURITY DEFINER LANGUAGE plpgsql AS \
    'BEGIN INSERT INTO public.logins VALUES (pg_catalog.now(), SESSION_USER);END'; \
    CREATE EVENT TRIGGER noted ON login EXECUTE FUNCTION public.note_login()";
const WAYS: [&str; 2] = ["plain:none", "base"];

fn with_logins() -> Server {
    let server = server(CLIENTS_RELEASE);
    server.sql(LOGINS);
    server
}

/// Rehearses a dump and a base backup as this role.
async fn rehearsed(server: &Server, role: &str) -> Outcome {
    let target = server.target("postgres").with_user(role);
    let outcome = rehearsed_by(Some(clients()), server, &target, &WAYS).await.unwrap();
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    outcome
}

fn witnesses(outcome: &Outcome) -> Vec<Witness> {
    outcome.trials.iter().map(|trial| trial.verified.witness).collect()
}

#[test]
fn the_sessions_of_a_superuser_write_no_rows_into_the_original_and_the_copy() {
    if !require(Need::Clients17) {
        return;
    }
    let server = with_logins();
    block_on(async {
        let watching = server.connect("postgres").await;
        let query = "SELECT count(*) FROM logins";
        let before: i64 = watching.client.query_one(query, &[]).await.unwrap().get(0);
        let outcome = rehearsed(&server, "postgres").await;
        let after: i64 = watching.client.query_one(query, &[]).await.unwrap().get(0);
        // The first session has found the trigger.
        assert_eq!(after, before + 1);
        assert_eq!(witnesses(&outcome), [Witness::SameSnapshot, Witness::Unchanged]);
        assert!(!outcome.notes.join("\n").contains("event triggers"), "{:#?}", outcome.notes);
        watching.close().await;
    });
}

#[test]
fn a_role_that_may_not_switch_them_off_gets_the_remedy() {
    if !require(Need::Clients17) {
        return;
    }
    let server = with_logins();
    server.sql("CREATE ROLE app LOGIN REPLICATION; GRANT pg_read_all_data TO app");
    block_on(async {
        let outcome = rehearsed(&server, "app").await;
        assert_eq!(witnesses(&outcome), [Witness::SameSnapshot, Witness::Changed]);
        let notes = outcome.notes.join("\n");
        assert_says(
            &notes,
            &["(noted)", "role app is no superuser", "ALTER ROLE app SET event_triggers = off"],
        );
    });
    server.sql("ALTER ROLE app SET event_triggers = off");
    block_on(async {
        let outcome = rehearsed(&server, "app").await;
        assert_eq!(witnesses(&outcome), [Witness::SameSnapshot, Witness::Unchanged]);
        assert!(!outcome.notes.join("\n").contains("event triggers"), "{:#?}", outcome.notes);
    });
}

/// The script fails unless event triggers are on.
const SCRIPT: &str = "\\set id random(1, 1000)\n\
    SELECT 1 / (current_setting('event_triggers') = 'on')::int;\n\
    UPDATE public.t SET v = v WHERE id = :id;\n";

#[test]
fn databases_that_pgrig_fills_run_them_only_for_a_load() {
    if !require(Need::Clients17) {
        return;
    }
    let directory = testkit::directory();
    let _ = templates_of(CLIENTS_RELEASE);
    let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&templates());
    let major = Some(CLIENTS_RELEASE);
    let ground = SizesSite { home: &home, pg_bin: None, major, set: &[], cores: 2, pgrig: "test" };
    let sql = format!("CREATE TABLE public.t (id int PRIMARY KEY, v text NOT NULL); {LOGINS}");
    let source = Source::file("load.sql", SCRIPT, 1);
    let request = tps::Request {
        clients: 2,
        rate: Some(50.0),
        seed: 4711,
        ..tps::Request::of(source, Length::Time(Duration::from_secs(2)))
    };
    let asked = SizesRequest {
        request: Request {
            ways: ways(&["incremental", "pitr"]),
            trials: 1,
            bin: Some(clients()),
            probe: false,
            network: false,
        },
        shape: Shape::of_script(&sql, "logins.sql".to_owned()).unwrap(),
        size: 120 * MB,
        up_to: 10 * MB,
        price: None,
        rto: None,
        changes: 0.01,
        load: Some(Load { request }),
    };
    let never = std::future::pending();
    let outcome = block_on(Box::pin(backup::rehearse_sizes(&ground, &asked, &mut Unwatched, never))).unwrap();
    assert_nothing_is_left(home.root());
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), 6);
    for trial in &outcome.trials {
        let is_incremental = trial.way.to_string() == "incremental";
        let expected = if is_incremental { Witness::Unchanged } else { Witness::PointInTime };
        assert_eq!(trial.verified.witness, expected, "{trial:#?}");
    }
}
