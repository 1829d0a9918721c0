//! What the tests of connections share.

// Each test program uses a part of it.
#![allow(dead_code)]

pub(crate) mod certificates;
pub(crate) mod impostor;
pub(crate) mod server;

use std::future::Future;

use connect::{ConnectError, ConnectOptions, Connection, Target, resolve};

/// Runs a test's async part.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

/// Resolves a connection string in an environment of these variables only.
pub(crate) fn target(string: &str, env: &[(&str, &str)]) -> Result<Target, ConnectError> {
    let options = ConnectOptions { dbname: Some(string.to_owned()), ..ConnectOptions::default() };
    resolve(&options, &|name| {
        // A home without files: the developer's own must not matter.
        let env = env.iter().chain(&[("HOME", "/nonexistent")]);
        env.into_iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Resolves and connects.
pub(crate) async fn connect(string: &str, env: &[(&str, &str)]) -> Result<Connection, ConnectError> {
    target(string, env)?.connect().await
}

/// The error's text; a connection is a failure.
pub(crate) async fn refused(string: &str, env: &[(&str, &str)]) -> String {
    match connect(string, env).await {
        Ok(connection) => panic!("{string} connected: {}", connection.transport),
        Err(error) => error.to_string(),
    }
}

/// Fails unless `text` contains every part.
#[track_caller]
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "expected {part:?} in: {text}");
    }
}
