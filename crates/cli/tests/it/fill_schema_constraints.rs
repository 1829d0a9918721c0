//! `pgrig fill` of a schema whose constraints limit the rows or the values of a table.

use crate::fill_schema::{assert_nothing_of_pgrig, assert_valid, rows_of, script};
use crate::support::Rig;

/// By an index on a constant, or by a CHECK on the primary key.
#[test]
fn tables_of_one_row_get_one_row() {
    let rig = Rig::new();
    let server = rig.server("");
    let ddl = script(
        &rig,
        "create table post(id int primary key, title text);
         create table site(id int primary key, n bigint default 0);
         create unique index one_row on site ((true));
         create table site_aggregates(id serial primary key, site int not null references site, posts bigint not null default 0);
         create unique index idx_site_aggregates_1_row_only on site_aggregates ((1));
         create table settings(id boolean primary key default true check (id), n bigint default 0);",
    );
    for method in ["direct", "copy"] {
        let ran = rig.done(&format!("fill --ddl {ddl} --rows 500 --method {method}"));
        let why = "public.site_aggregates: the table gets only 1 row, because idx_site_aggregates_1_row_only";
        assert!(ran.stderr.contains(why), "{ran:#?}");
        assert_eq!(rows_of(&server, "post"), 500);
        for table in ["site", "site_aggregates", "settings"] {
            assert_eq!(rows_of(&server, table), 1, "{method}: {table}");
        }
        assert_valid(&server);
        assert_nothing_of_pgrig(&server);
        server.execute("DROP TABLE post, site, site_aggregates, settings");
    }
}
