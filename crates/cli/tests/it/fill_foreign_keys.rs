//! Foreign keys of rows that come by COPY: proved chunk by chunk where the role may turn triggers off, else checked row by
//! row.

use serde_json::Value;
use testkit::until;

use crate::support::{NEWEST, OLDEST, Rig, Server, observed};

/// Referenced keys of several kinds: gapless integers, integers with gaps, uuids, two columns.
const TABLES: &str = "
    CREATE TABLE gapless (id int PRIMARY KEY);
    INSERT INTO gapless SELECT generate_series(1, 5000);
    CREATE TABLE sparse (id bigint PRIMARY KEY);
    INSERT INTO sparse SELECT generate_series(1, 90000, 7);
    CREATE TABLE named (id uuid PRIMARY KEY);
    INSERT INTO named SELECT md5(n::text)::uuid FROM generate_series(1, 300) n;
    CREATE TABLE paired (a text, b date, PRIMARY KEY (a, b));
    INSERT INTO paired SELECT 'n' || n % 20, date '2024-01-01' + n / 20 FROM generate_series(0, 999) n;
    ANALYZE gapless, sparse, named;
    CREATE TABLE child (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        gapless int NOT NULL REFERENCES gapless, sparse int REFERENCES sparse, named uuid REFERENCES named,
        a text, b date, FOREIGN KEY (a, b) REFERENCES paired MATCH FULL DEFERRABLE INITIALLY DEFERRED);";

/// The plan's reason for its way to check foreign keys.
fn reason(document: &Value) -> String {
    let reasons = document["plan"]["reasons"].as_array().unwrap().iter();
    let mut reasons = reasons.filter_map(Value::as_str).filter(|reason| reason.starts_with("foreign keys"));
    reasons.next().unwrap_or_default().to_owned()
}

/// The server itself finds that all rows keep all foreign keys, which are as they were.
fn assert_kept(server: &Server, table: &str, keys: usize) {
    let query = format!(
        "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype = 'f'"
    );
    let found = server.rows(&query);
    assert_eq!(found.len(), keys);
    for key in found {
        let [name, definition]: [String; 2] = [key.get(0), key.get(1)];
        server.execute(&format!("ALTER TABLE {table} ADD CONSTRAINT again {definition}"));
        server.execute(&format!("ALTER TABLE {table} DROP CONSTRAINT again"));
        let is_off = format!(
            "SELECT count(*) FROM pg_trigger t JOIN pg_constraint k ON k.oid = tgconstraint \
              WHERE k.conname = '{name}' AND tgenabled <> 'O'"
        );
        assert_eq!(server.number(&is_off), 0);
    }
}

#[test]
fn keys_of_every_kind_are_proved_chunk_by_chunk() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute(TABLES);
    let fill = "fill --table child --method copy --chunk 200kB --streams 2";
    let document = rig.document(&format!("{fill} --rows 30000"));
    assert_eq!(reason(&document), "foreign keys are checked by one query for each chunk, with triggers off");
    assert_kept(&server, "child", 4);
    let nulls = "SELECT count(*) FROM child WHERE (a IS NULL) <> (b IS NULL)";
    assert_eq!(server.number(nulls), 0);
    // Rows that are added find room between others.
    server.execute("DELETE FROM child WHERE id % 3 = 0");
    server.execute("VACUUM child");
    let document = rig.document(&format!("{fill} --rows 30000 --append"));
    assert_eq!(reason(&document), "foreign keys are checked by one query for each chunk, with triggers off");
    assert!((observed(&document, "rows") - 30_000.0).abs() < 0.5);
    assert_eq!(server.number("SELECT count(*) FROM child"), 50_000);
    assert_kept(&server, "child", 4);
    // Ordinary statements are still checked.
    let refused = "DO $$BEGIN INSERT INTO child (gapless) VALUES (-1); RAISE 'accepted'; \
                   EXCEPTION WHEN foreign_key_violation THEN NULL; END$$";
    server.execute(refused);
}

#[test]
fn what_is_deleted_while_rows_come_is_noticed() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute(
        "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent SELECT generate_series(1, 400000); ANALYZE parent; \
         CREATE TABLE child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent, note text)",
    );
    let running = rig.spawn("fill --table child --method copy --chunk 1MB --streams 2 --rows 2000000");
    until("rows are there", || server.number("SELECT count(*) FROM child") > 0);
    server.execute(
        "DELETE FROM parent p WHERE id > 399900 AND NOT EXISTS (SELECT FROM child WHERE parent = p.id)",
    );
    let ran = running.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for part in ["violates child_parent_fkey", "The referenced rows have changed"] {
        assert!(ran.stderr.contains(part), "{ran:#?}");
    }
    assert_kept(&server, "child", 1);
}

#[test]
fn referenced_tables_are_not_written_until_a_chunk_is_there() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute(TABLES);
    let mut writer = rig.connect(&server.url);
    let transaction = rig.block_on(writer.transaction()).unwrap();
    rig.block_on(transaction.batch_execute("DELETE FROM gapless WHERE id = 17")).unwrap();
    let running = rig.spawn("fill --table child --method copy --rows 20000");
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gapless'::regclass AND mode = 'ShareLock'";
    until("the fill waits", || server.number(waits) > 0);
    assert_eq!(server.number("SELECT count(*) FROM child"), 0);
    rig.block_on(transaction.rollback()).unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_kept(&server, "child", 4);
}

#[test]
fn row_by_row_where_triggers_are_needed() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    server.execute(TABLES);
    server.execute(
        "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
         CREATE TABLE watched (gapless int REFERENCES gapless); \
         CREATE TRIGGER seen BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION noted(); \
         CREATE TABLE replicated (gapless int REFERENCES gapless); \
         CREATE TRIGGER seen BEFORE INSERT ON replicated FOR EACH ROW EXECUTE FUNCTION noted(); \
         ALTER TABLE replicated ENABLE REPLICA TRIGGER seen; \
         CREATE TABLE late (gapless int REFERENCES gapless, n int CONSTRAINT late_n UNIQUE DEFERRABLE); \
         CREATE TABLE tree (id int PRIMARY KEY, parent int CONSTRAINT tree_parent REFERENCES tree); \
         CREATE TABLE one (id int PRIMARY KEY, other int); \
         CREATE TABLE other (id int PRIMARY KEY, one int REFERENCES one); \
         ALTER TABLE one ADD CONSTRAINT one_other FOREIGN KEY (other) REFERENCES other; \
         INSERT INTO one SELECT generate_series(1, 10); \
         CREATE TABLE parts (id int, gapless int REFERENCES gapless) PARTITION BY HASH (id); \
         CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    );
    for (table, why) in [
        ("watched", "there are triggers: seen"),
        ("replicated", "there are triggers for replicas: seen"),
        ("late", "these deferrable keys need triggers: late_n"),
        ("tree", "tree_parent is part of a cycle of references"),
        ("other", "other_one_fkey is part of a cycle of references"),
        ("parts", "the table is partitioned"),
    ] {
        let document = rig.document(&format!("fill --table {table} --method copy --rows 500"));
        assert_eq!(reason(&document), format!("foreign keys are checked row by row: {why}"));
        assert_eq!(server.number(&format!("SELECT count(*) FROM {table}")), 500);
    }
}

#[test]
fn roles_prove_what_they_may() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(TABLES);
        server.execute(
            "CREATE ROLE clerk LOGIN; GRANT CREATE ON SCHEMA public TO clerk; ALTER TABLE child OWNER TO clerk; \
             GRANT SELECT ON gapless, sparse, named, paired TO clerk; \
             GRANT REFERENCES ON gapless, sparse, named, paired TO clerk",
        );
        let clerk = server.url.replace("postgres@", "clerk@");
        let fill = format!("fill --table child --append --rows 500 -d {clerk}");
        if version == OLDEST {
            let why = "PostgreSQL before 14 cannot scan the rows of a chunk by TID range";
            let document = rig.document("fill --table child --rows 500 --method copy");
            assert_eq!(reason(&document), format!("foreign keys are checked row by row: {why}"));
            continue;
        }
        let may_not = "foreign keys are checked row by row: role clerk may not";
        let unread = reason(&rig.document(&fill));
        assert!(unread.starts_with(&format!("{may_not} read and lock ")), "{unread}");
        assert!(unread.contains("child_a_b_fkey references: run GRANT SELECT, UPDATE ON "), "{unread}");
        server.execute("GRANT TRUNCATE ON gapless, sparse, named, paired TO clerk");
        let unset = format!(
            "{may_not} set session_replication_role: run GRANT SET ON PARAMETER session_replication_role TO clerk"
        );
        assert_eq!(reason(&rig.document(&fill)), unset);
        server.execute("GRANT SET ON PARAMETER session_replication_role TO clerk");
        let by_set = "foreign keys are checked by one query for each chunk, with triggers off";
        assert_eq!(reason(&rig.document(&fill)), by_set);
        assert_eq!(server.number("SELECT count(*) FROM child"), 1500);
        assert_kept(&server, "child", 4);
    }
}
