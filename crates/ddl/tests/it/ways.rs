//! Better ways belong to the action of a statement, do all that it does, and succeed.

use ddl::find::{Class, LockMode};
use ddl::{Amount, Outcome, Request, StatementOutcome, better_statements, better_way};
use testkit::RELEASES;

use crate::support::{measured, request, server};

/// Names have the words of other actions; one view has no index that REFRESH … CONCURRENTLY accepts.
const SCHEMA: &str = "
    CREATE TABLE users (
        id int PRIMARY KEY, unique_code varchar(10), CONSTRAINT no_overlap EXCLUDE USING btree (id WITH =));
    CREATE INDEX users_code ON users (unique_code);
    CREATE TABLE pt (id int NOT NULL, preferences text) PARTITION BY RANGE (id);
    CREATE TABLE pt_1 PARTITION OF pt FOR VALUES FROM (0) TO (1000);
    CREATE TABLE pt_2 PARTITION OF pt DEFAULT;
    CREATE TABLE solo (pid int);
    CREATE MATERIALIZED VIEW keyless AS SELECT id FROM users;
    CREATE INDEX ON keyless (id);
    CREATE UNIQUE INDEX ON keyless (id) WHERE id > 0;
    CREATE UNIQUE INDEX ON keyless ((id + 1));
    CREATE MATERIALIZED VIEW keyed AS SELECT id FROM users;
    CREATE UNIQUE INDEX ON keyed (id);
";

fn succeeded(release: u16, migration: &str) -> Outcome {
    let request = Request { alternatives: true, ..request(SCHEMA, migration, Amount::Rows(2000)) };
    let outcome = measured(&server(release), &request).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{release}: {failed:#?}");
    outcome
}

fn way(outcome: &Outcome, number: usize) -> Option<String> {
    let one = &outcome.statements[number - 1];
    better_way(one.found.as_ref().unwrap(), &one.statement)
}

/// The measured steps of all better ways, each with the number of the statement that it replaces.
fn steps(outcome: &Outcome) -> impl Iterator<Item = (usize, &StatementOutcome)> {
    outcome.alternatives.iter().flat_map(|way| way.statements.iter().map(move |step| (way.number, step)))
}

#[test]
fn a_way_belongs_to_the_action_and_not_to_a_name() {
    let migration = "
        ALTER TABLE users ALTER COLUMN unique_code TYPE text COLLATE \"C\";
        ALTER TABLE users ADD CONSTRAINT room_unique EXCLUDE USING btree (id WITH =);
        ALTER TABLE pt ADD CONSTRAINT pc CHECK (preferences <> 'zz');
        ALTER TABLE users ADD COLUMN hash text DEFAULT md5(random()::text) COLLATE \"C\" NOT NULL;";
    for release in RELEASES {
        let outcome = succeeded(release, migration);
        for number in [1, 2] {
            let found = outcome.statements[number - 1].found.as_ref().unwrap();
            assert_eq!(
                (found.class, way(&outcome, number)),
                (Class::IndexBuild, None),
                "{release}: {number}"
            );
        }
        let check = way(&outcome, 3).unwrap();
        assert!(check.starts_with("add the constraint NOT VALID"), "{release}: {check}");
        // PostgreSQL 13 would read the whole table for each batch of the new column.
        let numbers: Vec<usize> = outcome.alternatives.iter().map(|one| one.number).collect();
        assert_eq!(numbers, if release == 13 { &[3][..] } else { &[3, 4] }, "{release}");
        assert!(steps(&outcome).all(|(_, step)| step.failed.is_none()), "{release}: {outcome:#?}");
        let column = better_statements(&outcome.statements[3], u32::from(release) * 10_000);
        if release > 13 {
            assert_eq!(column[0], "ALTER TABLE users ADD COLUMN hash text COLLATE \"C\"", "{release}");
            let default = "ALTER TABLE users ALTER COLUMN hash SET DEFAULT md5(random()::text)";
            assert_eq!(column[1], default, "{release}");
        }
    }
}

/// The server refuses to build the index of an exclusion constraint with CONCURRENTLY or skips it, and refuses a view without a key.
#[test]
fn concurrently_is_named_where_the_server_accepts_it() {
    let migration = "
        REINDEX INDEX no_overlap;
        REINDEX TABLE users;
        REFRESH MATERIALIZED VIEW keyless;
        REFRESH MATERIALIZED VIEW keyed;";
    for release in RELEASES {
        let outcome = succeeded(release, migration);
        assert_eq!(way(&outcome, 1), None, "{release}");
        let table = way(&outcome, 2).unwrap();
        assert!(table.contains("exclusion constraints (public.no_overlap)"), "{release}: {table}");
        let keyless = way(&outcome, 3).unwrap();
        assert!(keyless.starts_with("first create a unique index on the view"), "{release}: {keyless}");
        let keyed = way(&outcome, 4).unwrap();
        assert!(keyed.starts_with("REFRESH MATERIALIZED VIEW CONCURRENTLY"), "{release}: {keyed}");
        let wanted = [
            (2, "REINDEX TABLE CONCURRENTLY users"),
            (2, "REINDEX INDEX public.no_overlap"),
            (4, "REFRESH MATERIALIZED VIEW CONCURRENTLY keyed"),
        ];
        let written = steps(&outcome).map(|(number, step)| (number, step.statement.in_one_line()));
        let wanted = wanted.map(|(number, sql)| (number, sql.to_owned()));
        assert_eq!(written.collect::<Vec<_>>(), wanted, "{release}");
        assert!(steps(&outcome).all(|(_, step)| step.failed.is_none()), "{release}: {outcome:#?}");
    }
}

/// In words only: the server alone knows which default is volatile.
#[test]
fn a_volatile_default_beside_other_actions_has_a_way() {
    let migration = "
        ALTER TABLE solo ADD touched timestamptz DEFAULT now(), ADD rnd float8 DEFAULT random();
        ALTER TABLE solo ADD seen timestamptz DEFAULT now(), ADD n int NOT NULL DEFAULT 0;
        ALTER TABLE solo ADD other float8 DEFAULT random(), ADD g int GENERATED ALWAYS AS (pid + 1) STORED;";
    for release in RELEASES {
        let outcome = succeeded(release, migration);
        let classes = outcome.statements.iter().map(|one| one.found.as_ref().unwrap().class);
        assert_eq!(
            classes.collect::<Vec<_>>(),
            [Class::Rewrite, Class::CatalogOnly, Class::Rewrite],
            "{release}"
        );
        let both = way(&outcome, 1).unwrap();
        assert!(
            both.starts_with("add each column that has a volatile default without it, "),
            "{release}: {both}"
        );
        assert_eq!((way(&outcome, 2), way(&outcome, 3)), (None, None), "{release}");
        assert_eq!(steps(&outcome).count(), 0, "{release}");
    }
}

#[test]
fn a_table_of_which_one_partition_is_read_has_a_way() {
    let schema = "
        CREATE TABLE par (id int NOT NULL, val int) PARTITION BY RANGE (id);
        CREATE TABLE par_1 PARTITION OF par FOR VALUES FROM (0) TO (1000);
        CREATE TABLE par_2 PARTITION OF par DEFAULT;
        ALTER TABLE par_1 ALTER val SET NOT NULL;";
    for release in RELEASES {
        let request = request(schema, "ALTER TABLE par ALTER val SET NOT NULL", Amount::Rows(2000));
        let outcome = measured(&server(release), &request).unwrap();
        let found = outcome.statements[0].found.as_ref().unwrap();
        assert_eq!(found.class, Class::ScanOfAnother, "{release}: {:?}", found.works);
        let way = way(&outcome, 1).unwrap();
        assert!(way.starts_with("add a CHECK constraint NOT VALID"), "{release}: {way}");
    }
}

#[test]
fn a_not_null_constraint_of_18_is_validated_later() {
    let migration = "
        ALTER TABLE solo ADD CONSTRAINT nn NOT NULL pid;
        ALTER TABLE pt ADD CONSTRAINT pn NOT NULL preferences;";
    let outcome = succeeded(18, migration);
    for (number, class) in [(1, Class::Scan), (2, Class::SeveralTables)] {
        let found = outcome.statements[number - 1].found.as_ref().unwrap();
        assert_eq!((found.class, found.strongest()), (class, Some(LockMode::AccessExclusive)), "{number}");
        let way = way(&outcome, number).unwrap();
        assert!(way.starts_with("add the constraint NOT VALID"), "{number}: {way}");
    }
    let written: Vec<String> = steps(&outcome).map(|(_, step)| step.statement.in_one_line()).collect();
    let wanted = [
        "ALTER TABLE solo ADD CONSTRAINT nn NOT NULL pid NOT VALID",
        "ALTER TABLE solo VALIDATE CONSTRAINT nn",
        "ALTER TABLE pt ADD CONSTRAINT pn NOT NULL preferences NOT VALID",
        "ALTER TABLE pt VALIDATE CONSTRAINT pn",
    ];
    assert_eq!(written, wanted);
    for (_, step) in steps(&outcome) {
        let found = step.found.as_ref().unwrap_or_else(|| panic!("{step:#?}"));
        let blocks = found.strongest().is_some_and(|mode| mode.blocks().is_some());
        assert!(!blocks || found.class == Class::CatalogOnly, "{step:#?}");
    }
}

#[test]
fn constraints_of_one_statement_are_validated_one_by_one() {
    let schema = "
        CREATE SCHEMA \"Far away\";
        CREATE TABLE u (id int PRIMARY KEY);
        CREATE TABLE \"Far away\".\"T\" (id int PRIMARY KEY, a int, b int, old int);
        CREATE TABLE t (id int PRIMARY KEY, a int);";
    let migration = "
        ALTER TABLE \"Far away\".\"T\" ADD FOREIGN KEY (a) REFERENCES u, ADD CONSTRAINT \"F\" FOREIGN KEY (b) REFERENCES u,
            ADD CHECK (id > -1), DROP COLUMN old, ALTER a SET DEFAULT 1;
        ALTER TABLE IF EXISTS t ADD COLUMN IF NOT EXISTS x int, ADD CONSTRAINT c CHECK (x > 0);
        ALTER TABLE ONLY t ADD CHECK (id > -2), ADD COLUMN y int NOT NULL DEFAULT 0;
        ALTER TABLE t ADD CHECK (id > -3), ALTER a SET NOT NULL;";
    let wanted = [
        (
            1,
            "ALTER TABLE \"Far away\".\"T\" ADD CONSTRAINT \"T_a_fkey\" FOREIGN KEY (a) REFERENCES u NOT VALID, \
             ADD CONSTRAINT \"F\" FOREIGN KEY (b) REFERENCES u NOT VALID, \
             ADD CONSTRAINT \"T_id_check\" CHECK (id > -1) NOT VALID, DROP COLUMN old, ALTER a SET DEFAULT 1",
        ),
        (1, "ALTER TABLE \"Far away\".\"T\" VALIDATE CONSTRAINT \"T_a_fkey\""),
        (1, "ALTER TABLE \"Far away\".\"T\" VALIDATE CONSTRAINT \"F\""),
        (1, "ALTER TABLE \"Far away\".\"T\" VALIDATE CONSTRAINT \"T_id_check\""),
        (2, "ALTER TABLE t ADD COLUMN IF NOT EXISTS x int, ADD CONSTRAINT c CHECK (x > 0) NOT VALID"),
        (2, "ALTER TABLE t VALIDATE CONSTRAINT c"),
        (
            3,
            "ALTER TABLE ONLY t ADD CONSTRAINT t_id_check CHECK (id > -2) NOT VALID, ADD COLUMN y int NOT NULL DEFAULT 0",
        ),
        (3, "ALTER TABLE ONLY t VALIDATE CONSTRAINT t_id_check"),
    ];
    let wanted = wanted.map(|(number, sql)| (number, sql.to_owned()));
    for release in RELEASES {
        let request = Request { alternatives: true, ..request(schema, migration, Amount::Rows(2000)) };
        let outcome = measured(&server(release), &request).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let written = steps(&outcome).map(|(number, step)| (number, step.statement.in_one_line()));
        assert_eq!(written.collect::<Vec<_>>(), wanted, "{release}");
        for (_, step) in steps(&outcome) {
            let found = step.found.as_ref().unwrap_or_else(|| panic!("{release}: {step:#?}"));
            let blocks = found.strongest().is_some_and(|mode| mode.blocks().is_some());
            assert!(!blocks || found.class == Class::CatalogOnly, "{release}: {step:#?}");
        }
        assert!(way(&outcome, 1).unwrap().starts_with("add the constraints NOT VALID"), "{release}");
        // In words only.
        assert!(way(&outcome, 4).unwrap().starts_with("for SET NOT NULL, add a CHECK"), "{release}");
    }
}
