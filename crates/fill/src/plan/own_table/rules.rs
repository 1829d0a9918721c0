//! From what was seen of the user's table to a plan.

use std::num::NonZeroU16;

use super::Seen;
use super::pages::Pages;
use crate::error::FillError;
use crate::ledger::Unfinished;
use crate::plan::chunks::{Chunking, Spread};
use crate::plan::rules::direct;
use crate::plan::rules::writers;
use crate::plan::sizes::Sizes;
use crate::plan::{Method, Plan, Prediction, Rows};
use crate::request::{Amount, CopyFormat, InitStep, Persistence, Request};
use crate::run::direct::{Ground, NotDirect};
use server::Survey;

/// Bytes of table and indexes that a chunk fills at most.
const LARGE_CHUNK: u64 = 16 << 20;
/// Chunks that a size is reached in at least: the last one is cut to measure by what rows took before.
const CHUNKS: u64 = 40;
/// What an entry of an index takes with its share of the page, bytes, roughly: a key of 8 to 16 bytes
/// with header and line pointer, on pages that are two thirds full.
pub(super) const INDEX_ENTRY: u64 = 40;
/// Rows below which a further stream does not pay.
const FEW_ROWS: u64 = 100_000;
/// Streams that are chosen at most.
const MOST_STREAMS: u16 = 8;

/// How the rows get into the table.
struct Load {
    method: Method,
    ground: Option<Ground>,
    /// Rows at most.
    rows: Option<u64>,
    chunk_rows: u64,
    /// What table and indexes shall take in the end, bytes, where that is measured as they grow.
    until_size: Option<u64>,
    streams: NonZeroU16,
    vacuum: &'static str,
    predicted: Prediction,
    reasons: Vec<String>,
}

/// The plan for the table that was seen; `unfinished` is what an interrupted run has done.
pub(super) fn plan(
    survey: &Survey,
    ground: &Result<Ground, NotDirect>,
    request: &Request,
    seen: Seen,
    unfinished: Option<Unfinished>,
) -> Result<Plan, FillError> {
    let Seen { info, mut rows, first_row, may_vacuum, candidate, until_size, create_schema, stale_ledger } =
        seen;
    let row = rows.width + INDEX_ENTRY * candidate.indexes();
    let (wanted, chunk_rows) = match &unfinished {
        Some(begun) => (begun.charter.rows, begun.charter.chunk_rows),
        None => (wanted(request, &rows, row, &info.display_name())?, chunk_rows(request, rows.width, row)),
    };
    let begun = unfinished.as_ref().and(wanted);
    let pages = candidate.pages(request, survey.server.geometry, &rows, first_row, begun);
    let suits = pages.as_ref().map(|_| ()).map_err(Clone::clone);
    let choice = direct::choice(request, &survey.server, survey.site, ground, unfinished.as_ref(), suits)?;
    let (format, format_reason) = format(survey, request, rows.binary)?;
    let load = if let (Some(ground), Ok(pages)) = (choice.ground(), pages) {
        rows.table.rows = first_row.saturating_add(pages.rows);
        let streams = request.streams.unwrap_or_else(|| writers(survey.site));
        by_pages(&pages, ground.clone(), streams, choice.reason())
    } else {
        let chunks = Chunks { rows: wanted, chunk_rows, width: rows.width, row, until_size };
        let reasons =
            ["chunk by chunk: it is a table of your own".to_owned()].into_iter().chain(choice.reason());
        let format_reason = format!("{} format: {format_reason}", format.name());
        by_copy(survey, request, &chunks, reasons.chain([format_reason]).collect())
    };
    let freezes = may_vacuum && request.freezes();
    if !may_vacuum && request.freezes() {
        rows.warnings.push(format!(
            "no vacuum, so rows stay unfrozen: where pages have checksums, or wal_log_hints is on, the first reading \
             of {} writes its pages to WAL. Leave room for that: --reserve, --until-free",
            info.display_name()
        ));
    }
    let mut steps = request.steps.clone();
    if !may_vacuum && steps.include(InitStep::Vacuum) {
        steps = steps.without(InitStep::Vacuum);
        rows.warnings.push(format!(
            "no vacuum, and so no statistics: {} belongs to another role than {}",
            info.display_name(),
            info.role
        ));
    }
    Ok(Plan {
        request: request.clone(),
        geometry: survey.server.geometry,
        major: survey.server.major(),
        subject: request.subject.clone(),
        schema: info.schema,
        create_schema,
        dropped: Vec::new(),
        dropped_bytes: 0,
        stale_ledger,
        until_size: load.until_size,
        reasons: load.reasons,
        chunking: Chunking { first_row, rows: load.rows, chunk_rows: load.chunk_rows, spread: Spread::Table },
        emptied: false,
        unfinished,
        scale: 1,
        scale_before: 0,
        wide_ids: None,
        persistence: request.persistence,
        fillfactor: request.fillfactor,
        partitions: None,
        index: request.index,
        tablespace: None,
        index_tablespace: None,
        autovacuum: true,
        payload: request.payload,
        method: load.method,
        ground: load.ground,
        streams: load.streams,
        copy_rows: load.chunk_rows,
        write_behind: false,
        flush_early: true,
        vacuum: steps.include(InitStep::Vacuum).then_some(load.vacuum),
        freezes,
        steps,
        format,
        index_build: None,
        predicted: load.predicted,
        described: Some(rows),
    })
}

/// Rows chunk by chunk.
struct Chunks {
    rows: Option<u64>,
    chunk_rows: u64,
    /// What a row takes without its indexes, and with them, bytes.
    width: u64,
    row: u64,
    until_size: Option<u64>,
}

fn by_copy(survey: &Survey, request: &Request, chunks: &Chunks, reasons: Vec<String>) -> Load {
    let &Chunks { rows, chunk_rows, width, row, until_size } = chunks;
    let predicted_rows = match request.amount {
        Amount::Rows(rows) => rows,
        _ => chunk_rows,
    };
    let heap = predicted_rows.saturating_mul(width);
    let sizes = Sizes { heap, index: predicted_rows.saturating_mul(row).saturating_sub(heap) };
    let logged = request.persistence == Persistence::Logged;
    Load {
        method: Method::ChunkedCopy,
        ground: None,
        rows,
        chunk_rows,
        until_size,
        streams: request.streams.unwrap_or_else(|| streams(survey, rows)),
        vacuum: "FREEZE, ANALYZE",
        predicted: Prediction { sizes, wal: if logged { sizes.total() } else { 0 }, temporary: 0 },
        reasons,
    }
}

/// All rows in one transaction, past the server.
fn by_pages(pages: &Pages, ground: Ground, streams: NonZeroU16, reason: Option<String>) -> Load {
    Load {
        method: Method::Direct,
        ground: Some(ground),
        rows: Some(pages.rows),
        chunk_rows: pages.rows,
        until_size: None,
        streams,
        vacuum: "ANALYZE",
        // Rows of permanent tables come so only where they need no WAL.
        predicted: Prediction { sizes: pages.sizes, wal: 0, temporary: 0 },
        reasons: Vec::from_iter(reason),
    }
}

/// Rows that are loaded at most. `row` is what one takes, about.
fn wanted(request: &Request, rows: &Rows, row: u64, table: &str) -> Result<Option<u64>, FillError> {
    match (request.amount, &rows.most) {
        (Amount::Rows(wanted), _) => Ok(Some(wanted)),
        // What a row takes is an estimate.
        (Amount::Size(size), Some((most, why))) if most.saturating_mul(row) < size / 2 => {
            Err(FillError::KeysTooFew {
                table: table.to_owned(),
                size,
                most: *most,
                about: most.saturating_mul(row),
                why: why.clone(),
            })
        }
        (_, most) => Ok(most.as_ref().map(|(most, _)| *most)),
    }
}

/// Rows of a chunk: `width` is what one takes without its indexes, `row` with them, bytes.
fn chunk_rows(request: &Request, width: u64, row: u64) -> u64 {
    let rows = match (request.chunk, request.amount) {
        (Some(heap), _) => heap / width,
        (None, Amount::Size(size)) => (size / CHUNKS).min(LARGE_CHUNK) / row,
        (None, _) => LARGE_CHUNK / row,
    };
    rows.max(1)
}

fn format(survey: &Survey, request: &Request, binary: bool) -> Result<(CopyFormat, &'static str), FillError> {
    Ok(match (request.format, binary) {
        (Some(CopyFormat::Binary), false) => {
            return Err(FillError::Combination(
                "--format binary: not all of these columns can be sent so. Leave it out".to_owned(),
            ));
        }
        (Some(format), _) => (format, "--format says so"),
        (None, true) if !survey.site.remote => (CopyFormat::Binary, "the server parses it fastest"),
        (None, true) => (CopyFormat::Text, "fewer bytes cross the network than in binary"),
        (None, false) => (CopyFormat::Text, "not all of these columns can be sent in binary"),
    })
}

/// As many as there are cores; one where the rows are few.
fn streams(survey: &Survey, rows: Option<u64>) -> NonZeroU16 {
    let cores = survey.site.cores();
    let few = rows.is_some_and(|rows| rows < FEW_ROWS);
    NonZeroU16::new(if few { 1 } else { cores.min(MOST_STREAMS) }).unwrap_or(NonZeroU16::MIN)
}
