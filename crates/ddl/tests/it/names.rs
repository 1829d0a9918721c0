//! A better way leaves the constraints and indexes of the statement, with the same names.

use ddl::{Amount, better_statements};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured, request, server};

/// A partition has an index that the one of the partitioned table takes over; a table and its column have names that are cut.
const SCHEMA: &str = "
    CREATE TABLE u (id int PRIMARY KEY);
    CREATE TABLE t (id int PRIMARY KEY, a int, n int CHECK (n > -2000000000), v text, u_id int);
    CREATE TABLE \"Lieferungen für Kundinnen und Kunden\" (\"Größe der Lieferung in Stück\" int, n int);
    CREATE TABLE keyless (a int, n int);
    CREATE TABLE parted (id int NOT NULL, n int, v text, u_id int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
    CREATE TABLE parted_2_all PARTITION OF parted_2 DEFAULT;
    CREATE INDEX own ON parted_1 (n);
    CREATE TABLE open (id int, n int) PARTITION BY RANGE (id);
    CREATE TABLE open_1 PARTITION OF open FOR VALUES FROM (0) TO (1000);
    CREATE TABLE open_2 PARTITION OF open FOR VALUES FROM (1000) TO (2000) PARTITION BY RANGE (id);
    CREATE TABLE open_2_all PARTITION OF open_2 DEFAULT;
";
const MIGRATION: &str = "
    ALTER TABLE t ADD CHECK (n > -1000000000);
    ALTER TABLE t ADD CHECK (id IS NOT NULL OR n IS NOT NULL);
    ALTER TABLE t ADD FOREIGN KEY (u_id) REFERENCES u, ADD CHECK (v <> '-'), ADD CHECK (v <> '+') NOT VALID, ADD CHECK (v <> '/');
    ALTER TABLE t ADD UNIQUE (id, n);
    ALTER TABLE t ALTER a SET NOT NULL;
    ALTER TABLE t ADD made uuid NOT NULL DEFAULT gen_random_uuid();
    ALTER TABLE \"Lieferungen für Kundinnen und Kunden\" ADD UNIQUE (\"Größe der Lieferung in Stück\");
    ALTER TABLE keyless ADD PRIMARY KEY (a);
    CREATE INDEX ON t (n, lower(v));
    CREATE INDEX ON parted (n);
    CREATE INDEX ON parted (lower(v), id);
    ALTER TABLE parted ADD UNIQUE (id, n);
    ALTER TABLE parted ADD FOREIGN KEY (u_id) REFERENCES u;
    ALTER TABLE parted ADD CHECK (n > -1000000000);
    ALTER TABLE open ADD PRIMARY KEY (id);
";
/// Constraints with the one on the partitioned table of which they are parts, and indexes likewise.
const OBJECTS: &str = "
    SELECT format('%s of %s: %s %s %s', c.conname, c.conrelid::regclass, c.contype, c.convalidated, p.conname)
      FROM pg_constraint c LEFT JOIN pg_constraint p ON p.oid = c.conparentid
     WHERE c.conrelid >= 16384
    UNION ALL
    SELECT format('%s of %s: index %s', i.indexrelid::regclass, i.indrelid::regclass, h.inhparent::regclass)
      FROM pg_index i LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
     WHERE i.indexrelid >= 16384
     ORDER BY 1
";

/// The constraints and indexes of a new database after these statements.
fn objects(server: &Server, statements: &[String]) -> Vec<String> {
    block_on(async {
        let database = server.database().await;
        let connection = database.target.connect().await.unwrap();
        for sql in statements {
            let done = connection.client.batch_execute(sql).await;
            done.unwrap_or_else(|error| panic!("{error:?}: {sql}"));
        }
        let rows = connection.client.query(OBJECTS, &[]).await.unwrap();
        connection.close().await;
        // Names of TOAST tables hold the OID of their table.
        let names = rows.iter().map(|row| row.get::<_, String>(0));
        names.filter(|name| !name.starts_with("pg_toast.")).collect()
    })
}

#[test]
fn a_better_way_leaves_the_names_that_the_server_chose() {
    for release in RELEASES {
        let server = server(release);
        let outcome = measured(&server, &request(SCHEMA, MIGRATION, Amount::Rows(1000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let (mut plain, mut better) = (vec![SCHEMA.to_owned()], vec![SCHEMA.to_owned()]);
        for one in &outcome.statements {
            let sql = one.statement.in_one_line();
            let ways = better_statements(one, u32::from(release) * 10_000);
            // PostgreSQL 13 would read the whole table for each batch of the new column.
            assert_eq!(ways.is_empty(), release == 13 && sql.contains("gen_random_uuid"), "{release}: {sql}");
            better.extend(if ways.is_empty() { vec![sql.clone()] } else { ways });
            plain.push(sql);
        }
        let wanted = objects(&server, &plain);
        assert_eq!(objects(&server, &better), wanted, "{release}");
        for name in ["t_n_check1", "t_v_check2", "parted_1_id_n_key", "own of parted_1: index parted_n_idx"] {
            assert!(wanted.iter().any(|one| one.starts_with(name)), "{release}: {name}: {wanted:#?}");
        }
    }
}
