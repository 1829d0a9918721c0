//! The probes of a migration: lookups and updates by key of its largest tables, or what the user gives.

use connect::{ConnectError, Target};
use server::Session;

use super::probe::{Asked, Doing};
use super::{Candidates, TABLES};
use crate::outcome::ProbeKind;
use crate::probing::Probing;
use crate::request::Probes;
use crate::run::rehearse::Table;

/// Rows of each table that are looked up and updated. They come round after 40 s: an UPDATE of the migration that meets all rows in
/// the order of the table locks those at once that were not updated before, but those behind the others, which the writer moved there.
const KEYS: u32 = 20_000;
/// Rows of the blocks from which they are drawn, for each of them.
const DRAWN: f64 = 3.0;

/// The probes, and tables without one, each with the reason.
pub(super) async fn asked(
    target: &Target,
    candidates: &Candidates<'_>,
    probes: &Probes,
    seed: u64,
) -> Result<(Vec<Asked>, Vec<String>), ConnectError> {
    let own = |kind: ProbeKind, probing: &Option<Probing>| {
        probing.as_ref().map(|probing| Asked::own(kind, probing, seed))
    };
    let own_read = own(ProbeKind::Read, &probes.read);
    let own_write = own(ProbeKind::Write, &probes.write);
    let (mut asked, mut unprobed) = (Vec::new(), Vec::new());
    if own_read.is_none() || own_write.is_none() {
        let session = Session::open(target).await?;
        let rows = session.rows(include_str!("../../sql/keys.sql"), &[&candidates.oids]).await?;
        let columns = |oid: u32| -> Option<(Vec<String>, Option<String>)> {
            let row = rows.iter().find(|row| row.get::<_, u32>("oid") == oid)?;
            Some((row.get("columns"), row.get("written")))
        };
        let mut chosen = 0;
        for oid in &candidates.oids {
            let Some(table) = candidates.tables.get(*oid) else { continue };
            let name = table.shown_in_full();
            let Some((columns, written)) = columns(*oid) else {
                unprobed.push(format!(
                    "{name}: it has no key to look rows up by; give --probe-read and --probe-write"
                ));
                continue;
            };
            if chosen >= TABLES {
                unprobed.push(format!("{name}: pgrig probes only the {TABLES} largest tables with a key"));
                continue;
            }
            let keys = keys(&session, table, candidates.rows(*oid), &columns).await?;
            if keys.is_empty() {
                unprobed.push(format!("{name}: it has no rows"));
                continue;
            }
            // A table without a probe takes no other's place.
            chosen += usize::from(own_read.is_none() || written.is_some());
            let table = table.sql();
            let with = |kind, statements| Asked {
                kind,
                name: name.clone(),
                doing: Doing::Statements(statements),
                is_own: false,
            };
            if own_read.is_none() {
                let read = keys.iter().map(|key| format!("SELECT * FROM {table} WHERE {key}")).collect();
                asked.push(with(ProbeKind::Read, read));
            }
            if own_write.is_none() {
                let Some(set) = written else {
                    unprobed.push(format!(
                        "writes of {name}: the server makes all its values; give --probe-write"
                    ));
                    continue;
                };
                let write =
                    keys.iter().map(|key| format!("UPDATE {table} SET {set} = {set} WHERE {key}")).collect();
                asked.push(with(ProbeKind::Write, write));
            }
        }
        session.close().await;
    }
    asked.extend(own_read.into_iter().chain(own_write));
    Ok((asked, unprobed))
}

/// Conditions that find one row each, of rows from the whole table in random order.
async fn keys(
    session: &Session,
    table: &Table,
    rows: u64,
    columns: &[String],
) -> Result<Vec<String>, ConnectError> {
    let condition: Vec<String> = columns
        .iter()
        .map(|column| format!("'{} = ' || quote_literal({column}::text)", column.replace('\'', "''")))
        .collect();
    let not_null: Vec<String> = columns.iter().map(|column| format!("{column} IS NOT NULL")).collect();
    let percent = (100.0 * DRAWN * f64::from(KEYS) / (rows as f64).max(1.0)).min(100.0);
    let query = format!(
        "SELECT {} AS key FROM {} TABLESAMPLE SYSTEM ({percent}) WHERE {} ORDER BY random() LIMIT {KEYS}",
        condition.join(" || ' AND ' || "),
        table.sql(),
        not_null.join(" AND ")
    );
    Ok(session.rows(&query, &[]).await?.iter().map(|row| row.get("key")).collect())
}
