//! A trial: the work around each step, which is not timed.

use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use futures_util::future::try_join_all;

use crate::error::BlockioError;
use crate::outcome::{Blocks, Done, End, Outcome, Sizes, Timed};
use crate::request::Mode;
use crate::run::bench::Bench;
use crate::run::client::{Client, Seen};
use crate::run::counters::Used;
use crate::run::evict::Eviction;
use crate::run::explain::Touched;
use crate::run::vacuum::Rates;
use crate::state::CacheState;
use crate::step::{Action, Share, Step};
use connect::ConnectError;
use server::disturbance::Checkpoints;
use server::quote::{qualified, shown};

/// Time to wait for a checkpoint's counters: the checkpointer reports them only after the end of the checkpoint
/// (`CheckpointerMain`, checkpointer.c).
const COUNTED_DEADLINE: Duration = Duration::from_secs(2);
/// Time between two readings of them.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) struct Trial<'b, 'a> {
    bench: &'b Bench<'a>,
    clients: Vec<Client<'a>>,
    started: Instant,
    steps: Vec<Done>,
    rows: u64,
    sizes: Sizes,
    sizes_after: Sizes,
}

impl<'b, 'a> Trial<'b, 'a> {
    pub(crate) fn new(bench: &'b Bench<'a>, clients: Vec<Client<'a>>) -> Self {
        let (started, sizes) = (Instant::now(), Sizes::default());
        Self { bench, clients, started, steps: Vec::new(), rows: 0, sizes, sizes_after: sizes }
    }

    /// Carries out the step for all clients at once, and counts the resources that it used.
    pub(crate) async fn step(&mut self, step: &'static Step) -> Result<(), BlockioError> {
        let failed = |source| BlockioError::Step { step: step.title, source };
        let evicted = if step.evicts { self.evict().await.map_err(failed)? } else { None };
        let is_checkpoint = step.action == Action::Checkpoint;
        let lead = &self.bench.lead;
        let checkpoints = Checkpoints::so_far(&lead.connection.client).await;
        let before = self.bench.counting.now(lead).await?;
        // One checkpoint is for all.
        let clients = if is_checkpoint { &self.clients[..1] } else { &self.clients[..] };
        let seen = try_join_all(clients.iter().map(|client| client.run(step))).await;
        let at = self.started.elapsed();
        let seen = match seen {
            Ok(seen) => seen,
            Err(BlockioError::Step { source, .. })
                if is_checkpoint && source.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) =>
            {
                let because = self.no_checkpoint();
                self.steps.push(Done { step, at, end: End::LeftOut { because }, evicted });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.is_counted(step) {
            self.flush().await.map_err(failed)?;
        }
        if is_checkpoint {
            self.await_checkpoint(checkpoints).await;
        }
        let used = self.bench.counting.now(&self.bench.lead).await?.since(&before);
        self.look(step.action, &seen).await.map_err(failed)?;
        let timed = self.timed(step, &seen, used);
        self.steps.push(Done { step, at, end: End::Timed(timed), evicted });
        Ok(())
    }

    /// Records the sizes after the step.
    async fn look(&mut self, action: Action, seen: &[Seen]) -> Result<(), ConnectError> {
        match action {
            Action::Create => {
                self.sizes.heap = self.size(false).await?;
                self.rows = seen.iter().map(|seen| seen.rows).sum();
            }
            Action::Index => self.sizes.index = self.size(true).await?,
            Action::Cluster => {
                self.sizes_after = Sizes { heap: self.size(false).await?, index: self.size(true).await? };
            }
            Action::Checkpoint | Action::Vacuum | Action::Query(_) => {}
        }
        Ok(())
    }

    /// Whether the server's counters are read for the step. For queries EXPLAIN gives the numbers,
    /// so waiting for counters is not worthwhile.
    fn is_counted(&self, step: &Step) -> bool {
        let waits = matches!(step.action, Action::Query(_) | Action::Checkpoint);
        self.bench.counting.is_prompt() || !waits
    }

    fn timed(&self, step: &Step, seen: &[Seen], used: Used) -> Timed {
        let queries = Touched::sum(seen.iter().map(|seen| seen.touched));
        let is_utility = !matches!(step.action, Action::Query(_) | Action::Checkpoint);
        let database = used.database.filter(|_| is_utility);
        let blocks = queries
            .map(|touched| Blocks { hits: touched.hits, reads: touched.reads })
            .or(database.map(|counted| Blocks { hits: counted.hits, reads: counted.reads }));
        let waited = queries
            .and_then(|touched| touched.read_time.map(|read| (read, 0.0)))
            .or(database.map(|counted| (counted.read_time, counted.write_time)));
        let io_timing = self.clients.iter().all(|client| client.io_timing);
        let data = self.sizes.heap;
        let state = blocks
            .filter(|_| step.reads != Share::Nothing)
            .and_then(|blocks| CacheState::of(blocks.hits, blocks.reads, data, self.bench.plan.memory));
        Timed {
            elapsed: Seen::together(seen),
            clients: seen.iter().map(|seen| seen.ended - seen.started).collect(),
            must_read: self.share(step.reads, self.sizes, blocks),
            must_write: self.share(
                step.writes,
                if step.action == Action::Cluster { self.sizes_after } else { self.sizes },
                blocks,
            ),
            blocks,
            waited: waited.filter(|_| io_timing),
            io: used.io,
            wal: used.wal,
            workers: queries.map(|touched| touched.workers),
            state,
            rates: Rates::sum(seen.iter().map(|seen| seen.rates)),
        }
    }

    /// Size of a part of all clients' relations, bytes.
    fn share(&self, share: Share, sizes: Sizes, blocks: Option<Blocks>) -> u64 {
        let block_size = u64::from(self.bench.survey.environment.server.block_size);
        match share {
            Share::Nothing => 0,
            Share::Heap => sizes.heap,
            Share::Index => sizes.index,
            Share::HeapAndIndex => sizes.heap + sizes.index,
            Share::Touched => blocks.map_or(0, |blocks| (blocks.hits + blocks.reads) * block_size),
        }
    }

    /// Evicts all clients' tables from shared_buffers; returns the number of buffers, or none if
    /// that is not possible.
    async fn evict(&self) -> Result<Option<u64>, ConnectError> {
        let has_index = self.sizes.index > 0;
        let plan = self.bench.plan;
        let mut evicted = None;
        for client in &self.clients {
            let one = plan.eviction.evict(&client.session, &plan.schema, client.names, has_index).await?;
            evicted = one.map(|one| one + evicted.unwrap_or(0));
        }
        if evicted.is_some() {
            // Blocks that the eviction wrote must not count as the step's.
            self.flush().await?;
        }
        Ok(evicted)
    }

    /// Makes all clients' sessions report their counters.
    async fn flush(&self) -> Result<(), ConnectError> {
        let counting = self.bench.counting;
        try_join_all(self.clients.iter().map(|client| counting.flush(&client.session))).await?;
        Ok(())
    }

    /// Waits until the checkpointer has reported the counters of the checkpoint.
    async fn await_checkpoint(&self, before: Option<Checkpoints>) {
        let Some(before) = before else { return };
        let client = &self.bench.lead.connection.client;
        let counted = async {
            while Checkpoints::so_far(client).await.is_some_and(|now| now.since(before) == 0) {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        };
        // If it never does, the counters lack it.
        let _ = tokio::time::timeout(COUNTED_DEADLINE, counted).await;
    }

    /// `pg_relation_size` of all clients' tables or indexes.
    async fn size(&self, of_index: bool) -> Result<u64, ConnectError> {
        let plan = self.bench.plan;
        let mut total = 0;
        for names in &plan.tables {
            let name = qualified(&plan.schema, if of_index { &names.index } else { &names.table });
            let row = self.bench.lead.row("SELECT pg_relation_size(to_regclass($1))", &[&name]).await?;
            total += u64::try_from(row.get::<_, i64>(0)).unwrap_or_default();
        }
        Ok(total)
    }

    fn no_checkpoint(&self) -> String {
        let survey = self.bench.survey;
        let role = &survey.server.role;
        match survey.server.major() {
            ..15 => format!(
                "role {role} may not run CHECKPOINT (before PostgreSQL 15, only superusers may): connect as a superuser"
            ),
            _ => format!("role {role} may not run CHECKPOINT: run GRANT pg_checkpoint TO {}", shown(role)),
        }
    }

    /// Notes on steps that were left out because of the role's privileges or the server's version.
    pub(crate) fn notes(&self) -> Vec<String> {
        let survey = self.bench.survey;
        let (role, major) = (&survey.server.role, survey.server.major());
        let mut notes: Vec<String> = self
            .steps
            .iter()
            .filter_map(|done| match &done.end {
                End::LeftOut { because } => Some(format!("{}: left out, {because}", done.step.title)),
                End::Timed(_) => None,
            })
            .collect();
        if self.bench.plan.request.mode == Mode::Own && !self.clients.iter().all(|client| client.io_timing) {
            let remedy = match major {
                ..15 => "connect as a superuser".to_owned(),
                _ => format!("run GRANT SET ON PARAMETER track_io_timing TO {}", shown(role)),
            };
            notes.push(format!(
                "role {role} may not set track_io_timing, so pgrig does not know the server's I/O waits: {remedy}"
            ));
        }
        if let Eviction::None { because } = &self.bench.plan.eviction
            && self.bench.plan.request.mode == Mode::Own
        {
            notes.push(format!(
                "pgrig did not evict the table from shared_buffers before first scans and lookups: {because}"
            ));
        }
        let vacuum = self.steps.iter().find(|done| done.step.action == Action::Vacuum);
        if let Some(End::Timed(Timed { rates: None, .. })) = vacuum.map(|done| &done.end) {
            notes.push(match major {
                ..15 => "before PostgreSQL 15, VACUUM does not report its rates".to_owned(),
                _ => "pgrig found no rates in the messages of VACUUM: set lc_messages = 'C' for this role"
                    .to_owned(),
            });
        }
        notes
    }

    pub(crate) fn own_checkpoints(&self) -> u64 {
        let own = |done: &&Done| done.step.action == Action::Checkpoint && matches!(done.end, End::Timed(_));
        self.steps.iter().filter(own).count() as u64
    }

    /// Whether autovacuum ran on the tables meanwhile, by the server's statistics.
    pub(crate) async fn was_autovacuumed(&self) -> Result<bool, ConnectError> {
        let plan = self.bench.plan;
        let tables: Vec<&str> = plan.tables.iter().map(|names| names.table.as_str()).collect();
        let query = "SELECT coalesce(sum(autovacuum_count + autoanalyze_count), 0) > 0 \
                     FROM pg_stat_all_tables WHERE schemaname = $1 AND relname = ANY ($2::text[])";
        Ok(self.bench.lead.row(query, &[&plan.schema, &tables]).await?.get(0))
    }

    /// Closes the clients' sessions.
    pub(crate) async fn finish(self, notes: Vec<String>) -> Outcome {
        let Self { clients, steps, rows, sizes, sizes_after, .. } = self;
        for client in clients {
            client.session.connection.close().await;
        }
        Outcome { steps, rows, sizes, sizes_after, notes }
    }
}
