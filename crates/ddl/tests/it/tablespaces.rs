//! Statements that put tables and indexes into another tablespace: which copy files, and which build them.

use ddl::find::{Class, WorkKind};
use ddl::{Amount, Outcome};
use testkit::{RELEASES, Server, block_on};

use crate::support::{measured, request, server};

const SCHEMA: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, note text); CREATE INDEX t_n ON t (n);";

/// A tablespace whose directory the server makes itself.
fn tablespace(server: &Server) {
    block_on(async {
        let connection = server.connect("postgres").await;
        for sql in ["SET allow_in_place_tablespaces = on", "CREATE TABLESPACE elsewhere LOCATION ''"] {
            connection.client.batch_execute(sql).await.unwrap();
        }
    });
}

fn found(outcome: &Outcome) -> Vec<(Class, Vec<(&str, WorkKind)>)> {
    let found = outcome.statements.iter().filter_map(|one| one.found.as_ref());
    let of_files = |kind: WorkKind| !matches!(kind, WorkKind::Scan | WorkKind::Rows);
    found
        .map(|found| {
            let works = found.works.iter().filter(|work| of_files(work.kind));
            let mut works: Vec<_> = works.map(|work| (work.relation.as_str(), work.kind)).collect();
            works.sort_by_key(|(relation, _)| *relation);
            (found.class, works)
        })
        .collect()
}

#[test]
fn tables_are_copied_to_another_tablespace_and_indexes_copied_or_built() {
    for release in RELEASES {
        let server = server(release);
        tablespace(&server);
        let mut migration =
            "ALTER TABLE t SET TABLESPACE elsewhere; ALTER INDEX t_n SET TABLESPACE elsewhere; \
                             ALTER TABLE t ADD x uuid DEFAULT gen_random_uuid(), SET TABLESPACE pg_default;"
                .to_owned();
        let mut wanted = vec![
            (Class::Copy, vec![("t", WorkKind::Copy)]),
            (Class::Copy, vec![("t_n", WorkKind::Copy)]),
            (Class::Rewrite, vec![("t", WorkKind::Rewrite)]),
        ];
        // REINDEX has TABLESPACE from PostgreSQL 14 on. In a body, its text is not read.
        if release >= 14 {
            migration += "REINDEX (TABLESPACE pg_default) INDEX t_n; REINDEX (TABLESPACE elsewhere) TABLE t; \
                          DO $$ BEGIN EXECUTE 'REINDEX (TABLESPACE pg_default) INDEX t_n'; END $$; \
                          REINDEX (TABLESPACE elsewhere) SCHEMA public; \
                          REINDEX (TABLESPACE pg_default, CONCURRENTLY) INDEX t_n";
            let (key, index) = (("t_pkey", WorkKind::IndexBuild), ("t_n", WorkKind::IndexBuild));
            let toast = ("TOAST index of t", WorkKind::IndexBuild);
            wanted.extend([
                (Class::IndexBuild, vec![index]),
                (Class::IndexBuild, vec![toast, index, key]),
                (Class::IndexBuild, vec![index]),
                (Class::IndexBuild, vec![toast, index, key]),
                (Class::IndexBuild, vec![index]),
            ]);
        }
        let outcome = measured(&server, &request(SCHEMA, &migration, Amount::Rows(1000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        assert_eq!(found(&outcome), wanted, "{release}");
    }
}

/// The copy has the size of the file after VACUUM, which removes the pages at its end, and is there together with that file.
#[test]
fn a_table_that_vacuum_made_smaller_is_copied_as_such() {
    let schema = "CREATE TABLE t (id int PRIMARY KEY, note text)";
    let migration = "DELETE FROM t WHERE id > 2000; VACUUM t; ALTER TABLE t SET TABLESPACE elsewhere";
    for release in RELEASES {
        let server = server(release);
        tablespace(&server);
        let outcome = measured(&server, &request(schema, migration, Amount::Rows(40_000))).unwrap();
        let failed: Vec<_> = outcome.failed().collect();
        assert!(failed.is_empty(), "{release}: {failed:#?}");
        let one = &outcome.statements[2];
        let found = one.found.as_ref().unwrap();
        assert_eq!(found.class, Class::Copy, "{release}");
        // Two thousand of its rows, and not all.
        let (bytes, space) = (one.largest().unwrap().bytes, found.space.files);
        assert!((bytes / 60..bytes / 4).contains(&space), "{release}: {space} of {bytes}");
    }
}
