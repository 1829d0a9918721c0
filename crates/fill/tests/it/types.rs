//! Pages with values that hold OIDs of the database: composite types, arrays of them and of ranges; and tsquery.

use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Filling, Tables};

const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TYPE pair AS (n int, t varchar(10));
    CREATE TYPE wide AS (a bool, b bigint, c varchar(10), d numeric(8,2), e mood, f timestamptz, g int[], h uuid, i tsquery);
    CREATE DOMAIN known AS pair CHECK ((value).n IS NOT NULL);
    CREATE TYPE stretch AS RANGE (subtype = float8);
    CREATE TABLE holders (
        id int PRIMARY KEY, p pair NOT NULL, w wide, ps pair[], k known, q tsquery NOT NULL, u pair UNIQUE
    );
    CREATE TABLE arrays (id int PRIMARY KEY, qs tsquery[], r int4range[], s stretch[]);
    CREATE TABLE wides (id int PRIMARY KEY, ws wide[]);
    CREATE INDEX ON holders (q); CREATE INDEX ON holders (((p).n));";

#[test]
fn composites_their_arrays_arrays_of_ranges_and_tsquery_are_written() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, TYPES).await;
            for table in ["holders", "arrays", "wides"] {
                tables.fill_directly(&Filling::of(table, 3000)).await;
                // INSERT of the values' texts stores as many bytes, which are equal.
                let columns = format!(
                    "SELECT string_agg(format('%1$I::text::%2$s AS %1$I', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
                       FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"
                );
                let columns: String = tables.value(&columns).await;
                let copy = format!("CREATE TABLE {table}_again AS SELECT {columns} FROM {table}");
                tables.execute(&copy).await;
                let same = format!(
                    "SELECT string_agg(format('h.%1$I::text IS NOT DISTINCT FROM a.%1$I::text
                                AND pg_column_size(h.%1$I) IS NOT DISTINCT FROM pg_column_size(a.%1$I)', attname), ' AND ')
                       FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 1"
                );
                let same: String = tables.value(&same).await;
                let same =
                    format!("SELECT count(*) FROM {table} h JOIN {table}_again a USING (id) WHERE {same}");
                assert_eq!(tables.value::<i64>(&same).await, 3000, "PostgreSQL {major}: {table}");
            }
            let fields = "SELECT count(*) FROM holders WHERE (w).e IN ('sad', 'ok', 'happy') AND ((w).d >= 0) IS NOT NULL";
            assert!(tables.value::<i64>(fields).await > 1000);
            tables.execute("UPDATE holders SET w.b = 5").await;
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM holders WHERE (w).b = 5").await, 3000);
        });
    }
}

#[test]
fn fields_that_only_the_server_can_fill_go_by_copy() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(
                major,
                "CREATE DOMAIN positive AS int CHECK (value > 0);
                 CREATE TYPE checked AS (a positive, b text);
                 CREATE TYPE shrunk AS (a int, b int, c int); ALTER TYPE shrunk DROP ATTRIBUTE b;
                 CREATE TYPE rounded AS (a timestamp(0));
                 CREATE TABLE of_checked (id int, v checked);
                 CREATE TABLE of_shrunk (id int, v shrunk);
                 CREATE TABLE of_rounded (id int, v rounded)",
            )
            .await;
            for table in ["of_checked", "of_shrunk", "of_rounded"] {
                assert_says(&tables.reason(&Filling::of(table, 100)).await, &["v has type"]);
            }
        });
    }
}
