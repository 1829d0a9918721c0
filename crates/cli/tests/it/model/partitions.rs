//! Rows of partitions.

use crate::support::Rig;

/// A list beside a partition that is partitioned by range, and partitions beside default ones.
const PARTITIONED: &str = "
    create table levels(id int, region int, note text) partition by list (region);
    create table levels_1 partition of levels for values in (1, 2);
    create table levels_2 partition of levels for values in (3) partition by range (id);
    create table levels_2a partition of levels_2 for values from (0) to (1000);
    create table levels_2b partition of levels_2 for values from (1000) to (10000);
    insert into levels select i, 1 + i % 3, 'note' from generate_series(1, 3000) i;
    create table kinds(kind int, note text) partition by list (kind);
    create table kinds_1 partition of kinds for values in (1);
    create table kinds_rest partition of kinds default partition by list (kind);
    create table kinds_rest_2 partition of kinds_rest for values in (2);
    create table kinds_rest_rest partition of kinds_rest default;
    insert into kinds select 1 + i % 3, 'note' from generate_series(1, 3000) i;
    create table whole(kind int) partition by list (kind);
    create table whole_rest partition of whole default;
    insert into whole select i % 3 from generate_series(1, 3000) i;
    analyze";

#[test]
fn capture_names_default_partitions_with_rows() {
    for version in ["--pg-version 13", ""] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute("CREATE DATABASE original");
        server.execute("CREATE DATABASE copy");
        server.database("original").execute(PARTITIONED);
        let path = rig.home.path().join("parts.model.toml");
        let captured =
            rig.run(&format!("model capture --instance default -d original -o {}", path.display()));
        assert_eq!(captured.code, Some(0), "{captured:#?}");
        let said = captured.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("public.kinds: 2000 of 3000 rows of the original are in default partitions (public.kinds_rest)"),
            "{said}"
        );
        assert_eq!(said.matches("are in default partitions (").count(), 1, "{said}");
        rig.done(&format!(
            "fill --model {} --instance default -d copy --column kinds.kind=list(1,2,3) -q",
            path.display()
        ));
        let copy = server.database("copy");
        for partition in ["levels_1", "levels_2a", "levels_2b", "kinds_1", "kinds_rest_2", "kinds_rest_rest"]
        {
            let rows = copy.number(&format!("SELECT count(*) FROM {partition}"));
            assert!(rows > 50, "{partition}: {rows}");
        }
    }
}
