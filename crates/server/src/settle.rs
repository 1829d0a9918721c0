//! Brings a server to rest before the next trial.

use connect::{ConnectError, Connection};

use crate::session::run_sql;

/// Makes the server write its dirty buffers, and the kernel too if the server is on this machine,
/// so that the writes of one trial do not slow down the next.
///
/// If the role may not CHECKPOINT, there is none. Returns whether there was one.
///
/// # Errors
/// If the connection is lost.
pub async fn settle(connection: &Connection, is_local: bool) -> Result<bool, ConnectError> {
    let has_checkpoint = match run_sql(connection, "CHECKPOINT").await {
        Ok(()) => true,
        Err(ConnectError::Query { .. }) => false,
        Err(error) => return Err(error),
    };
    if is_local {
        // Takes as long as the disk needs; the runtime continues meanwhile.
        let _ = tokio::task::spawn_blocking(nix::unistd::sync).await;
    }
    Ok(has_checkpoint)
}
