//! Counts the bytes between the server and the programs that back up: one more backup in each way through a relay, with the WAL of one more
//! load for a recovery to a point in time. It is not timed, and not restored.

use std::path::Path;

use super::relay::Relay;
use super::step::{STUCK, Trouble};
use super::{Observer, Run, SMALL, Subject, base, dump, tablespaces};
use crate::error::BackupError;
use crate::network::Network;
use crate::outcome::{Outcome, Trial};
use crate::way::{Format, Way};

impl Run<'_> {
    /// Counts for each way that worked and changes the data or not, on the largest data, if the user asked for it. A failure is a note.
    ///
    /// # Errors
    /// If the user wants the run to end.
    pub(super) async fn count_network(
        &self,
        subjects: &[Subject],
        changes: bool,
        outcome: &mut Outcome,
        observer: &mut impl Observer,
    ) -> Result<(), BackupError> {
        let is_asked = self.plan.network && !outcome.is_lost;
        let Some(largest) = subjects.last().filter(|_| is_asked) else { return Ok(()) };
        for way in self.plan.ways.iter().filter(|way| self.changes_data(way) == changes) {
            let is_of_way = |trial: &Trial| trial.way == *way && trial.at == largest.at;
            let Some(last) = outcome.trials.iter().rposition(is_of_way) else { continue };
            observer.stage(&format!("counting network bytes: {way}"));
            let counted = self.count(way, largest).await;
            if self.is_stopped() {
                return Err(BackupError::Interrupted);
            }
            match counted {
                Ok(network) => {
                    let trial = &mut outcome.trials[last];
                    trial.network = Some(network);
                    observer.counted(trial);
                }
                Err(trouble) => {
                    let why = trouble.reason();
                    outcome.notes.push(format!("the network bytes of {way} were not counted: {why}"));
                }
            }
        }
        Ok(())
    }

    /// Makes one more backup, removes it, and returns its bytes.
    async fn count(&self, way: &Way, subject: &Subject) -> Result<Network, Trouble> {
        let path = self.backup_path();
        let counted = self.back_up_through_relay(way, subject, &path).await;
        tablespaces::remove_with(&path)?;
        counted
    }

    async fn back_up_through_relay(
        &self,
        way: &Way,
        subject: &Subject,
        path: &Path,
    ) -> Result<Network, Trouble> {
        let (programs, work) = (&self.plan.programs, &self.scratch.work);
        let Subject { target, facts, source, .. } = subject;
        let watch = self.watch(format!("the backup by {way} through a relay"), vec![work], Some(STUCK));
        watch.check_room(work, facts.bytes_of(way) + SMALL)?;
        // pg_dump needs the server that holds the snapshot.
        let relay = Relay::start(source.address(), work).await?;
        let mut of_tool = None;
        match way.format {
            Format::Plain | Format::Custom | Format::Directory => {
                let mut command = dump::back_up(way, programs, target, &source.snapshot, path);
                command.envs(relay.variables());
                watch.run(vec![command]).await?;
            }
            Format::Base | Format::BaseTar => {
                let mut command = base::back_up(way, programs, subject, path);
                command.envs(relay.variables());
                watch.run(vec![command]).await?;
            }
            Format::Incremental => self.both_parts_through(&relay, way, subject, path).await?,
            Format::Pitr => self.back_up_with_wal_through(&relay, way, subject, path).await?,
            Format::Tool => of_tool = Some(self.tool_through(&relay, way, subject, path).await?),
        }
        match (relay.counted().await, of_tool) {
            (Some(network), Some(backup)) => Ok(network.of_tool(backup)),
            (Some(Network { received: 0, .. }), None) => {
                Err(Trouble::Way(format!("{} did not connect through the relay", way.program())))
            }
            (Some(network), None) => Ok(network),
            (None, _) => {
                Err(Trouble::Way(format!("{} has ended, but its connections have not", way.program())))
            }
        }
    }
}
