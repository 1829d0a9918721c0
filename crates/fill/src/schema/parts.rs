//! The fill of a schema by several processes.
//!
//! They meet by the locks of [`Parts`]; the first to arrive creates tables, record and ledgers. Then each part goes through the
//! tables in their order, and loads its share of the chunks of each. A table whose foreign keys exist waits until the tables that it
//! references have all rows: parts that are there load their own chunks, and those of parts that are not there are divided among
//! them. A part that has loaded its chunks reports that in the record. Once all have reported and all chunks are loaded, the last
//! one plans the remaining work, as a process that completes an interrupted fill does, and carries it out while no part
//! may arrive.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::limits::Clock;
use super::outcome::{FilledTable, SchemaOutcome};
use super::plan::{PlannedTable, SchemaPlan, plan_schema};
use super::record;
use super::run::{SchemaRun, create, failed};
use super::task_queue::TaskQueue;
use crate::error::{BegunError, FillError};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::part_work::{FillId, PartWork};
use crate::plan::Plan;
use crate::request::{Part, Share};
use crate::run::{
    ARRIVAL, Arrival, LOOKS_AT_END, PartEnd, Parts, Queue, Stage, begin_ledger, continue_ledger,
    open_noticed, run_stage,
};
use server::Session;
use server::quote::qualified;

/// Time after which pgrig prints that it waits.
const SILENCE: Duration = Duration::from_secs(2);
/// Interval between two looks whether other parts have loaded rows that a table needs.
const LOOKS_AT_ROWS: Duration = Duration::from_millis(200);

/// The work of a part until its rows are loaded.
struct PartRun<'r, 'a> {
    run: &'r SchemaRun<'a>,
    parts: Parts,
    /// The session that holds the part's place.
    session: Session,
    /// The ledgers of the tables; none of those that are filled.
    ledgers: Vec<Option<Ledger>>,
    /// Places of the tables that each table references.
    references: Vec<Vec<usize>>,
    /// The results of the tables.
    loaded: Vec<Option<Outcome>>,
    /// Parts whose chunks this one has loaded.
    absent: BTreeSet<u32>,
}

impl SchemaRun<'_> {
    /// Does the work of a part, and the later steps if it is the last to end.
    pub(super) async fn of_part(
        &self,
        part: Part,
        arrival: Option<Arrival>,
    ) -> Result<SchemaOutcome, FillError> {
        let started = Instant::now();
        let parts = Parts::new(record::name(&self.plan.record_schema), part, arrival);
        let session = open_noticed(self.target).await?;
        let (ledgers, references) = self.interruptible(self.ready(&parts, &session)).await?;
        let read = async {
            let reading = PartWork::read_clock(&session).await?;
            Ok((reading, FillId::of(&session, &record::name(&self.plan.record_schema)).await?))
        };
        let (reading, fill) = self.interruptible(read).await?;
        let loaded = self.plan.tables.iter().map(|_| None).collect();
        let mut work =
            PartRun { run: self, parts, session, ledgers, references, loaded, absent: BTreeSet::new() };
        for place in 0..self.plan.tables.len() {
            work.table(place).await?;
        }
        let end = self.interruptible(work.end(part)).await?;
        let PartRun { session, mut loaded, absent, .. } = work;
        // The last steps wait until no part loads.
        session.close().await;
        let mut outcome = SchemaOutcome::default();
        let part_end = match end {
            Some(others) => others,
            None => match self.last_steps().await? {
                Some(last) => {
                    outcome = last;
                    PartEnd::Last
                }
                None => PartEnd::Done,
            },
        };
        for FilledTable { place, outcome } in std::mem::take(&mut outcome.tables) {
            let before = loaded[place].take();
            loaded[place] = Some(match before {
                Some(before) => before.followed_by(outcome),
                None => outcome,
            });
        }
        let filled =
            |(place, outcome): (usize, Option<Outcome>)| Some(FilledTable { place, outcome: outcome? });
        Ok(SchemaOutcome {
            tables: loaded.into_iter().enumerate().filter_map(filled).collect(),
            elapsed: started.elapsed(),
            part_end: Some(part_end),
            part_work: Some(PartWork { began: started, readings: vec![reading] }),
            fill,
            absent: absent.into_iter().collect(),
            ..outcome
        })
    }

    /// Takes the part's place. Creates missing objects, or checks existing ones, and lets the next part arrive. Returns
    /// the ledgers, and the tables that each table references.
    async fn ready(
        &self,
        parts: &Parts,
        session: &Session,
    ) -> Result<(Vec<Option<Ledger>>, Vec<Vec<usize>>), FillError> {
        let is_prepared = parts.take_place(session).await?;
        let found = record::find(&session.connection, &self.plan.request).await?;
        if record::filled(found.as_ref()) != self.plan.filled_before {
            return Err(BegunError::SchemaChanged.into());
        }
        session.run("BEGIN").await?;
        if !self.plan.is_resumed {
            create(session, self.plan).await?;
        }
        let mut ledgers: Vec<Option<Ledger>> = Vec::with_capacity(self.plan.tables.len());
        for (place, table) in self.plan.tables.iter().enumerate() {
            let begun = match table.plan().filter(|plan| plan.unfinished.is_none()) {
                Some(plan) => {
                    let told = self.observer.table_started(place, table);
                    Some(
                        begin_ledger(self.target, session, plan, &*told)
                            .await
                            .map_err(|e| self.failed(place, e))?,
                    )
                }
                None => None,
            };
            ledgers.push(begun);
        }
        session.run("COMMIT").await?;
        for (place, table) in self.plan.tables.iter().enumerate() {
            let Some(plan) = table.plan().filter(|plan| plan.unfinished.is_some()) else { continue };
            let told = self.observer.table_started(place, table);
            let ledger = continue_ledger(self.target, session, plan, is_prepared, &*told).await;
            ledgers[place] = Some(ledger.map_err(|error| self.failed(place, error))?);
        }
        let references = self.references(session).await?;
        parts.prepared(session).await?;
        Ok((ledgers, references))
    }

    /// Places of the tables that each table references by foreign keys that exist.
    async fn references(&self, session: &Session) -> Result<Vec<Vec<usize>>, FillError> {
        let names: Vec<String> =
            self.plan.tables.iter().map(|table| qualified(&table.schema, &table.name)).collect();
        let mut references = vec![Vec::new(); names.len()];
        for row in session.rows(include_str!("../sql/schema_references.sql"), &[&names]).await? {
            let place = |column| usize::try_from(row.get::<_, i32>(column)).unwrap_or_default();
            references[place("place")].push(place("referenced"));
        }
        Ok(references)
    }

    fn failed(&self, place: usize, source: FillError) -> FillError {
        failed(self.plan, (place, self.task_queue.filled()), source)
    }

    /// Carries out the steps after the rows, unless another part has done so; returns none then.
    async fn last_steps(&self) -> Result<Option<SchemaOutcome>, FillError> {
        let session = open_noticed(self.target).await?;
        let name = record::name(&self.plan.record_schema);
        // No part arrives meanwhile, and none loads.
        let started = Instant::now();
        for lock in [ARRIVAL, &name] {
            self.interruptible(async {
                while let Some(pid) = session.try_lock(lock).await? {
                    if started.elapsed() > SILENCE {
                        self.observer.waiting(&format!(
                            "until another part (server process {pid}) has started or has run the last steps"
                        ));
                    }
                    tokio::time::sleep(LOOKS_AT_END).await;
                }
                Ok(())
            })
            .await?;
        }
        let found = self.interruptible(record::find(&session.connection, &self.plan.request)).await?;
        if record::filled(found.as_ref()).is_none() {
            return Ok(None);
        }
        let steps = |text: &str| self.observer.step(text);
        let plan = plan_schema(self.survey, &session.connection, &self.plan.request, None, true, &steps);
        let Some(plan) = self.interruptible(plan).await? else { return Ok(None) };
        let run = SchemaRun {
            target: self.target,
            sessions: self.sessions,
            plan: &plan,
            survey: self.survey,
            clock: Clock::new(Limits::default(), self.survey),
            records: self.records.clone(),
            observer: self.observer,
            interrupt: self.interrupt.clone().boxed_local().shared(),
            task_queue: TaskQueue::of(&plan),
            has_rows: true,
        };
        run.tasks(&session).await.map(Some)
    }
}

impl PartRun<'_, '_> {
    /// Loads the part's chunks of the table at this place.
    async fn table(&mut self, place: usize) -> Result<(), FillError> {
        let run = self.run;
        let Some(plan) = run.plan.tables[place].plan() else { return Ok(()) };
        for referenced in self.references[place].clone() {
            self.rows_of(referenced).await?;
        }
        match plan.share() {
            Some(share) => self.load(place, share).await,
            None => Ok(()),
        }
    }

    /// Waits until the table at this place has all rows. Loads chunks of parts that are not there.
    async fn rows_of(&mut self, place: usize) -> Result<(), FillError> {
        let run = self.run;
        let table: &PlannedTable = &run.plan.tables[place];
        let Some(plan) = table.plan() else { return Ok(()) };
        let Some(own) = plan.share() else { return Ok(()) };
        let started = Instant::now();
        loop {
            let look = async {
                let Some(now) = self.now(place, plan).await? else { return Ok(None) };
                let there = self.parts.there(&self.session).await?;
                Ok(Some((now, there)))
            };
            let Some((now, there)) = run.interruptible(look).await? else { return Ok(()) };
            let owners = Queue::of(plan, &now, None).owners(&own);
            if owners.is_empty() {
                return Ok(());
            }
            let share = own.of_absent(&there);
            if Queue::of(plan, &now, Some(share.clone())).is_empty() {
                if started.elapsed() > SILENCE {
                    let others: Vec<String> = owners.iter().map(u32::to_string).collect();
                    let (others, of) = (others.join(", "), own.parts());
                    let (parts, load) = if owners.len() == 1 { ("part", "loads") } else { ("parts", "load") };
                    run.observer.waiting(&format!(
                        "for {parts} {others} of {of}, which {load} rows of {}",
                        table.name
                    ));
                }
                let pause = async {
                    tokio::time::sleep(LOOKS_AT_ROWS).await;
                    Ok(())
                };
                run.interruptible(pause).await?;
            } else {
                self.absent.extend(owners.iter().filter(|owner| !there.contains(owner)));
                self.load(place, share).await?;
            }
        }
    }

    /// The ledger of the table at this place as it is now; none if it is filled.
    async fn now(&self, place: usize, plan: &Plan) -> Result<Option<Ledger>, FillError> {
        match &self.ledgers[place] {
            Some(ledger) => Ok(ledger.now(&self.session, plan).await?),
            None => Ok(None),
        }
    }

    /// Loads the chunks of this share of the table at this place.
    async fn load(&mut self, place: usize, share: Share) -> Result<(), FillError> {
        let run = self.run;
        let table = &run.plan.tables[place];
        let (Some(plan), Some(ledger)) = (table.plan(), self.ledgers[place].clone()) else { return Ok(()) };
        let conduct = run.conduct(place, plan).await?;
        let told = run.observer.table_started(place, table);
        let stage = Stage::Rows { ledger: Box::new(ledger), share };
        let stop = run.stop().boxed_local();
        let outcome = run_stage(run.target, plan, conduct, stage, &*told, stop).await;
        let outcome = outcome.map_err(|error| run.failed(place, error))?;
        let before = self.loaded[place].take();
        self.loaded[place] = Some(match before {
            Some(before) => before.followed_by(outcome),
            None => outcome,
        });
        Ok(())
    }

    /// Reports that this part has loaded its chunks. Returns the work of other parts; none if only the later steps are left.
    async fn end(&self, part: Part) -> Result<Option<PartEnd>, FillError> {
        let plan: &SchemaPlan = self.run.plan;
        let reported = self.session.run(&record::report(&plan.record_schema, part)).await;
        let parts = match reported {
            Ok(()) => record::without_report(&self.session, &plan.record_schema, part).await?,
            // The last part has ended the fill, and dropped the record.
            Err(error) if record::is_missing(&error) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(parts) = parts else { return Ok(Some(PartEnd::Done)) };
        let mut chunks = 0;
        for (place, table) in plan.tables.iter().enumerate() {
            let Some(plan) = table.plan() else { continue };
            if let Some(now) = self.now(place, plan).await? {
                chunks += Queue::of(plan, &now, None).left();
            }
        }
        Ok((chunks > 0 || !parts.is_empty()).then_some(PartEnd::Others { chunks, parts }))
    }
}
