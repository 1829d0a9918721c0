//! Restores the settings and tables of a journal: only values that differ from it, so that nothing else can fail,
//! or be reported as restored.

use super::change::{
    FSYNC, LOCK_TIMEOUT, Server, end_others, named_session, reload, reset, show, statistics_since,
    system_identifier,
};
use super::durable::force_out;
use super::error::SettingsError;
use super::journal::Journal;
use super::look::altered_if_visible;
use super::record::{Before, Table};
use super::tables;
use crate::session::{Session, Sessions};
use connect::{ConnectError, Target};
use futures_util::future::LocalBoxFuture;

/// Changes that were undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// Settings that differed from the journal, with the values that SHOW gives now.
    pub settings: Vec<(String, String)>,
    /// Tables that are logged again.
    pub tables: Vec<Table>,
    /// Tables that had rows and are empty now: the server crashed meanwhile, which empties unlogged
    /// tables.
    pub emptied: Vec<Table>,
    /// Whether fsync was found off.
    pub was_without_fsync: bool,
    /// Whether the user has to run sync on the server's host: [`SYNC_BY_HAND`](super::SYNC_BY_HAND).
    pub wants_sync: bool,
}

/// Restores the settings and tables that the journal lists, and deletes the journal. Sessions of its process that the
/// server still has are ended first, so that nothing is changed afterwards.
///
/// # Errors
/// If something cannot be put back; the journal then stays.
pub fn put_back<'a>(
    target: &'a Target,
    journal: &'a Journal,
) -> LocalBoxFuture<'a, Result<PutBack, SettingsError>> {
    Box::pin(async move {
        let target = named_session(target, &journal.record);
        // Its process may have turned fsync on again, and come no further.
        put_back_on(&Server { waiting: target.clone(), acting: target }, journal, true).await
    })
}

/// The server's `system_identifier`; none where the role may not ask.
///
/// # Errors
/// If the server cannot be asked.
pub async fn identify(target: &Target) -> Result<Option<String>, ConnectError> {
    let session = Sessions::new(target).open().await?;
    let found = system_identifier(&session).await;
    session.close().await;
    found
}

/// `may_lack_sync` says whether fsync may have been off.
pub(super) async fn put_back_on(
    server: &Server,
    journal: &Journal,
    may_lack_sync: bool,
) -> Result<PutBack, SettingsError> {
    let record = &journal.record;
    let session = Sessions::new(&server.waiting).open().await?;
    let found = system_identifier(&session).await?;
    if found.is_some() && record.system_identifier.is_some() && found != record.system_identifier {
        return Err(SettingsError::OtherServer);
    }
    end_others(&session, &server.waiting).await?;
    let mut done = PutBack::default();
    if !record.settings.is_empty() {
        put_settings_back(&session, server, &record.settings, may_lack_sync, &mut done).await?;
    }
    session.run(LOCK_TIMEOUT).await?;
    done.tables = tables::set_persistence(&session, &record.tables, false).await?;
    if record.statistics_since.is_some() && statistics_since(&session).await? != record.statistics_since {
        done.emptied = tables::empty(&session, record.filled.clone()).await?;
    }
    journal.close()?;
    Ok(done)
}

async fn put_settings_back(
    session: &Session,
    server: &Server,
    settings: &[Before],
    may_lack_sync: bool,
    done: &mut PutBack,
) -> Result<(), SettingsError> {
    let altered = altered_if_visible(session).await?;
    // None if the role cannot see the values that ALTER SYSTEM has set.
    let is_altered = |before: &Before| {
        let altered = altered.as_ref()?;
        Some(altered.get(&before.name.to_ascii_lowercase()) != before.altered.as_ref())
    };
    let mut found = Vec::new();
    for before in settings {
        found.push(show(session, &before.name).await?);
        if is_altered(before) != Some(false) {
            reset(session, before).await?;
        }
    }
    let is_as_before =
        |(before, shown): (&Before, &String)| is_altered(before) == Some(false) && *shown == before.shown;
    let mut now = found.clone();
    if !settings.iter().zip(&found).all(is_as_before) {
        let fresh = reload(session, server).await?;
        for (before, shown) in settings.iter().zip(&mut now) {
            *shown = show(&fresh, &before.name).await?;
        }
    }
    for ((before, shown), now) in settings.iter().zip(found).zip(now) {
        if before.name == FSYNC && now == "on" {
            done.was_without_fsync = shown == "off";
            if may_lack_sync || done.was_without_fsync {
                done.wants_sync = !force_out(session).await?;
            }
        }
        if is_altered(before) == Some(true) || shown != now {
            done.settings.push((before.name.clone(), now));
        }
    }
    Ok(())
}
