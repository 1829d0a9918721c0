//! Migrations on the servers that the tests share.

use std::time::Duration;

use ddl::find::Class;
use ddl::{Amount, DdlError, Effort, Observer, Outcome, Plan, Request, Schema, Script, Site, Statement};
use server::DataDirectory;
use testkit::{Server, block_on, spec};

/// Tables for migrations that need no particular ones.
pub(crate) const SHOP: &str = "
    CREATE TABLE customers (id int PRIMARY KEY, name text);
    CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, note text);
    CREATE TABLE orders_log (id int, at timestamptz);
";

/// Is told, and does nothing.
pub(crate) struct Unwatched;

/// Keeps the warnings.
#[derive(Debug, Default)]
pub(crate) struct Warned(pub(crate) Vec<String>);

impl Observer for Warned {
    fn planned(&mut self, plan: &Plan) {
        self.0.extend(plan.warnings.iter().cloned());
    }
    fn warned(&mut self, warning: &str) {
        self.0.push(warning.to_owned());
    }
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

impl Observer for Unwatched {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn statement(&mut self, _: usize, _: usize, _: &Statement) {}
    fn left(&mut self, _: Duration) {}
}

/// A server as `pgrig ddl` starts it.
pub(crate) fn server(release: u16) -> Server {
    Server::start(spec(release, &[("wal_level", "replica"), ("autovacuum", "off")]))
}

/// The request for a migration of a schema, at one size, once.
pub(crate) fn request(schema: &str, migration: &str, amount: Amount) -> Request {
    let script = Script::of([Script::read(migration, None).unwrap()]).unwrap();
    let schema = Schema::of_script(schema, "the test's schema").unwrap();
    Request {
        schema,
        script,
        amount,
        up_to: 1 << 30,
        effort: Effort::Quick,
        probes: None,
        alternatives: false,
        columns: Vec::new(),
        seed: 1,
    }
}

/// The request for a migration of [`SHOP`], with 100 rows in each table.
pub(crate) fn of_shop(migration: &str) -> Request {
    request(SHOP, migration, Amount::Rows(100))
}

/// The class of each statement; none for those that have no effects.
pub(crate) fn classes(outcome: &Outcome) -> Vec<Option<Class>> {
    outcome.statements.iter().map(|one| one.found.as_ref().map(|found| found.class)).collect()
}

/// The databases and roles that are there beside those of a new server.
pub(crate) fn left(server: &Server) -> Vec<String> {
    block_on(async {
        let query = "SELECT datname::text FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1') \
                     UNION ALL SELECT rolname::text FROM pg_roles WHERE oid >= 16384 ORDER BY 1";
        let rows = server.connect("postgres").await.client.query(query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    })
}

/// Measures it.
pub(crate) fn measured(server: &Server, request: &Request) -> Result<Outcome, DdlError> {
    measured_by(server, request, &mut Unwatched)
}

/// Measures it, and tells an observer.
pub(crate) fn measured_by(
    server: &Server,
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<Outcome, DdlError> {
    block_on(async {
        let target = server.target("postgres");
        let site = Site { target: &target, directory: &DataDirectory::Asked, restarter: None, pgrig: "test" };
        ddl::run(&site, request, observer, Box::pin(std::future::pending())).await
    })
}
