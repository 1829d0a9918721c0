//! Migrations as frameworks write them: Django 5.2 (`sqlmigrate`) and Alembic 1.20 (`--sql`) made these files; those of Rails
//! (structure.sql) and Flyway (V*.sql) are written as they have them.

use ddl::find::Class;
use ddl::{Amount, Outcome, Script};
use testkit::RELEASES;

use crate::support::{measured, request, server};

/// Measures files in order, each with whether it runs in one transaction.
fn of(release: u16, schema: &str, files: &[(&str, bool)]) -> Outcome {
    let server = server(release);
    let mut request = request(schema, "SELECT 1", Amount::Rows(300));
    let scripts = files.iter().map(|(text, in_one)| {
        let script = Script::read(text, Some("a file")).unwrap();
        if *in_one { script.in_one_transaction().unwrap() } else { script }
    });
    request.script = Script::of(scripts).unwrap();
    // Of Django's RunPython in 0002.
    let unwritten = files.iter().filter(|(text, _)| text.contains("CANNOT BE WRITTEN AS SQL"));
    assert_eq!(request.script.warnings.len(), unwritten.count(), "{:?}", request.script.warnings);
    let outcome = measured(&server, &request).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{release}: {failed:#?}");
    assert_eq!(outcome.unfilled, [], "{release}");
    outcome
}

fn classes(outcome: &Outcome) -> Vec<Class> {
    outcome.statements.iter().filter_map(|one| one.found.as_ref().map(|found| found.class)).collect()
}

#[test]
fn django_s_migrations_are_measured() {
    let schema = include_str!("frameworks/django_0001.sql");
    let files = [include_str!("frameworks/django_0002.sql"), include_str!("frameworks/django_0003.sql")];
    for release in RELEASES {
        let outcome = of(release, schema, &files.map(|file| (file, false)));
        let wanted = [
            Class::CatalogOnly, // a column with a constant default
            Class::CatalogOnly,
            Class::Rewrite, // total becomes bigint
            Class::CatalogOnly,
            Class::Rows,        // the backfill of email
            Class::CatalogOnly, // SET CONSTRAINTS
            Class::Scan,
            Class::CatalogOnly,
            Class::Scan,       // the CHECK
            Class::IndexBuild, // in the transaction
            Class::IndexBuild, // concurrently
        ];
        assert_eq!(classes(&outcome), wanted, "{release}");
        let last = outcome.statements.last().unwrap().found.as_ref().unwrap();
        assert!(last.is_alone && last.waits == 3, "{release}: {last:?}");
    }
}

#[test]
fn alembic_s_migrations_and_its_table_of_versions_are_measured() {
    let schema = include_str!("frameworks/alembic_1.sql");
    for release in RELEASES {
        let outcome = of(release, schema, &[(include_str!("frameworks/alembic_2.sql"), false)]);
        let wanted = [
            Class::CatalogOnly,
            Class::Rows,
            Class::CatalogOnly, // a longer varchar
            Class::Scan,
            Class::IndexBuild, // in an autocommit_block
            Class::Rows,       // the only row of alembic_version, which the script of the schema inserts
        ];
        assert_eq!(classes(&outcome), wanted, "{release}");
    }
}

#[test]
fn rails_structure_and_statements_are_measured() {
    let schema = include_str!("frameworks/rails_structure.sql");
    for release in RELEASES {
        let outcome = of(release, schema, &[(include_str!("frameworks/rails_migration.sql"), false)]);
        let wanted = [
            Class::CatalogOnly,
            Class::Scan,
            Class::CatalogOnly,
            Class::Rows, // its own version
            Class::Scan,
            Class::IndexBuild,
        ];
        assert_eq!(classes(&outcome), wanted, "{release}");
        // The rows are those of articles alone.
        assert_eq!(outcome.statements[1].tables, ["public.articles"]);
    }
}

#[test]
fn flyway_s_files_are_transactions() {
    let schema = include_str!("frameworks/V1__create.sql");
    let files =
        [include_str!("frameworks/V2__add_state.sql"), include_str!("frameworks/V10__widen_amount.sql")];
    for release in RELEASES {
        let outcome = of(release, schema, &files.map(|file| (file, true)));
        let wanted = [Class::CatalogOnly, Class::Rows, Class::IndexBuild, Class::CatalogOnly, Class::Rewrite];
        assert_eq!(classes(&outcome), wanted, "{release}");
        // The first statement keeps its lock to the end of its file's transaction.
        let cost = |place: usize| outcome.statements[place].largest().unwrap().runs[0];
        assert!(cost(1).held >= cost(1).seconds + cost(2).seconds + cost(3).seconds, "{release}");
    }
}
