//! `testdb::clone` on real servers.

use connect::{Connection, Target};
use failure::Classified;
use server::Session;
use server::marked::drop_database;
use testdb::clone::{CloneError, Strategy, clone, fastest};
use testkit::spec;

const ODD: &str = "a \"copy\" of; Straße";

/// A server of one test's own, with a template.
struct Server {
    _server: testkit::Server,
    target: Target,
}

impl Server {
    async fn start(release: u16) -> Self {
        let server = testkit::Server::start(spec(release, &[]));
        let server = Self { target: server.target("postgres"), _server: server };
        server.sql("postgres", "CREATE DATABASE model").await;
        server.sql("model", "CREATE TABLE t AS SELECT generate_series(1, 100) AS id").await;
        server
    }

    async fn connect(&self, database: &str) -> Connection {
        self.target.clone().with_database(database).connect().await.unwrap()
    }

    async fn sql(&self, database: &str, statement: &str) {
        let connection = self.connect(database).await;
        connection.client.batch_execute(statement).await.unwrap();
        connection.close().await;
    }

    async fn number(&self, database: &str, query: &str) -> i64 {
        let connection = self.connect(database).await;
        let number = connection.client.query_one(query, &[]).await.unwrap().get(0);
        connection.close().await;
        number
    }

    async fn databases(&self) -> i64 {
        self.number("postgres", "SELECT count(*) FROM pg_database").await
    }

    async fn session_as(&self, role: &str) -> Session {
        Session::open(&self.target.clone().with_user(role)).await.unwrap()
    }
}

async fn every_strategy_copies(release: u16, expected: &[Strategy]) {
    let server = Server::start(release).await;
    let session = Session::open(&server.target).await.unwrap();
    let available = Strategy::available(&session).await.unwrap();
    assert_eq!(available[..expected.len()], *expected);
    for strategy in available.into_iter().chain([Strategy::Default]) {
        match clone(&session, "model", ODD, strategy).await {
            Ok(_) => assert_eq!(server.number(ODD, "SELECT count(*) FROM t").await, 100),
            // Not every file system can.
            Err(CloneError::CannotClone(_)) => assert_eq!(strategy, Strategy::Clone),
            Err(error) => panic!("{strategy}: {error}"),
        }
        drop_database(&session, ODD).await.unwrap();
        drop_database(&session, ODD).await.unwrap();
    }
    let before = server.databases().await;
    let measured = fastest(&session, "model", 2, ODD).await.unwrap();
    let found: Vec<Strategy> = measured.strategies.iter().map(|timed| timed.strategy).collect();
    assert!(expected.iter().all(|strategy| found.contains(strategy)), "{measured:?}");
    assert!(found.contains(&measured.fastest));
    assert!(
        measured.strategies.iter().all(|timed| timed.seconds.len() == 2 && timed.median > 0.0),
        "{measured:?}"
    );
    assert_eq!(server.databases().await, before);
}

#[tokio::test]
async fn every_strategy_copies_18() {
    every_strategy_copies(18, &[Strategy::WalLog, Strategy::FileCopy]).await;
}

#[tokio::test]
async fn every_strategy_copies_13() {
    every_strategy_copies(13, &[Strategy::Default]).await;
}

async fn what_stands_against_it_is_told(release: u16) {
    let server = Server::start(release).await;
    let session = Session::open(&server.target).await.unwrap();
    let copy = async |session: &Session, template: &str, name: &str| {
        clone(session, template, name, Strategy::Default).await.unwrap_err()
    };
    let error = copy(&session, "nothing", "x").await;
    assert!(matches!(&error, CloneError::Missing { template } if template == "nothing"), "{error}");
    let error = copy(&session, "model", "postgres").await;
    assert!(matches!(&error, CloneError::Exists { name } if name == "postgres"), "{error}");

    let user =
        server.target.clone().with_database("model").with_application_name("a test").connect().await.unwrap();
    let before = server.databases().await;
    let error = fastest(&session, "model", 1, "x").await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CloneError::InUse { .. }) && !error.is_usage(), "{text}");
    for part in ["model", "server process", "postgres, a test"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(server.databases().await, before);
    user.close().await;

    server.sql("postgres", "CREATE ROLE \"a role\" LOGIN").await;
    let plain = server.session_as("a role").await;
    let error = copy(&plain, "template0", "x").await;
    assert!(error.is_usage() && error.to_string().contains("ALTER ROLE \"a role\" CREATEDB"), "{error}");
    server.sql("postgres", "ALTER ROLE \"a role\" CREATEDB").await;
    let error = copy(&plain, "model", "x").await;
    assert!(
        matches!(error, CloneError::NoTemplate { .. }) && error.to_string().contains("IS_TEMPLATE"),
        "{error}"
    );
    server.sql("postgres", "ALTER DATABASE model IS_TEMPLATE true").await;
    clone(&plain, "model", "x", Strategy::Default).await.unwrap();
}

#[tokio::test]
async fn what_stands_against_it_is_told_18() {
    what_stands_against_it_is_told(18).await;
}

#[tokio::test]
async fn what_stands_against_it_is_told_13() {
    what_stands_against_it_is_told(13).await;
}
