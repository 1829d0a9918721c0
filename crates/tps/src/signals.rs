//! Signs that parts of a run give each other on the server: advisory locks, which every session can see in pg_locks.
//!
//! The key of a lock is a hash of the run's name, and a number: see [`Sign`]. Nothing is created in the database, no right
//! is needed, and the server releases the locks of a session that ends.

use std::time::Duration;

use connect::{Connection, Target};
use tokio_postgres::{Error, Statement};

use crate::error::TpsError;

/// Name of the session in pg_stat_activity.
const APPLICATION_NAME: &str = "pgrig part";
/// Settings of the session. The server ends it within 7 s if the part's machine no longer answers; if it has nothing to
/// send, by keepalives, otherwise by the time limit of unacknowledged data.
const SET_UP: &str = "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2; \
                      SET tcp_user_timeout = '7s'; SET statement_timeout = '5s'";
/// Time after which pgrig gives up, if the server does not answer.
const PATIENCE: Duration = Duration::from_secs(6);

/// The meaning of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The part of this number is there.
    Present(usize),
    /// It has connected its clients.
    Ready(usize),
    /// It has ended its run in order.
    Done(usize),
    /// The digest of a part's options.
    Options(i64),
    /// All parts begin at this second of the server's clock, counted since 1970 and modulo [`START`].
    Start(i64),
}

const PRESENT: i64 = 1 << 24;
const READY: i64 = 1 << 25;
const DONE: i64 = 1 << 26;
const OPTIONS: i64 = 1 << 28;
pub(crate) const START: i64 = 1 << 30;
/// Bits of a part's number and of a digest.
const PAYLOAD: i64 = PRESENT - 1;

impl Sign {
    pub(crate) fn number(self) -> i32 {
        let part = |number: usize| i64::try_from(number).unwrap_or_default() & PAYLOAD;
        let number = match self {
            Self::Present(number) => PRESENT | part(number),
            Self::Ready(number) => READY | part(number),
            Self::Done(number) => DONE | part(number),
            Self::Options(digest) => OPTIONS | digest & PAYLOAD,
            Self::Start(second) => START | second.rem_euclid(START),
        };
        i32::try_from(number).unwrap_or(i32::MAX)
    }

    fn of(number: i64) -> Option<Self> {
        let part = usize::try_from(number & PAYLOAD).unwrap_or_default();
        match number {
            number if number & START != 0 => Some(Self::Start(number & (START - 1))),
            number if number & OPTIONS != 0 => Some(Self::Options(number & PAYLOAD)),
            number if number & DONE != 0 => Some(Self::Done(part)),
            number if number & READY != 0 => Some(Self::Ready(part)),
            number if number & PRESENT != 0 => Some(Self::Present(part)),
            _ => None,
        }
    }
}

/// The signs of all parts at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signs(Vec<Sign>);

impl Signs {
    pub(crate) fn has(&self, sign: Sign) -> bool {
        self.0.contains(&sign)
    }

    pub(crate) fn of_start(&self) -> Option<i64> {
        self.0.iter().find_map(|sign| match sign {
            Sign::Start(second) => Some(*second),
            _ => None,
        })
    }

    pub(crate) fn digests(&self) -> usize {
        self.0.iter().filter(|sign| matches!(sign, Sign::Options(_))).count()
    }

    /// The parts that do not give the sign.
    pub(crate) fn without(&self, of: usize, sign: impl Fn(usize) -> Sign) -> Vec<usize> {
        (1..=of).filter(|number| !self.has(sign(*number))).collect()
    }
}

/// A session that gives signs under a name, and sees those of others under it.
pub(crate) struct Signals {
    pub(crate) connection: Connection,
    name: String,
    look: Statement,
}

impl Signals {
    /// Connects.
    ///
    /// # Errors
    /// If the server cannot be asked, or a pooler moves sessions.
    pub(crate) async fn connect(target: &Target, name: String) -> Result<Self, TpsError> {
        let target = target.clone().with_application_name(APPLICATION_NAME);
        let connection = target.connect().await?;
        if server::changes_sessions(&target, &connection).await? {
            return Err(TpsError::PartsPooled);
        }
        let look = said(&connection, async {
            connection.client.batch_execute(SET_UP).await?;
            connection.client.prepare(include_str!("sql/part_look.sql")).await
        });
        let look = look.await?;
        Ok(Self { connection, name, look })
    }

    /// Gives a sign; false if another session gives it.
    pub(crate) async fn take(&self, sign: Sign) -> Result<bool, Error> {
        let query = include_str!("sql/part_take.sql");
        Ok(self.connection.client.query_one(query, &[&self.name, &sign.number()]).await?.get(0))
    }

    /// Takes a sign back.
    pub(crate) async fn give_up(&self, sign: Sign) -> Result<(), Error> {
        let query = include_str!("sql/part_release.sql");
        self.connection.client.query_one(query, &[&self.name, &sign.number()]).await.map(drop)
    }

    /// Gives the digest of the options, as all parts with the same options do.
    pub(crate) async fn share_options(&self, options: &str) -> Result<(), Error> {
        let query = include_str!("sql/part_options.sql");
        let mark = Sign::Options(0).number();
        self.connection.client.query_one(query, &[&self.name, &options, &mark]).await.map(drop)
    }

    /// The signs that all parts give now.
    pub(crate) async fn signs(&self) -> Result<Signs, Error> {
        let rows = self.connection.client.query(&self.look, &[&self.name]).await?;
        Ok(Signs(rows.iter().filter_map(|row| Sign::of(row.get("number"))).collect()))
    }

    /// An answer of the server within [`PATIENCE`].
    pub(crate) async fn said<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, TpsError> {
        said(&self.connection, answer).await
    }
}

/// An answer of the server within [`PATIENCE`].
async fn said<T>(
    connection: &Connection,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, TpsError> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(connection.explain(error).await.into()),
        Err(_) => Err(TpsError::PartsUnanswered { seconds: PATIENCE.as_secs() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_as_they_are_written() {
        let signs = [
            Sign::Present(1),
            Sign::Ready(10_000),
            Sign::Done(7),
            Sign::Options(0xAB_CDEF),
            Sign::Start(1_790_000_000 % START),
        ];
        for sign in signs {
            assert!(sign.number() > 0);
            assert_eq!(Sign::of(sign.number().into()), Some(sign));
        }
        assert_eq!(Sign::of(1), None);
        assert_eq!(Sign::of(Sign::Start(1_790_000_000).number().into()), Some(signs[4]));
    }

    #[test]
    fn parts_without_a_sign_are_named() {
        let signs = Signs(vec![Sign::Ready(2), Sign::Present(1), Sign::Start(5)]);
        assert_eq!(signs.without(3, Sign::Ready), [1, 3]);
        assert_eq!(signs.of_start(), Some(5));
    }
}
