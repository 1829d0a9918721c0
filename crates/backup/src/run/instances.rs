//! Starts and deletes the instances of scratch servers.

use std::time::Duration;

use failure::Classified;
use pgserver::{Instance, Running};

use crate::error::BackupError;
use crate::run::step::said_in;

/// Attempts to delete an instance that is just being started.
const ATTEMPTS: u32 = 50;
const AGAIN: Duration = Duration::from_millis(100);

/// Starts the server of an instance.
pub(super) fn started(instance: &Instance) -> Result<Running, BackupError> {
    instance.attach_or_start(&|_| ()).map_err(without_log)
}

/// The error without the path of the log, which is deleted with its server: with the end of the log if nothing else is known.
pub(super) fn without_log(error: pgserver::Error) -> BackupError {
    let class = error.class();
    match error {
        pgserver::Error::Start { cause, remedy, log, .. } => {
            let is_in_log = remedy == pgserver::READ_LOG;
            let remedy = if is_in_log { format!("its log ends with: {}", said_in(&log)) } else { remedy };
            BackupError::Start { cause, remedy, class }
        }
        pgserver::Error::Died { how, cause, .. } => BackupError::Ended { how, cause },
        error => error.into(),
    }
}

/// Deletes an instance, if there is one.
pub(super) fn destroy(instance: &Instance) -> Result<(), BackupError> {
    for attempt in 1.. {
        match instance.destroy(&|_| ()) {
            Ok(()) | Err(pgserver::Error::NotCreated { .. }) => break,
            // A start that was under way when the run was interrupted.
            Err(pgserver::Error::InUse { pid, .. }) if pid == std::process::id() && attempt < ATTEMPTS => {
                std::thread::sleep(AGAIN);
            }
            Err(pgserver::Error::InUse { pid, .. }) => return Err(BackupError::Busy(Some(pid))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
