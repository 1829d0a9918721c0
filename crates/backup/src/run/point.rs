//! The moment to which a server is recovered: a pause between two parts of a load, and the rows that prove it.

use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use measure::human::bytes;
use server::Session;

use super::receiver::drop_slot;
use super::step::{LOOK, Trouble};
use super::{Run, bytes_of_tables, incremental, transactions, verify, wal};
use crate::load::Load;
use crate::outcome::Trial;
use crate::run::sequences::{self, Sequence};
use crate::run::source::{Content, Source};
use crate::verified::Verified;

/// Part of the load that comes after the target time, and its limits in seconds.
const AFTER: f64 = 0.1;
const LEAST: f64 = 1.0;
const MOST: f64 = 10.0;
/// Time in which the server's clock passes the target time.
const PASSES: Duration = Duration::from_secs(30);
/// Growth of the data since they were filled, from which on a note tells of it.
const GROWN: f64 = 1.1;

/// A table that gets a row every few milliseconds: rows with higher numbers are committed later.
pub(super) struct Witness {
    session: Session,
    committed: i64,
}

impl Witness {
    async fn create(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        session.run(include_str!("../sql/witness.sql")).await?;
        Ok(Self { session, committed: 0 })
    }

    /// Commits a row.
    pub(super) async fn write(&mut self) -> Result<(), ConnectError> {
        let row = self.committed + 1;
        let insert = format!("INSERT INTO pgrig_pitr.witness VALUES ({row}, clock_timestamp())");
        self.session.run(&insert).await?;
        self.committed = row;
        Ok(())
    }
}

/// The moment to which the server is recovered. Nothing ran then.
pub(super) struct Point {
    /// By the server's clock, with the offset from UTC.
    pub(super) time: String,
    /// Rows of the witness that were committed before.
    pub(super) before: i64,
    /// Those that were committed after, once the load is over.
    pub(super) after: i64,
    /// Bytes of WAL since the end of the base backup.
    pub(super) wal: u64,
    /// Bytes of WAL from there to the end of the load.
    pub(super) written: u64,
    /// Bytes of all tables with their indexes, before the base backup.
    pub(super) data: u64,
    /// The content of all tables.
    content: Content,
    /// The sequences after the rest of the load. The replay ends at the first commit after the point, so it may have WAL of sequences from
    /// after the point.
    later: Vec<Sequence>,
}

/// A database that is prepared for the load.
pub(super) struct Prepared {
    witness: Witness,
    /// Bytes of all tables with their indexes. Earlier loads have changed them since the fill.
    pub(super) data: u64,
}

/// Prepares a database for the load, and creates the witness.
pub(super) async fn prepare(load: &Load, target: &Target) -> Result<Prepared, Trouble> {
    incremental::vacuum(target).await?;
    transactions::prepare(load, target).await?;
    let data = bytes_of_tables(target).await?;
    Ok(Prepared { witness: Witness::create(target).await?, data })
}

/// Tells if the loads made a database much larger than it was filled.
pub(super) fn note(trials: &[Trial]) -> Option<String> {
    let grown = trials.iter().filter_map(|trial| {
        let (at, recovery) = (trial.at?, trial.recovery.as_ref()?);
        Some((recovery.data as f64 / at.bytes.max(1) as f64, at.bytes, recovery.data))
    });
    let (growth, filled, found) = grown.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (growth > GROWN).then(|| {
        format!(
            "the load made the database grow from {} to {}, so figures of recoveries to a point in time are for the larger database: \
             give a smaller -T \
             or -R, fewer --trials, or a larger --up-to",
            bytes(filled),
            bytes(found)
        )
    })
}

impl Run<'_> {
    /// Runs the load up to the point, and a part of it after the point. `check` fails if the WAL is not stored any more.
    pub(super) async fn load_around_point(
        &self,
        load: &Load,
        target: &Target,
        Prepared { mut witness, data }: Prepared,
        check: &impl Fn() -> Result<(), Trouble>,
    ) -> Result<Point, Trouble> {
        let run = async |time, witness: &mut Witness| {
            transactions::run(&self.next_load(load), time, target, check, Some(witness), self.stop)
                .await
                .map(drop)
        };
        let (_, begin) = wal::position(target).await?;
        run(load.time(), &mut witness).await?;
        witness.write().await?;
        let mut point = pause(target, &witness).await?;
        point.wal = wal::position(target).await?.1.saturating_sub(begin);
        let more = (load.time().as_secs_f64() * AFTER).clamp(LEAST, MOST);
        run(Duration::from_secs_f64(more), &mut witness).await?;
        witness.write().await?;
        point.written = wal::position(target).await?.1.saturating_sub(begin);
        point.later = sequences::later(target).await?;
        point.data = data;
        point.after = witness.committed - point.before;
        witness.session.close().await;
        Ok(point)
    }
}

/// Removes slot and witness. The server would keep its WAL for the slot.
pub(super) async fn clear(target: &Target) -> Result<(), Trouble> {
    drop_slot(target).await?;
    let session = Session::open(target).await?;
    session.run("DROP SCHEMA IF EXISTS pgrig_pitr CASCADE").await?;
    session.close().await;
    Ok(())
}

/// Reads the time and the content of the database, in which nothing runs, and waits until the server's clock has passed that time.
async fn pause(target: &Target, witness: &Witness) -> Result<Point, Trouble> {
    let session = Session::open(target).await?;
    let time: String = session.row(include_str!("../sql/now.sql"), &[]).await?.get("time");
    // Without its locks, which the rest of the load could need.
    let content = Source::read(target).await?.into_content().await;
    let began = Instant::now();
    let query = include_str!("../sql/passed.sql");
    loop {
        let row = session.row(query, &[&time]).await?;
        if !row.get::<_, bool>("is_after_witness") || began.elapsed() > PASSES {
            return Err(Trouble::Way(
                "the server's clock was set back during the load, so pgrig cannot name a point in time"
                    .to_owned(),
            ));
        }
        if row.get("has_passed") {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    session.close().await;
    let (before, later) = (witness.committed, Vec::new());
    Ok(Point { time, before, after: 0, wal: 0, written: 0, data: 0, content, later })
}

/// Compares the recovered database with the point: first the rows of the witness, which tell more of an error.
pub(super) async fn compare(target: &Target, point: &Point) -> Result<Verified, Trouble> {
    let session = Session::open(target).await?;
    let query = "SELECT count(*) FILTER (WHERE id <= $1) AS before, count(*) FILTER (WHERE id > $1) AS after FROM pgrig_pitr.witness";
    let row = session.row(query, &[&point.before]).await;
    session.close().await;
    let row = row.map_err(|error| Trouble::Way(format!("the recovered database cannot be read: {error}")))?;
    let (before, after): (i64, i64) = (row.get("before"), row.get("after"));
    if let Some(why) = wrong_rows((before, after), point.before) {
        return Err(Trouble::Way(format!("recovered to {}: {why}", point.time)));
    }
    verify::verify(target, (&point.content, &point.later), crate::Witness::PointInTime, true).await
}

/// Describes rows of the witness that are missing, or that should not be there; none if all are right.
fn wrong_rows((before, after): (i64, i64), committed: i64) -> Option<String> {
    if before < committed {
        let missing = committed - before;
        let are = if missing == 1 { "is" } else { "are" };
        return Some(format!("{missing} of the {committed} rows committed before that time {are} missing"));
    }
    match after {
        ..1 => None,
        1 => Some("1 row committed after that time is present".to_owned()),
        _ => Some(format!("{after} rows committed after that time are present")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_on_the_wrong_side_of_the_target_are_counted() {
        assert_eq!(wrong_rows((7, 0), 7), None);
        assert_eq!(wrong_rows((5, 0), 7).unwrap(), "2 of the 7 rows committed before that time are missing");
        assert_eq!(wrong_rows((6, 0), 7).unwrap(), "1 of the 7 rows committed before that time is missing");
        assert_eq!(wrong_rows((7, 3), 7).unwrap(), "3 rows committed after that time are present");
    }
}
