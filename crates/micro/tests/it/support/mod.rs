//! Code that the tests of `micro` share: a server of the oldest and of the newest release.

use std::future::Future;
use std::time::Duration;

use connect::{Connection, Target};
use micro::{Body, Candidate, Request};
use testkit::{RELEASES, block_on, shared};

/// A database of a test's own.
pub(crate) struct Server {
    pub(crate) release: u32,
    pub(crate) target: Target,
    pub(crate) connection: Connection,
}

/// Runs a test on the oldest and on the newest release that pgrig works with.
pub(crate) fn on_each_release<F: Future<Output = ()>>(test: impl Fn(Server) -> F) {
    for release in RELEASES {
        block_on(async {
            let target = shared(release).database().await.target;
            let connection = target.connect().await.unwrap();
            test(Server { release: release.into(), target, connection }).await;
        });
    }
}

impl Server {
    pub(crate) async fn sql(&self, script: &str) {
        self.connection.client.batch_execute(script).await.unwrap();
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        self.connection.client.query_one(query, &[]).await.unwrap().get(0)
    }
}

/// Expressions, and a short run.
pub(crate) fn expressions(texts: &[&str]) -> Request {
    request(texts.iter().map(|text| Body::Expression((*text).to_owned())))
}

/// Statements, and a short run.
pub(crate) fn statements(texts: &[&str]) -> Request {
    request(texts.iter().map(|text| Body::Statement((*text).to_owned())))
}

pub(crate) fn request(bodies: impl Iterator<Item = Body>) -> Request {
    Request {
        candidates: bodies.map(Candidate::new).collect(),
        empty: None,
        setup: None,
        teardown: None,
        extensions: Vec::new(),
        rows: None,
        budget: Duration::from_secs(1),
        threshold: 0.01,
        seed: 1,
        schema: None,
        anyway: false,
    }
}
