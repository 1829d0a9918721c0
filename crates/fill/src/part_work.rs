//! The work of a part by the server's clock: the documents of all parts can be merged by it.

use std::time::Instant;

use measure::{Event, Series};
use serde::Serialize;
use server::{ClockReading, Session};

use crate::run::PartEnd;
use connect::ConnectError;

/// Identifies a fill: its record exists from its beginning to its end, whichever processes work on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FillId {
    /// The server's system identifier; none if the role may not ask.
    pub server: Option<String>,
    /// OID of the database.
    pub database: u32,
    /// OID of the table that records the fill.
    pub record: u32,
}

impl FillId {
    /// Of the fill that this table, quoted, records; none if the table has been dropped.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(crate) async fn of(session: &Session, record: &str) -> Result<Option<Self>, ConnectError> {
        let identifier = "SELECT system_identifier::text FROM pg_control_system()";
        let server = match session.row(identifier, &[]).await {
            Ok(row) => Some(row.get(0)),
            Err(ConnectError::Query { .. }) => None,
            Err(error) => return Err(error),
        };
        let row = session.row(include_str!("sql/fill_id.sql"), &[&record]).await?;
        let record: Option<u32> = row.get("record");
        Ok(record.map(|record| Self { server, database: row.get("database"), record }))
    }
}

/// The time in which a part worked on the rows of a table.
#[derive(Clone, Debug)]
pub struct PartWork {
    /// Beginning of the step `generate`, from which its series counts.
    pub(crate) began: Instant,
    /// Readings of the server's clock.
    pub(crate) readings: Vec<ClockReading>,
}

impl PartWork {
    /// Reads the server's clock.
    ///
    /// # Errors
    /// If the server is gone.
    pub(crate) async fn read_clock(session: &Session) -> Result<ClockReading, ConnectError> {
        let connection = &session.connection;
        let reading = async {
            let statement = ClockReading::prepare(connection).await?;
            ClockReading::take(connection, &statement).await
        };
        match reading.await {
            Ok(reading) => Ok(reading),
            Err(error) => Err(connection.explain(error).await),
        }
    }

    /// The readings as events.
    pub(crate) fn events(&self) -> impl Iterator<Item = Event> {
        self.readings.iter().map(|reading| reading.event(self.began))
    }

    /// Adds later work and its rows.
    pub(crate) fn append(&mut self, rate: Option<&mut Series>, later: Self, more: Option<Series>) {
        self.readings.extend(later.readings);
        let shift = later.began.saturating_duration_since(self.began).as_secs_f64();
        let (Some(rate), Some(more)) = (rate, more) else { return };
        // Nothing was sent in between.
        if rate.points.last().is_none_or(|last| last.0 < shift) {
            rate.points.push((shift, 0.0));
        }
        rate.points.extend(more.points.into_iter().map(|(at, rows)| (at + shift, rows)));
    }
}

/// The event that says how a part ended, and to which fill it belongs. `wal` are positions in the server's WAL: from, until.
pub(crate) fn event(at: f64, end: Option<&PartEnd>, fill: Option<&FillId>, wal: &[[u64; 2]]) -> Event {
    let text = match end {
        Some(PartEnd::Last) => "this part ran the last steps",
        Some(PartEnd::Done) => "another part has run the last steps",
        Some(PartEnd::Others { .. }) | None => "this part has loaded its chunks",
    };
    let end = end.map(|end| match end {
        PartEnd::Last => "last",
        PartEnd::Done => "done",
        PartEnd::Others { .. } => "others",
    });
    let what = serde_json::json!({ "event": "part", "end": end, "fill": fill, "wal": wal });
    Event { at, text: text.to_owned(), what }
}
