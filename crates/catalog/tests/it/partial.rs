//! Partial unique indexes: rows that do not satisfy the predicate need no keys that differ.

use crate::support::on_each_release;
use testkit::assert_says;

const USERS: &str =
    "CREATE TABLE users (id int PRIMARY KEY); INSERT INTO users SELECT generate_series(1, 50);";

#[test]
fn more_rows_than_keys() {
    on_each_release(async |database| {
        database.sql(USERS).await;
        database
            .sql(
                "CREATE TABLE subs (
                     id serial PRIMARY KEY, user_id int NOT NULL REFERENCES users,
                     status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'trial', 'ended')), note text
                 );
                 CREATE UNIQUE INDEX one_active ON subs (user_id) WHERE status = 'active';
                 CREATE UNIQUE INDEX one_trial ON subs (user_id) WHERE status = 'trial';
                 CREATE TABLE pages (tenant int NOT NULL REFERENCES users, name text NOT NULL, is_home bool NOT NULL DEFAULT false);
                 CREATE UNIQUE INDEX one_home ON pages (tenant) WHERE is_home;
                 CREATE TABLE versions (id serial PRIMARY KEY, is_current bool NOT NULL);
                 CREATE UNIQUE INDEX one_current ON versions ((true)) WHERE is_current;
                 CREATE TABLE badges (user_id int REFERENCES users, kind text COLLATE \"POSIX\" NOT NULL);
                 CREATE UNIQUE INDEX one_owner ON badges (user_id) WHERE user_id IS NOT NULL;
                 CREATE TABLE cases (user_id int NOT NULL REFERENCES users, day date NOT NULL, state text);
                 CREATE UNIQUE INDEX one_open ON cases ((user_id % 10)) WHERE lower(state) = 'open' AND day IS NOT NULL;
                 CREATE UNIQUE INDEX each_day ON cases (user_id, day);",
            )
            .await;
        for table in ["subs", "pages", "versions", "badges", "cases"] {
            let described =
                database.fill(table, 1_000).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_says(&described.warnings.join("\n"), &["predicate"]);
            // They are appended: keys of rows that are there must not come again.
            database.fill(table, 500).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            let rows = format!("SELECT count(*) FROM {table}");
            assert_eq!(database.value(&rows).await, "1500", "{table}");
        }
        // Only the first rows are in the index.
        let active = "SELECT count(*) FROM subs WHERE status IN ('active', 'trial')";
        let active: u64 = database.value(active).await.parse().unwrap();
        assert!((10..=50).contains(&active), "{active}");
        assert_eq!(database.value("SELECT count(DISTINCT user_id) FROM badges").await, "50");
        assert_eq!(database.value("SELECT count(user_id) FROM badges").await, "50");
        let homes: u64 = database.value("SELECT count(*) FROM pages WHERE is_home").await.parse().unwrap();
        assert!((5..=50).contains(&homes), "{homes}");
    });
}

#[test]
fn as_before_where_keys_leave_room() {
    on_each_release(async |database| {
        database.sql(USERS).await;
        database
            .sql(
                "CREATE TABLE people (email text NOT NULL, deleted_at timestamptz, user_id int NOT NULL REFERENCES users);
                 CREATE UNIQUE INDEX one_email ON people (email) WHERE deleted_at IS NULL;
                 CREATE UNIQUE INDEX one_user ON people (user_id) WHERE deleted_at IS NULL;",
            )
            .await;
        let described = database.fill("people", 50).await.unwrap();
        assert_eq!(described.warnings, Vec::<String>::new());
        let live: u64 =
            database.value("SELECT count(*) FROM people WHERE deleted_at IS NULL").await.parse().unwrap();
        assert!(live > 20, "{live}");
    });
}

#[test]
fn what_no_row_can_avoid_is_refused() {
    on_each_release(async |database| {
        database.sql(USERS).await;
        database
            .sql(
                "CREATE TABLE always (user_id int NOT NULL REFERENCES users, status text NOT NULL);
                 CREATE UNIQUE INDEX one ON always (user_id) WHERE user_id > 0;
                 CREATE TABLE given (user_id int NOT NULL REFERENCES users, status text NOT NULL);
                 CREATE UNIQUE INDEX one_given ON given (user_id) WHERE status = 'active';
                 CREATE TABLE both_ (user_id int NOT NULL REFERENCES users, team int NOT NULL REFERENCES users, status text NOT NULL);
                 CREATE UNIQUE INDEX one_both ON both_ (user_id) WHERE status = 'active';
                 CREATE UNIQUE INDEX full_both ON both_ (user_id, team);",
            )
            .await;
        let error = database.refused("always", &[]).await;
        assert_says(&error, &["public.always has room for 50 rows, not 1000", "WHERE (user_id > 0)"]);
        let error = database.refused("given", &["status=constant(active)"]).await;
        assert_says(&error, &["public.given has room for 50 rows, not 1000", "one_given"]);
        // The full key limits the rows, not the partial one.
        let error = database.fill("both_", 3_000).await.unwrap_err().to_string();
        assert_says(&error, &["public.both_ has room for 2500 rows, not 3000", "full_both"]);
        database.fill("both_", 2_500).await.unwrap();
    });
}

/// A unique index on a constant allows one row, or one that satisfies its predicate.
#[test]
fn one_row_by_an_index_on_a_constant() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE site (id int PRIMARY KEY, n bigint DEFAULT 0);
                 CREATE UNIQUE INDEX one_row ON site ((true));
                 CREATE TABLE settings (single bool GENERATED ALWAYS AS (true) STORED UNIQUE, name text);
                 CREATE TABLE options (id int PRIMARY KEY); CREATE UNIQUE INDEX no_key ON options ((NULL::int));
                 CREATE TABLE bans (id int PRIMARY KEY, deleted timestamptz);
                 CREATE UNIQUE INDEX one_ban ON bans ((true)) WHERE deleted IS NULL;",
            )
            .await;
        for table in ["site", "settings"] {
            let error = database.refused(table, &[]).await;
            let room = format!("public.{table} has room for 1 row, not 1000");
            assert_says(&error, &[room.as_str(), "allows only one row. Give fewer rows"]);
            assert!(!error.contains("--column"), "{error}");
            database.fill(table, 1).await.unwrap();
            assert_says(&database.refused(table, &[]).await, &["has room for 0 rows", "Run TRUNCATE"]);
        }
        database.fill("options", 1_000).await.unwrap();
        let described = database.fill("bans", 1_000).await.unwrap();
        assert_says(&described.warnings.join("\n"), &["only the first row may satisfy its predicate"]);
        let live = "SELECT count(*) <= 1 FROM bans WHERE deleted IS NULL";
        database.fill("bans", 500).await.unwrap();
        assert_eq!(database.value(live).await, "true");
        assert_eq!(database.value("SELECT count(*) FROM bans").await, "1500");
    });
}
