//! `wal_level = minimal` while tables are filled.
//!
//! There, pgrig writes the tables as pages, which takes less time than COPY. The migration is measured under the server's
//! own level and the original's settings: under minimal, new indexes and rewritten tables write no WAL.

use fill::MethodChoice;
use server::Restarter;

use super::Observer;
use super::databases::Databases;
use super::settings::Settings;
use crate::error::DdlError;

/// Settings of the server while it is filled.
const MINIMAL: [(&str, &str); 2] = [("wal_level", "minimal"), ("max_wal_senders", "0")];

/// See the module.
pub(crate) struct Minimal<'a> {
    /// None if the server keeps its level.
    restarter: Option<&'a dyn Restarter>,
    /// Those of the original with which the server runs while pgrig measures.
    original: Settings,
    is_on: bool,
}

impl<'a> Minimal<'a> {
    /// Nothing is restarted yet.
    pub(crate) fn new(restarter: Option<&'a dyn Restarter>, original: Settings) -> Self {
        Self { restarter, original, is_on: false }
    }

    /// Restarts the server, unless it cannot be restarted or runs under minimal already. Settings of the user's may forbid
    /// minimal (`archive_mode`, `summarize_wal`): then the server keeps its level.
    pub(crate) async fn begin(
        &mut self,
        databases: &mut Databases,
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let Some(restarter) = self.restarter.filter(|_| !self.is_on) else { return Ok(()) };
        observer.step("restarting the server with wal_level = minimal");
        let settings = MINIMAL.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.is_on = databases.restart(restarter, &settings).await?.is_ok();
        if !self.is_on {
            self.restarter = None;
            if !self.original.is_empty() {
                self.restore(restarter, databases).await?;
            }
        }
        Ok(())
    }

    /// Restarts the server with its own level and the original's settings.
    pub(crate) async fn end(
        &mut self,
        databases: &mut Databases,
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let Some(restarter) = self.restarter.filter(|_| self.is_on) else { return Ok(()) };
        observer.step("restarting the server with the settings of the measurement");
        self.is_on = false;
        self.restore(restarter, databases).await?;
        if databases.wal_level().await? == "minimal" { Err(DdlError::WalLevel) } else { Ok(()) }
    }

    async fn restore(&self, restarter: &dyn Restarter, databases: &mut Databases) -> Result<(), DdlError> {
        databases.restart(restarter, &self.original).await?.map_err(|why| DdlError::Restart { why })
    }

    /// The method of a fill now.
    pub(crate) fn method(&self) -> MethodChoice {
        // Pages if they are possible.
        if self.is_on { MethodChoice::Auto } else { MethodChoice::Copy }
    }
}
