//! Tables of every kind, described and filled on real servers: the server itself enforces that all
//! constraints hold, so a COPY that succeeds is the proof.

use crate::support::{given, on_each_release};
use catalog::{DescribeRequest, Planned, Scope, TableInfo, describe};
use rowgen::Table;
use testkit::assert_says;

#[test]
fn every_type() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE SCHEMA \"Odd name\";
                 SET search_path = \"Odd name\", public;
                 CREATE TYPE mood AS ENUM ('sad', 'so so', 'it''s \"fine\"');
                 CREATE DOMAIN positive AS numeric(8,2) NOT NULL CHECK (VALUE > 0);
                 CREATE DOMAIN short AS varchar(9) CHECK (char_length(VALUE) >= 3);
                 CREATE TYPE pair AS (x int, y text);
                 CREATE TABLE \"Every Type\" (
                     a_bool bool NOT NULL, a_int2 int2 NOT NULL, a_int4 int4 NOT NULL, a_int8 int8 NOT NULL,
                     a_float4 float4 NOT NULL, a_float8 float8 NOT NULL, a_numeric numeric NOT NULL,
                     a_price numeric(10,2) NOT NULL, a_share numeric(3,3) NOT NULL, a_money money NOT NULL,
                     a_text text NOT NULL, a_varchar varchar NOT NULL, a_varchar5 varchar(5) NOT NULL,
                     a_char char(7) NOT NULL, a_bpchar bpchar NOT NULL, a_name name NOT NULL, a_single \"char\",
                     a_bytea bytea NOT NULL, a_date date NOT NULL, a_time time NOT NULL, a_timetz timetz NOT NULL,
                     a_timestamp timestamp(3) NOT NULL, a_timestamptz timestamptz NOT NULL, a_interval interval NOT NULL,
                     a_uuid uuid NOT NULL, a_json json NOT NULL, a_jsonb jsonb NOT NULL, a_inet inet NOT NULL,
                     a_cidr cidr NOT NULL, a_macaddr macaddr NOT NULL, a_macaddr8 macaddr8 NOT NULL,
                     a_bit bit(11) NOT NULL, a_varbit varbit(5) NOT NULL, a_point point NOT NULL, a_line line NOT NULL,
                     a_lseg lseg NOT NULL, a_box box NOT NULL, a_path path NOT NULL, a_polygon polygon NOT NULL,
                     a_circle circle NOT NULL, a_tsvector tsvector NOT NULL, a_tsquery tsquery NOT NULL,
                     a_oid oid NOT NULL, a_lsn pg_lsn NOT NULL, a_mood mood NOT NULL, a_positive positive,
                     a_short short NOT NULL, a_pair pair NOT NULL, a_ints int[] NOT NULL, a_texts varchar(3)[] NOT NULL,
                     a_moods mood[] NOT NULL, a_int4range int4range NOT NULL, a_tsrange tstzrange NOT NULL,
                     a_daterange daterange NOT NULL, a_numrange numrange NOT NULL,
                     nullable int, \"with \"\"quotes\"\" and\ttab\" text NOT NULL
                 )",
            )
            .await;
        database.fill("\"Every Type\"", 5_000).await.unwrap();
        assert_eq!(database.value("SELECT count(*) FROM \"Odd name\".\"Every Type\"").await, "5000");
        let nulls =
            database.value("SELECT count(*) FILTER (WHERE nullable IS NULL) FROM \"Every Type\"").await;
        assert!((100..500).contains(&nulls.parse().unwrap()), "{nulls}");
        if database.release >= 14 {
            database.sql("CREATE TABLE m (a int8multirange NOT NULL, b datemultirange NOT NULL)").await;
            database.fill("m", 1_000).await.unwrap();
        }
    });
}

#[test]
fn appended_rows_go_on_after_those_present() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE ids (id int PRIMARY KEY, code text UNIQUE, day date UNIQUE, at timestamptz UNIQUE);
                 INSERT INTO ids VALUES (500, 'mine', '2030-05-05', '2031-01-01');
                 CREATE TABLE parents (id int PRIMARY KEY);
                 CREATE TABLE ones (parent int PRIMARY KEY REFERENCES parents);
                 CREATE TABLE pairs (a bool, b int REFERENCES parents, PRIMARY KEY (a, b));",
            )
            .await;
        database.fill("ids", 100).await.unwrap();
        database.fill("ids", 100).await.unwrap();
        assert_eq!(database.value("SELECT max(id) FROM ids").await, "700");
        assert_eq!(database.value("SELECT max(day) FROM ids").await, "2030-11-21");
        // A fill that goes on after an interruption makes the same rows.
        let info = TableInfo::read(database.client(), "ids", Scope::Idle).await.unwrap();
        let mut request = DescribeRequest { rows: Some(100), seed: 42, ..DescribeRequest::default() };
        let whole = describe(database.client(), &info, &request, Scope::Idle).await.unwrap();
        let stored = serde_json::to_string(&whole.present).unwrap();
        let mut half = whole.clone();
        half.table.rows -= 50;
        database.load(&info, &half).await;
        request.present = Some(serde_json::from_str(&stored).unwrap());
        request.first_row = whole.first_row;
        assert_eq!(
            describe(database.client(), &info, &request, Scope::Idle).await.unwrap().table,
            whole.table
        );
        // Going on with numbered rows: the same values as in one go.
        database.sql("TRUNCATE ids").await;
        database.fill("ids", 100).await.unwrap();
        let request =
            DescribeRequest { first_row: 100, rows: Some(50), seed: 42, ..DescribeRequest::default() };
        assert_eq!(database.fill_requested("ids", &request).await.unwrap().first_row, 100);
        assert_eq!(database.value("SELECT max(id) FROM ids").await, "150");
        for _ in 0..2 {
            database.fill("parents", 100).await.unwrap();
            database.fill("ones", 100).await.unwrap();
        }
        database.fill("pairs", 300).await.unwrap();
        let error = database.fill("pairs", 10).await.unwrap_err().to_string();
        assert_says(
            &error,
            &[
                "public.pairs has rows, and pgrig cannot find values of",
                "pairs_pkey",
                "TRUNCATE public.pairs",
            ],
        );
        let request =
            DescribeRequest { first_row: 300, rows: Some(100), seed: 42, ..DescribeRequest::default() };
        database.fill_requested("pairs", &request).await.unwrap();
        let request =
            DescribeRequest { first_row: 380, rows: Some(50), seed: 42, ..DescribeRequest::default() };
        let error = database.fill_requested("pairs", &request).await.unwrap_err().to_string();
        assert_says(&error, &["public.pairs has room for 20 rows, not 50"]);
    });
}

#[test]
fn checks_and_domains() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE DOMAIN percent AS numeric(5,2) CHECK (VALUE >= 0 AND VALUE <= 100);
                 CREATE DOMAIN low AS percent CHECK (VALUE < 10) NOT NULL;
                 CREATE TYPE grade AS ENUM ('f', 'e', 'd', 'c', 'b', 'a');
                 CREATE TABLE checked (
                     a int CHECK (a > 5 AND a <= 9), b int CHECK (b = 1 OR b = 3 OR b = 4), c int CHECK (0 < c),
                     d int CHECK (d <> 0 AND d > -2 AND d < 2), e low, f percent, g grade CHECK (g >= 'c'),
                     h grade CHECK (h IN ('a', 'f')), i text CHECK (i = ANY (ARRAY['x', 'y'])),
                     j text CHECK (length(j) = 5), k varchar(30) CHECK (char_length(k) > 20),
                     l date CHECK (l BETWEEN date '2024-02-28' AND '2024-03-01'), m timestamp CHECK (m >= '2024-01-01 12:00'),
                     n float8 CHECK (n > 0 AND n < 1), o bool CHECK (o), p text CHECK (p IS NOT NULL),
                     q int CHECK (q IS NULL OR q BETWEEN 1 AND 3), r numeric CHECK (r >= 0.5), s time CHECK (s < '06:00'),
                     t interval CHECK (t >= '1 hour' AND t < '1 day'), u int2 CHECK (u IN (1, 2)) NOT NULL,
                     v uuid CHECK (v = '00000000-0000-0000-0000-000000000001'), w money CHECK (w > 0::money),
                     x timestamptz CHECK (x <= now()), y int CHECK (y > 0.5 AND y < 2.5),
                     begins date NOT NULL, ends date NOT NULL, latest date NOT NULL,
                     CHECK (begins < ends), CHECK (latest >= ends),
                     low_ int NOT NULL, high_ int NOT NULL, CHECK (high_ > low_ AND low_ >= 10),
                     exact numeric(30,10) CHECK (exact BETWEEN 0.5 AND 99.5),
                     must int NOT NULL CHECK (must IS NULL OR must % 3 = 1),
                     long text NOT NULL CHECK (length(long) BETWEEN 100 AND 150),
                     sha bytea NOT NULL CHECK (octet_length(sha) = 32),
                     blob bytea NOT NULL CHECK (length(blob) >= 60 AND octet_length(blob) <= 90)
                 )",
            )
            .await;
        database.fill("checked", 3_000).await.unwrap();
        let lengths = "SELECT concat_ws(' ', count(DISTINCT length(long)), count(DISTINCT sha), count(DISTINCT length(blob)))
                         FROM checked";
        assert_eq!(database.value(lengths).await, "51 3000 31");
        assert_eq!(
            database.value("SELECT count(DISTINCT a) || ' ' || count(DISTINCT b) FROM checked").await,
            "4 3"
        );
        assert_eq!(
            database.value("SELECT count(DISTINCT g) || ' ' || count(DISTINCT h) FROM checked").await,
            "3 2"
        );
    });
}

#[test]
fn partitions() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL, note text,
                     PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
                 CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
                 CREATE TABLE events_rest PARTITION OF events DEFAULT;
                 CREATE TABLE regions (region text, n int) PARTITION BY LIST (region);
                 CREATE TABLE regions_1 PARTITION OF regions FOR VALUES IN ('eu', 'uk');
                 CREATE TABLE regions_2 PARTITION OF regions FOR VALUES IN ('us');
                 CREATE TABLE hashed (id uuid PRIMARY KEY, n int) PARTITION BY HASH (id);
                 CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
                 CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
                 CREATE TABLE nested (day date NOT NULL, kind int NOT NULL, n int) PARTITION BY RANGE (day);
                 CREATE TABLE nested_1 PARTITION OF nested FOR VALUES FROM (MINVALUE) TO ('2020-01-01')
                     PARTITION BY LIST (kind);
                 CREATE TABLE nested_1_1 PARTITION OF nested_1 FOR VALUES IN (1, 2);
                 CREATE TABLE nested_1_2 PARTITION OF nested_1 FOR VALUES IN (3);
                 CREATE TABLE nested_2 PARTITION OF nested FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')
                     PARTITION BY LIST (kind);
                 CREATE TABLE nested_2_1 PARTITION OF nested_2 FOR VALUES IN (1, 2);
                 CREATE TABLE nested_2_2 PARTITION OF nested_2 FOR VALUES IN (3);
                 CREATE TABLE apart (id int PRIMARY KEY) PARTITION BY RANGE (id);
                 CREATE TABLE apart_1 PARTITION OF apart FOR VALUES FROM (1) TO (1000);
                 CREATE TABLE apart_2 PARTITION OF apart FOR VALUES FROM (50000) TO (90000);
                 CREATE TABLE two (a int, b int) PARTITION BY RANGE (a, b);
                 CREATE TABLE two_1 PARTITION OF two FOR VALUES FROM (1, 5) TO (3, 7);
                 CREATE TABLE tenants (id int PRIMARY KEY);
                 INSERT INTO tenants SELECT generate_series(1, 100);
                 CREATE TABLE owned (tenant int NOT NULL REFERENCES tenants, day date NOT NULL) PARTITION BY LIST (tenant);
                 CREATE TABLE owned_1 PARTITION OF owned FOR VALUES IN (3, 5) PARTITION BY RANGE (day);
                 CREATE TABLE owned_1_1 PARTITION OF owned_1 FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 -- Each partition with constraints of its own; many partitions.
                 CREATE TABLE paid (id int NOT NULL, tenant int NOT NULL, day date NOT NULL) PARTITION BY RANGE (day);
                 CREATE TABLE paid_1 PARTITION OF paid (PRIMARY KEY (id), FOREIGN KEY (tenant) REFERENCES tenants)
                     FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 CREATE TABLE paid_2 PARTITION OF paid (PRIMARY KEY (id), FOREIGN KEY (tenant) REFERENCES tenants)
                     FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
                 CREATE TABLE strict (day date NOT NULL, n int, note text) PARTITION BY RANGE (day);
                 CREATE TABLE strict_1 PARTITION OF strict FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
                 CREATE TABLE strict_2 PARTITION OF strict FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')
                     PARTITION BY RANGE (day);
                 CREATE TABLE strict_2_1 PARTITION OF strict_2 (n NOT NULL) FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
                 CREATE TABLE daily (at timestamp) PARTITION BY RANGE (at);
                 DO $$BEGIN
                     FOR day IN 0 .. 399 LOOP
                         EXECUTE format('CREATE TABLE daily_%s PARTITION OF daily FOR VALUES FROM (%L) TO (%L)',
                             day, date '2024-01-01' + day, date '2024-01-02' + day);
                     END LOOP;
                 END$$;
                 CREATE TABLE other (a int) PARTITION BY LIST (a);
                 CREATE TABLE other_rest PARTITION OF other DEFAULT;",
            )
            .await;
        for (table, rows) in [
            ("events", 2_000),
            ("regions", 1_000),
            ("hashed", 1_000),
            ("nested", 2_000),
            ("two", 100),
            ("other", 100),
            ("owned", 100),
            ("paid", 2_000),
            ("strict", 2_000),
            ("daily", 10_000),
        ] {
            let described =
                database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!(described.warnings, Vec::<String>::new(), "{table}");
        }
        let nulls = "SELECT count(*) FILTER (WHERE n IS NULL) || ' ' || (count(*) FILTER (WHERE note IS NULL) > 0) FROM strict";
        assert_eq!(database.value(nulls).await, "0 true");
        assert_eq!(database.value("SELECT count(DISTINCT tableoid) FROM events").await, "2");
        assert_eq!(database.value("SELECT count(DISTINCT region) FROM regions").await, "3");
        assert_eq!(database.value("SELECT count(DISTINCT tableoid) FROM hashed").await, "2");
        assert_eq!(
            database.value("SELECT count(DISTINCT tableoid) FROM nested WHERE day > '2019-01-01'").await,
            "4"
        );
        assert_eq!(database.value("SELECT count(DISTINCT tableoid) FROM daily").await, "400");
        let described = database.fill("apart", 20_000).await.unwrap();
        assert_says(&described.warnings.join(""), &["some partitions stay empty", "gaps"]);
        // A partition by its own name keeps its bounds.
        database.fill("events_2", 500).await.unwrap();
        assert_eq!(database.value("SELECT count(*) > 1000 FROM events_2").await, "true");
    });
}

#[test]
fn odd_tables() {
    on_each_release(async |database| {
        database
            .sql(
                "DO $$BEGIN
                     EXECUTE format('ALTER DATABASE %I SET DateStyle = ''German''', current_database());
                     EXECUTE format('ALTER DATABASE %I SET TimeZone = ''America/New_York''', current_database());
                     EXECUTE format('ALTER DATABASE %I SET IntervalStyle = ''sql_standard''', current_database());
                     EXECUTE format('ALTER DATABASE %I SET quote_all_identifiers = on', current_database());
                     EXECUTE format('ALTER DATABASE %I SET search_path = ''''', current_database());
                 END$$;
                 CREATE EXTENSION citext;
                 CREATE SCHEMA \"a.b\";
                 CREATE TYPE \"a.b\".\"or der\" AS ENUM ('x', 'y');
                 CREATE DOMAIN \"a.b\".\"Dom\" AS \"a.b\".\"or der\" CHECK (VALUE = 'y');
                 CREATE TABLE \"a.b\".\"T.t\" (
                     value int CHECK (value > 3), \"VALUE\" int CHECK (\"VALUE\" < 3), date date CHECK (date > date '2024-01-01'),
                     \"order\" \"a.b\".\"or der\" CHECK (\"order\" = 'y'), \"select\" \"a.b\".\"Dom\" NOT NULL,
                     \"and\" timestamptz CHECK (\"and\" >= '2024-07-01' AND \"and\" < '2024-07-01 00:10'),
                     \"is null\" bool CHECK ((\"is null\" OR value > 0) IS NOT FALSE),
                     n numeric CHECK (n IN (1, 2.5)), big numeric(20,0) PRIMARY KEY, huge numeric(60,30), day interval day to second(0) UNIQUE
                 );
                 CREATE TABLE \"a.b\".only_id (id smallint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
                 CREATE TABLE \"a.b\".small (id smallint PRIMARY KEY, other smallserial UNIQUE);
                 CREATE TABLE \"a.b\".ci (email public.citext PRIMARY KEY, tags public.citext[]);
                 CREATE TABLE \"a.b\".late (id int PRIMARY KEY, code text UNIQUE DEFERRABLE INITIALLY DEFERRED, at timestamp(0) UNIQUE,
                     parent int NOT NULL REFERENCES \"a.b\".late (id), again int DEFAULT 5 NOT NULL);
                 CREATE TABLE \"a.b\".parts (at timestamptz NOT NULL, PRIMARY KEY (at)) PARTITION BY RANGE (at);
                 CREATE TABLE \"a.b\".parts_1 PARTITION OF \"a.b\".parts FOR VALUES FROM ('2024-03-10') TO ('2024-03-11');",
            )
            .await;
        let database = database.as_role("postgres").await;
        assert_eq!(database.value("current_setting('DateStyle')").await, "German, DMY");
        for (table, rows) in [
            ("\"a.b\".\"T.t\"", 1_000),
            ("\"a.b\".only_id", 1_000),
            ("\"a.b\".small", 32_767),
            ("\"a.b\".ci", 1_000),
            ("\"a.b\".late", 1_000),
            ("\"a.b\".parts", 1_000),
        ] {
            database.fill(table, rows).await.unwrap_or_else(|error| panic!("{table}: {error:?}"));
        }
        let error = database.fill("\"a.b\".small", 1).await.unwrap_err().to_string();
        assert_says(&error, &["\"a.b\".small has room for 0 rows, not 1"]);
    });
}

#[test]
fn names_of_columns_suggest_values_unless_plain_or_something_else_decides() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE people (
                     email varchar(20) NOT NULL UNIQUE, city text NOT NULL CHECK (char_length(city) >= 30),
                     country text NOT NULL CHECK (country IN ('here', 'there')), title varchar(3) NOT NULL,
                     name text NOT NULL, phone bigint NOT NULL, age int NOT NULL CHECK (age < 20),
                     created_at date NOT NULL, updated_at date NOT NULL CHECK (updated_at < created_at)
                 );
                 CREATE TABLE tree (email text PRIMARY KEY, parent_email text NOT NULL REFERENCES tree)",
            )
            .await;
        let described = database.fill_with("people", 2_000, &["name=constant(x)"]).await.unwrap();
        assert_eq!(described.table.columns[4].phrase(), "'x'");
        database.fill("tree", 500).await.unwrap();
        database.sql("TRUNCATE people").await;
        let request = DescribeRequest { rows: Some(1_000), plain: true, ..DescribeRequest::default() };
        let described = database.fill_requested("people", &request).await.unwrap();
        let phrases: Vec<String> = described.table.columns.iter().map(rowgen::Column::phrase).collect();
        assert_eq!((&*phrases[0], &*phrases[4]), ("unique", "any"));
    });
}

#[test]
fn columns_of_unknown_types_are_null_or_as_given() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE free (id int PRIMARY KEY, doc regclass, other txid_snapshot);
                 CREATE TABLE bound (id int PRIMARY KEY, doc txid_snapshot NOT NULL)",
            )
            .await;
        let described = database.fill("free", 500).await.unwrap();
        assert_says(
            &described.warnings.join("; "),
            &["column other is NULL", "txid_snapshot", "--column 'other="],
        );
        assert_eq!(described.table.columns[2].phrase(), "NULL");
        database.sql("TRUNCATE free").await;
        database.fill_with("free", 500, &["other=list('1:1:','2:5:3')"]).await.unwrap();
        let refusal = database.refused("bound", &[]).await;
        assert_says(&refusal, &["column doc", "txid_snapshot", "--column"]);
        let refusal = database.refused("bound", &["doc=list('1:1:',nonsense)"]).await;
        assert_says(&refusal, &["nonsense"]);
        database.fill_with("bound", 500, &["doc=cycle('1:1:','2:5:3')"]).await.unwrap();
    });
}

/// Tables with sequences and tables with foreign keys always have room for another row, as far as that does not depend on other tables.
#[test]
fn catalogs_tell_which_tables_may_be_full() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE codes (code text PRIMARY KEY CHECK (code IN ('a', 'b')));
                 CREATE TABLE site (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY); CREATE UNIQUE INDEX ON site ((true));
                 CREATE TABLE last (id int GENERATED ALWAYS AS IDENTITY (MINVALUE 0 MAXVALUE 1 START 1) PRIMARY KEY); INSERT INTO last DEFAULT VALUES;
                 CREATE TABLE small (id serial PRIMARY KEY CHECK (id < 3));
                 CREATE TABLE people (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, boss bigint REFERENCES people, code text);
                 CREATE TABLE logs (id serial PRIMARY KEY, at timestamptz);
                 CREATE TABLE used (code text UNIQUE REFERENCES codes);",
            )
            .await;
        for table in ["codes", "site", "last", "small", "people", "logs", "used"] {
            let info = TableInfo::read(database.client(), table, Scope::Idle).await.unwrap();
            let may_be_full = ["codes", "site", "last", "small"].contains(&table);
            assert_eq!(info.may_be_full(), may_be_full, "{table}");
        }
    });
}

/// A table that gets no rows in the same run may have some.
#[test]
fn columns_get_values_that_are_there() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE words (word text); INSERT INTO words VALUES ('one'), ('two');
                 CREATE TABLE notes (id int PRIMARY KEY, word text NOT NULL)",
            )
            .await;
        let words = Table { name: "words".to_owned(), columns: Vec::new(), rows: 0, seed: 0 };
        let request = DescribeRequest {
            columns: given(&["word=reference(words.word)"]),
            rows: Some(50),
            planned: vec![Planned { schema: "public".to_owned(), table: words, first_row: 0 }],
            ..DescribeRequest::default()
        };
        database.fill_requested("notes", &request).await.unwrap();
        assert_eq!(database.value("SELECT count(*) FROM notes JOIN words USING (word)").await, "50");
    });
}
