//! Durability after fsync = off.

use std::path::Path;

use super::change::show;
use crate::machine;
use crate::session::Session;
use connect::ConnectError;

/// The warning where pgrig cannot be sure that all data are forced to disk.
pub const SYNC_BY_HAND: &str = "fsync was off during the run, and the server may be on another machine: run sync \
                                on its host now. Until then, a crash of that host may corrupt EVERY database of \
                                the cluster";

/// The same, if fsync is on now and it is not known whether it was off.
pub const SYNC_BY_HAND_PERHAPS: &str = "fsync may have been off during the run, and the server may be on another \
                                        machine: run sync on its host now. Until then, a crash of that host may \
                                        corrupt EVERY database of the cluster";

/// Forces everything to disk that was written while fsync was off, once fsync is on again. Returns
/// whether the server is known to be on this machine; if not, somebody has to run sync on its host.
///
/// Checkpoints without fsync forget the files that they should have synced, of every database of the cluster
/// (`ProcessSyncRequests`, src/backend/storage/sync/sync.c), and later ones do not make up for it; nor was WAL synced. So
/// the documentation of fsync demands to "force all modified buffers in the kernel to durable storage", by sync for
/// example. CHECKPOINT comes first: a checkpoint that is under way may still be one without fsync, and the
/// checkpointer loads its configuration before it begins the next.
pub(super) async fn force_out(session: &Session) -> Result<bool, ConnectError> {
    match session.run("CHECKPOINT").await {
        // A role that may not goes without.
        Ok(()) | Err(ConnectError::Query { .. }) => {}
        Err(error) => return Err(error),
    }
    let is_local = is_local(session).await?;
    if is_local || machine::is_loopback(&session.connection.transport) {
        // Takes as long as the disk needs; the runtime continues meanwhile.
        let _ = tokio::task::spawn_blocking(nix::unistd::sync).await;
    }
    Ok(is_local)
}

async fn is_local(session: &Session) -> Result<bool, ConnectError> {
    let connection = &session.connection;
    if machine::is_local(connection) == Some(true) {
        return Ok(true);
    }
    // At the other end of localhost there may be a tunnel.
    match show(session, "data_directory").await {
        Ok(path) => {
            Ok(matches!(machine::is_data_directory(connection, Path::new(&path)).await, Ok(Ok(true))))
        }
        Err(ConnectError::Query { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
