//! The server's clock, read by round trips: the reading was taken in the middle of one, with an error of half of it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use connect::{Connection, Target};
use tokio::task::JoinHandle;
use tokio_postgres::Statement;

use crate::error::TpsError;
use crate::outcome::ClockReading;
use crate::run::lock;

/// Name of the session in pg_stat_activity.
const APPLICATION_NAME: &str = "pgrig clock";
/// Round trips of a reading: the shortest one counts.
const ROUND_TRIPS: usize = 9;
/// Time between two readings.
const INTERVAL: Duration = Duration::from_mins(1);
/// Greatest time of a reading.
const PATIENCE: Duration = Duration::from_secs(10);
/// Least time until the run begins: the threads are started meanwhile.
const LEAD: Duration = Duration::from_millis(50);

/// A session that reads the clock each minute.
pub(super) struct ServerClock {
    readings: Arc<Mutex<Vec<ClockReading>>>,
    task: JoinHandle<()>,
}

impl ServerClock {
    /// Connects, and reads the clock.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(super) async fn start(target: &Target) -> Result<Self, TpsError> {
        let connection = target.clone().with_application_name(APPLICATION_NAME).connect().await?;
        let statement = match connection.client.prepare(include_str!("../sql/clock.sql")).await {
            Ok(statement) => statement,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        let first = match read(&connection, &statement).await {
            Ok(reading) => reading,
            Err(error) => return Err(connection.explain(error).await.into()),
        };
        let readings = Arc::new(Mutex::new(vec![first]));
        let kept = Arc::clone(&readings);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                // A reading that is not possible is left out: the run's own sessions report what is wrong.
                match tokio::time::timeout(PATIENCE, read(&connection, &statement)).await {
                    Ok(Ok(reading)) => lock(&kept).push(reading),
                    Ok(Err(_)) | Err(_) => return,
                }
            }
        });
        Ok(Self { readings, task })
    }

    /// The next whole second of the server's clock that leaves time to start.
    pub(super) fn next_second(&self) -> Instant {
        let reading = lock(&self.readings)[0];
        let earliest = Instant::now() + LEAD;
        let time = reading.time + earliest.saturating_duration_since(reading.at).as_secs_f64();
        earliest + Duration::from_secs_f64(time.ceil() - time)
    }

    /// All readings.
    pub(super) fn finish(self) -> Vec<ClockReading> {
        self.task.abort();
        std::mem::take(&mut *lock(&self.readings))
    }
}

/// The reading of the shortest of some round trips.
async fn read(connection: &Connection, statement: &Statement) -> Result<ClockReading, tokio_postgres::Error> {
    let mut best: Option<ClockReading> = None;
    for _ in 0..ROUND_TRIPS {
        let sent = Instant::now();
        let row = connection.client.query_one(statement, &[]).await?;
        let half = sent.elapsed() / 2;
        if best.is_none_or(|best| half < best.error) {
            let (time, started) = (row.get("time"), row.get("started"));
            best = Some(ClockReading {
                at: sent + half,
                time,
                error: half,
                started,
                database: row.get("database"),
            });
        }
    }
    Ok(best.expect("there are round trips"))
}
