//! A fill that several processes share. They meet on the server by advisory locks alone, which the server releases when a
//! session ends:
//!
//! - *arrival*: one process at a time plans, creates missing objects, and checks existing ones ([`Arrival`]);
//! - *place*: a process holds its number until it ends. All share the lock that a fill by one process takes alone;
//! - *prepared*: a process is through with its arrival. If such a process is there, the tables and rows are checked;
//! - *last steps*: the process that takes this lock carries out the steps after the rows.
//!
//! Each process loads the chunks that are its own, and reports that in the ledger. The last steps begin once all chunks are
//! loaded and all parts have reported. A process reports before it looks, so at least the last one sees that.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use connect::{ConnectError, SqlState, Target};
use server::Session;
use tokio::sync::Mutex;

use super::filler::{Filler, take_in_hand};
use crate::error::{BegunError, FillError};
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::request::Part;
use crate::run::Observer;
use crate::run::filler::Stage;
use crate::run::queue::Queue;

/// The lock of arrivals: one for all fills of a database.
pub(crate) const ARRIVAL: &str = "fill: arrival of a part";
/// Time to wait for the arrival of other parts: one may be waiting for others' locks on the tables, or be counting the rows
/// of a large fill.
const ARRIVAL_DEADLINE: Duration = Duration::from_hours(24);
/// Time after which pgrig prints that it waits.
const SILENCE: Duration = Duration::from_secs(2);
/// Time for which the end of a fill waits for arrivals.
const ARRIVALS_AT_END: Duration = Duration::from_mins(1);
/// Time to wait for a place: the session of a part whose machine is gone ends within 7 s.
const PLACE_DEADLINE: Duration = Duration::from_secs(10);
/// Interval between two looks whether another part has ended.
pub(crate) const LOOKS_AT_END: Duration = Duration::from_millis(500);
/// Interval between two looks at a lock.
const LOOKS: Duration = Duration::from_millis(50);
/// The server ends the session within 7 s if this machine no longer answers.
pub(super) const KEEPALIVES: &str = "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2; \
                                     SET tcp_user_timeout = '7s'";
/// The same for a session at work: it looks whether the client is there.
pub(super) const LOOK_AFTER_CLIENT: &str = "SET client_connection_check_interval = '2s'";
/// Bits of the number of a part.
const BITS: u32 = 14;
/// Bit of a part that is prepared.
const PREPARED: i32 = 1 << (2 * BITS);

/// The right to plan and prepare a fill in parts. It ends when this is dropped.
pub struct Arrival {
    session: Session,
}

/// Opens a session that the server ends within 7 s if this machine no longer answers.
///
/// # Errors
/// If the server cannot be reached.
pub(crate) async fn open_noticed(target: &Target) -> Result<Session, ConnectError> {
    let session = Session::open(target).await?;
    session.run(KEEPALIVES).await?;
    Ok(session)
}

/// Waits until no other part arrives, and takes the right to arrive. Plan after that. Calls `waiting` once if the wait is long.
///
/// # Errors
/// If the server cannot be asked, or another part takes too long.
pub async fn arrive(target: &Target, waiting: &dyn Fn()) -> Result<Arrival, FillError> {
    let session = open_noticed(target).await?;
    let (started, mut is_told) = (Instant::now(), false);
    while let Some(pid) = session.try_lock(ARRIVAL).await? {
        if started.elapsed() > ARRIVAL_DEADLINE {
            return Err(BegunError::Arrival { pid }.into());
        }
        if started.elapsed() > SILENCE && !is_told {
            waiting();
            is_told = true;
        }
        tokio::time::sleep(LOOKS).await;
    }
    Ok(Arrival { session })
}

/// A process's view of the other parts of its fill.
pub(crate) struct Parts {
    part: Part,
    name: String,
    arrival: Mutex<Option<Arrival>>,
}

/// How a part of a fill ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartEnd {
    /// It was the last one, and carried out the last steps.
    Last,
    /// Others have not loaded their chunks.
    Others {
        /// Number of these chunks.
        chunks: u64,
        /// Numbers of the parts that have not ended.
        parts: Vec<u32>,
    },
    /// Another part has carried out the last steps.
    Done,
}

/// The number of a part's lock.
fn key(part: Part) -> i32 {
    i32::try_from(part.of << BITS | part.number).unwrap_or(i32::MAX)
}

impl Parts {
    /// Of the fill of this name: that of its table or, of a schema, of its record.
    pub(crate) fn new(name: String, part: Part, arrival: Option<Arrival>) -> Self {
        Self { part, name, arrival: Mutex::new(arrival) }
    }

    /// The name of the advisory locks of all parts.
    fn lock_name(&self) -> String {
        format!("pgrig fill {}", self.name)
    }

    async fn try_take(&self, session: &Session, number: i32) -> Result<bool, ConnectError> {
        Ok(session.row(include_str!("../sql/part_take.sql"), &[&self.lock_name(), &number]).await?.get(0))
    }

    /// The parts that hold a lock, each with its server process.
    async fn look(&self, session: &Session) -> Result<Vec<(i32, i32)>, ConnectError> {
        let rows = session.rows(include_str!("../sql/part_look.sql"), &[&self.lock_name()]).await?;
        let number =
            |row: &tokio_postgres::Row| i32::try_from(row.get::<_, i64>("number")).unwrap_or_default();
        Ok(rows.iter().map(|row| (number(row), row.get("pid"))).collect())
    }

    /// Takes the part's place for as long as the session lasts. Returns whether another part has prepared the fill.
    ///
    /// # Errors
    /// If another process has this place or fills the table alone, if the parts that are there are of another number, or if
    /// the server cannot be asked.
    pub(crate) async fn take_place(&self, session: &Session) -> Result<bool, FillError> {
        let Part { number, of } = self.part;
        let started = Instant::now();
        // A session that a killed pgrig left behind ends by itself.
        while !self.try_take(session, key(self.part)).await? {
            if started.elapsed() > PLACE_DEADLINE {
                return Err(BegunError::PartTaken { number, of }.into());
            }
            tokio::time::sleep(LOOKS).await;
        }
        let is_of_another =
            |(key, _): &(i32, i32)| (key & !PREPARED) >> BITS != i32::try_from(of).unwrap_or(i32::MAX);
        loop {
            let there = self.look(session).await?;
            let Some((key, _)) = there.iter().find(|each| is_of_another(each)) else { break };
            if started.elapsed() > PLACE_DEADLINE {
                let others = (key & !PREPARED) >> BITS;
                return Err(BegunError::PartsOfAnother { of, others }.into());
            }
            tokio::time::sleep(LOOKS).await;
        }
        take_in_hand(session, &self.name, true).await?;
        Ok(self.look(session).await?.iter().any(|(key, _)| key & PREPARED != 0))
    }

    /// Lets the next part arrive.
    pub(crate) async fn prepared(&self, session: &Session) -> Result<(), ConnectError> {
        self.try_take(session, PREPARED | key(self.part)).await?;
        if let Some(arrival) = self.arrival.lock().await.take() {
            arrival.session.close().await;
        }
        Ok(())
    }

    /// Numbers of the parts that are there, in order.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(crate) async fn there(&self, session: &Session) -> Result<Vec<u32>, ConnectError> {
        let keys = self.look(session).await?.into_iter().map(|(key, _)| key);
        let numbers = keys.filter_map(|key| u32::try_from(key & ((1 << BITS) - 1)).ok());
        Ok(numbers.collect::<BTreeSet<u32>>().into_iter().collect())
    }

    /// Reports that this part has loaded its chunks, and takes the right to carry out the last steps if it is the last. If
    /// another part carries them out, waits for its end, in case that it does not complete them.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(super) async fn end(
        &self,
        session: &Session,
        plan: &Plan,
        ledger: &Ledger,
        observer: &dyn Observer,
    ) -> Result<PartEnd, ConnectError> {
        match ledger.report(session, self.part).await {
            // The last part has ended the fill, and dropped the ledger.
            Err(error) if error.sqlstate() == Some(&SqlState::UNDEFINED_TABLE) => return Ok(PartEnd::Done),
            reported => reported?,
        }
        let Some(now) = ledger.now(session, plan).await? else { return Ok(PartEnd::Done) };
        let parts = now.without_report(self.part);
        let chunks = Queue::of(plan, &now, None).left();
        if !parts.is_empty() || chunks > 0 {
            return Ok(PartEnd::Others { chunks, parts });
        }
        let started = Instant::now();
        while let Some(pid) = session.try_lock(&format!("{}: last steps", self.name)).await? {
            if started.elapsed() > SILENCE {
                observer
                    .waiting(&format!("until the part that runs the last steps (server process {pid}) ends"));
            }
            tokio::time::sleep(LOOKS_AT_END).await;
        }
        Ok(if ledger.now(session, plan).await?.is_some() { PartEnd::Last } else { PartEnd::Done })
    }

    /// Waits for arrivals, so that none finds the ledger when it plans, and no ledger afterwards.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(super) async fn before_the_end(&self, session: &Session) -> Result<(), ConnectError> {
        let started = Instant::now();
        while session.try_lock(ARRIVAL).await?.is_some() && started.elapsed() < ARRIVALS_AT_END {
            tokio::time::sleep(LOOKS).await;
        }
        Ok(())
    }
}

impl Filler<'_> {
    /// Whether this process carries out the steps after the rows.
    pub(super) fn has_last_steps(&self) -> bool {
        !matches!(self.stage, Stage::Rows { .. }) && self.parts.is_none()
            || self.part_end.get() == Some(&PartEnd::Last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_both_numbers() {
        let part = Part { number: 10_000, of: 10_000 };
        assert_eq!(key(part) & ((1 << BITS) - 1), 10_000);
        assert_eq!(key(part) >> BITS, 10_000);
        assert_eq!(key(part) & PREPARED, 0);
    }
}
