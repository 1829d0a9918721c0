//! `pgrig fill` of tables with conditions that pgrig does not understand: the server judges candidates.

use crate::support::Rig;

const TABLES: &str = "
    CREATE TABLE people (id serial PRIMARY KEY, mail text UNIQUE CHECK (mail ~ '^[^@ ]+@[a-z]+\\.[a-z]{2,3}$'));
    CREATE TABLE links (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        one int NOT NULL REFERENCES people, other int NOT NULL REFERENCES people, note text, file text,
        value text NOT NULL CONSTRAINT positive CHECK (value::int > 0),
        CONSTRAINT apart CHECK (one <> other),
        CONSTRAINT either CHECK (num_nonnulls(note, file) = 1)
    );";

/// Conditions on the distance of two values, and domains within arrays.
const DISTANCES: &str = "
    CREATE DOMAIN code AS text CHECK (VALUE ~ '^[A-Z]{2}$');
    CREATE TABLE bookings (
        id int PRIMARY KEY, starts timestamptz NOT NULL, ends timestamptz NOT NULL,
        CONSTRAINT short CHECK (starts < ends AND ends - starts < interval '8 hours')
    );
    CREATE TABLE stays (
        id int PRIMARY KEY, arrives date NOT NULL, leaves date NOT NULL, CHECK (arrives < leaves), CHECK (leaves - arrives <= 14)
    );
    CREATE TABLE spans (id int PRIMARY KEY, low int NOT NULL, high int NOT NULL, CHECK (high > low), CHECK (high - low <= 10));
    CREATE TABLE calls (
        id int PRIMARY KEY, began timestamp NOT NULL, ended timestamp, CHECK (ended > began),
        CHECK (extract(epoch FROM ended - began) < 3600)
    );
    CREATE TABLE lists (id int PRIMARY KEY, codes code[] NOT NULL, more code[]);";

fn assert_distances(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(DISTANCES);
    rig.done("fill --all-tables --rows 3000 -q");
    for table in ["bookings", "stays", "spans", "calls", "lists"] {
        assert_eq!(server.number(&format!("SELECT count(*) FROM {table}")), 3000, "{table}");
        // Validated anew.
        server.execute(&format!(
            "CREATE TABLE again_{table} (LIKE {table} INCLUDING CONSTRAINTS); INSERT INTO again_{table} SELECT * FROM {table}"
        ));
    }
    assert!(server.number("SELECT count(DISTINCT starts) FROM bookings") > 1_000);
    assert!(server.number("SELECT count(ended) FROM calls") > 1_000);
    assert!(server.number("SELECT count(*) FROM lists, unnest(codes) code WHERE code !~ '^[A-Z]{2}$'") == 0);
    assert!(server.number("SELECT count(*) FROM lists WHERE cardinality(codes) > 1") > 100);
}

#[test]
fn distances_and_arrays_of_domains_are_judged_on_the_newest() {
    assert_distances("--pg-version 18");
}

#[test]
fn distances_and_arrays_of_domains_are_judged_on_the_oldest() {
    assert_distances("--pg-version 13");
}

fn assert_filled(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(TABLES);
    let ran = rig.run("fill --all-tables --rows people=500,links=20000");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for part in ["either", "positive", "apart", "combinations that satisfy", "% of "] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let apart = "SELECT count(*) FROM links JOIN people ON people.id = one WHERE one <> other";
    assert_eq!(server.number(apart), 20_000);
    // NULL is in the list too, once.
    assert!(server.number("SELECT count(DISTINCT mail) FROM people") >= 499);
    assert!(server.number("SELECT least(count(note), count(file)) FROM links") > 1_000);
    // Validated anew: pages pass no CHECK.
    server.execute(
        "CREATE TABLE again (LIKE links INCLUDING CONSTRAINTS); INSERT INTO again SELECT * FROM links",
    );
}

#[test]
fn conditions_are_judged_on_the_newest() {
    assert_filled("--pg-version 18");
}

#[test]
fn conditions_are_judged_on_the_oldest() {
    assert_filled("--pg-version 13");
}

/// Partial unique indexes with keys for fewer rows than asked for, and owners of several kinds.
const PARTIAL: &str = "
    CREATE TABLE users (id int PRIMARY KEY);
    CREATE TABLE teams (id int PRIMARY KEY);
    CREATE TABLE subs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id int NOT NULL REFERENCES users,
        status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended'))
    );
    CREATE UNIQUE INDEX one_active ON subs (user_id) WHERE status = 'active';
    CREATE TABLE owned (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL CHECK (kind IN ('user', 'team')),
        user_id int REFERENCES users, team_id int REFERENCES teams,
        CHECK ((kind = 'user') = (user_id IS NOT NULL)), CHECK ((kind = 'team') = (team_id IS NOT NULL))
    );
    CREATE UNIQUE INDEX one_user ON owned (user_id) WHERE user_id IS NOT NULL;";

fn assert_partial(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(PARTIAL);
    for (method, rows) in [("direct", 5_000), ("copy", 10_000)] {
        let append = if method == "copy" { " --append" } else { "" };
        let ran = rig.run(&format!(
            "fill --all-tables --rows users=50,teams=30,subs=5000,owned=5000 --method {method}{append}"
        ));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.stderr.contains("predicate"), "{}", ran.stderr);
        assert_eq!(server.number("SELECT count(*) FROM subs"), rows);
        assert_eq!(
            server.number("SELECT count(*) FROM owned WHERE num_nonnulls(user_id, team_id) = 1"),
            rows
        );
        assert!(server.number("SELECT count(*) FROM subs WHERE status = 'active'") > 5);
        assert!(server.number("SELECT count(*) FROM owned WHERE kind = 'user'") > 5);
        server.execute("REINDEX INDEX one_active; REINDEX INDEX one_user");
    }
}

#[test]
fn partial_indexes_limit_no_rows_on_the_newest() {
    assert_partial("--pg-version 18");
}

#[test]
fn partial_indexes_limit_no_rows_on_the_oldest() {
    assert_partial("--pg-version 13");
}
