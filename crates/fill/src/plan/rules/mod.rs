//! The rules that make a plan from facts: one set for all tables. Each rule's reason stands beside
//! it; the figures are from two cores and PostgreSQL 18.

mod chunks;
mod direct;
mod method;
mod streams;

use std::num::NonZeroU16;

use page::Geometry;

use self::direct::Choice;
use self::method::bare;
pub(crate) use self::method::needs_chunks;
use self::streams::{BUILDERS, IN_ORDER};
use super::bulk::{Bulk, ForeignKeys};
use super::data::Plan;
use super::facts::{Facts, TablesFacts, VacuumRefused};
use super::method::{IndexBuild, Method, SORT_MEMORY_BYTES};
use crate::error::FillError;
use crate::ledger::Unfinished;
use crate::request::{Amount, CopyFormat, IndexKind, InitStep, InitSteps, Persistence, Request};
use crate::run::direct::{DataDirectory, NotDirect};
use server::{ServerInfo, Site, Survey};

/// Parallel workers that an index build asks for at most; the server allows fewer by default.
const MOST_WORKERS: u32 = 7;

/// The plan that follows from the facts.
///
/// # Errors
/// If the request cannot be met.
pub(super) fn resolve(
    survey: &Survey,
    data_directory: &Result<DataDirectory, NotDirect>,
    facts: Facts,
) -> Result<Plan, FillError> {
    let Facts { request, unfinished, vacuum_refused, .. } = facts;
    let (server, site, begun) = (&survey.server, survey.site, unfinished.as_ref());
    let choose = |suits: Result<(), NotDirect>| {
        let choice = direct::choice(&request, server, site, data_directory, begun, suits)?;
        streams::refuse_too_many(&request, server.max_connections)?;
        Ok::<Choice, FillError>(choice)
    };
    let (mut tablespace, mut index_tablespace) =
        (request.tablespace.clone(), request.index_tablespace.clone());
    let mut wide_ids = None;
    let (direct, bulk) = match facts.tables {
        TablesFacts::Pgrig(tables) => {
            let direct = choose(Ok(()))?;
            let bulk = tables.bulk(&request, server.geometry, begun, direct.is_chosen())?;
            wide_ids = tables.wide_ids();
            if let Some(existing) = tables.existing.filter(|existing| existing.indexed) {
                index_tablespace = existing.index_tablespace;
            }
            (direct, bulk)
        }
        TablesFacts::Own(table) => {
            let most = table.most_rows(&request, begun)?;
            // A fill to a size has decided no number of rows.
            let decided = begun.filter(|begun| begun.header.until_size.is_none()).and(most);
            let pages = table.pages(&request, server.geometry, decided);
            let direct = choose(pages.as_ref().map(|_| ()).map_err(Clone::clone))?;
            (tablespace, index_tablespace) = (None, None);
            let pages = pages.ok().filter(|_| direct.is_chosen());
            (direct, table.bulk(most, pages)?)
        }
    };
    let rules = Rules { request: &request, server, site, direct, begun, bulk };
    let (method, method_reason) = rules.method();
    let (streams, streams_reason) = rules.streams(method)?;
    let chunking = rules.chunking(method, streams);
    let (copy_rows, write_behind) = rules.copies(method, chunking);
    let (format, format_reason) = rules.format()?;
    let index_build = rules.index_build(method);
    let (steps, is_own) = (rules.steps(vacuum_refused.is_some()), rules.is_own_table());
    let reasons = rules.reasons(&Reasoned {
        method: (method, method_reason),
        streams: (streams, streams_reason),
        format: (format, format_reason),
        is_cached: copy_rows < chunking.chunk_rows,
        write_behind,
    });
    let predicted = rules.predicted(method, chunking, index_build);
    let vacuum = steps.include(InitStep::Vacuum).then(|| rules.vacuum(method));
    let warnings = vacuum_refused.as_ref().map_or(Vec::new(), |refused| without_vacuum(&request, refused));
    let Rules { direct, bulk, .. } = rules;
    Ok(Plan {
        geometry: server.geometry,
        major: server.major(),
        subject: request.subject.clone(),
        append: request.append,
        create: facts.create,
        schema: facts.schema,
        create_schema: facts.create_schema,
        dropped: facts.dropped,
        dropped_bytes: facts.dropped_bytes,
        stale_ledger: facts.stale_ledger,
        tables: bulk.tables.with_ids(wide_ids),
        binary: bulk.binary,
        sequences: bulk.sequences,
        key: bulk.key,
        truncated_with: bulk.truncated_with,
        most_rows: bulk.most_rows,
        warnings: bulk.warnings.into_iter().chain(warnings).collect(),
        is_size_estimated: is_own && !matches!(request.amount, Amount::Size(_)),
        until_size: bulk.until_size,
        chunking,
        emptied: facts.emptied,
        scale: bulk.range.scale,
        scale_before: bulk.range.scale_before,
        wide_ids,
        persistence: request.persistence,
        fillfactor: request.fillfactor,
        partitions: request.partitions,
        index: request.index,
        tablespace,
        index_tablespace,
        autovacuum: request.autovacuum,
        payload: request.payload,
        steps,
        method,
        data_directory: direct.data_directory().cloned(),
        streams,
        copy_rows,
        write_behind,
        flush_early: request.persistence == Persistence::Logged || is_own,
        vacuum,
        freezes: request.freezes() && vacuum_refused.is_none(),
        format,
        index_build,
        foreign_keys: bulk.foreign_keys,
        silenced: bulk.silenced,
        predicted,
        reasons,
        unfinished,
        request,
    })
}

/// Whether request and server allow direct pages, regardless of the table.
pub(super) fn may_write_pages(
    survey: &Survey,
    data_directory: &Result<DataDirectory, NotDirect>,
    request: &Request,
) -> bool {
    direct::choice(request, &survey.server, survey.site, data_directory, None, Ok(()))
        .is_ok_and(|choice| choice.is_chosen())
}

/// Warnings of a fill whose role may not VACUUM the table.
fn without_vacuum(request: &Request, VacuumRefused { table, role }: &VacuumRefused) -> Vec<String> {
    let unfrozen = request.freezes().then(|| {
        format!(
            "no vacuum, so rows stay unfrozen: with data checksums or wal_log_hints = on, the first scan of \
             {table} writes its pages to WAL. Give --reserve or --until-free to leave space for them"
        )
    });
    let unanalyzed = request.steps.include(InitStep::Vacuum).then(|| {
        format!("role {role} may not run VACUUM ANALYZE {table}: run it as the owner after the fill")
    });
    unfrozen.into_iter().chain(unanalyzed).collect()
}

/// The input of the rules.
pub(super) struct Rules<'a> {
    pub(super) request: &'a Request,
    pub(super) server: &'a ServerInfo,
    pub(super) site: Site,
    pub(super) direct: Choice,
    /// A fill of the same request that was interrupted.
    pub(super) begun: Option<&'a Unfinished>,
    pub(super) bulk: Bulk,
}

/// Decisions, and their reasons.
struct Reasoned {
    method: (Method, Option<&'static str>),
    streams: (NonZeroU16, &'static str),
    format: (CopyFormat, &'static str),
    /// Whether COPY commands leave their blocks in `shared_buffers`.
    is_cached: bool,
    write_behind: bool,
}

impl Rules<'_> {
    /// A sentence for each decision.
    fn reasons(&self, decided: &Reasoned) -> Vec<String> {
        let Reasoned { method: (method, why), streams, format, is_cached, write_behind } = decided;
        let direct = self.direct.reason();
        // A fill by chunks writes no pages, for the same reason.
        let is_told = |why: &&str| direct.as_ref().is_some_and(|told| told.ends_with(bare(why)));
        let mut reasons = Vec::from_iter(why.filter(|why| !is_told(why)).map(str::to_owned));
        reasons.extend(direct);
        if !self.is_own_table() || streams.1 == IN_ORDER {
            let (streams, why) = streams;
            let plural = if streams.get() == 1 { "" } else { "s" };
            let each = if *why == BUILDERS { ", one for each core" } else { "" };
            reasons.push(format!("{streams} stream{plural}{each}: {why}"));
        }
        if *is_cached {
            reasons.push(
                "COPY commands of less than 16 MB: the table stays in shared_buffers as far as it fits"
                    .to_owned(),
            );
        }
        if *write_behind {
            reasons.push("the checkpointer writes pages during the load (pgrig's own server)".to_owned());
        }
        match &self.bulk.foreign_keys {
            ForeignKeys::None => {}
            ForeignKeys::BySet => {
                reasons.push(
                    "foreign keys are checked by one query for each chunk, with triggers off".to_owned(),
                );
            }
            ForeignKeys::RowByRow(why) => reasons.push(format!("foreign keys are checked row by row: {why}")),
        }
        if !self.bulk.silenced.is_empty() {
            let way = if method.copies() { " (session_replication_role = replica)" } else { "" };
            let names = self.bulk.silenced.join(", ");
            reasons.push(format!("--triggers off: these do not run for the rows{way}: {names}"));
        }
        if method.copies() {
            let (format, why) = format;
            reasons.push(format!("{} format: {why}", format.name()));
        }
        reasons
    }

    /// Whether the table is the user's.
    fn is_own_table(&self) -> bool {
        self.bulk.tables.is_own
    }

    pub(crate) fn is_logged(&self) -> bool {
        self.request.persistence == Persistence::Logged
    }

    fn geometry(&self) -> Geometry {
        self.server.geometry
    }

    fn cores(&self) -> u16 {
        self.site.cores()
    }

    /// Rows to load.
    fn rows(&self) -> u64 {
        self.bulk.range.rows.unwrap_or(u64::MAX)
    }

    /// Whether a vacuum, or freezing behind the load, writes the heap's maps.
    pub(super) fn makes_maps(&self) -> bool {
        self.request.steps.include(InitStep::Vacuum) || self.request.freezes()
    }

    /// The steps of the request, but no vacuum if that is refused.
    fn steps(&self, is_vacuum_refused: bool) -> InitSteps {
        let steps = self.request.steps.clone();
        if is_vacuum_refused { steps.without(InitStep::Vacuum) } else { steps }
    }

    /// Options of the VACUUM. Frozen pages are skipped. After other methods every page is marked
    /// and frozen at once, and stays in the cache if the load left it there (since 16, VACUUM has
    /// an option for that).
    fn vacuum(&self, method: Method) -> &'static str {
        match method {
            Method::FrozenCopy | Method::Direct => "ANALYZE",
            _ if self.server.major() >= 16 && !self.is_own_table() && self.stays_cached() => {
                "FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0"
            }
            _ => "FREEZE, ANALYZE",
        }
    }

    fn format(&self) -> Result<(CopyFormat, &'static str), FillError> {
        let is_binary_possible = self.bulk.binary || !self.is_own_table();
        Ok(match (self.request.format, is_binary_possible) {
            (Some(CopyFormat::Binary), false) => {
                return Err(FillError::Combination(
                    "--format binary: pgrig has no binary form of some of these columns. Leave it out"
                        .to_owned(),
                ));
            }
            (Some(format), _) => (format, "--format is given"),
            (None, true) if !self.site.remote => (CopyFormat::Binary, "the server parses it fastest"),
            (None, true) if self.is_own_table() => {
                (CopyFormat::Text, "fewer bytes cross the network than in binary")
            }
            (None, true) => (CopyFormat::Text, "a third fewer bytes cross the network than in binary"),
            (None, false) => (CopyFormat::Text, "pgrig has no binary form of some of these columns"),
        })
    }

    /// How the step `primary-keys` builds indexes; none if it does not sort.
    fn index_build(&self, method: Method) -> Option<IndexBuild> {
        let is_sorted = match self.bulk.index {
            IndexKind::None => false,
            IndexKind::Btree => method != Method::Direct,
            IndexKind::Brin => true,
        };
        (self.request.steps.include(InitStep::PrimaryKeys) && is_sorted).then(|| self.sort_settings())
    }

    /// Settings of an index build: memory enough to sort in, if an eighth of the machine's memory
    /// is enough (half of shared_buffers if the machine's memory is not known), and a worker for
    /// every core but the leader's. 5 million rows take 0.94 s this way, 1.12 s without a worker,
    /// 1.07 s with the server's defaults.
    fn sort_settings(&self) -> IndexBuild {
        let allowed = self.site.memory.map_or(self.server.shared_buffers / 2, |memory| memory / 8);
        let wanted = self.rows().saturating_mul(SORT_MEMORY_BYTES).min(allowed);
        IndexBuild {
            maintenance_work_mem: wanted.max(self.server.maintenance_work_mem),
            parallel_workers: match self.bulk.range.rows {
                // At the limit of space, their files would take a sixth of the table's size.
                None => Some(0),
                Some(_) => self.site.cores.map(|cores| (cores - 1).min(MOST_WORKERS)),
            },
        }
    }
}
