//! The original, or a server with data that pgrig has made, is lost during a rehearsal, or a scratch server cannot start: ways keep the trials that they have,
//! and the others are named with the reason.

use std::time::{Duration, Instant};

use measure::human::bytes;
use server::Session;

use super::step::Trouble;
use super::{Observer, Subject};
use crate::error::BackupError;
use crate::outcome::Outcome;
use crate::way::Way;

/// Time in which a server that is restarted answers again.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

/// The cause of a failed trial.
pub(super) enum Cause {
    /// The way: it has no result.
    Way(String),
    /// The original, which answers again: the way keeps its earlier trials, and other ways go on.
    Original(String),
    /// The server of the original, which does not answer any more: no way goes on.
    Server(String),
    /// A scratch server that cannot start, or this machine: no way goes on.
    Run(BackupError),
}

impl Subject {
    /// The trouble of the backup of a trial. The original is the cause if it has ended the session of the snapshot.
    pub(super) async fn of_backup(&self, way: &Way, trouble: Trouble) -> Trouble {
        let Trouble::Way(why) = trouble else { return trouble };
        let Some(lost) = self.source.lost().await else { return Trouble::Way(why) };
        // The remedies are for servers of the user.
        let why = if way.is_dump() && self.at.is_none() {
            lost
        } else {
            format!("{why}; the server has ended a session of pgrig")
        };
        BackupError::Lost(why).into()
    }

    /// The cause of a failed trial.
    ///
    /// # Errors
    /// If the user wants the run to end.
    pub(super) async fn cause(&self, trouble: Trouble) -> Result<Cause, BackupError> {
        // A way may also fail because pgrig's own server with the data is gone.
        let is_gone = self.at.is_some() && !self.answers().await;
        let error = match trouble {
            Trouble::Way(why) if is_gone => BackupError::Lost(why),
            Trouble::Way(why) => return Ok(Cause::Way(why)),
            Trouble::Run(error) => error,
        };
        match error {
            BackupError::Interrupted => Err(BackupError::Interrupted),
            // Other ways may need less space.
            BackupError::NoRoom { .. } | BackupError::Full { .. } => Ok(Cause::Way(error.to_string())),
            BackupError::Lost(_) | BackupError::Connect(_) => Ok(match self.gone().await {
                None => Cause::Original(error.to_string()),
                Some(why) => Cause::Server(why),
            }),
            error => Ok(Cause::Run(error)),
        }
    }

    /// Whether its server accepts connections.
    async fn answers(&self) -> bool {
        let Ok(session) = Session::open(&self.target).await else { return false };
        session.close().await;
        true
    }

    /// Why no way can go on; none if the server answers, perhaps after a restart.
    async fn gone(&self) -> Option<String> {
        let began = Instant::now();
        loop {
            match Session::open(&self.target).await {
                Ok(session) => {
                    session.close().await;
                    return None;
                }
                Err(error) if began.elapsed() > PATIENCE => {
                    let (database, when) = match self.at {
                        None => ("the database".to_owned(), " once the server is up"),
                        Some(at) => (format!("the database of {} that it has filled", bytes(at.asked)), ""),
                    };
                    return Some(format!(
                        "pgrig cannot connect to {database} any more ({error}): run pgrig again{when}"
                    ));
                }
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

/// A way is not tried again. It keeps the trials that it has; without any, it has no result.
pub(super) fn keep(way: &Way, why: &str, outcome: &mut Outcome, observer: &mut impl Observer) {
    let trials = outcome.trials.iter().filter(|trial| trial.way == *way).count();
    observer.cut_short(way, trials, why);
    if trials > 0 {
        outcome.cut_short.push((way.clone(), why.to_owned()));
    } else {
        outcome.failed.push((way.clone(), format!("it was not measured, because {why}")));
    }
}

/// None of these ways is tried again, because a server is gone.
pub(super) fn keep_all<'a>(
    ways: impl Iterator<Item = &'a Way>,
    why: &str,
    outcome: &mut Outcome,
    observer: &mut impl Observer,
) {
    for way in ways {
        if outcome.goes_on(way) {
            keep(way, why, outcome, observer);
        }
    }
    outcome.is_lost = true;
}

/// The trials stay if the measurements after them cannot go on.
///
/// # Errors
/// If the user wants the run to end, or there is no trial.
pub(super) fn keep_trials(
    measured: Result<(), BackupError>,
    outcome: &mut Outcome,
) -> Result<(), BackupError> {
    match measured {
        Err(error) if !matches!(error, BackupError::Interrupted) && !outcome.trials.is_empty() => {
            outcome
                .unmeasured
                .push(format!("pgrig did not complete the measurements under the load: {error}"));
            Ok(())
        }
        measured => measured,
    }
}
