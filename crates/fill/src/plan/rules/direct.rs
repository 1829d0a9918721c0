//! Whether pages are written directly, and why not.

use super::method::{APPENDS, bare};
use super::needs_chunks;
use crate::error::FillError;
use crate::ledger::Unfinished;
use crate::request::{MethodChoice, Persistence, Request, Subject};
use crate::run::direct::{DataDirectory, NotDirect};
use server::ServerInfo;
use server::Site;

/// The decision about writing pages directly.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// Pages are not an option: another method was asked for, or the server is not pgrig's own.
    Not,
    /// Pages would be chosen, but are not possible.
    Impossible(NotDirect),
    /// Pages are written.
    Chosen {
        /// The directory that pages are written into.
        data_directory: Box<DataDirectory>,
        /// Whether the user asked for it.
        asked: bool,
    },
}

impl Choice {
    pub(crate) fn is_chosen(&self) -> bool {
        self.data_directory().is_some()
    }

    pub(crate) fn data_directory(&self) -> Option<&DataDirectory> {
        match self {
            Self::Chosen { data_directory, .. } => Some(data_directory),
            Self::Not | Self::Impossible(_) => None,
        }
    }

    /// The reason, for the plan's text.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::Not => None,
            Self::Impossible(why) => Some(format!("method direct is not possible: {why}")),
            Self::Chosen { asked: true, .. } => Some("--method direct is given".to_owned()),
            Self::Chosen { asked: false, .. } => {
                Some("on its own server, pgrig writes pages directly, which is faster than COPY".to_owned())
            }
        }
    }
}

/// Decides whether pages are written. On pgrig's own server that is the first choice; on other
/// servers it has to be asked for. `suits` tells whether the table allows it.
///
/// # Errors
/// If it is asked for and not possible.
pub(crate) fn choice(
    request: &Request,
    server: &ServerInfo,
    site: Site,
    data_directory: &Result<DataDirectory, NotDirect>,
    unfinished: Option<&Unfinished>,
    suits: Result<(), NotDirect>,
) -> Result<Choice, FillError> {
    let asked = request.method == MethodChoice::Direct;
    // A request with a format of COPY means COPY.
    let wanted = asked || request.method == MethodChoice::Auto && site.own && request.format.is_none();
    if !wanted || request.subject == Subject::Series {
        return Ok(Choice::Not);
    }
    match possible(request, server, data_directory, unfinished)
        .and_then(|data_directory| suits.map(|()| data_directory))
    {
        Ok(data_directory) => Ok(Choice::Chosen { data_directory: Box::new(data_directory), asked }),
        Err(why) if asked => Err(why.into()),
        Err(why) => Ok(Choice::Impossible(why)),
    }
}

fn possible(
    request: &Request,
    server: &ServerInfo,
    data_directory: &Result<DataDirectory, NotDirect>,
    unfinished: Option<&Unfinished>,
) -> Result<DataDirectory, NotDirect> {
    if request.part.is_some() {
        return Err(NotDirect::InChunks("the parts of a fill load chunks of their own"));
    }
    if request.append {
        return Err(NotDirect::Append(APPENDS));
    }
    let begun_in_chunks = |begun: &Unfinished| {
        let header = &begun.header;
        header.until_size.is_some() || header.rows.is_none_or(|rows| header.chunk_rows < rows)
    };
    if request.partitions.is_none() && unfinished.is_some_and(begun_in_chunks) {
        return Err(NotDirect::InChunks("the interrupted fill loaded chunks"));
    }
    if let Some(why) = needs_chunks(request) {
        return Err(NotDirect::InChunks(bare(why)));
    }
    let data_directory = data_directory.clone()?;
    if request.persistence == Persistence::Logged && !server.skips_wal() {
        return Err(NotDirect::WalLevel { level: server.wal_level.clone() });
    }
    Ok(data_directory)
}
