//! Whether a rehearsal is possible, without a plan.

use connect::{ConnectError, Target};
use server::Session;

use super::source::Facts;
use crate::error::BackupError;
use crate::programs::Programs;

/// The extent to which a rehearsal is possible.
#[derive(Debug)]
pub struct Readiness {
    /// The client programs of PATH or of the distribution; the error names the remedy.
    pub programs: Result<Programs, BackupError>,
    /// Why no base backup can be made, with the remedy.
    pub no_base_backup: Option<String>,
}

impl Readiness {
    /// That of a role and a server. Reads only catalogs.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn of(target: &Target, version_num: u32) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let facts = Facts::of(&session, version_num).await?;
        session.close().await;
        Ok(Self { programs: Programs::find(None, facts.major), no_base_backup: facts.no_base_backup() })
    }
}
