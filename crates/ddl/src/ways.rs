//! A better way in words, where one is known for work that was measured.

use std::collections::BTreeSet;

use crate::find::{Class, WorkKind};
use crate::objects::ObjectKind;
use crate::outcome::{Attached, Effects, View};
use crate::parts::{Act, Acts, Parts};
use crate::script::Statement;
use crate::triggers::Fired;

/// Triggers that a hint names.
const NAMED: usize = 8;
/// Of a foreign key of a table that its transaction has made: only the referenced table has readers and writers.
const KEY_OF_NEW: &str = "add the foreign key NOT VALID, after the other actions on the new table, and validate it in a later transaction: the \
                          scan then blocks neither reads nor writes of the referenced table";
/// Beside an action that builds an index or fills a column.
const RULES_BESIDE: &str =
    "; and add the constraints that need no index NOT VALID, and validate them in a later transaction";

/// The same of SET NOT NULL.
const NOT_NULL_BESIDE: &str =
    "; and for SET NOT NULL, first add a CHECK constraint NOT VALID, and validate it in a later transaction";

/// Of a primary key on the partitions.
const NOT_NULL_OF_PARTITIONS: &str = "; each partition then has NOT NULL constraints of its own on the columns of the key, beside those that it inherits: to \
                                      allow NULL later, DROP NOT NULL on the table, and after that on each partition";

/// A better way of a statement, in words; none if none is known, or the statement blocks nobody on its own tables.
pub fn better_way(found: &Effects, statement: &Statement) -> Option<String> {
    if !found.blocks_on_its_tables() {
        return None;
    }
    let parts = Parts::of(&statement.sql);
    if found.is_unshared {
        let is_checked = !matches!(found.class, Class::CatalogOnly | Class::Wait);
        return (is_checked && parts.adds_foreign_key()).then(|| KEY_OF_NEW.to_owned());
    }
    let way = match found.class {
        Class::IndexBuild => building(found, &parts, &statement.sql)?,
        Class::Scan | Class::ScanOfAnother | Class::SeveralTables => scanning(found, &statement.sql)?,
        Class::Rewrite if parts.refreshed().is_some() => refreshing(found.obstacles.view).to_owned(),
        Class::Rewrite => rewriting(found, &statement.sql)? + &firing(&found.fired),
        Class::CatalogOnly | Class::Wait | Class::Rows | Class::Copy => return None,
    };
    let before = if found.nullable.is_empty() || found.class != Class::IndexBuild {
        ""
    } else {
        "first make the columns NOT NULL, with a constraint NOT VALID that is validated in a later transaction; then "
    };
    Some(format!("{before}{way}"))
}

fn building(found: &Effects, parts: &Parts<'_>, sql: &str) -> Option<String> {
    if let Some((_, is_index)) = parts.reindex() {
        return reindexing(found, is_index);
    }
    let builds = found.works.iter().any(|work| work.kind == WorkKind::IndexBuild);
    let acts = Acts::of(sql);
    let is_key = || builds && acts.has(Act::Key);
    let way = match (parts.creates_index(), found.is_partitioned) {
        (true, true) => {
            "build the index on each partition, outside of a transaction, and attach these indexes: that does not block writes \
             (a partitioned table has no CREATE INDEX CONCURRENTLY)"
        }
        (true, false) => "CREATE INDEX CONCURRENTLY, outside of a transaction, does not block writes",
        (false, true) if is_key() => {
            "build the index on each partition, outside of a transaction, and attach these indexes: the statements that block \
             readers or writers then scan nothing"
        }
        (false, false) if is_key() => {
            "build the index CONCURRENTLY, outside of a transaction: adding the constraint then changes only catalogs"
        }
        (false, _) => return None,
    };
    let local = if keeps_not_null(found, parts) { NOT_NULL_OF_PARTITIONS } else { "" };
    Some(format!("{way}{}{local}", beside(&acts)))
}

/// Whether the partitions keep NOT NULL constraints of their own after the better way of a primary key: from PostgreSQL 18 on, where NOT NULL is a
/// constraint, ADD PRIMARY KEY USING INDEX on a partition makes those that it inherits its own (heap.c: `AdjustNotNullInheritance`).
fn keeps_not_null(found: &Effects, parts: &Parts<'_>) -> bool {
    let has_constraints = found.objects.all.iter().any(|one| one.kind == ObjectKind::NotNull);
    found.is_partitioned && has_constraints && parts.primary_key().is_some()
}

/// The ways of other actions of the statement, which read the table, too.
fn beside(acts: &Acts) -> String {
    let not_null = if acts.has(Act::SetNotNull) { NOT_NULL_BESIDE } else { "" };
    let rules = if acts.rules() > 0 { RULES_BESIDE } else { "" };
    format!("{not_null}{rules}")
}

/// The server refuses to build the index of an exclusion constraint with CONCURRENTLY (index.c: `index_concurrently_create_copy`), and skips it
/// if the statement names no single index.
fn reindexing(found: &Effects, is_index: bool) -> Option<String> {
    let way = "REINDEX CONCURRENTLY, outside of a transaction, does not block writes";
    let excluding = &found.obstacles.excluding;
    if excluding.is_empty() {
        return Some(way.to_owned());
    }
    let built = found.works.iter().filter(|work| work.kind == WorkKind::IndexBuild).count();
    if is_index || built <= excluding.len() {
        return None;
    }
    Some(format!(
        "{way}. It skips the indexes of exclusion constraints ({}): only REINDEX without CONCURRENTLY, which blocks writes, builds these",
        excluding.join(", ")
    ))
}

fn scanning(found: &Effects, sql: &str) -> Option<String> {
    let acts = Acts::of(sql);
    let has = |act: Act| acts.has(act);
    // Of several partitions, perhaps only one is read.
    let is_own = found.class != Class::ScanOfAnother || found.is_within;
    let way = if is_own && found.is_partitioned && has(Act::Reference) {
        "on each partition, add the constraint NOT VALID, and validate it in a later transaction: the partitioned table then \
         takes these constraints, and scans nothing"
    } else if found.class == Class::Scan && has(Act::PrimaryOfIndex) {
        // To check that no row is NULL, it reads the table.
        "first make the columns NOT NULL, with a constraint NOT VALID that is validated in a later transaction: ADD PRIMARY KEY USING INDEX \
         then changes only catalogs"
    } else if is_own && has(Act::SetNotNull) && acts.rules() > 0 {
        "for SET NOT NULL, add a CHECK constraint NOT VALID, add the other constraints NOT VALID, too, and validate them in a later transaction, \
         which blocks neither reads nor writes: SET NOT NULL then scans nothing"
    } else if is_own && has(Act::SetNotNull) {
        "add a CHECK constraint NOT VALID, and validate it in a later transaction, which blocks neither reads nor writes: SET \
         NOT NULL then scans nothing"
    } else if is_own && acts.rules() > 1 {
        "add the constraints NOT VALID, and validate them in a later transaction: the scans then block neither reads nor writes"
    } else if is_own && acts.rules() > 0 {
        "add the constraint NOT VALID, and validate it in a later transaction: the scan then blocks neither reads nor writes"
    } else if is_own && has(Act::Validate) {
        "validate the constraint in a later transaction: the scan then runs without the lock of the earlier statement"
    } else {
        return found.attached.as_ref().and_then(|attached| attaching(found, attached));
    };
    Some(way.to_owned())
}

fn rewriting(found: &Effects, sql: &str) -> Option<String> {
    let acts = Acts::of(sql);
    if acts.has(Act::Type) {
        let way = "add a column of the new type, and a trigger that keeps it current; copy the values in batches; then rename both \
                   columns";
        return Some(way.to_owned());
    }
    if found.adds_domain {
        // ADD COLUMN of a domain with constraints rewrites the table without a default, too (tablecmds.c: ATExecAddColumn).
        return None;
    }
    if acts.has(Act::Numbered) {
        return Some(numbering(&acts));
    }
    (acts.has(Act::Default) && !acts.has(Act::Rewriting)).then(|| filling(&acts))
}

/// The triggers that fire for the rows of the batches, and not for the statement, which rewrites the table.
fn firing(fired: &Fired) -> String {
    let more = fired.names.len().saturating_sub(NAMED);
    let names = fired.names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return String::new();
    }
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let lacking = if fired.is_lacking {
        ", which the copy lacks, so that the batches take longer than measured"
    } else {
        ""
    };
    format!(
        "; the batches may fire triggers for each row ({names}{more}){lacking}: if they must not fire, SET session_replication_role = replica in the \
         session of the batches, or disable them meanwhile (ALTER TABLE … DISABLE TRIGGER)"
    )
}

/// The last steps of a new column with UNIQUE or PRIMARY KEY.
const KEY: &str =
    "; then CREATE UNIQUE INDEX CONCURRENTLY, outside of a transaction, and add the constraint USING INDEX";

/// Of a new column with numbers: each row gets its own from a sequence, with no default that could be set first.
fn numbering(acts: &Acts) -> String {
    let (without, key) = if acts.has(Act::Key) { (" and without the key", KEY) } else { ("", "") };
    format!(
        "add the column without a default{without}; then set its default to nextval of a sequence; number the existing rows in batches; add CHECK \
         (column IS NOT NULL) NOT VALID, validate it in a later transaction, then SET NOT NULL; for an identity column, then DROP \
         DEFAULT and ADD GENERATED … AS IDENTITY with a START greater than the greatest number: that does not rewrite the table{key}"
    )
}

/// Of new columns with a volatile default. Beside other actions, it is not known which defaults are volatile.
fn filling(acts: &Acts) -> String {
    let not_null = if acts.has(Act::NewNotNull) {
        "; then add CHECK (column IS NOT NULL) NOT VALID, validate it in a later transaction, and SET NOT NULL"
    } else {
        ""
    };
    let key = if acts.has(Act::Key) { KEY } else { "" };
    let has_constraints = !not_null.is_empty() || !key.is_empty() || acts.rules() > 0;
    let (columns, constraints) = if acts.are_several() {
        ("each column that has a volatile default without it", " and without its constraints")
    } else {
        ("the column without the volatile default", " and its constraints")
    };
    let without = if has_constraints { constraints } else { "" };
    format!(
        "add {columns}{without}, set the default, then update the rows in batches: that does not rewrite the table{not_null}{key}{}",
        beside(acts)
    )
}

fn refreshing(view: Option<View>) -> &'static str {
    match view {
        None => {
            "REFRESH MATERIALIZED VIEW CONCURRENTLY does not block readers; it needs a unique index on the view"
        }
        Some(View::Keyless) => {
            "first create a unique index on the view, on plain columns and without WHERE, outside of a transaction (CREATE UNIQUE INDEX \
             CONCURRENTLY): then REFRESH MATERIALIZED VIEW CONCURRENTLY does not block readers"
        }
        Some(View::Unpopulated) => {
            "once the view is populated, REFRESH MATERIALIZED VIEW CONCURRENTLY does not block readers; it needs a unique index on the view"
        }
    }
}

/// The better way of ATTACH PARTITION: it scans the table that it attaches, or parts of it, and the default partition.
fn attaching(found: &Effects, attached: &Attached) -> Option<String> {
    let scanned = |tables: &BTreeSet<u32>| {
        let works = found.works.iter().filter(|work| tables.contains(&work.table));
        works.map(|work| work.relation.as_str()).collect::<Vec<_>>()
    };
    let (own, others) = (scanned(&attached.tables), scanned(&attached.others));
    let mut checks = Vec::new();
    if !own.is_empty() {
        let table = &attached.name;
        checks
            .push(format!("to {table}, one that only rows within the new bounds satisfy, with IS NOT NULL"));
    }
    if !others.is_empty() {
        let tables = others.join(", ");
        checks.push(format!("to {tables}, one that only rows outside of the new bounds satisfy"));
    }
    if checks.is_empty() {
        return None;
    }
    let is_several = others.len() + usize::from(!own.is_empty()) > 1;
    Some(format!(
        "first add {} NOT VALID, and validate {} in a later transaction ({}): ATTACH PARTITION then scans nothing",
        if is_several { "CHECK constraints" } else { "a CHECK constraint" },
        if is_several { "them" } else { "it" },
        checks.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::better::tests::found;
    use crate::better::written;
    use crate::outcome::Obstacles;
    use crate::script::Script;

    /// Names have the words of other actions.
    #[test]
    fn a_way_is_that_of_the_action_and_not_of_a_name() {
        let of = |sql: &str, class: Class, kind: WorkKind, is_partitioned: bool| {
            let script = Script::read(sql, None).unwrap();
            let found = Effects { is_partitioned, ..found(class, kind) };
            better_way(&found, &script.statements[0])
        };
        let index = |sql: &str| of(sql, Class::IndexBuild, WorkKind::IndexBuild, false);
        assert_eq!(index("ALTER TABLE users ALTER COLUMN unique_code TYPE text COLLATE \"C\""), None);
        assert_eq!(index("ALTER TABLE t ADD CONSTRAINT room_unique EXCLUDE USING gist (room WITH =)"), None);
        assert_eq!(index("ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a, at WITHOUT OVERLAPS)"), None);
        let both =
            index("ALTER TABLE t ALTER a SET NOT NULL, ALTER b SET DEFAULT 1, ADD UNIQUE (c)").unwrap();
        assert!(both.starts_with("build the index CONCURRENTLY"), "{both}");
        assert!(both.contains("; and for SET NOT NULL, first add a CHECK constraint NOT VALID"), "{both}");
        let key = index("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u, ADD UNIQUE (c)").unwrap();
        assert!(key.ends_with(RULES_BESIDE) && !key.contains("SET NOT NULL"), "{key}");
        let single = index("ALTER TABLE t ADD UNIQUE (c)").unwrap();
        assert!(single.ends_with("changes only catalogs"), "{single}");
        let check = "ALTER TABLE pt ADD CONSTRAINT pc CHECK (preferences <> 'zz')";
        let way = of(check, Class::SeveralTables, WorkKind::Scan, true).unwrap();
        assert!(way.starts_with("add the constraint NOT VALID"), "{way}");
        let scan = |sql: &str| of(sql, Class::Scan, WorkKind::Scan, false);
        assert_eq!(scan("ALTER TABLE t ALTER checked_at SET DEFAULT 1, ADD \"check\" int"), None);
        let key = scan("ALTER TABLE references_all ADD CONSTRAINT nn NOT NULL checked_at").unwrap();
        assert!(key.starts_with("add the constraint NOT VALID"), "{key}");
        let several =
            scan("ALTER TABLE t ADD CHECK (a > 0), ADD FOREIGN KEY (a) REFERENCES u, ADD b int").unwrap();
        assert!(several.starts_with("add the constraints NOT VALID"), "{several}");
        let both = scan("ALTER TABLE t ALTER a SET NOT NULL, ADD CHECK (a > 0)").unwrap();
        assert!(both.contains("SET NOT NULL") && both.contains("the other constraints NOT VALID"), "{both}");
        let stored = "ALTER TABLE stored ADD a uuid DEFAULT gen_random_uuid()";
        assert!(of(stored, Class::Rewrite, WorkKind::Rewrite, false).unwrap().contains("volatile default"));
        let guarded = "DO $$ BEGIN IF true THEN ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0); END IF; END $$";
        assert!(scan(guarded).unwrap().starts_with("add the constraint NOT VALID"));
    }

    /// Before PostgreSQL 18, NOT NULL is no constraint. The objects of these effects have one.
    #[test]
    fn constraints_that_only_the_better_way_leaves_are_named() {
        let of = |sql: &str, is_partitioned: bool, has_constraints: bool| {
            let script = Script::read(sql, None).unwrap();
            let mut found = Effects { is_partitioned, ..found(Class::IndexBuild, WorkKind::IndexBuild) };
            found.objects.all.retain(|one| has_constraints || one.kind != ObjectKind::NotNull);
            better_way(&found, &script.statements[0]).unwrap().contains("NOT NULL constraints of its own")
        };
        let key = "ALTER TABLE pt ADD PRIMARY KEY (a, b)";
        assert!(of(key, true, true));
        assert!(!of(key, false, true) && !of(key, true, false));
        assert!(!of("ALTER TABLE pt ADD UNIQUE (a, b)", true, true));
    }

    /// Not of a table that a foreign key references.
    #[test]
    fn a_scan_of_one_partition_has_the_way_of_its_table() {
        let script = Script::read("ALTER TABLE pt ALTER a SET NOT NULL", None).unwrap();
        for is_within in [true, false] {
            let found = Effects { is_within, ..found(Class::ScanOfAnother, WorkKind::Scan) };
            assert_eq!(better_way(&found, &script.statements[0]).is_some(), is_within);
        }
    }

    /// Only a foreign key has a lock for which others wait.
    #[test]
    fn a_table_that_no_other_session_sees_has_the_way_of_its_foreign_keys() {
        let of = |sql: &str, class: Class| {
            let script = Script::read(sql, None).unwrap();
            let found = Effects { is_unshared: true, ..found(class, WorkKind::Scan) };
            better_way(&found, &script.statements[0])
        };
        let both =
            "ALTER TABLE t ALTER a SET NOT NULL, ADD PRIMARY KEY (a), ADD FOREIGN KEY (a) REFERENCES u";
        assert_eq!(of(both, Class::IndexBuild).as_deref(), Some(KEY_OF_NEW));
        assert_eq!(
            of("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u", Class::Scan).as_deref(),
            Some(KEY_OF_NEW)
        );
        assert_eq!(of(both, Class::CatalogOnly), None);
        assert_eq!(of("ALTER TABLE t ALTER a SET NOT NULL, ADD PRIMARY KEY (a)", Class::IndexBuild), None);
    }

    /// The column is first added without its constraints, which would be lost else.
    #[test]
    fn the_way_of_a_new_column_has_all_of_its_constraints() {
        let not_null = "; then add CHECK (column IS NOT NULL) NOT VALID, validate it in a later transaction, and SET NOT NULL";
        for (column, wants_not_null, wants_key) in [
            ("ext uuid DEFAULT gen_random_uuid() NOT NULL UNIQUE", true, true),
            ("ext uuid DEFAULT gen_random_uuid() NOT NULL", true, false),
            ("ext uuid PRIMARY KEY DEFAULT gen_random_uuid()", true, true),
            ("ext uuid DEFAULT gen_random_uuid()", false, false),
            ("code serial UNIQUE", false, true),
            ("id bigserial PRIMARY KEY", false, true),
            ("id bigserial", false, false),
        ] {
            let script = Script::read(&format!("ALTER TABLE t ADD COLUMN {column}"), None).unwrap();
            let found = found(Class::Rewrite, WorkKind::Rewrite);
            let way = better_way(&found, &script.statements[0]).unwrap();
            assert_eq!(way.contains(not_null), wants_not_null, "{column}: {way}");
            assert_eq!(way.contains(KEY), wants_key, "{column}: {way}");
            assert!(way.contains("rewrite the table"), "{way}");
        }
    }

    /// The rewrite fires none.
    #[test]
    fn triggers_that_the_batches_fire_are_named() {
        let script = Script::read("ALTER TABLE t ADD r float8 DEFAULT random()", None).unwrap();
        let of = |names: &[&str], is_lacking: bool| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let found =
                Effects { fired: Fired { names, is_lacking }, ..found(Class::Rewrite, WorkKind::Rewrite) };
            better_way(&found, &script.statements[0]).unwrap()
        };
        assert!(of(&[], true).ends_with("does not rewrite the table"));
        let own = of(&["touch on t", "audit on t"], false);
        assert!(
            own.contains(
                "for each row (touch on t, audit on t): if they must not fire, SET session_replication_role"
            ),
            "{own}"
        );
        assert!(of(&["touch on t"], true).contains("(touch on t), which the copy lacks"));
        let many = of(&["touch on t"; NAMED + 2], false);
        assert!(many.contains("touch on t and 2 more): if"), "{many}");
    }

    /// The other actions keep their ways; one that rewrites the table anyway leaves none.
    #[test]
    fn a_volatile_default_beside_other_actions_has_a_way_in_words() {
        let of = |actions: &str| {
            let script = Script::read(&format!("ALTER TABLE t {actions}"), None).unwrap();
            let found = found(Class::Rewrite, WorkKind::Rewrite);
            assert_eq!(written(&found, &script.statements[0], 1, 180_000), None, "{actions}");
            better_way(&found, &script.statements[0])
        };
        let plain = of("ADD at timestamptz DEFAULT now(), ADD COLUMN r float8 DEFAULT random()").unwrap();
        assert_eq!(
            plain,
            "add each column that has a volatile default without it, set the default, then update the rows in batches: that does not \
             rewrite the table"
        );
        let not_null = of("ADD r float8 DEFAULT random() NOT NULL, DROP COLUMN b").unwrap();
        assert!(not_null.contains("without it and without its constraints"), "{not_null}");
        assert!(not_null.contains("; then add CHECK (column IS NOT NULL) NOT VALID"), "{not_null}");
        let rules =
            of("ADD r float8 DEFAULT random(), ALTER a SET NOT NULL, ADD UNIQUE (a), ADD CHECK (b > 0)")
                .unwrap();
        assert!(rules.ends_with(&[KEY, NOT_NULL_BESIDE, RULES_BESIDE].concat()), "{rules}");
        let rule = of("ADD r float8 DEFAULT random() CHECK (r < 1)").unwrap();
        assert!(
            rule.contains("volatile default and its constraints") && rule.ends_with(RULES_BESIDE),
            "{rule}"
        );
        for other in ["SET LOGGED", "SET ACCESS METHOD heap", "ADD g int GENERATED ALWAYS AS (a + 1) STORED"]
        {
            assert_eq!(of(&format!("ADD r float8 DEFAULT random(), {other}")), None, "{other}");
        }
    }

    /// CONCURRENTLY refuses or skips the index of an exclusion constraint, and refuses a view without a key.
    #[test]
    fn no_way_is_written_that_the_server_refuses_or_that_does_less() {
        let of = |sql: &str, excluding: &[&str], view: Option<View>| {
            let script = Script::read(sql, None).unwrap();
            let is_view = sql.starts_with("REFRESH");
            let (class, kind) = if is_view {
                (Class::Rewrite, WorkKind::Rewrite)
            } else {
                (Class::IndexBuild, WorkKind::IndexBuild)
            };
            let mut found = found(class, kind);
            let excluding: Vec<String> = excluding.iter().map(|index| (*index).to_owned()).collect();
            found.obstacles = Obstacles { excluding, view };
            // The index of the exclusion constraint, and another one.
            let work = found.works[0].clone();
            found.works.extend((!is_view).then_some(work));
            (better_way(&found, &script.statements[0]), written(&found, &script.statements[0], 1, 180_000))
        };
        assert_eq!(of("REINDEX INDEX no_overlap", &["public.no_overlap"], None).0, None);
        assert_eq!(of("REINDEX TABLE users", &["public.no_overlap", "public.other"], None).0, None);
        let (way, ways) = of("REINDEX (VERBOSE) TABLE users", &["public.no_overlap"], None);
        assert!(way.unwrap().contains("skips the indexes of exclusion constraints (public.no_overlap)"));
        let wanted =
            ["REINDEX (VERBOSE) TABLE CONCURRENTLY users", "REINDEX (VERBOSE) INDEX public.no_overlap"];
        assert_eq!(ways.unwrap(), wanted);
        let refresh = "REFRESH MATERIALIZED VIEW mv";
        let (way, ways) = of(refresh, &[], None);
        assert!(way.is_some());
        assert_eq!(ways.unwrap(), ["REFRESH MATERIALIZED VIEW CONCURRENTLY mv"]);
        let (way, ways) = of(refresh, &[], Some(View::Keyless));
        assert!(way.unwrap().starts_with("first create a unique index on the view"));
        assert_eq!(ways, None);
        let (way, ways) = of(refresh, &[], Some(View::Unpopulated));
        assert!(way.unwrap().contains("populated"));
        assert_eq!(ways, None);
    }
}
