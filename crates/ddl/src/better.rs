//! A better way as statements that can be measured, where pgrig can write it. In words, it is in `ways`.

use crate::combined;
use crate::find::WorkKind;
use crate::not_null;
use crate::objects::{self, ObjectKind};
use crate::outcome::{Effects, StatementOutcome};
use crate::parted;
use crate::parts::{Act, Action, Acts, Alter, Parts, RuleKind};
use crate::script::{Statement, StatementKind};
use crate::transaction::{Transaction, transaction};
use crate::ways::better_way;

/// Batches of a backfill.
const BATCHES: u32 = 4;
/// The first release that reads a range of blocks without the whole table (nodeTidrangescan.c).
const RANGES: u32 = 140_000;

/// The better way as statements to paste, each in one line; none if pgrig cannot write it. `version` is the server's.
pub fn better_statements(one: &StatementOutcome, version: u32) -> Vec<String> {
    let is_known = |found: &&Effects| better_way(found, &one.statement).is_some();
    let found = one.found.as_ref().filter(is_known);
    let ways = found.and_then(|found| written(found, &one.statement, one.number, version));
    let in_one_line = |sql: String| Statement { sql, ..one.statement.clone() }.in_one_line();
    ways.unwrap_or_default().into_iter().map(in_one_line).collect()
}

/// A migration in which better ways replace statements.
pub(crate) struct Better {
    /// The statements that replace the original one.
    pub(crate) statements: Vec<Statement>,
    /// For each the number of the statement that it replaces, if it does.
    pub(crate) of: Vec<Option<usize>>,
}

/// The migration with the better ways that pgrig can write; none if there is none. `version` is the server's.
pub(crate) fn migration(statements: &[StatementOutcome], version: u32) -> Option<Better> {
    let mut better = Better { statements: Vec::new(), of: Vec::new() };
    for (place, one) in statements.iter().enumerate() {
        let transaction = transaction(statements, place);
        let ways = one
            .found
            .as_ref()
            .filter(|found| transaction != Transaction::Bound && better_way(found, &one.statement).is_some())
            .and_then(|found| written(found, &one.statement, one.number, version));
        let Some(ways) = ways else {
            better.push(one.statement.clone(), None);
            continue;
        };
        let like = |sql: String, kind: StatementKind| Statement { sql, kind, ..one.statement.clone() };
        let commit = before_commit(one, &ways);
        for (place, sql) in ways.into_iter().enumerate() {
            if transaction == Transaction::Open && place == commit {
                better.push(like("COMMIT".to_owned(), StatementKind::Transaction), None);
            }
            better.push(like(sql, StatementKind::Measured), Some(one.number));
        }
        if transaction == Transaction::Open {
            better.push(like("BEGIN".to_owned(), StatementKind::Transaction), None);
        }
    }
    better.of.iter().any(Option::is_some).then_some(better)
}

/// Number of the statements of a better way that stay in the transaction: on a table that no other session sees, all before the first
/// VALIDATE.
fn before_commit(one: &StatementOutcome, ways: &[String]) -> usize {
    let is_unshared = one.found.as_ref().is_some_and(|found| found.is_unshared);
    let validates = |sql: &String| Acts::of(sql).has(Act::Validate);
    if is_unshared { ways.iter().position(validates).unwrap_or_default() } else { 0 }
}

impl Better {
    fn push(&mut self, statement: Statement, of: Option<usize>) {
        self.statements.push(statement);
        self.of.push(of);
    }
}

/// The better way of a statement as statements; none if pgrig cannot write it. It leaves the constraints and indexes of the statement, with the
/// same names.
pub(crate) fn written(
    found: &Effects,
    statement: &Statement,
    number: usize,
    version: u32,
) -> Option<Vec<String>> {
    let parts = Parts::of(&statement.sql);
    // Begins the names of constraints that the way drops at its end.
    let own = format!("pgrig_better_{number}");
    let objects = &found.objects;
    if let (true, Some(create)) = (found.is_partitioned, parts.create_index()) {
        return parted::index(&create, objects, &found.partitions);
    }
    if found.obstacles.view.is_some() {
        return None;
    }
    if let Some(sql) = parts.concurrently() {
        let mut ways = vec![sql];
        ways.extend(left_by_reindex(found, &parts));
        return Some(ways);
    }
    let Some(Alter { table, is_only, action }) = parts.alter_table() else {
        return combined::written(found, &parts);
    };
    let only = if is_only { "ONLY " } else { "" };
    let alter = |action: String| format!("ALTER TABLE {only}{table} {action}");
    let is_split = matches!(action, Action::Key { .. } | Action::Rule { kind: RuleKind::Reference, .. });
    if found.is_partitioned && is_split {
        return parted::constraint(&action, (objects, &found.partitions), &found.nullable, (&own, version));
    }
    Some(match action {
        Action::Key { name, kind, columns, rest } => {
            let name = objects::name(name, objects.single(ObjectKind::Key))?;
            let table_of = (objects, objects.table);
            let mut ways = not_null::of_key(&alter, table_of, &own, &found.nullable, (is_only, version))?;
            ways.push(format!("CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} {columns}"));
            let add = format!("ADD CONSTRAINT {name} {kind} USING INDEX {name} {rest}");
            ways.push(alter(add.trim_end().to_owned()));
            ways
        }
        Action::Rule { name, kind, rule } => {
            let name = objects::name(name, objects.of_rule(kind))?;
            vec![
                alter(format!("ADD CONSTRAINT {name} {rule} NOT VALID")),
                alter(format!("VALIDATE CONSTRAINT {name}")),
            ]
        }
        Action::SetNotNull { column } => not_null::by_check(&alter, &own, &[column], is_only),
        Action::AddColumn { column, typed, default, is_not_null } => {
            let tables = found.works.iter().filter(|work| work.kind == WorkKind::Rewrite).count();
            if tables != 1 || version < RANGES {
                return None;
            }
            let mut ways = vec![
                alter(format!("ADD COLUMN {column} {typed}")),
                alter(format!("ALTER COLUMN {column} SET DEFAULT {default}")),
            ];
            ways.extend((0..BATCHES).map(|batch| batch_of(table, column, batch)));
            if is_not_null {
                ways.extend(not_null::by_check(&alter, &own, &[column], is_only));
            }
            ways
        }
    })
}

/// The statements for the indexes of exclusion constraints, which REINDEX CONCURRENTLY skips (indexcmds.c: `ReindexRelationConcurrently`).
fn left_by_reindex(found: &Effects, parts: &Parts<'_>) -> Vec<String> {
    let Some((options, _)) = parts.reindex() else { return Vec::new() };
    let between = if options.is_empty() { "" } else { " " };
    let alone = |index: &String| format!("REINDEX{between}{options} INDEX {index}");
    found.obstacles.excluding.iter().map(alone).collect()
}

/// The update of a part of the blocks that the table had when it was last vacuumed or analyzed. The last one takes all rows that are left, wherever
/// they are: autovacuum may analyze the table, which grows with each batch, between two of them, and the next then begins behind the end of the one
/// before. New versions of rows that lie before the end of the next one are not updated again.
fn batch_of(table: &str, column: &str, batch: u32) -> String {
    let block = |batch: u32| {
        format!(
            "(SELECT format('(%s,0)', (relpages::bigint + 1) * {batch} / {BATCHES}) FROM pg_catalog.pg_class WHERE oid = {}::regclass)::tid",
            server::quote::literal(table)
        )
    };
    let part = if batch + 1 < BATCHES {
        format!("ctid >= {} AND ctid < {} AND {column} IS NULL", block(batch), block(batch + 1))
    } else {
        format!("{column} IS NULL")
    };
    format!("UPDATE {table} SET {column} = DEFAULT WHERE {part}")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::find::{Class, Kind, Lock, LockMode, Proof, Work};
    use crate::objects::tests::{made, not_null, of_table};
    use crate::outcome::{Attached, ByText, Obstacles, Space};
    use crate::script::Script;
    use crate::triggers::Fired;

    pub(crate) fn found(class: Class, kind: WorkKind) -> Effects {
        let (relation, mode) = ("t".to_owned(), LockMode::Share);
        let lock = Lock { relation, kind: Kind::Table, mode, is_new: false, is_dead: false };
        let proof = Proof { file: None, read: None, is_event: false, is_vacuumed: false };
        let objects = of_table(&[
            made(ObjectKind::Key, 11, 1, "t_key"),
            made(ObjectKind::Reference, 12, 1, "t_u_fkey"),
            made(ObjectKind::Check, 13, 1, "t_n_check"),
            not_null(14, 1, "a", "t_a_not_null"),
        ]);
        Effects {
            class,
            works: vec![Work { oid: 1, table: 1, relation: "t".to_owned(), kind, proof }],
            locks: vec![lock],
            inherited: Vec::new(),
            kept_on_own: None,
            unknown_locks: None,
            unmatched: Vec::new(),
            by_text: ByText::default(),
            changed: Vec::new(),
            is_alone: false,
            is_partitioned: false,
            is_within: false,
            is_unshared: false,
            partitions: Vec::new(),
            objects,
            nullable: Vec::new(),
            adds_domain: false,
            attached: None,
            obstacles: Obstacles::default(),
            fired: Fired::default(),
            waits: 0,
            space: Space::default(),
            missed_temporary: false,
            tables: BTreeSet::new(),
            held: BTreeMap::new(),
            taken: BTreeMap::new(),
        }
    }

    fn better(text: &str, class: Class, kind: WorkKind) -> Vec<(String, Option<usize>)> {
        let script = Script::read(text, None).unwrap();
        let statements = StatementOutcome::of_all(&script.statements).into_iter().map(|mut one| {
            if one.statement.kind == StatementKind::Measured {
                one.found = Some(found(class, kind));
            }
            one
        });
        let Some(better) = migration(&statements.collect::<Vec<_>>(), 180_000) else { return Vec::new() };
        better.statements.into_iter().map(|one| one.sql).zip(better.of).collect()
    }

    #[test]
    fn statements_are_written_the_better_way() {
        let (scan, index) = ((Class::Scan, WorkKind::Scan), (Class::IndexBuild, WorkKind::IndexBuild));
        for (sql, (class, kind), wanted) in [
            (
                "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a)",
                index,
                &["CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a)"][..],
            ),
            ("REINDEX (VERBOSE) TABLE \"T\"", index, &["REINDEX (VERBOSE) TABLE CONCURRENTLY \"T\""]),
            (
                "ALTER TABLE ONLY public.t ADD CONSTRAINT k PRIMARY KEY (a, b) DEFERRABLE",
                index,
                &[
                    "CREATE UNIQUE INDEX CONCURRENTLY k ON public.t (a, b)",
                    "ALTER TABLE ONLY public.t ADD CONSTRAINT k PRIMARY KEY USING INDEX k DEFERRABLE",
                ],
            ),
            (
                "ALTER TABLE t ADD FOREIGN KEY (u) REFERENCES u (id) ON DELETE CASCADE;",
                scan,
                &[
                    "ALTER TABLE t ADD CONSTRAINT t_u_fkey FOREIGN KEY (u) REFERENCES u (id) ON DELETE CASCADE NOT VALID",
                    "ALTER TABLE t VALIDATE CONSTRAINT t_u_fkey",
                ],
            ),
            (
                "ALTER TABLE t ALTER COLUMN \"a b\" SET NOT NULL",
                scan,
                &[
                    "ALTER TABLE t ADD CONSTRAINT pgrig_better_1 CHECK (\"a b\" IS NOT NULL) NOT VALID",
                    "ALTER TABLE t VALIDATE CONSTRAINT pgrig_better_1",
                    "ALTER TABLE t ALTER COLUMN \"a b\" SET NOT NULL",
                    "ALTER TABLE t DROP CONSTRAINT pgrig_better_1",
                ],
            ),
            // Several actions, and rules that pgrig does not write.
            ("ALTER TABLE t ALTER a SET NOT NULL, ALTER b SET NOT NULL", scan, &[]),
            ("ALTER TABLE t ADD UNIQUE NULLS NOT DISTINCT (a)", index, &[]),
        ] {
            let found: Vec<String> = better(sql, class, kind).into_iter().map(|(sql, _)| sql).collect();
            assert_eq!(found, wanted, "{sql}");
        }
        let rewrite = better(
            "ALTER TABLE t ADD COLUMN c uuid NOT NULL DEFAULT gen_random_uuid()",
            Class::Rewrite,
            WorkKind::Rewrite,
        );
        assert_eq!(rewrite.len(), 2 + 4 + 4);
        assert_eq!(rewrite[0].0, "ALTER TABLE t ADD COLUMN c uuid");
        assert_eq!(rewrite[1].0, "ALTER TABLE t ALTER COLUMN c SET DEFAULT gen_random_uuid()");
    }

    /// ADD PRIMARY KEY USING INDEX would scan the table for NULLs, and block its readers meanwhile.
    #[test]
    fn columns_of_a_primary_key_are_not_null_before_it_uses_the_index() {
        let script = Script::read("ALTER TABLE t ADD PRIMARY KEY (a)", None).unwrap();
        let nullable = vec!["a".to_owned()];
        let found = Effects { nullable, ..found(Class::IndexBuild, WorkKind::IndexBuild) };
        let index = ["CREATE UNIQUE INDEX CONCURRENTLY t_key ON t (a)"];
        let key = ["ALTER TABLE t ADD CONSTRAINT t_key PRIMARY KEY USING INDEX t_key"];
        let of = |version| written(&found, &script.statements[0], 1, version).unwrap();
        let checked = [
            "ALTER TABLE t ADD CONSTRAINT pgrig_better_1_not_null CHECK (a IS NOT NULL) NOT VALID",
            "ALTER TABLE t VALIDATE CONSTRAINT pgrig_better_1_not_null",
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
            "ALTER TABLE t DROP CONSTRAINT pgrig_better_1_not_null",
        ];
        assert_eq!(of(170_000), [&checked[..], &index, &key].concat());
        let not_valid = [
            "ALTER TABLE t ADD CONSTRAINT t_a_not_null NOT NULL a NOT VALID",
            "ALTER TABLE t VALIDATE CONSTRAINT t_a_not_null",
        ];
        assert_eq!(of(180_000), [&not_valid[..], &index, &key].concat());
        let way = better_way(&found, &script.statements[0]).unwrap();
        assert!(
            way.starts_with("first make the columns NOT NULL") && way.contains("; then build the index"),
            "{way}"
        );
    }

    /// An identity has no default that could be set before its rows get their numbers.
    #[test]
    fn a_new_identity_has_a_way_of_its_own() {
        let way = |sql: &str| {
            let script = Script::read(sql, None).unwrap();
            let found = found(Class::Rewrite, WorkKind::Rewrite);
            assert_eq!(written(&found, &script.statements[0], 1, 180_000), None, "{sql}");
            better_way(&found, &script.statements[0])
        };
        for sql in [
            "ALTER TABLE t ADD id bigint GENERATED BY DEFAULT AS IDENTITY",
            "ALTER TABLE t ADD id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "ALTER TABLE t ADD COLUMN id bigserial",
            "ALTER TABLE t ADD a int, ADD COLUMN IF NOT EXISTS \"serial\" Serial4 NOT NULL",
            "ALTER TABLE t ADD id smallserial",
            "ALTER TABLE t ADD id serial8 UNIQUE",
        ] {
            let way = way(sql).unwrap();
            assert!(way.contains("nextval") && !way.contains("volatile"), "{sql}: {way}");
        }
        // A column of that name.
        let script =
            Script::read("ALTER TABLE t ADD COLUMN serial text DEFAULT gen_random_uuid()::text", None)
                .unwrap();
        let named = better_way(&found(Class::Rewrite, WorkKind::Rewrite), &script.statements[0]).unwrap();
        assert!(named.contains("volatile default") && !named.contains("nextval"), "{named}");
        assert_eq!(
            way("ALTER TABLE t ADD a int GENERATED ALWAYS AS (n + 1) STORED, ADD b int DEFAULT 1"),
            None
        );
    }

    /// Words that another statement, or another action, has too.
    #[test]
    fn a_way_is_that_of_the_statement() {
        let way = |sql: &str, class: Class, adds_domain: bool| {
            let script = Script::read(sql, None).unwrap();
            let kind = if class == Class::Rewrite { WorkKind::Rewrite } else { WorkKind::Scan };
            let found = Effects { adds_domain, ..found(class, kind) };
            better_way(&found, &script.statements[0])
        };
        for sql in [
            "ALTER DOMAIN positive ADD CHECK (VALUE > 0)",
            "ALTER DOMAIN positive VALIDATE CONSTRAINT c",
            "ALTER DOMAIN positive SET NOT NULL",
        ] {
            for class in [Class::Scan, Class::SeveralTables] {
                assert_eq!(way(sql, class, false), None, "{sql}");
            }
        }
        let both = "ALTER TABLE t ADD state int DEFAULT 0 NOT NULL, ALTER COLUMN n TYPE bigint";
        assert!(way(both, Class::Rewrite, false).unwrap().contains("new type"));
        let several = "ALTER TABLE t ADD a uuid DEFAULT gen_random_uuid(), ADD b int";
        assert!(way(several, Class::Rewrite, false).unwrap().contains("volatile default"));
        let named = way("ALTER TABLE t ADD type uuid DEFAULT gen_random_uuid()", Class::Rewrite, false);
        assert!(named.unwrap().contains("volatile default"));
        let domain = "ALTER TABLE t ADD qty positive DEFAULT 1";
        assert_eq!(way(domain, Class::Rewrite, true), None);
        assert!(way(domain, Class::Rewrite, false).is_some());
    }

    /// The scanned parts of the attached table are not those of the default partition.
    #[test]
    fn the_way_of_attach_partition_names_each_table_s_check() {
        let script = Script::read("ALTER TABLE t ATTACH PARTITION p DEFAULT", None).unwrap();
        let way = |class: Class, scanned: &[u32]| {
            let found = found(class, WorkKind::Scan);
            let work = |oid: &u32| Work {
                oid: *oid,
                table: *oid,
                relation: format!("r{oid}"),
                ..found.works[0].clone()
            };
            let attached = Attached {
                name: "p".to_owned(),
                tables: BTreeSet::from([1, 2, 3]),
                others: BTreeSet::from([4, 5]),
            };
            let works = scanned.iter().map(work).collect();
            let found = Effects { works, attached: Some(attached), ..found.clone() };
            better_way(&found, &script.statements[0])
        };
        let (within, outside) = ("to p, one that only rows within", "one that only rows outside");
        let own = way(Class::Scan, &[1]).unwrap();
        assert!(own.contains(within) && own.contains("a CHECK") && !own.contains(outside), "{own}");
        let parts = way(Class::SeveralTables, &[2, 3]).unwrap();
        assert!(parts.contains(within) && parts.contains("a CHECK") && !parts.contains(outside), "{parts}");
        let both = way(Class::SeveralTables, &[2, 3, 5]).unwrap();
        assert!(both.contains(within) && both.contains("CHECK constraints"), "{both}");
        assert!(both.contains(&format!("to r5, {outside}")), "{both}");
        let default = way(Class::ScanOfAnother, &[4]).unwrap();
        assert!(!default.contains(within) && default.contains(&format!("to r4, {outside}")), "{default}");
        // A table that a foreign key references.
        assert_eq!(way(Class::ScanOfAnother, &[9]), None);
    }

    /// From PostgreSQL 18 on.
    #[test]
    fn a_not_null_constraint_is_validated_later() {
        for (sql, name) in [
            ("ALTER TABLE s.t ADD CONSTRAINT nn NOT NULL a", "nn"),
            ("ALTER TABLE s.t ADD NOT NULL a", "t_a_not_null"),
        ] {
            let script = Script::read(sql, None).unwrap();
            for is_partitioned in [false, true] {
                let found = Effects { is_partitioned, ..found(Class::Scan, WorkKind::Scan) };
                let ways = written(&found, &script.statements[0], 1, 180_000).unwrap();
                let wanted = [
                    format!("ALTER TABLE s.t ADD CONSTRAINT {name} NOT NULL a NOT VALID"),
                    format!("ALTER TABLE s.t VALIDATE CONSTRAINT {name}"),
                ];
                assert_eq!(ways, wanted, "{sql}");
            }
        }
    }

    #[test]
    fn the_collation_of_a_new_column_stays_with_its_type() {
        let sql = "ALTER TABLE users ADD COLUMN hash text DEFAULT md5(random()::text) COLLATE \"C\" NOT NULL";
        let ways = better(sql, Class::Rewrite, WorkKind::Rewrite);
        assert_eq!(ways.len(), 2 + 4 + 4);
        assert_eq!(ways[0].0, "ALTER TABLE users ADD COLUMN hash text COLLATE \"C\"");
        assert_eq!(ways[1].0, "ALTER TABLE users ALTER COLUMN hash SET DEFAULT md5(random()::text)");
    }

    #[test]
    fn a_transaction_is_committed_before_the_better_way() {
        let of = |text: &str| better(text, Class::IndexBuild, WorkKind::IndexBuild);
        let found = of("SET lock_timeout = '1s'; BEGIN; CREATE INDEX i ON t (a); COMMIT");
        let texts: Vec<&str> = found.iter().map(|(sql, _)| sql.as_str()).collect();
        let wanted = [
            "SET lock_timeout = '1s';",
            "BEGIN;",
            "COMMIT",
            "CREATE INDEX CONCURRENTLY i ON t (a)",
            "BEGIN",
            "COMMIT",
        ];
        assert_eq!(texts, wanted);
        assert_eq!(found[3].1, Some(3));
        assert_eq!(of("BEGIN; CREATE INDEX i ON t (a); ROLLBACK"), []);
        assert_eq!(of("BEGIN; SAVEPOINT s; CREATE INDEX i ON t (a); COMMIT"), []);
        assert_eq!(of("BEGIN; SAVEPOINT s; SELECT 1; ROLLBACK TO s; CREATE INDEX i ON t (a); COMMIT"), []);
        let found = of("BEGIN; SELECT 1; COMMIT AND CHAIN; CREATE INDEX i ON t (a); COMMIT");
        let texts: Vec<&str> = found.iter().map(|(sql, _)| sql.as_str()).collect();
        assert_eq!(
            texts[2..6],
            ["COMMIT AND CHAIN;", "COMMIT", "CREATE INDEX CONCURRENTLY i ON t (a)", "BEGIN"]
        );
    }
}
