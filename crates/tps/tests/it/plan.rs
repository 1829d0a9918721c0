//! Requests that are refused before anything runs, on real servers, the oldest release and the newest.

use failure::Classified;
use script::Source;
use tps::{Plan, Protocol, Request, TpsError};

use crate::support::{Database, on_newest, on_servers, request, runtime};

fn plan(database: &Database, request: Request) -> Result<Plan, TpsError> {
    runtime().block_on(async { Plan::new(&database.connect().await, request).await })
}

#[test]
fn the_scale_is_that_of_the_tables() {
    on_servers(|database| {
        database.execute("INSERT INTO pgbench_branches VALUES (2, 0), (3, 0)");
        let found = plan(database, request("tpcb-like")).unwrap();
        assert_eq!((found.scale, found.warnings.len()), (3, 0));
        let mut asked = request("tpcb-like");
        asked.scale = Some(7);
        let found = plan(database, asked).unwrap();
        assert_eq!(found.scale, 3);
        assert!(found.warnings[0].contains("--scale 7"), "{:?}", found.warnings);
        // Custom scripts need no tables of pgbench's.
        let mut own = request("SELECT :scale;");
        assert_eq!(plan(database, own.clone()).unwrap().scale, 1);
        own.scale = Some(7);
        assert_eq!(plan(database, own).unwrap().scale, 7);
    });
}

#[test]
fn tables_that_are_missing_or_empty() {
    on_servers(|database| {
        database.execute("TRUNCATE pgbench_branches");
        let error = plan(database, request("select-only")).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("pgrig fill"), "{error}");
        database.execute("DROP TABLE pgbench_branches");
        let error = plan(database, request("select-only")).unwrap_err();
        assert!(matches!(error, TpsError::NoTables { .. }) && error.is_usage(), "{error}");
        // Others do not need them, and are prepared with what is there.
        assert_eq!(database.run(request("SELECT 1;")).all.counts.succeeded, 10);
    });
}

#[test]
fn what_cannot_be_prepared_is_told() {
    on_newest(|database| {
        let plan = plan(database, request("tpcb-like")).unwrap();
        database.execute("DROP TABLE pgbench_history; CREATE VIEW pgbench_history AS SELECT 1");
        let failures = runtime().block_on(async { plan.prepare(&database.connect().await).await.unwrap() });
        let [failure] = failures.as_slice() else { panic!("{failures:?}") };
        assert!(
            failure.contains("TRUNCATE \"pgbench_history\"") && failure.ends_with("give -n"),
            "{failure}"
        );
    });
}

#[test]
fn scripts_are_parsed_without_a_server() {
    let refused = |request: Request| Plan::parse(request).unwrap_err();
    assert!(matches!(refused(request("\\set x 1 +")), TpsError::Script(_)));
    let pipeline = "\\startpipeline\nSELECT 1;\n\\endpipeline";
    let error = refused(request(pipeline));
    assert!(matches!(error, TpsError::Pipeline { .. }) && error.is_usage());
    let mut prepared = request(pipeline);
    prepared.protocol = Protocol::Prepared;
    assert!(!Plan::parse(prepared).unwrap().needs_tables());
    let mut never = request("tpcb-like");
    never.sources = vec![Source::file("a.sql", "SELECT 1;", 0)];
    assert!(refused(never).to_string().contains("weight"));
    assert!(Plan::parse(request("tpcb-like")).unwrap().needs_tables());
}
