//! The session that measures, and the settings that make the times per row comparable.

use serde::Serialize;

use crate::candidate::Body;
use crate::request::Request;
use connect::ConnectError;
use server::Session;
use server::quote::literal;

/// Bytes of work_mem that `generate_series` in FROM takes for a row: 40 to 56 were seen, by release.
const SERIES_BYTES: u64 = 64;
/// Least work_mem, kB.
const LEAST_WORK_MEM: u64 = 64 << 10;
/// Most work_mem, kB: pgrig must not use all of the server's memory.
const MOST_WORK_MEM: u64 = 1 << 20;

/// Number of rows whose series fits into the least work_mem.
pub(crate) const UNSPILLED_ROWS: u64 = LEAST_WORK_MEM * 1024 / SERIES_BYTES;

/// A setting of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Given {
    /// Name of the setting.
    pub name: String,
    /// Its value as SHOW gives it.
    pub value: String,
}

/// Applies pgrig's settings to the session. The user's --setup runs later and may change them; the
/// values then found count.
pub(crate) async fn set(session: &Session, request: &Request, rows: u64) -> Result<Vec<Given>, ConnectError> {
    let mut settings = vec![
        ("jit", "off".to_owned()),
        ("max_parallel_workers_per_gather", "0".to_owned()),
        ("work_mem", format!("{}kB", work_mem(session, rows).await?)),
    ];
    if !matches!(request.candidates.first().map(|first| &first.body), Some(Body::Expression(_))) {
        // The disk's moods are no property of a statement: WAL is written as ever, but not waited for.
        settings.push(("synchronous_commit", "off".to_owned()));
    }
    let mut given = Vec::new();
    for (name, value) in settings {
        session.run(&format!("SET {name} = {}", literal(&value))).await?;
        let value = session.row("SELECT current_setting($1)", &[&name]).await?.get(0);
        given.push(Given { name: name.to_owned(), value });
    }
    Ok(given)
}

/// work_mem for a series of so many rows, kB; at least the session's own.
async fn work_mem(session: &Session, rows: u64) -> Result<u64, ConnectError> {
    let own = "SELECT pg_size_bytes(current_setting('work_mem')) / 1024";
    let own = u64::try_from(session.row(own, &[]).await?.get::<_, i64>(0)).unwrap_or_default();
    let series = (rows * SERIES_BYTES).div_ceil(1024);
    Ok(series.clamp(LEAST_WORK_MEM, MOST_WORK_MEM).max(own))
}

/// Names of extensions with hooks in every statement, which take part of its time.
pub(crate) async fn listeners(session: &Session) -> Result<Option<String>, ConnectError> {
    let row = session.row(include_str!("../sql/listeners.sql"), &[]).await?;
    let names: Vec<String> = row.get("names");
    Ok((!names.is_empty()).then(|| format!(
            "these extensions add time to each statement: {}. For exact times, remove them from shared_preload_libraries",
            names.join(", ")
        )))
}
