//! Pages of tables with foreign keys: what is proved, what stays, what is refused.

use testkit::{RELEASES, assert_says, block_on};

use crate::support::{Filling, Tables};

/// A single key to a gapless one, one to a key with gaps, one of two columns MATCH FULL, one to itself.
const FAMILY: &str = "
    CREATE TABLE parents (id int PRIMARY KEY, code varchar(20) UNIQUE NOT NULL);
    CREATE TABLE gapped (a int, b text, UNIQUE (a, b), id bigint PRIMARY KEY);
    CREATE TABLE children (
        id bigint PRIMARY KEY,
        parent int NOT NULL CONSTRAINT has_parent REFERENCES parents ON DELETE RESTRICT,
        code varchar(20) CONSTRAINT has_code REFERENCES parents (code) DEFERRABLE INITIALLY DEFERRED,
        gap int CONSTRAINT has_gap REFERENCES gapped (id),
        a int, b text,
        CONSTRAINT has_pair FOREIGN KEY (a, b) REFERENCES gapped (a, b) MATCH FULL,
        next bigint CONSTRAINT has_next REFERENCES children
    );
    COMMENT ON CONSTRAINT has_parent ON children IS 'stays';
    ALTER TABLE children ADD CONSTRAINT not_valid FOREIGN KEY (parent) REFERENCES parents NOT VALID;
    CREATE TABLE grandchildren (id int PRIMARY KEY, child bigint NOT NULL CONSTRAINT has_child REFERENCES children);
    INSERT INTO gapped SELECT n, 'b' || n, n * 3 FROM generate_series(1, 500) n";

const CONSTRAINTS: &str = "
    SELECT string_agg(concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated, condeferred,
               obj_description(oid, 'pg_constraint')), E'\\n' ORDER BY conrelid, conname)
      FROM pg_constraint WHERE contype = 'f'";

#[test]
fn foreign_keys_stay_and_are_proved() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, FAMILY).await;
            if major >= 18 {
                let key = "ALTER TABLE children ADD CONSTRAINT not_enforced
                               FOREIGN KEY (parent) REFERENCES gapped (id) NOT ENFORCED";
                tables.execute(key).await;
            }
            let before: String = tables.value(CONSTRAINTS).await;
            let together = &["public.children", "\"grandchildren\""];
            tables.fill_directly(&Filling { together, ..Filling::of("parents", 2000) }).await;
            let together = &["public.grandchildren"];
            tables.fill_directly(&Filling { together, ..Filling::of("children", 5000) }).await;
            tables.fill_directly(&Filling::of("grandchildren", 7000)).await;
            assert_eq!(tables.value::<String>(CONSTRAINTS).await, before);
            for (key, statement) in [
                ("has_parent", "DELETE FROM parents WHERE id = (SELECT parent FROM children LIMIT 1)"),
                ("has_", "DELETE FROM gapped WHERE a = (SELECT max(a) FROM children)"),
                ("has_child", "DELETE FROM children"),
                ("has_gap", "INSERT INTO children (id, parent, gap) VALUES (-1, 1, 4)"),
                ("has_pair", "INSERT INTO children (id, parent, a) VALUES (-1, 1, 1)"),
            ] {
                assert_says(&tables.refusal(statement).await, &[key]);
            }
            tables.execute("ALTER TABLE children VALIDATE CONSTRAINT not_valid").await;
            let pairs =
                "SELECT count(*) FROM children WHERE a IS NOT NULL AND code IS NOT NULL AND gap IS NOT NULL";
            assert!(tables.value::<i64>(pairs).await > 1000);
        });
    }
}

#[test]
fn a_table_that_others_reference_is_truncated_only_with_those_of_the_same_fill() {
    block_on(async {
        let tables = Tables::new(18, FAMILY).await;
        let reason = tables.reason(&Filling::of("parents", 2000)).await;
        assert_says(&reason, &["foreign keys of children, grandchildren reference it"]);
        // By way of children.
        let together = &["public.children"];
        let reason = tables.reason(&Filling { together, ..Filling::of("parents", 2000) }).await;
        assert_says(&reason, &["foreign keys of grandchildren reference it"]);
        // One that was planned as empty and no longer is.
        let together = &["children", "grandchildren"];
        let filling = Filling { together, ..Filling::of("parents", 2000) };
        tables.execute("INSERT INTO children (id, parent) SELECT 1, 1 WHERE false").await;
        tables.execute("ALTER TABLE children DROP CONSTRAINT has_parent, DROP CONSTRAINT not_valid").await;
        tables.execute("INSERT INTO children (id, parent) VALUES (1, 1)").await;
        let error = tables.fill(&filling).await.unwrap_err().to_string();
        assert_says(&error, &["children", "it has rows"]);
        assert_eq!(tables.value::<i64>("SELECT count(*) FROM children").await, 1);
        assert_eq!(tables.value::<i64>("SELECT count(*) FROM parents").await, 0);
    });
}

#[test]
fn a_row_that_breaks_a_foreign_key_is_found_before_the_commit() {
    // Row 2500 is none of those that are tried beforehand.
    let cycle = |value: &str| format!("cycle({}{value}{})", "3,".repeat(2499), ",3".repeat(500));
    let broken = [
        ("has_parent", format!("parent={}", cycle("2001"))),
        ("has_gap", format!("gap={}", cycle("4"))),
        ("has_next", format!("next={}", cycle("5001"))),
        ("has_code", format!("code=cycle({}{})", "a,".repeat(2499), "none".to_owned() + &",a".repeat(500))),
    ];
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, FAMILY).await;
            tables.execute("ALTER TABLE children DROP CONSTRAINT has_pair").await;
            let together = &["children", "grandchildren"];
            let columns = &["code=cycle(a)"];
            tables.execute("ALTER TABLE parents DROP CONSTRAINT parents_code_key CASCADE").await;
            tables.fill_directly(&Filling { columns, together, ..Filling::of("parents", 2000) }).await;
            tables.execute("UPDATE parents SET code = id WHERE id > 1").await;
            tables.execute("ALTER TABLE parents ADD UNIQUE (code)").await;
            let key =
                "ALTER TABLE children ADD CONSTRAINT has_code FOREIGN KEY (code) REFERENCES parents (code)";
            tables.execute(key).await;
            for (key, column) in &broken {
                let column: &'static str = column.clone().leak();
                let columns = vec![column].leak();
                let together = &["grandchildren"];
                let filling = Filling { columns, together, ..Filling::of("children", 5000) };
                let error = tables.fill(&filling).await.unwrap_err().to_string();
                assert_says(&error, &[key, "The transaction was rolled back"]);
                assert_eq!(tables.value::<i64>("SELECT count(*) FROM children").await, 0);
            }
        });
    }
}
