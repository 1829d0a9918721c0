//! Conditions that pgrig does not understand: the server accepts every row of lists that it has judged.

use crate::support::on_each_release;
use testkit::assert_says;

#[test]
fn conditions_that_are_not_understood() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE FUNCTION is_fine(int, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 % 3 = length($2) % 3';
                 CREATE DOMAIN percent AS int CHECK (VALUE % 10 = 0);
                 CREATE TABLE t (
                     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                     one int, two int, three int,
                     value text NOT NULL, a int NOT NULL, b text NOT NULL, share percent NOT NULL,
                     document jsonb NOT NULL, kind text NOT NULL DEFAULT 'x', parts text[] NOT NULL,
                     CONSTRAINT one_of CHECK (num_nonnulls(one, two, three) = 1),
                     CONSTRAINT number CHECK (value::int > 5),
                     CONSTRAINT fine CHECK (is_fine(a, b)),
                     CONSTRAINT shaped CHECK (jsonb_typeof(document) = 'object' AND (document ->> 'size')::int >= 1),
                     CONSTRAINT few CHECK (cardinality(parts) <= 1 OR kind = 'y'),
                     CONSTRAINT first CHECK (id <> 1 OR (a > 5 AND kind = 'x'))
                 )",
            )
            .await;
        let described = database.fill("t", 5_000).await.unwrap();
        assert_says(
            &described.warnings.join("\n"),
            &["one, two, three: pgrig uses ", "that satisfy one_of (", "value: pgrig uses", "% of ", "a, b"],
        );
        let counts = "SELECT count(DISTINCT value) > 1 AND count(one) > 100 AND count(two) > 100 AND count(three) > 100 \
                         AND count(DISTINCT (a, b)) > 1000 AND count(DISTINCT share) > 2 FROM t";
        assert_eq!(database.value(counts).await, "true");
    });
}

#[test]
fn patterns_and_alternatives() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE DOMAIN post AS text CHECK (VALUE ~ '^[0-9]{5}$');
                 CREATE TABLE texts (
                     code text PRIMARY KEY CHECK (code ~ '^[A-Z]{3}-[0-9]+$'), post post NOT NULL,
                     mail varchar(60) NOT NULL CHECK (mail ~* '^[^@ ]+@[a-z0-9-]+\\.[a-z]{2,}$' AND length(mail) > 12),
                     path text NOT NULL CHECK (path LIKE '/static/%.__' AND lower(path) = path)
                 );
                 CREATE TABLE spans (a int, b int) PARTITION BY RANGE ((a + b));
                 CREATE TABLE spans_1 PARTITION OF spans FOR VALUES FROM (1) TO (10);
                 CREATE TABLE hashes (
                     id smallint PRIMARY KEY DEFAULT 7, sum bytea NOT NULL UNIQUE CHECK (octet_length(sum) = 20), name text NOT NULL,
                     CHECK (id <> 1 OR (name = 'default' AND octet_length(sum) > 0))
                 );
                 CREATE UNIQUE INDEX hashes_name ON hashes (md5(lower(name)));
                 CREATE TABLE roles (
                     org int, permissions text[] NOT NULL, CHECK (org IS NULL OR cardinality(permissions) > 0),
                     CHECK (org IS NOT NULL OR cardinality(permissions) = 0)
                 );",
            )
            .await;
        database.fill("texts", 5_000).await.unwrap();
        database.fill("roles", 1_000).await.unwrap();
        database.fill("spans", 1_000).await.unwrap();
        database.fill("hashes", 1_000).await.unwrap();
        let counts = "SELECT count(DISTINCT post) > 500 AND count(DISTINCT mail) > 500 AND count(DISTINCT path) > 500 FROM texts";
        assert_eq!(database.value(counts).await, "true");
        assert_eq!(database.value("SELECT count(DISTINCT org) > 50 FROM roles").await, "true");
    });
}

#[test]
fn foreign_keys_under_conditions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE people (id serial PRIMARY KEY);
                 CREATE TABLE teams (tenant int, id int, PRIMARY KEY (tenant, id));
                 CREATE TABLE messages (
                     id serial PRIMARY KEY, sender int NOT NULL REFERENCES people, receiver int NOT NULL REFERENCES people,
                     CHECK (sender <> receiver AND sender > 0)
                 );
                 CREATE TABLE heirs (
                     person int PRIMARY KEY REFERENCES people, heir int REFERENCES people, CHECK (heir <> person)
                 );
                 CREATE TABLE friends (a int REFERENCES people, b int REFERENCES people, PRIMARY KEY (a, b), CHECK (a < b));
                 CREATE TABLE owners (
                     id serial PRIMARY KEY, person int REFERENCES people, tenant int, team int, note text,
                     FOREIGN KEY (tenant, team) REFERENCES teams MATCH FULL,
                     CHECK ((person IS NULL) <> (team IS NULL))
                 );
                 CREATE UNIQUE INDEX one_each ON owners (person) WHERE person IS NOT NULL;",
            )
            .await;
        for (table, rows) in [
            ("people", 300),
            ("teams", 200),
            ("messages", 20_000),
            ("heirs", 300),
            ("friends", 2_000),
            ("owners", 200),
        ] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        assert_eq!(database.value("SELECT count(DISTINCT sender) > 200 FROM messages").await, "true");
    });
}

#[test]
fn ranges_that_must_not_overlap() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE slots (during tsrange, days daterange NOT NULL,
                     EXCLUDE USING gist (during WITH &&), EXCLUDE USING gist (days WITH &&) WHERE (NOT isempty(days)));
                 CREATE TABLE stays (
                     starts timestamptz NOT NULL, ends timestamptz, note text, CHECK (starts < ends),
                     CONSTRAINT one_at_a_time EXCLUDE USING gist (tstzrange(starts, ends, '[]') WITH &&)
                 );
                 CREATE TABLE days (first date NOT NULL, last date NOT NULL, EXCLUDE USING gist (daterange(first, last) WITH &&));",
            )
            .await;
        for table in ["slots", "stays", "days"] {
            database.fill(table, 2_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        let error = database.refused("stays", &[]).await;
        assert_says(&error, &["public.stays has rows, and pgrig cannot find values of", "one_at_a_time"]);
        assert_eq!(database.value("SELECT bool_and(last > first) FROM days").await, "true");
    });
}

/// Bounds of one column narrow the column that it is compared with, so neither is NULL more often than other columns.
#[test]
fn columns_that_ascend_within_bounds() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE discounts (lo int, hi int, CHECK (lo < hi), CHECK (hi BETWEEN 5 AND 100000));
                 CREATE TABLE few (lo int CHECK (lo > 0), hi int, CHECK (lo < hi), CHECK (hi BETWEEN 10 AND 12));
                 CREATE TABLE far (lo int CHECK (lo > 5000000), hi int, CHECK (hi >= lo));
                 CREATE TABLE chain (a smallint, b smallint, c smallint CHECK (c <= 10), d date, e date,
                     CHECK (a < b AND b < c), CHECK (d <= e), CHECK (e < '2020-01-01'));",
            )
            .await;
        for (table, columns) in
            [("discounts", "lo, hi"), ("few", "lo, hi"), ("far", "lo, hi"), ("chain", "a, b, c, d, e")]
        {
            database.fill(table, 1_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            let query = format!("SELECT least({}) FROM {table}", counts(columns));
            let least: i64 = database.value(&query).await.parse().unwrap();
            assert!(least > 800, "{table}: a column with {least} values in 1,000 rows");
        }
        assert_eq!(database.value("SELECT min(lo) >= 0 AND max(hi) <= 100000 FROM discounts").await, "true");
    });
}

/// The number of values of each column.
fn counts(columns: &str) -> String {
    columns.split(", ").map(|column| format!("count({column})")).collect::<Vec<_>>().join(", ")
}

#[test]
fn unique_columns_under_conditions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE t (code text PRIMARY KEY CHECK (code ~ '^[0-9]+$' AND length(code) < 6),
                                 n int UNIQUE CHECK (n % 7 = 0));
                 CREATE TABLE either (a text UNIQUE, b int UNIQUE,
                     CHECK (a IS NULL AND b IS NOT NULL OR a IS NOT NULL AND b IS NULL));
                 CREATE TABLE slugs (title text NOT NULL, slug text GENERATED ALWAYS AS (lower(title)) STORED UNIQUE);
                 CREATE TABLE counted (id int GENERATED ALWAYS AS IDENTITY (MAXVALUE 10), note text);",
            )
            .await;
        database.fill("t", 200).await.unwrap();
        database.fill("either", 200).await.unwrap();
        database.fill("slugs", 200).await.unwrap();
        let error = database.fill("counted", 20).await.unwrap_err().to_string();
        assert_says(
            &error,
            &["public.counted has room for 10 rows, not 20", "counted_id_seq has no more values"],
        );
        // As many as there are in the list.
        let error = database.fill("t", 10_000_000).await.unwrap_err().to_string();
        assert_says(&error, &["public.t has room for", "t_code_check"]);
    });
}

/// Shapes of rows that hardly any random row has: one owner of several, each kind with its own.
#[test]
fn few_shapes_of_many() {
    on_each_release(async |database| {
        let owners: Vec<String> = (1..=12).map(|number| format!("o{number} int REFERENCES people")).collect();
        let names: Vec<String> = (1..=12).map(|number| format!("o{number}")).collect();
        database
            .sql(&format!(
                "CREATE TYPE kind AS ENUM ('user', 'team', 'bot', 'none');
                 CREATE TABLE people (id int PRIMARY KEY);
                 INSERT INTO people SELECT generate_series(1, 100);
                 CREATE TABLE kinds (id smallint PRIMARY KEY);
                 INSERT INTO kinds VALUES (1), (2), (3), (4);
                 CREATE TABLE wide ({}, CHECK (num_nonnulls({}) = 1));
                 CREATE TABLE owned (
                     kind kind NOT NULL, label text NOT NULL, user_id int REFERENCES people, team_id int REFERENCES people,
                     bot bigint, size int, area int,
                     CHECK ((kind = 'user') = (user_id IS NOT NULL)), CHECK ((kind = 'team') = (team_id IS NOT NULL)),
                     CHECK ((kind = 'bot') = (bot IS NOT NULL)),
                     CHECK ((size IS NOT NULL)::int + (area IS NOT NULL)::int = 1),
                     CHECK (CASE label WHEN 'big' THEN size IS NOT NULL WHEN 'wide' THEN area IS NOT NULL ELSE false END)
                 );
                 CREATE TABLE by_number (
                     id serial PRIMARY KEY, kind smallint NOT NULL REFERENCES kinds, a text, b text, c int REFERENCES people,
                     CHECK ((kind = 1) = (a IS NOT NULL)), CHECK ((kind = 2) = (b IS NOT NULL)), CHECK ((kind = 3) = (c IS NOT NULL))
                 );
                 CREATE TABLE members (
                     id serial PRIMARY KEY, person int REFERENCES people, team int REFERENCES people, note text,
                     CHECK ((person IS NULL) <> (team IS NULL))
                 );
                 CREATE UNIQUE INDEX one_person ON members (person) WHERE person IS NOT NULL;",
                owners.join(", "),
                names.join(", ")
            ))
            .await;
        for (table, rows) in [("wide", 5_000), ("owned", 5_000), ("by_number", 5_000), ("members", 5_000)] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        // All shapes occur, each in a fair share of the rows.
        let counts = names.iter().map(|name| format!("count({name})")).collect::<Vec<_>>().join(", ");
        for query in [
            format!("SELECT least({counts}) > 5000 / 12 / 2 FROM wide"),
            "SELECT count(*) = 8 AND min(rows) > 300 FROM (SELECT count(*) AS rows FROM owned GROUP BY kind, label) AS shapes".to_owned(),
            "SELECT count(*) = 4 AND min(rows) > 500 FROM (SELECT count(*) AS rows FROM by_number GROUP BY kind) AS shapes".to_owned(),
            "SELECT count(DISTINCT c) > 50 FROM by_number".to_owned(),
            "SELECT count(person) = count(DISTINCT person) AND count(person) > 50 AND count(team) > 4000 FROM members".to_owned(),
        ] {
            assert_eq!(database.value(&query).await, "true", "{query}");
        }
    });
}

/// Of unique columns, rows with NULL may come again and again.
#[test]
fn unique_columns_of_which_one_is_null() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE people (id int PRIMARY KEY);
                 INSERT INTO people SELECT generate_series(1, 100);
                 CREATE TABLE seats (
                     person int UNIQUE REFERENCES people, room int UNIQUE REFERENCES people, desk int REFERENCES people,
                     CHECK (num_nonnulls(person, room, desk) = 1)
                 );",
            )
            .await;
        database.fill("seats", 2_000).await.unwrap();
        let counts = "SELECT count(desk) > 1700 AND least(count(person), count(room)) > 50 FROM seats";
        assert_eq!(database.value(counts).await, "true");
    });
}

#[test]
fn what_hardly_any_value_fulfils_is_refused() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE never (a int NOT NULL, b text CONSTRAINT odd CHECK (md5(b) LIKE 'abcdef%' AND a > 0));
                 CREATE TABLE broken (a text NOT NULL CONSTRAINT cast_fails CHECK ((a || 'x')::int > 0));",
            )
            .await;
        let error = database.refused("never", &["b=text(10)"]).await;
        assert_says(&error, &["odd"]);
        let error = database.refused("broken", &[]).await;
        assert_says(&error, &["public.broken", "cast_fails", "invalid input syntax", "'a=SPEC'"]);
    });
}

#[test]
fn the_server_compiles_no_query() {
    on_each_release(async |database| {
        // Only a session that compiles queries fulfils the condition.
        database
            .sql(
                "SET jit = on;
                 CREATE FUNCTION compiles(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE
                     AS 'BEGIN RETURN current_setting(''jit'')::bool; END';
                 CREATE TABLE t (a int NOT NULL CONSTRAINT compiled CHECK (compiles(a)))",
            )
            .await;
        let error = database.refused("t", &[]).await;
        assert_says(&error, &["compiled"]);
    });
}

/// A table in which one of 19 kinds determines which of five columns are NULL.
fn log_table() -> String {
    let targets = ["person", "community", "post", "comment", "instance"];
    // Of each kind, other columns are set: not all of them, and not none.
    let kind = |number: usize| {
        let listed = |is_set: bool| {
            let is_meant = |at: &usize| ((number >> at) % 2 == 1) == is_set;
            let names: Vec<&str> = (0..targets.len()).filter(is_meant).map(|at| targets[at]).collect();
            (names.len(), names.join(", "))
        };
        let ((set, names), (_, others)) = (listed(true), listed(false));
        format!("(kind = 'kind_{number}' AND num_nonnulls({names}) = {set} AND num_nonnulls({others}) = 0)")
    };
    let check: Vec<String> = (1..20).map(kind).collect();
    let labels: Vec<String> = (1..20).map(|number| format!("'kind_{number}'")).collect();
    format!(
        "CREATE TYPE log_kind AS ENUM ({});
         CREATE TABLE log (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind log_kind NOT NULL, {},
             CONSTRAINT log_check CHECK ({}));",
        labels.join(", "),
        targets.map(|name| format!("{name} int")).join(", "),
        check.join(" OR ")
    )
}

/// A second search, whose result pgrig knows, makes the same rows.
#[test]
fn many_alternatives_are_searched_once() {
    on_each_release(async |database| {
        database.sql(&log_table()).await;
        let first = database.fill("log", 2_000).await.unwrap();
        assert_eq!(database.value("SELECT count(DISTINCT kind) FROM log").await, "19");
        database.sql("TRUNCATE log").await;
        let second = database.fill("log", 2_000).await.unwrap();
        assert_eq!(first.table, second.table);
        assert_eq!(first.warnings, second.warnings);
    });
}

/// Rows keep most conditions, which the server judges in one question. Those that rows break get lists, also if a condition beside them
/// raises an error.
#[test]
fn most_of_many_conditions_are_kept() {
    on_each_release(async |database| {
        let kept: Vec<String> = (0..30)
            .map(|number| format!("CONSTRAINT kept_{number} CHECK (value || '{number}' <> lower(note))"))
            .collect();
        let table = |name: &str, more: &str| {
            format!(
                "CREATE TABLE {name} (
                     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value text NOT NULL, note text, kept int NOT NULL, number text,
                     {}, CONSTRAINT rare CHECK (kept % 7 = 3) {more})",
                kept.join(", ")
            )
        };
        database.sql(&table("plain", "")).await;
        database.sql(&table("failing", ", CONSTRAINT cast_fails CHECK (number::int > 5)")).await;
        for name in ["plain", "failing"] {
            let warnings = database.fill(name, 5_000).await.unwrap().warnings.join("\n");
            assert_says(&warnings, &["kept: pgrig uses", "that satisfy rare ("]);
            assert!(!warnings.contains("kept_"), "{warnings}");
            assert_eq!(warnings.contains("cast_fails"), name == "failing", "{warnings}");
        }
    });
}

/// The body of a function may change between two searches.
#[test]
fn functions_that_change_are_asked_again() {
    on_each_release(async |database| {
        let function = |rest: u32| {
            format!(
                "CREATE OR REPLACE FUNCTION fits(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 % 3 = {rest}'"
            )
        };
        database.sql(&function(0)).await;
        database.sql("CREATE TABLE numbers (a int NOT NULL CHECK (fits(a)))").await;
        for rest in [0, 1] {
            database.sql(&function(rest)).await;
            database.fill("numbers", 100).await.unwrap();
            database.sql("TRUNCATE numbers").await;
        }
    });
}

/// A range whose ends are in the wrong order, and a division by zero, raise errors, although no CHECK forbids them.
#[test]
fn expressions_that_the_server_evaluates_raise_no_errors() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE EXTENSION IF NOT EXISTS btree_gist;
                 CREATE TABLE bookings (room int NOT NULL, starts timestamptz NOT NULL, ends timestamptz NOT NULL,
                     EXCLUDE USING gist (room WITH =, tstzrange(starts, ends) WITH &&));
                 CREATE TABLE stays (starts timestamptz NOT NULL, ends timestamptz NOT NULL,
                     during tstzrange GENERATED ALWAYS AS (tstzrange(starts, ends)) STORED);
                 CREATE TABLE periods (low date NOT NULL, high date NOT NULL);
                 CREATE INDEX ON periods USING gist (daterange(low, high));
                 CREATE TABLE shares (part int NOT NULL, whole int NOT NULL CHECK (whole BETWEEN -1 AND 1));
                 CREATE INDEX ON shares ((part / whole));",
            )
            .await;
        for (table, name) in [
            ("bookings", "bookings_room_tstzrange_excl"),
            ("stays", "during"),
            ("periods", "periods_daterange_idx"),
            ("shares", "shares_expr_idx"),
        ] {
            let described =
                database.fill(table, 2_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_says(&described.warnings.join(""), &["combinations that satisfy", name]);
        }
        assert_eq!(database.value("SELECT count(DISTINCT during) > 1000 FROM stays").await, "true");
    });
}

/// The server evaluates the expressions of a partial index only for its rows.
#[test]
fn expressions_of_partial_indexes() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE carts (total int NOT NULL, items int NOT NULL CHECK (items BETWEEN 0 AND 1));
                 CREATE INDEX ON carts ((total / items)) WHERE items > 0;
                 CREATE TABLE offers (id int PRIMARY KEY, total int NOT NULL, items int NOT NULL CHECK (items = 0));
                 CREATE INDEX ON offers ((total / items)) WHERE items > 0;
                 CREATE UNIQUE INDEX ON offers (id, (total / items)) WHERE items > 0;",
            )
            .await;
        for table in ["carts", "offers"] {
            database.fill(table, 1_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        let empty = "SELECT count(*) > 100 FROM carts WHERE items = 0";
        assert_eq!(database.value(empty).await, "true");
        assert_eq!(database.value("SELECT count(*) FROM offers").await, "1000");
    });
}
