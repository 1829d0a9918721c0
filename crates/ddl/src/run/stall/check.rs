//! Runs the user's readers and writers once on tables without rows, before any is filled.

use connect::Target;
use server::Session;

use super::carry::Fault;
use super::probe::Asked;
use crate::error::DdlError;
use crate::outcome::ProbeKind;
use crate::request::Probes;
use crate::run::failure;
use crate::run::watch::Watcher;

/// Refuses those that cannot succeed whatever rows there are, and those that leave a transaction open. `empty` has tables
/// without rows, which are changed, and the settings of the original.
pub(crate) async fn check(empty: &Target, probes: &Probes, seed: u64) -> Result<(), DdlError> {
    let own =
        [("--probe-read", ProbeKind::Read, &probes.read), ("--probe-write", ProbeKind::Write, &probes.write)];
    for (option, kind, probing) in own {
        let Some(probing) = probing else { continue };
        let session = Session::open(empty).await?;
        let watcher = Watcher::new(Session::open(empty).await?, session.pid().await?);
        let mut doing = Asked::own(kind, probing, seed).doing;
        let done = doing.once(&session, 0).await;
        let is_open = watcher.is_in_transaction().await?;
        session.close().await;
        watcher.close().await;
        match done {
            // Rows may be what is missing: `\gset` of a query that finds none, or a key that another table does not have.
            Err(Fault::Server(error)) if failure::is_of_statement(&error) => {
                if failure::is_of_place(&error) {
                    return Err(DdlError::Probing { option, why: failure::of(&error).message });
                }
            }
            Err(Fault::Server(error)) => return Err(error.into()),
            Ok(()) if is_open => return Err(DdlError::ProbeOpen { option }),
            Err(Fault::Script(_)) | Ok(()) => {}
        }
    }
    Ok(())
}
