//! The disk space that a statement takes: sizes of the database's files and of temporary files, read while it runs.
//!
//! The readings come from a session in another database: in the same one, CREATE INDEX CONCURRENTLY would wait for its
//! snapshots.
//!
//! A statement outside of transactions removes the files that it replaces before the last reading, and readings before that may miss its peak:
//! [`super::files`] has the least space of its new files.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use connect::{ConnectError, Target};
use server::Session;

use crate::outcome::Space;
use crate::run::pace::Pace;

/// Times between two readings.
const PACE: Pace = Pace { shortest: Duration::from_millis(5), longest: Duration::from_millis(100) };
/// The time between two readings is at least so many times that of a reading, which would slow the statement down on few processors.
const OF_READING: u32 = 8;

/// See the module.
pub(crate) struct Sampler {
    session: Session,
    database: String,
    /// Whether the role may see temporary files.
    sees_temporary: bool,
}

/// Bytes at one moment.
#[derive(Clone, Copy)]
struct Sizes {
    files: i64,
    temporary: i64,
}

impl Sampler {
    /// Of a database, read from the one `outside`.
    pub(crate) async fn begin(outside: &Target, database: &str) -> Result<Self, ConnectError> {
        let session = Session::open(outside).await?;
        let query = "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_ls_dir(text,boolean,boolean)', 'EXECUTE') \
                     AND pg_catalog.has_function_privilege('pg_catalog.pg_stat_file(text,boolean)', 'EXECUTE') AS may";
        let sees_temporary = session.row(query, &[]).await?.get("may");
        Ok(Self { session, database: database.to_owned(), sees_temporary })
    }

    /// The result of a future, and the most space that was taken meanwhile beyond what was taken before.
    pub(crate) async fn during<T>(&self, run: impl Future<Output = T>) -> Result<(T, Space), ConnectError> {
        let began = Instant::now();
        let before = self.sizes().await?;
        let mut took = began.elapsed();
        let (mut files, mut temporary) = (before.files, 0);
        let start = Instant::now();
        let readings = async {
            loop {
                PACE.pause(start).await;
                tokio::time::sleep(took * OF_READING).await;
                let began = Instant::now();
                let now = self.sizes().await?;
                took = began.elapsed();
                files = files.max(now.files);
                temporary = temporary.max(now.temporary);
            }
        };
        // Beside each other, so that the end is seen at once.
        let done = tokio::select! {
            biased;
            done = run => done,
            failed = readings => {
                let failed: Result<Infallible, ConnectError> = failed;
                let Err(error) = failed;
                return Err(error);
            }
        };
        files = files.max(self.sizes().await?.files);
        let bytes = |number: i64| u64::try_from(number).unwrap_or_default();
        let temporary = self.sees_temporary.then(|| bytes(temporary));
        Ok((done, Space { files: bytes(files - before.files), temporary }))
    }

    async fn sizes(&self) -> Result<Sizes, ConnectError> {
        let query = if self.sees_temporary {
            include_str!("../sql/space.sql")
        } else {
            "SELECT pg_catalog.pg_database_size($1::text::name)::int8 AS files, 0::int8 AS temp"
        };
        let row = self.session.row(query, &[&self.database]).await?;
        Ok(Sizes { files: row.get("files"), temporary: row.get("temp") })
    }

    pub(crate) async fn close(self) {
        self.session.close().await;
    }
}
