//! Tables and requests that are refused, each with what is wrong and the remedy, and nothing left behind.

use crate::support::{given, on_each_release};
use catalog::{DescribeRequest, Described, Scope, TableInfo, describe, verify};
use testkit::assert_says;

#[test]
fn what_is_no_table() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int); CREATE TABLE \"Orders\" (id int);
                 CREATE VIEW v AS SELECT 1 AS a; CREATE MATERIALIZED VIEW mv AS SELECT 1 AS a; CREATE SEQUENCE s;
                 CREATE TABLE none (); CREATE TABLE parted (a int) PARTITION BY LIST (a);
                 CREATE FOREIGN DATA WRAPPER w; CREATE SERVER elsewhere FOREIGN DATA WRAPPER w;
                 CREATE FOREIGN TABLE f (a int) SERVER elsewhere;
                 CREATE TABLE mixed (a int) PARTITION BY LIST (a);
                 CREATE FOREIGN TABLE mixed_f PARTITION OF mixed FOR VALUES IN (1) SERVER elsewhere;",
            )
            .await;
        for (table, parts) in [
            ("orders", ["there is no table orders", "did you mean public.\"Orders\" or shop.orders?"]),
            ("nothing", ["there is no table nothing", "--ddl FILE"]),
            ("a.b.c.d", ["--table a.b.c.d: ", "Give NAME or SCHEMA.NAME"]),
            ("\"open", ["--table \"open: ", "quoted as in SQL"]),
            ("v", ["cannot fill public.v, because it is a view", "a table that the view reads"]),
            (
                "mv",
                ["cannot fill public.mv, because it is a materialized view", "a table that the view reads"],
            ),
            ("f", ["cannot fill public.f, because it is a foreign table", "give the name of a table"]),
            ("s", ["cannot fill public.s, because it is a sequence", "give the name of a table"]),
            (
                "pg_class",
                [
                    "cannot fill pg_catalog.pg_class, because it is a system catalog",
                    "give the name of a table",
                ],
            ),
            ("none", ["public.none has no columns", "add a column first"]),
            ("parted", ["public.parted is partitioned but has no partition", "PARTITION OF public.parted"]),
            ("mixed", ["public.mixed_f of public.mixed is a foreign table", "detach it"]),
        ] {
            assert_says(&database.refused(table, &[]).await, &parts);
        }
    });
}

/// The keys of two foreign keys are not unique together.
#[test]
fn a_foreign_key_is_null_where_a_key_with_its_columns_cannot_be_unique() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE scope (id text PRIMARY KEY);
                 CREATE TABLE am (public_id text PRIMARY KEY, scope_id text NOT NULL REFERENCES scope, UNIQUE (scope_id, public_id));
                 CREATE TABLE u (public_id text PRIMARY KEY, scope_id text NOT NULL REFERENCES scope, UNIQUE (scope_id, public_id));
                 CREATE TABLE acc (public_id text PRIMARY KEY, am_id text NOT NULL, scope_id text NOT NULL, u_id text, u_scope_id text,
                    CONSTRAINT once UNIQUE (am_id, u_id), FOREIGN KEY (scope_id, am_id) REFERENCES am (scope_id, public_id),
                    FOREIGN KEY (u_scope_id, u_id) REFERENCES u (scope_id, public_id));
                 CREATE TABLE strict (LIKE acc INCLUDING INDEXES, FOREIGN KEY (scope_id, am_id) REFERENCES am (scope_id, public_id),
                    FOREIGN KEY (u_scope_id, u_id) REFERENCES u (scope_id, public_id));
                 ALTER TABLE strict ALTER u_id SET NOT NULL;
                 INSERT INTO scope SELECT n FROM generate_series(1, 10) n;
                 INSERT INTO am SELECT n, n % 10 + 1 FROM generate_series(1, 100) n;
                 INSERT INTO u SELECT n, n % 10 + 1 FROM generate_series(1, 100) n;",
            )
            .await;
        let described = database.fill("acc", 1_000).await.unwrap();
        let warnings = described.warnings.join("\n");
        assert_says(&warnings, &["u_scope_id, u_id are NULL in all rows", "no unique values for once"]);
        let error = database.refused("strict", &[]).await;
        assert_says(&error, &["no unique values for strict_am_id_u_id_", "leave out strict_am_id_u_id_"]);
        assert!(!error.contains("=unique") && !error.contains("=null"), "{error}");
    });
}

/// The remedy for a table without partitions is a statement that works.
#[test]
fn a_table_without_partitions_gets_one() {
    on_each_release(async |database| {
        database
            .sql("CREATE TABLE listed (a int) PARTITION BY LIST (a); CREATE TABLE \"Hashed\" (a int) PARTITION BY HASH (a)")
            .await;
        for table in ["listed", "\"Hashed\""] {
            let error = database.refused(table, &[]).await;
            let remedy = error.split("for all rows: ").nth(1).and_then(|rest| rest.strip_suffix(')'));
            database.sql(remedy.unwrap()).await;
            database.fill(table, 10).await.unwrap();
        }
    });
}

#[test]
fn what_the_role_may_not() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE ROLE r LOGIN; GRANT USAGE ON SCHEMA public TO r; CREATE SCHEMA closed; CREATE TABLE closed.t (a int);
                 CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1);
                 CREATE TABLE t (a int NOT NULL, b int); CREATE TABLE partly (a int, b int NOT NULL, c int DEFAULT 1);
                 CREATE TABLE child (parent int REFERENCES parents); CREATE TABLE own (a int PRIMARY KEY);
                 CREATE TABLE secured (a int); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
                 GRANT INSERT ON child, own, secured TO r; GRANT INSERT (a, c) ON partly TO r;",
            )
            .await;
        let limited = database.as_role("r").await;
        for (table, parts) in [
            ("closed.t", ["role r may not use schema closed", "run GRANT USAGE ON SCHEMA closed TO r,"]),
            ("t", ["role r may not insert into public.t", "GRANT INSERT ON public.t TO r"]),
            ("partly", ["role r may not give column b of public.partly a value", "GRANT INSERT (b)"]),
            ("child", ["role r may not read public.parents", "SELECT ON public.parents TO r"]),
            ("secured", ["row-level security applies to role r on public.secured", "BYPASSRLS"]),
        ] {
            assert_says(&limited.refused(table, &[]).await, &parts);
        }
        // INSERT alone is enough.
        limited.fill("own", 100).await.unwrap();
        assert_eq!(database.value("SELECT max(a) FROM own").await, "100");
        // The owner is not under row-level security.
        database.fill("secured", 100).await.unwrap();

        database.sql("DO $$BEGIN EXECUTE format('REVOKE TEMP ON DATABASE %I FROM PUBLIC', current_database()); END$$").await;
        let info = TableInfo::read(limited.client(), "own", Scope::Idle).await.unwrap();
        let described =
            describe(limited.client(), &info, &DescribeRequest::default(), Scope::Idle).await.unwrap();
        let warnings = verify(limited.client(), &info, &described, Scope::Idle).await.unwrap().warnings;
        assert_says(
            &warnings.join(""),
            &["pgrig does not test the rows before", "run GRANT TEMPORARY ON DATABASE", "TO r"],
        );
        database.sql("DROP OWNED BY r; DROP ROLE r").await;
    });
}

#[test]
fn constraints_that_cannot_be_kept() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE parents (id int PRIMARY KEY); CREATE TABLE child (parent int REFERENCES parents);
                 CREATE TABLE odd (a int NOT NULL, b text, CONSTRAINT odd_only CHECK (a % 2 = 5));
                 CREATE TABLE pattern (code text NOT NULL CONSTRAINT code_form CHECK (code ~ '^[A-Z]{3}$' AND code !~ '[A-Z]'));
                 CREATE TABLE torn (a int, CONSTRAINT over CHECK (a > 10), CONSTRAINT under CHECK (a < 5));
                 CREATE DOMAIN post AS text CONSTRAINT post_form CHECK (VALUE ~ '^[0-9]{5}$' AND VALUE ~ 'x');
                 CREATE TABLE addresses (code post NOT NULL);
                 CREATE TABLE slots (during box, EXCLUDE USING gist (during WITH &&));
                 CREATE TABLE computed (a int); CREATE UNIQUE INDEX computed_mod ON computed ((a % 10));
                 CREATE TABLE bound (a int, b bool, PRIMARY KEY (b));
                 CREATE TABLE unknown (a int, path jsonpath NOT NULL);
                 CREATE TABLE made (a int NOT NULL, b int GENERATED ALWAYS AS (100 / (a - a)) STORED);
                 CREATE FUNCTION never(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
                 CREATE TABLE called (a int, CONSTRAINT never_true CHECK (never(a)));",
            )
            .await;
        for (table, parts) in [
            (
                "child",
                [
                    "must reference rows of public.parents (child_parent_fkey), which is empty",
                    "child_parent_fkey",
                    "fill public.parents first",
                ],
            ),
            (
                "odd",
                [
                    "pgrig tried 100000 rows for a, and only 0 satisfied odd_only",
                    "CHECK (((a % 2) = 5))",
                    "--column 'a=SPEC'",
                ],
            ),
            ("pattern", ["only 0 satisfied code_form", "'^[A-Z]{3}$'", "--column 'code=SPEC'"]),
            (
                "torn",
                ["finds no values that satisfy all constraints of public.torn", "over, under", "--column"],
            ),
            ("addresses", ["only 0 satisfied post_form", "'^[0-9]{5}$'", "--column 'code=SPEC'"]),
            (
                "slots",
                ["no unique values for slots_during_excl", "EXCLUDE USING gist (during WITH &&)", "--column"],
            ),
            (
                "computed",
                [
                    "no unique values for computed_mod",
                    "a % 10",
                    "--column 'a=unique', or leave out computed_mod",
                ],
            ),
            ("bound", ["public.bound has room for 2 rows, not 1000", "bound_pkey", "2 values of b"]),
            (
                "unknown",
                [
                    "no values of type jsonpath for column path of public.unknown",
                    "jsonpath",
                    "give --column 'path=constant(VALUE)'",
                ],
            ),
            (
                "made",
                ["only 0 satisfied the expression (100 / (a - a)) of b", "division by zero", "'a=SPEC'"],
            ),
            ("called", ["only 0 satisfied never_true", "never(a)", "--column"]),
        ] {
            assert_says(&database.refused(table, &[]).await, &parts);
        }
        // It has no default.
        let refused = database.refused("unknown", &[]).await;
        assert!(!refused.contains("default"), "{refused}");
        // Nothing is left behind, and nothing was touched.
        assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname ~ 'pgrig'").await, "0");
        assert_eq!(database.value("SELECT count(*) FROM odd").await, "0");
    });
}

#[test]
fn rows_that_are_too_long_for_an_index() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE lengthy (id int PRIMARY KEY, body text CHECK (length(body) > 12000));
                 CREATE INDEX lengthy_body ON lengthy (body);",
            )
            .await;
        let error = database.refused("lengthy", &[]).await;
        assert_says(
            &error,
            &[
                "index lengthy_body of public.lengthy would refuse the rows: index row ",
                ". Give its columns shorter values (USING btree (body)): --column",
            ],
        );
        assert!(!error.contains("pgrig_sample"), "{error}");
    });
}

/// The CHECK of a domain names no column. The name of the column suggests a specification that has the sign which the CHECK demands.
#[test]
fn the_remedy_names_the_column_of_a_domain() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE DOMAIN mail AS text CONSTRAINT mail_form CHECK (VALUE ~ '@');
                 CREATE TABLE mails (id int, email mail UNIQUE, note mail);",
            )
            .await;
        let error = database.refused("mails", &["email=unique", "note=null"]).await;
        let parts = ["would violate mail_form, CHECK ", "--column 'email=SPEC', for example email(unique)"];
        assert_says(&error, &parts);
        let error = database.refused("mails", &["email=null", "note=constant(x)"]).await;
        assert_says(&error, &["would violate mail_form, CHECK ", "--column 'note=SPEC'"]);
        assert!(!error.contains("for example"), "{error}");
        database.fill_with("mails", 100, &["note=null"]).await.unwrap();
    });
}

#[test]
fn columns_that_cannot_be_given() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE t (a int PRIMARY KEY, b text CHECK (b <> 'no'), c int GENERATED ALWAYS AS (a * 2) STORED,
                     d jsonpath, e serial);
                 CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1), (2);
                 CREATE TABLE child (id int, parent int NOT NULL REFERENCES parents);
                 CREATE TABLE words (word text);
                 CREATE TABLE products (tenant int, id int, PRIMARY KEY (tenant, id));
                 INSERT INTO products VALUES (1, 1), (2, 1), (2, 2);
                 CREATE TABLE sales (tenant int NOT NULL, product int NOT NULL, amount numeric(9,2),
                     FOREIGN KEY (tenant, product) REFERENCES products);",
            )
            .await;
        for (columns, parts) in [
            (["x=null", "d=null"], ["public.t has no column x", "its columns are a, b, c, d, e"]),
            (["b=null", "b=any"], ["--column b is given twice", "give it once"]),
            (["c=null", "d=null"], ["the server generates column c of public.t", "from other columns"]),
            (["b=constant(no)", "d=null"], ["would violate t_b_check", "<> 'no'"]),
            (["b=any", "d=constant(not a path)"], ["public.t would refuse the rows", "jsonpath"]),
            (
                ["b=any", "d=unique"],
                ["no values of type jsonpath for column d of public.t", "'d=constant(VALUE)'"],
            ),
            (
                ["a=constant(7)", "d=null"],
                ["two rows would have the same values of t_pkey (PRIMARY KEY (a))", "'a=unique'"],
            ),
            (["a=null", "d=null"], ["column a of public.t", "NOT NULL"]),
            (["a=timeseries(2024-01-01,1s)", "d=null"], ["--column a: ", "dates and times"]),
            (["b=reference(nowhere.x)", "d=null"], ["--column b: ", "\"nowhere\" does not exist"]),
            (["b=reference(words)", "d=null"], ["--column b: ", "words is not of the form table.column"]),
            (["b=reference(words.word)", "d=null"], ["--column b: ", "fill that table first"]),
        ] {
            assert_says(&database.refused("t", &columns).await, &parts);
        }
        let error = database.refused("child", &["parent=constant(3)"]).await;
        assert_says(&error, &["parent would reference key (3), which does not exist", "child_parent_fkey"]);

        database.sql("INSERT INTO words VALUES ('one'), ('two')").await;
        let columns = ["d=constant($.a)", "b=reference(public.words.word)"];
        let described = database.fill_with("t", 100, &columns).await.unwrap();
        assert_eq!(described.text_only, ["d"]);
        let held = "SELECT count(*) FROM t WHERE b IN ('one', 'two') AND c = a * 2 AND e = a AND d::text = '$.\"a\"'";
        assert_eq!(database.value(held).await, "100");
        database.fill_with("child", 100, &["parent=constant(2)"]).await.unwrap();
        let tenants = ["tenant=constant(2)", "amount=normal(100,5)"];
        database.fill_with("sales", 100, &tenants).await.unwrap();
        assert_eq!(database.value("SELECT count(DISTINCT product) FROM sales WHERE tenant = 2").await, "2");
        let error = database.refused("sales", &["tenant=uniform(1,2)"]).await;
        assert_says(
            &error,
            &["column tenant of public.sales is part of sales_tenant_product_fkey", "constant(VALUE)"],
        );
        // A NULL in one column satisfies the key, whatever the other columns are.
        database.sql("TRUNCATE sales; ALTER TABLE sales ALTER product DROP NOT NULL").await;
        let nulls = ["product=null", "tenant=uniform(1,9)"];
        database.fill_with("sales", 100, &nulls).await.unwrap();
        assert_eq!(database.value("SELECT count(DISTINCT tenant) > 2 FROM sales").await, "true");
        database.fill_with("sales", 100, &["product=null"]).await.unwrap();
        // A sample must not move the table's own sequence.
        let info = TableInfo::read(database.client(), "t", Scope::Idle).await.unwrap();
        let request =
            DescribeRequest { columns: given(&["d=null"]), first_row: 100, ..DescribeRequest::default() };
        let described: Described = describe(database.client(), &info, &request, Scope::Idle).await.unwrap();
        verify(database.client(), &info, &described, Scope::Idle).await.unwrap();
        assert_eq!(database.value("SELECT last_value FROM t_e_seq").await, "100");
    });
}

#[test]
fn triggers_are_told() {
    on_each_release(async |database| {
        database
            .sql(
                "CREATE TABLE t (a int);
                 CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
                 CREATE TRIGGER audited BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION audit();
                 CREATE TRIGGER off BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION audit();
                 ALTER TABLE t DISABLE TRIGGER off",
            )
            .await;
        let described = database.fill("t", 10).await.unwrap();
        assert_says(&described.warnings.join(""), &["these triggers run for each row", ": audited"]);
        assert!(!described.warnings.join("").contains("audited, off"));
    });
}
