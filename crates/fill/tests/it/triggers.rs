//! `--triggers off`: rows that no trigger sees, by pages and by COPY, with all keys and triggers as they were.

use fill::{Method, Triggers};
use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Filling, Tables};

/// Triggers of each kind, which change a row, count statements, or run for replicas only.
const WATCHED: &str = "
    CREATE TABLE parents (id int PRIMARY KEY);
    INSERT INTO parents SELECT generate_series(1, 300);
    CREATE TABLE seen (note text);
    CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.note = ''changed''; RETURN new; END';
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO seen VALUES (tg_name); RETURN NULL; END';
    CREATE TABLE watched (id bigint PRIMARY KEY, parent int NOT NULL CONSTRAINT has_parent REFERENCES parents, note text);
    CREATE TRIGGER changes BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION change();
    CREATE TRIGGER notes AFTER INSERT ON watched FOR EACH STATEMENT EXECUTE FUNCTION note();
    CREATE CONSTRAINT TRIGGER later AFTER INSERT ON watched DEFERRABLE FOR EACH ROW EXECUTE FUNCTION note();";

const ALL: &str = "SELECT string_agg(concat_ws(' ', tgrelid::regclass, tgname, tgenabled, tgisinternal), ', '
                                     ORDER BY tgrelid, tgname) FROM pg_trigger";

fn off(table: &'static str, rows: u64) -> Filling {
    Filling { triggers: Triggers::Off, ..Filling::of(table, rows) }
}

async fn assert_unseen(tables: &Tables, rows: i64) {
    assert_eq!(tables.value::<i64>("SELECT count(*) FROM seen").await, 0);
    assert_eq!(tables.value::<i64>("SELECT count(*) FROM watched").await, rows);
    assert_eq!(tables.value::<i64>("SELECT count(*) FROM watched WHERE note = 'changed'").await, 0);
    // From now on they run again, and the foreign key holds.
    tables.execute("INSERT INTO watched VALUES (-1, 1)").await;
    assert_eq!(tables.value::<i64>("SELECT count(*) FROM seen").await, 2);
    assert_says(&tables.refusal("INSERT INTO watched VALUES (-2, 301)").await, &["has_parent"]);
}

#[test]
fn pages_are_written_and_every_trigger_stays() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, WATCHED).await;
            let before: String = tables.value(ALL).await;
            let reason = tables.reason(&Filling::of("watched", 2000)).await;
            assert_says(
                &reason,
                &["triggers run for its rows: changes, later, notes. To skip them, give --triggers off"],
            );
            let plan = tables.plan(&off("watched", 2000)).await.unwrap();
            let said = "--triggers off: these do not run for the rows: changes, later, notes";
            assert!(plan.reasons.iter().any(|reason| reason == said), "{:?}", plan.reasons);
            assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
            tables.fill_directly(&off("watched", 2000)).await;
            assert_eq!(tables.value::<String>(ALL).await, before);
            assert_unseen(&tables, 2000).await;
            // A row that breaks the foreign key is found as ever.
            tables.execute("TRUNCATE watched").await;
            let columns = vec![&*format!("parent=cycle({}301)", "3,".repeat(1500)).leak()].leak();
            let error = tables.fill(&Filling { columns, ..off("watched", 2000) }).await.unwrap_err();
            assert_says(&error.to_string(), &["has_parent", "The transaction was rolled back"]);
        });
    }
}

#[test]
fn copy_turns_triggers_off_and_proves_keys() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, WATCHED).await;
            tables.execute("ALTER TABLE watched ALTER note SET STORAGE PLAIN").await;
            let before: String = tables.value(ALL).await;
            let reason = tables.reason(&off("watched", 2000)).await;
            assert_says(
                &reason,
                &[
                    "foreign keys are checked by one query for each chunk",
                    "(session_replication_role = replica): changes",
                ],
            );
            assert_eq!(tables.fill(&off("watched", 2000)).await.unwrap(), Method::ChunkedCopy);
            assert_eq!(tables.value::<String>(ALL).await, before);
            assert_unseen(&tables, 2000).await;
            tables.execute("TRUNCATE watched").await;
            let columns = vec![&*format!("parent=cycle({}301)", "3,".repeat(1500)).leak()].leak();
            let error = tables.fill(&Filling { columns, ..off("watched", 2000) }).await.unwrap_err();
            assert_says(&error.to_string(), &["violates has_parent"]);
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM watched").await, 0);
            // Without any foreign key, too.
            tables.execute("ALTER TABLE watched DROP CONSTRAINT has_parent; TRUNCATE seen").await;
            tables.fill(&off("watched", 1000)).await.unwrap();
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM seen").await, 0);
        });
    }
}

#[test]
fn copy_is_refused_where_triggers_would_run_or_are_needed() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, WATCHED).await;
            tables.execute("ALTER TABLE watched ALTER note SET STORAGE PLAIN").await;
            for (change, why) in [
                (
                    "ALTER TABLE watched ENABLE ALWAYS TRIGGER notes",
                    "triggers run in any case (ENABLE ALWAYS): notes",
                ),
                (
                    "ALTER TABLE watched ENABLE REPLICA TRIGGER notes",
                    "there are triggers for replicas: notes",
                ),
                (
                    "ALTER TABLE watched DISABLE TRIGGER notes, ADD CONSTRAINT late UNIQUE (parent, id) DEFERRABLE",
                    "these deferrable keys need triggers: late",
                ),
            ] {
                tables.execute(change).await;
                let error = tables.fill(&off("watched", 100)).await.unwrap_err().to_string();
                assert_says(&error, &["--triggers off is not possible for public.watched", why]);
                assert_eq!(tables.value::<i64>("SELECT count(*) FROM watched").await, 0);
            }
            // Pages run none of them.
            tables
                .execute("ALTER TABLE watched ALTER note SET STORAGE EXTENDED, ENABLE ALWAYS TRIGGER notes")
                .await;
            tables.fill_directly(&off("watched", 2000)).await;
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM seen").await, 0);
        });
    }
}

#[test]
fn a_partition_s_copies_of_its_parent_s_triggers_are_triggers() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, WATCHED).await;
            tables
                .execute(
                    "CREATE TABLE whole (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);
                     CREATE TABLE middle PARTITION OF whole FOR VALUES FROM (0) TO (10000) PARTITION BY RANGE (id);
                     CREATE TABLE part PARTITION OF middle FOR VALUES FROM (0) TO (5000);
                     CREATE TRIGGER copied AFTER INSERT ON whole FOR EACH ROW EXECUTE FUNCTION note()",
                )
                .await;
            let reason = tables.reason(&Filling::of("part", 100)).await;
            assert_says(&reason, &["triggers run for its rows: copied"]);
            tables.fill_directly(&off("part", 100)).await;
            assert_eq!(tables.value::<i64>("SELECT count(*) FROM seen").await, 0);
        });
    }
}
