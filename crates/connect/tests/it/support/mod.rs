//! Code that the tests of connections share.

pub(crate) mod impostor;

use connect::{ConnectError, Connection};
use testkit::target;

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
