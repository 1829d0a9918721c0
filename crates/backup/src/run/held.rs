//! The row versions that VACUUM cannot remove while the snapshot of a dump is open, measured under the load.

use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use server::Session;
use server::quote::identifier;

use super::step::{LOOK, Trouble};
use super::verify::extension;
use super::{Observer, Run, Subject, bytes_of_tables, incremental, transactions, wal};
use crate::error::BackupError;
use crate::held::Held;
use crate::load::Load;
use crate::outcome::Outcome;

/// The extension that counts dead row versions.
const EXTENSION: &str = "pgstattuple";
/// Why nothing is measured without it, with the remedy.
const LACKS_EXTENSION: &str = "pgrig did not measure the row versions that the snapshot of a dump keeps, because the server does not have the extension \
                               pgstattuple: give --pg-bin DIR, the programs of a PostgreSQL that has it";
/// Nothing more is measured.
const FAILED: &str = "pgrig could not measure the row versions that the snapshot of a dump keeps";
/// Longest wait until the server's statistics show a VACUUM: those of versions 13 and 14 come up to half a second late.
const DEADLINE: Duration = Duration::from_secs(5);

/// Row versions that later transactions have replaced or deleted, and that are still there.
struct Dead {
    bytes: u64,
    versions: u64,
}

/// The state after the load and a VACUUM, while the snapshot is open.
struct Kept {
    /// Seconds of the load.
    seconds: f64,
    /// Transactions that succeeded.
    transactions: u64,
    dead: Dead,
    /// Dead versions by the server's statistics.
    reported: Option<u64>,
    /// Bytes of all tables with their indexes.
    bytes: u64,
}

impl Run<'_> {
    /// Measures them on a database, if there is a load and one of the ways is a dump.
    pub(super) async fn held(
        &self,
        subject: &Subject,
        outcome: &mut Outcome,
        observer: &mut impl Observer,
    ) -> Result<(), BackupError> {
        let Some(load) = self.plan.load_beside_dumps() else { return Ok(()) };
        let Some(schema) = schema_of_extension(&subject.target).await? else {
            outcome.notes.push(LACKS_EXTENSION.to_owned());
            return Ok(());
        };
        for number in 1..=self.plan.trials {
            observer.stage(&format!(
                "measuring the row versions that a dump's snapshot keeps, {number} of {}",
                self.plan.trials
            ));
            let measured = self.measure_held(load, subject, &schema).await;
            match self.of_load(load, subject, measured).await? {
                Ok(held) => {
                    observer.held(&held);
                    outcome.held.push(held);
                }
                Err(why) => {
                    outcome.notes.push(format!("{FAILED}: {why}"));
                    break;
                }
            }
        }
        outcome.notes.extend(note(load, &outcome.held));
        Ok(())
    }

    /// Puts the load on a database beside an open snapshot. The versions that VACUUM removes once it has ended are due to it.
    async fn measure_held(&self, load: &Load, subject: &Subject, schema: &str) -> Result<Held, Trouble> {
        let target = &subject.target;
        subject.source.release().await?;
        self.check_room_for_load(load, subject)?;
        transactions::prepare(load, target).await?;
        incremental::vacuum(target).await?;
        let data = bytes_of_tables(target).await?;
        let snapshot = open_snapshot(target).await?;
        let kept = self.beside_snapshot(load, subject, schema).await;
        let ended = end_snapshot(snapshot).await;
        let kept = kept?;
        ended?;
        incremental::vacuum(target).await?;
        let left = Dead::read(target, schema).await?;
        Ok(Held {
            data,
            seconds: kept.seconds,
            transactions: kept.transactions,
            dead: kept.dead.bytes.saturating_sub(left.bytes),
            rows: kept.dead.versions.saturating_sub(left.versions),
            reported: kept.reported,
            growth: kept.bytes.saturating_sub(data),
        })
    }

    /// Runs the load, then VACUUM, and reads the row versions that are left.
    async fn beside_snapshot(&self, load: &Load, subject: &Subject, schema: &str) -> Result<Kept, Trouble> {
        let target = &subject.target;
        let watch = self.watch("the load".to_owned(), subject.with_data(&self.scratch.work), None);
        let has_room = || watch.full().map_or(Ok(()), |full| Err(Trouble::from(full)));
        let outcome =
            transactions::run(&self.next_load(load), load.time(), target, has_room, None, self.stop).await?;
        let since = now(target).await?;
        incremental::vacuum(target).await?;
        Ok(Kept {
            seconds: outcome.elapsed.as_secs_f64(),
            transactions: outcome.all.counts.succeeded,
            dead: Dead::read(target, schema).await?,
            reported: self.reported(target, &since).await?,
            bytes: bytes_of_tables(target).await?,
        })
    }

    /// Dead versions by the server's statistics, once these show a VACUUM of each table after this time. None if they do not show it.
    async fn reported(&self, target: &Target, since: &str) -> Result<Option<u64>, Trouble> {
        let session = Session::open(target).await?;
        let began = Instant::now();
        let versions = loop {
            if self.is_stopped() {
                return Err(BackupError::Interrupted.into());
            }
            let row = session.row(include_str!("../sql/dead_reported.sql"), &[&since]).await?;
            if row.get("shows_vacuum") {
                break Some(whole(row.get("versions")));
            }
            if began.elapsed() > DEADLINE {
                break None;
            }
            tokio::time::sleep(LOOK).await;
        };
        session.close().await;
        Ok(versions)
    }
}

impl Dead {
    /// Reads all pages of all tables and of their TOAST tables.
    async fn read(target: &Target, schema: &str) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let query = include_str!("../sql/dead.sql").replace("SCHEMA", &identifier(schema));
        let row = session.row(&query, &[]).await?;
        session.close().await;
        Ok(Self { bytes: whole(row.get("bytes")), versions: whole(row.get("versions")) })
    }
}

/// Tells if the load did not reach its rate.
fn note(load: &Load, all: &[Held]) -> Option<String> {
    let slowest = all.iter().map(Held::tps).min_by(f64::total_cmp)?;
    wal::lag(
        load,
        slowest,
        "beside the snapshot of a dump, which therefore keeps the row versions of fewer transactions",
    )
}

/// The schema of the extension in this database, which is created if it is not there. None if the server does not have it, or refuses it.
async fn schema_of_extension(target: &Target) -> Result<Option<String>, ConnectError> {
    let session = Session::open(target).await?;
    let found = extension(&session, EXTENSION).await;
    session.close().await;
    match found {
        Err(ConnectError::Query { .. }) => Ok(None),
        found => found,
    }
}

/// Takes a snapshot in a transaction that stays open without a statement, as the one in which pg_dump holds its snapshot (pg_dump.c:
/// setup_connection). The session has no timeouts.
async fn open_snapshot(target: &Target) -> Result<Session, ConnectError> {
    let session = Session::open(target).await?;
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    // The first query takes it.
    session.run("SELECT pg_current_snapshot()").await?;
    Ok(session)
}

/// Ends the transaction, and with it the snapshot. Closes the session also if that fails.
async fn end_snapshot(session: Session) -> Result<(), ConnectError> {
    let ended = session.run("COMMIT").await;
    session.close().await;
    ended
}

/// The time by the server's clock.
async fn now(target: &Target) -> Result<String, ConnectError> {
    let session = Session::open(target).await?;
    let time = session.row(include_str!("../sql/now.sql"), &[]).await?.get("time");
    session.close().await;
    Ok(time)
}

/// A sum of the server's, which is not negative.
fn whole(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use script::Source;
    use tps::Length;

    use super::*;

    #[test]
    fn a_load_that_lags_beside_a_snapshot_is_told_of() {
        let request = tps::Request {
            rate: Some(100.0),
            ..tps::Request::of(Source::file("a.sql", "SELECT 1", 1), Length::Time(Duration::from_secs(10)))
        };
        let load = Load { request };
        let held = |transactions: u64| Held {
            data: 1,
            seconds: 10.0,
            transactions,
            dead: 1,
            rows: 1,
            reported: None,
            growth: 0,
        };
        assert_eq!(note(&load, &[held(1000), held(960)]), None);
        let said = note(&load, &[held(1000), held(500)]).unwrap();
        assert!(said.contains("only 50 of 100 transactions a second beside the snapshot"), "{said}");
        assert_eq!(note(&load, &[]), None);
    }
}
