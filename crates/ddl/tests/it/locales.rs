//! The locale of the original, and one that is not known: it decides whether LIKE uses an ordinary index.

use ddl::find::Class;
use ddl::{Amount, Outcome, Request, Schema};
use failure::{Class as ErrorClass, Classified};
use model::{Model, Privacy};
use testkit::{RELEASES, Server, assert_says, block_on};

use crate::support::{Warned, classes, left, measured, measured_by, request, server};

const NAMES: &str =
    "CREATE TABLE names (id int PRIMARY KEY, n text NOT NULL); CREATE INDEX names_n ON names (n);";
const LIKE: &str = "SELECT FROM names WHERE n LIKE 'abcd%'";

/// Of a database with this locale.
fn original(server: &Server, clauses: &str) -> Schema {
    block_on(async {
        let create = format!("CREATE DATABASE original TEMPLATE template0 {clauses}");
        server.connect("postgres").await.client.batch_execute(&create).await.unwrap();
        let connection = server.target("original").connect().await.unwrap();
        let rows = "INSERT INTO names SELECT i, md5(i::text) FROM generate_series(1, 20000) i";
        connection.client.batch_execute(&format!("{NAMES} {rows}")).await.unwrap();
        connection.client.batch_execute("ANALYZE").await.unwrap();
        let schema = Schema::of_database(&connection, "shop").await.unwrap();
        connection.close().await;
        schema
    })
}

/// The model of the tables of a database, after writing and reading it.
fn modelled(server: &Server, database: &str) -> Model {
    block_on(async {
        let connection = server.target(database).connect().await.unwrap();
        let facts =
            catalog::capture(&connection.client, None, None, catalog::TIMEOUT, &server::unwatched).await;
        connection.close().await;
        let model = Model::of(&facts.unwrap(), &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        Model::read(&model.write()).unwrap()
    })
}

/// The outcome, and the warnings about the locale.
fn told(server: &Server, schema: Schema, migration: &str) -> (Outcome, Vec<String>) {
    let asked = Request { schema, ..request("", migration, Amount::Rows(20_000)) };
    let mut warned = Warned::default();
    let outcome = measured_by(server, &asked, &mut warned).unwrap();
    (outcome, warned.0.into_iter().filter(|warning| warning.contains("locale")).collect())
}

#[test]
fn the_copy_has_the_locale_of_the_original() {
    for release in RELEASES {
        let server = server(release);
        let icu = "LOCALE_PROVIDER icu ICU_LOCALE 'de-AT'";
        let libc = "LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'";
        let schema = original(&server, if release >= 15 { icu } else { libc });
        let (outcome, warnings) = told(&server, schema, LIKE);
        assert_eq!(classes(&outcome), [Some(Class::Scan)], "{release}");
        assert_eq!(warnings, Vec::<String>::new(), "{release}");
        assert_eq!(outcome.statements[0].locale, None, "{release}");
        assert_eq!(left(&server), ["original"], "{release}");
    }
}

/// As with the database itself. A model of an earlier format does not tell the locale.
#[test]
fn the_copy_of_a_model_has_the_locale_of_the_original() {
    for release in RELEASES {
        let server = server(release);
        let icu = "LOCALE_PROVIDER icu ICU_LOCALE 'de-AT'";
        let libc = "LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'";
        original(&server, if release >= 15 { icu } else { libc });
        let model = modelled(&server, "original");
        let of = |model: &Model| told(&server, Schema::of_model(model, "names.toml").unwrap(), LIKE);
        let (outcome, warnings) = of(&model);
        assert_eq!(classes(&outcome), [Some(Class::Scan)], "{release}");
        assert_eq!(warnings, Vec::<String>::new(), "{release}");
        let (outcome, warnings) = of(&Model { locale: None, ..model });
        assert_eq!(classes(&outcome), [Some(Class::CatalogOnly)], "{release}");
        assert_says(&warnings.concat(), &["the locale of the original is not known"]);
    }
}

#[test]
fn a_locale_that_the_server_lacks_is_replaced_by_one_with_the_same_use_of_indexes() {
    let schema = original(&server(18), "LOCALE_PROVIDER icu ICU_LOCALE 'de-AT'");
    let (outcome, warnings) = told(&server(14), schema, LIKE);
    assert_eq!(classes(&outcome), [Some(Class::Scan)]);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let lacks = "database shop has the locale icu:de-AT, which the server that measures lacks (PostgreSQL 14 has no such locales)";
    assert_says(warning, &[lacks, "pgrig measures with C.UTF-8", "may differ"]);
    let schema = original(&server(17), "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'");
    let (outcome, warnings) = told(&server(16), schema, LIKE);
    assert_eq!(classes(&outcome), [Some(Class::CatalogOnly)]);
    assert_says(&warnings.concat(), &["the locale builtin:C.UTF-8", "pgrig measures with C: times"]);
}

#[test]
fn a_locale_that_is_not_known_is_told_where_it_matters() {
    let schema = || Schema::of_script(NAMES, "names.sql").unwrap();
    for release in RELEASES {
        let server = server(release);
        let (outcome, warnings) = told(&server, schema(), LIKE);
        assert_eq!(classes(&outcome), [Some(Class::CatalogOnly)], "{release}");
        assert!(outcome.statements[0].locale.is_some(), "{release}");
        assert_says(&warnings.concat(), &["finds rows by patterns of texts (LIKE)", "--locale en_US.UTF-8"]);
        let migration = "ALTER TABLE names ADD UNIQUE (n); CREATE INDEX ON names (id)";
        let (outcome, warnings) = told(&server, schema(), migration);
        assert!(outcome.statements.iter().all(|one| one.locale.is_none()), "{release}");
        assert_says(&warnings.concat(), &["builds indexes of texts (names_n_key), and the locale"]);
        let (_, warnings) =
            told(&server, schema(), "CREATE TABLE made (n text PRIMARY KEY); CREATE INDEX ON names (id)");
        assert_eq!(warnings, Vec::<String>::new(), "{release}");
        // Also without an index, by a scan.
        let (outcome, _) =
            told(&server, schema(), "DROP INDEX names_n; SELECT FROM names WHERE n LIKE 'abcd%'");
        assert_eq!(outcome.statements[1].locale, None, "{release}");
    }
}

#[test]
fn the_copy_has_the_locale_for_which_the_user_asks() {
    for release in RELEASES {
        let server = server(release);
        let of = |locale: &str| {
            let mut schema = Schema::of_script(NAMES, "names.sql").unwrap();
            schema.asked_locale = Some(locale.parse().unwrap());
            schema
        };
        for (locale, class) in [("C", Class::CatalogOnly), ("C.UTF-8", Class::Scan)] {
            let (outcome, warnings) = told(&server, of(locale), LIKE);
            assert_eq!(classes(&outcome), [Some(class)], "{release} {locale}");
            assert_eq!(warnings, Vec::<String>::new(), "{release} {locale}");
            assert_eq!(outcome.statements[0].locale, None, "{release} {locale}");
        }
        let asked = Request { schema: of("xx_XX.UTF-8"), ..request("", LIKE, Amount::Rows(100)) };
        let error = measured(&server, &asked).unwrap_err();
        assert_says(
            &error.to_string(),
            &["--locale xx_XX.UTF-8: the server that measures lacks it (", "install it"],
        );
        assert_eq!(error.class(), ErrorClass::Request);
        assert_eq!(left(&server), Vec::<String>::new());
    }
}
