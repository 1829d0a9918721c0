//! Choice of the method.

use super::Rules;
use crate::plan::Method;
use crate::plan::bulk::RowSize;
use crate::request::{Amount, IndexKind, InitStep, MethodChoice, Request, Subject};

/// Percent of a page up to which it pays to load densely and spread out afterwards.
const SPARSE: u8 = 50;
/// Why rows that are added are neither frozen nor written as pages.
pub(super) const APPENDS: &str = "--append adds to tables that have rows";
/// The first release whose COPY extends a heap by many blocks at once.
const EXTENDS_BY_MANY: u32 = 16;

/// Why rows cannot be loaded in the transaction that creates their table; none if they can. An
/// empty table of the user's counts as one that is created.
pub(crate) fn needs_chunks(request: &Request) -> Option<&'static str> {
    let created = match request.subject {
        Subject::Table(_) => true,
        Subject::Pgbench | Subject::Series => request.steps.order(InitStep::Create, InitStep::Generate),
    };
    let keys_first = request.steps.order(InitStep::PrimaryKeys, InitStep::Generate);
    if request.amount == Amount::Unbounded {
        Some("chunk by chunk: a limit ends this fill")
    } else if request.in_chunks {
        Some("chunk by chunk: limits and probes are checked between chunks")
    } else if request.chunk.is_some() {
        Some("chunk by chunk: --chunk is given")
    } else if request.append {
        Some("chunk by chunk: --append adds to tables that have rows")
    } else if !created {
        Some("chunk by chunk: this fill does not create its tables")
    } else if keys_first {
        Some("chunk by chunk: keys exist before the rows")
    } else {
        None
    }
}

/// The reason for chunks without the words that name the method.
pub(super) fn bare(why: &str) -> &str {
    why.strip_prefix("chunk by chunk: ").unwrap_or(why)
}

impl Rules<'_> {
    /// Chooses between one frozen stream and several unfrozen ones. One frozen stream loads 3
    /// million rows a second, and leaves nothing to the vacuum. Two streams load 5 million, but the
    /// vacuum then rewrites every page at about that rate, and rows of logged tables are written to
    /// WAL. Leaves are frozen with any number of streams.
    pub(super) fn method(&self) -> (Method, Option<&'static str>) {
        if self.request.subject == Subject::Series {
            return (Method::CreateTableAs, None);
        }
        match self.request.method {
            MethodChoice::Server => return (Method::Server, Some("--method server is given")),
            MethodChoice::Reinsert => return (Method::Reinsert, Some("--method reinsert is given")),
            MethodChoice::Explode => return (Method::Explode, Some("--method explode is given")),
            MethodChoice::Auto | MethodChoice::Copy | MethodChoice::Direct => {}
        }
        if self.direct.is_chosen() {
            return (Method::Direct, None);
        }
        if self.request.place.is_some() {
            return (
                Method::ChunkedCopy,
                Some("chunk by chunk: parts share the tables, and the vacuum at the end freezes the rows"),
            );
        }
        if let RowSize::Estimated { .. } = self.bulk.row_size
            && self.request.part.is_none()
        {
            let why =
                "chunk by chunk (COPY in several transactions), so that an interrupted fill loses little";
            return (Method::ChunkedCopy, Some(why));
        }
        if let Some(why) = needs_chunks(self.request) {
            return (Method::ChunkedCopy, Some(why));
        }
        if self.request.part.is_some() && self.request.partitions.is_none() {
            let why = "chunk by chunk: parts share the table. COPY (FREEZE) would need the transaction that creates or truncates \
                       it, so the vacuum freezes the rows";
            return (Method::ChunkedCopy, Some(why));
        }
        if self.request.partitions.is_some() && self.explode_pays() {
            return (
                Method::Explode,
                Some(
                    "before PostgreSQL 16, COPY extends a heap block by block and writes each block twice; VACUUM \
                     FULL does not",
                ),
            );
        }
        if self.request.partitions.is_some() {
            return (
                Method::FrozenCopy,
                Some("each partition is truncated, loaded and frozen in a transaction of its own"),
            );
        }
        // An interrupted fill is completed with the method that it began with.
        let begun = self.begun.map(|begun| begun.header.chunk_rows < self.rows());
        match (begun, self.table_streams()) {
            (Some(true), _) => {
                (Method::ChunkedCopy, Some("chunk by chunk: the interrupted fill loaded chunks"))
            }
            (None, (streams, _)) if streams.get() > 1 => (Method::ChunkedCopy, None),
            _ => (Method::FrozenCopy, None),
        }
    }

    /// Whether keys exist while rows are loaded.
    pub(crate) fn has_keys_early(&self) -> bool {
        let keys_later = self.request.steps.order(InitStep::Generate, InitStep::PrimaryKeys);
        self.bulk.index != IndexKind::None && !keys_later
    }

    /// Whether spreading leaves out is faster than COPY at the final fillfactor. Before PostgreSQL
    /// 16, two sparse leaves take 1.5 s of the server's time this way, 2.3 s by COPY (1.6 GB at
    /// fillfactor 10); from 16 on 1.7 s either way. A single table is spread out by one process
    /// only, and two streams of COPY are as fast.
    fn explode_pays(&self) -> bool {
        self.request.method == MethodChoice::Auto
            && self.request.part.is_none()
            && self.server.major() < EXTENDS_BY_MANY
            && self.request.fillfactor <= SPARSE
            && !self.is_logged()
            && !self.makes_maps()
    }
}
