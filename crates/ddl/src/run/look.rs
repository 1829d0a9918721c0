//! Runs each statement and reads what it did: in its transaction, after it and before the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::{Duration, Instant};

use connect::{ConnectError, SqlState, Target};
use server::{Session, quote};

use crate::encoding;
use crate::find::{
    Class, Counted, Held, Kind, Known, Read, Relation, Relations, add_uncounted, drop_work_on_empty,
    shown_relation, works,
};
use crate::objects::Objects;
use crate::outcome::{ByText, Effects, Failed, Obstacles, View};
use crate::parted;
use crate::parts::{Parts, Write};
use crate::rowless::Unmatched;
use crate::run::blockers::{self, Blockers};
use crate::run::called;
use crate::run::counters::Counters;
use crate::run::databases::Databases;
use crate::run::events;
use crate::run::facts;
use crate::run::failure;
use crate::run::files;
use crate::run::named::within;
use crate::run::pace::Pace;
use crate::run::reach::{attachment, concerned, is_partitioned, is_within};
use crate::run::rules::Rules;
use crate::run::space::Sampler;
use crate::run::types::{Changed, Types};
use crate::run::unmatched::{Earlier, Readings};
use crate::run::vacuum;
use crate::run::watch::{WaitsFor, Watcher, read_of};
use crate::run::workers::Workers;
use crate::script::{Statement, StatementKind};
use crate::triggers::Fired;

/// Times between two readings of the locks of a statement that runs outside of transactions. Such a statement waits as much longer for each
/// transaction that holds it up.
const PACE: Pace = Pace { shortest: Duration::from_millis(2), longest: Duration::from_millis(20) };

/// A statement that was looked at.
pub(crate) enum Looked {
    /// It ran.
    Ran(Box<Ran>),
    /// The server refused it.
    Failed(Failed),
}

/// Results of a statement that ran.
pub(crate) struct Ran {
    /// None if it concerns only the session or the transaction.
    pub(crate) effects: Option<Effects>,
    /// Time from sending it to the server's answer; outside of a transaction with its commit.
    pub(crate) took: Duration,
    /// Bytes of WAL that the server wrote meanwhile.
    pub(crate) wal: i64,
    /// Whether the look made its time, WAL or space others: the statement ran before, up to its own COMMIT; or it was a VACUUM, which waits up to 5 s
    /// for a lock to truncate the table while another transaction has a lock on it (vacuumlazy.c: `VACUUM_TRUNCATE_LOCK_TIMEOUT`).
    pub(crate) is_disturbed: bool,
}

/// The session of the migration and the one that watches it.
pub(crate) struct Look<'a> {
    target: &'a Target,
    session: Session,
    watcher: Watcher,
    /// Reads locks from another database: CREATE INDEX CONCURRENTLY waits for the snapshots of all that read in its own.
    beside: Watcher,
    sampler: Sampler,
    /// Notes the roles that the statements make.
    databases: &'a Databases,
    counters: Counters,
    is_in_transaction: bool,
    /// Relations before the migration.
    was_there: BTreeSet<u32>,
    /// Relations that the open transaction has made, so that nobody else can wait for them.
    made: BTreeSet<u32>,
    /// The statements that ran.
    earlier: Earlier,
}

/// A reading in a transaction.
struct Reading {
    relations: Relations,
    locks: Held,
    types: Types,
}

impl<'a> Look<'a> {
    /// Connects to a copy. `target` of the sessions that only watch has none of the original's settings.
    pub(crate) async fn begin(
        target: &'a Target,
        migrating: &Target,
        databases: &'a Databases,
    ) -> Result<Self, ConnectError> {
        let outside = databases.outside();
        // Not the first session of the database, as in the runs that are only timed.
        let first = Session::open(target).await?;
        let session = Session::open(migrating).await?;
        let pid = session.pid().await?;
        let watcher = Watcher::new(first, pid);
        let beside = Watcher::new(Session::open(outside).await?, pid);
        events::begin(&session).await?;
        let sampler = Sampler::begin(outside, target.dbname()).await?;
        let counters = Counters::default();
        let made = BTreeSet::new();
        let query = "SELECT oid, CASE WHEN relkind IN ('r', 'm') THEN coalesce(pg_catalog.pg_relation_size(oid), 0) ELSE 0 END > 0 \
                     AS has_rows FROM pg_catalog.pg_class WHERE oid >= 16384";
        let rows = session.rows(query, &[]).await?;
        let was_there = rows.iter().map(|row| row.get("oid")).collect();
        let had_rows = rows.iter().filter(|row| row.get("has_rows")).map(|row| row.get("oid")).collect();
        Ok(Self {
            target,
            session,
            watcher,
            beside,
            sampler,
            databases,
            counters,
            is_in_transaction: false,
            was_there,
            made,
            earlier: Earlier::new(had_rows),
        })
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// If the connection is lost. What the server says of the statement is no error.
    pub(crate) async fn statement(&mut self, statement: &Statement) -> Result<Looked, ConnectError> {
        let looked = match statement.kind {
            StatementKind::Transaction | StatementKind::Session => {
                let before = self.watcher.wal().await?;
                let (run, took) = timed(self.session.run(&statement.sql)).await;
                match failure::refused(run)? {
                    Ok(()) => {
                        let wal = self.watcher.wal().await? - before;
                        Looked::Ran(Box::new(Ran { effects: None, took, wal, is_disturbed: false }))
                    }
                    Err(error) => Looked::Failed(failure::of_statement(&error, statement)),
                }
            }
            StatementKind::MeasuredAlone if !self.is_in_transaction => self.alone(statement, false).await?,
            StatementKind::Measured | StatementKind::MeasuredAlone => self.measured(statement).await?,
        };
        self.is_in_transaction = self.watcher.is_in_transaction().await?;
        if !self.is_in_transaction || statement.ends_transaction() {
            self.made.clear();
        }
        Ok(looked)
    }

    /// Whether a transaction is open after the last statement.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    /// The session of the migration, and the one that watches it.
    pub(crate) fn sessions(&self) -> (&Session, &Watcher) {
        (&self.session, &self.watcher)
    }

    /// Adds the rules of the tables after the last statement, which is at this place, as the migration sees them.
    pub(crate) async fn read_rules(&self, rules: &mut Rules, place: usize) -> Result<(), ConnectError> {
        rules.read(&self.session, (place, self.is_in_transaction)).await
    }

    /// Runs a statement in its transaction, or in one around it alone if it has none and can run in one.
    async fn measured(&mut self, statement: &Statement) -> Result<Looked, ConnectError> {
        let is_own = !self.is_in_transaction;
        if is_own {
            self.session.run("BEGIN").await?;
        }
        events::forget(&self.session).await?;
        let vacuums = vacuum::counters(&self.watcher, statement).await?;
        let before = self.reading(statement).await?;
        let target = self.oid_of(statement.target()).await?;
        let parts = Parts::of(&statement.sql);
        let indexed = parts.create_index().map(|create| create.table.to_owned());
        let named = target.or(self.oid_of(indexed).await?);
        let attached = self.oid_of(parts.attached().map(str::to_owned)).await?;
        let nullable = facts::nullable(&self.session, statement, named).await?;
        let view = self.obstacle_of_view(&parts).await?;
        let partitions = named.map_or_else(Vec::new, |oid| parted::tree(oid, &before.relations));
        let tables: Vec<u32> = named.into_iter().chain(partitions.iter().map(|node| node.oid)).collect();
        let objects = facts::objects(&self.session, &tables).await?;
        let workers = Workers::begin(&self.watcher, &self.session).await?;
        let wal = self.watcher.wal().await?;
        let ((run, mut took), space) = self.sampler.during(timed(self.session.run(&statement.sql))).await?;
        if let Err(error) = failure::refused(run)? {
            if is_own {
                self.session.run("ROLLBACK").await?;
                // It does not run in a transaction; or a body of it ends one.
                let did_run = match error.sqlstate() {
                    Some(&SqlState::ACTIVE_SQL_TRANSACTION) => Some(false),
                    Some(&SqlState::INVALID_TRANSACTION_TERMINATION) => Some(true),
                    _ => None,
                };
                if let Some(did_run) = did_run {
                    return self.alone(statement, did_run).await;
                }
            }
            return Ok(Looked::Failed(failure::of_statement(&error, statement)));
        }
        let mut after = self.reading(statement).await?;
        let counted = workers.counted;
        workers.add(&self.watcher, &before.relations, &mut after.relations).await?;
        let adds_domain = facts::adds_domain(&self.session, &parts, target).await?;
        let objects = facts::objects(&self.session, &tables).await?.since(&objects);
        self.databases.note_roles(&self.session, statement).await?;
        if is_own {
            let (run, committed) = timed(self.session.run("COMMIT")).await;
            if let Err(error) = failure::refused(run)? {
                return Ok(Looked::Failed(failure::of_statement(&error, statement)));
            }
            took += committed;
        }
        let wal = self.watcher.wal().await? - wal;
        let vacuumed = vacuum::counted(&self.watcher, vacuums, true, &BTreeMap::new()).await?;
        let known = known(statement, counted, &vacuumed);
        let mut works = works(&before.relations, &after.relations, known);
        drop_work_on_empty(&mut works, [&before.relations, &after.relations], &self.was_there);
        let readings = Readings {
            locks: [&before.locks, &after.locks],
            relations: [&before.relations, &after.relations],
            works: &works,
        };
        let (unmatched, by_text) = self.unmatched(statement, Some(readings)).await?;
        let excluding = facts::excluding(&self.session, statement, &works).await?;
        let locks = after.locks.since(&before.locks, [&before.relations, &after.relations], &self.made);
        let taken = after.locks.taken(&before.locks, &before.relations, &self.made);
        let worked = works.iter().map(|work| work.table).chain(named);
        let is_temporary = |oid| before.relations.get(oid).is_some_and(|relation| relation.is_temporary);
        let is_unshared = |oid: &u32| self.made.contains(oid) || is_temporary(*oid);
        let worked = worked.filter(|oid| !is_unshared(oid)).collect();
        let is_unshared = named.as_ref().is_some_and(is_unshared);
        let inherited = before.locks.blocking(&self.made, &before.relations);
        let is_made = |oid: &&u32| before.relations.get(**oid).is_none();
        self.made.extend(after.relations.0.keys().filter(is_made));
        let effects = Effects {
            class: Class::of(&works, target, &before.relations, false),
            is_partitioned: is_partitioned(&works, target, &after.relations),
            is_within: is_within(&works, target, &before.relations),
            is_unshared,
            partitions,
            objects,
            nullable,
            adds_domain,
            attached: attached.zip(target).and_then(|oids| attachment(oids, &before.relations)),
            obstacles: Obstacles { excluding, view },
            fired: Fired::default(),
            tables: concerned(&works, &locks, &before.relations),
            held: after.locks.tables(&before.relations),
            taken,
            works,
            locks,
            inherited,
            kept_on_own: before.locks.strongest_on(&worked),
            unknown_locks: None,
            unmatched,
            by_text,
            changed: changed([&before, &after], &parts, target),
            is_alone: false,
            waits: 0,
            space,
            missed_temporary: false,
        };
        Ok(Looked::Ran(Box::new(Ran { effects: Some(effects), took, wal, is_disturbed: false })))
    }

    /// The obstacle of the materialized view that REFRESH names, if it has one.
    async fn obstacle_of_view(&self, parts: &Parts<'_>) -> Result<Option<View>, ConnectError> {
        let refreshed = self.oid_of(parts.refreshed().map(str::to_owned)).await?;
        facts::obstacle_of_view(&self.session, refreshed).await
    }

    /// Runs a statement outside of transactions, and reads its locks whenever it waits. `did_run` tells whether it ran in a transaction before,
    /// which was rolled back: its code ends transactions, and with each the counters of its session.
    async fn alone(&mut self, statement: &Statement, did_run: bool) -> Result<Looked, ConnectError> {
        events::forget(&self.session).await?;
        let vacuums = vacuum::counters(&self.watcher, statement).await?;
        let parts = Parts::of(&statement.sql);
        // It reads the tables that reference the partition.
        let detaches = parts.detaches_concurrently();
        let counted = if did_run || detaches { self.counted().await? } else { None };
        let files = files::before(&self.watcher, statement, None).await?;
        let before = self.relations().await?.with_counters(counted.as_ref());
        let types = Types::around(&self.session, statement).await?;
        let target = self.oid_of(statement.target()).await?;
        let tables = blockers::tables(&self.session, statement, &before).await?;
        let mut blockers = Blockers::begin(self.target, &tables, statement).await?;
        let mut held = Held::default();
        let mut waits = 0;
        let wal = self.watcher.wal().await?;
        let held_up = self.held_up(&statement.sql, &mut blockers, &mut held, &mut waits);
        let ((run, took), space) = self.sampler.during(timed(held_up)).await?;
        let refused = blockers.end().await;
        if let Err(error) = failure::refused(run)? {
            return Ok(Looked::Failed(failure::of_statement(&error, statement)));
        }
        let wal = self.watcher.wal().await? - wal;
        let space = files::at_least(&self.watcher, files, space).await?;
        let after = self.relations().await?;
        let is_disturbed = did_run || vacuums.is_some();
        let toast = vacuum::toast(statement, &before);
        let vacuumed = vacuum::counted(&self.watcher, vacuums, tables.len() == 1, &toast).await?;
        let counted = if counted.is_some() { self.counted().await? } else { None };
        let after = after.with_counters(counted.as_ref());
        let is_counted = counted.is_some();
        let known = known(statement, if is_counted { Counted::All } else { Counted::Nothing }, &vacuumed);
        let mut works = works(&before, &after, known);
        if did_run && !is_counted {
            add_uncounted(&mut works, &held.tables(&before), &before);
        }
        if statement.is_vacuum() {
            vacuum::add_locks(&mut held, statement, &vacuumed, &works, &before);
        }
        if detaches || parts.drops_indexes_concurrently() {
            held.forget_exclusive_on_indexes([&before, &after]);
        }
        let excluding = facts::excluding(&self.session, statement, &works).await?;
        let mut locks = held.since(&Held::default(), [&before, &after], &BTreeSet::new());
        if parts.drops_index_concurrently() {
            events::dropped(&self.session).await?.add_dead(&mut locks, &before);
        }
        let (locks_before, relations) = (Held::default(), [&before, &after]);
        let readings = Readings { locks: [&locks_before, &held], relations, works: &works };
        let (unmatched, by_text) = self.unmatched(statement, is_counted.then_some(readings)).await?;
        let unknown_locks = refused.or_else(|| vacuum::unknown(statement, &vacuumed, &works));
        drop_work_on_empty(&mut works, [&before, &after], &self.was_there);
        let effects = Effects {
            class: Class::of(&works, target, &before, waits > 0),
            is_partitioned: is_partitioned(&works, target, &after),
            is_within: is_within(&works, target, &before),
            is_unshared: false,
            partitions: Vec::new(),
            objects: Objects::default(),
            nullable: Vec::new(),
            adds_domain: false,
            attached: None,
            obstacles: Obstacles { excluding, view: None },
            fired: Fired::default(),
            tables: concerned(&works, &locks, &before),
            held: held.tables(&before),
            taken: held.taken(&Held::default(), &before, &BTreeSet::new()),
            works,
            locks,
            inherited: Vec::new(),
            kept_on_own: None,
            unknown_locks,
            unmatched,
            by_text,
            changed: types.changed(&Types::around(&self.session, statement).await?, (&[][..], |_| false)),
            is_alone: true,
            waits,
            space,
            missed_temporary: false,
        };
        Ok(Looked::Ran(Box::new(Ran { effects: Some(effects), took, wal, is_disturbed })))
    }

    /// The server's counters, with all that the session has done.
    async fn counted(&mut self) -> Result<Option<BTreeMap<u32, Read>>, ConnectError> {
        self.counters.read(&self.session, &self.watcher).await
    }

    /// Runs a statement while blockers hold it up. Counts its waits for the end of transactions.
    async fn held_up(
        &self,
        sql: &str,
        blockers: &mut Blockers<'_>,
        held: &mut Held,
        waits: &mut usize,
    ) -> Result<(), ConnectError> {
        let start = Instant::now();
        let mut run = pin!(self.session.run(sql));
        loop {
            tokio::select! {
                biased;
                done = &mut run => return done,
                () = PACE.pause(start) => {}
            }
            let locks = self.beside.locks().await?;
            if !blockers.is_over() {
                held.extend(&locks.held);
            }
            if let Some(waits_for) = locks.waits {
                *waits += usize::from(waits_for == WaitsFor::Transaction);
                blockers.release().await?;
            }
        }
    }

    /// Tables of which the statement writes rows, but changed none, if there are readings with counters; and those that its text and its functions name
    /// for work.
    async fn unmatched(
        &mut self,
        statement: &Statement,
        readings: Option<Readings<'_>>,
    ) -> Result<(Vec<Unmatched>, ByText), ConnectError> {
        let (mut writes, mut by_text) = (Vec::new(), ByText::default());
        if !statement.runs_code() {
            return Ok((Vec::new(), by_text));
        }
        let code = called::code(&self.session, &statement.sql).await?;
        for write in Write::all_of(&statement.sql).into_iter().chain(code.writes) {
            writes.push((self.oid_of(Some(write.table.clone())).await?, write));
        }
        for table in Parts::copied_by(&statement.sql).into_iter().chain(code.copied) {
            by_text.copied.extend(self.oid_of(Some(table)).await?);
        }
        if statement.is_code() {
            by_text.rewritten = events::rewritten(&self.session).await?;
        }
        by_text.written.extend(writes.iter().filter_map(|(oid, _)| *oid));
        let Some(readings) = readings else { return Ok((Vec::new(), by_text)) };
        let migration = (&self.session, self.is_in_transaction);
        Ok((self.earlier.unmatched(migration, &writes, readings).await?, by_text))
    }

    /// A reading before or after a statement.
    async fn reading(&self, statement: &Statement) -> Result<Reading, ConnectError> {
        let relations = self.relations().await?;
        let types = Types::around(&self.session, statement).await?;
        Ok(Reading { relations, locks: self.watcher.locks().await?.held, types })
    }

    /// The relations, with names in UTF-8 whatever the statement before has set.
    async fn relations(&self) -> Result<Relations, ConnectError> {
        self.session.run(encoding::RESTORE).await?;
        let rows = self.session.rows(include_str!("../sql/relations.sql"), &[]).await?;
        let relation = |row: &tokio_postgres::Row| {
            let relation = Relation {
                name: shown_relation(row.get("schema"), row.get("name")),
                schema: quote::identifier(row.get("schema")),
                sql: quote::qualified(row.get("schema"), row.get("name")),
                kind: Kind::of(row.get("kind")),
                file: row.get("file"),
                tablespace: row.get("tablespace"),
                owner: row.get("owner"),
                parent: row.get("parent"),
                bytes: row.get("bytes"),
                rows: row.get("rows"),
                is_temporary: row.get("temporary"),
                is_rewritten: row.get("rewritten"),
                read: read_of(row),
            };
            (row.get("oid"), relation)
        };
        Ok(Relations(rows.iter().map(relation).collect()).with_names_of_toast())
    }

    /// The table of this name, as a statement has it.
    async fn oid_of(&self, table: Option<String>) -> Result<Option<u32>, ConnectError> {
        let Some(target) = table.and_then(|name| within(&name, self.target.dbname())) else {
            return Ok(None);
        };
        let query = "SELECT coalesce(pg_catalog.to_regclass($1)::oid, 0::oid) AS target";
        let found: u32 = self.session.row(query, &[&target]).await?.get("target");
        Ok(Some(found).filter(|oid| *oid != 0))
    }

    pub(crate) async fn end(self) {
        self.sampler.close().await;
        self.beside.close().await;
        self.watcher.close().await;
        self.session.close().await;
    }
}

/// The result of a future, and the time that it took.
pub(crate) async fn timed<T>(run: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let done = run.await;
    (done, start.elapsed())
}

/// The parts of tables that a statement drops, and the columns to which it gives a type, between two readings.
fn changed([before, after]: [&Reading; 2], parts: &Parts<'_>, target: Option<u32>) -> Vec<Changed> {
    let is_altered = |oid| target.is_some_and(|target| before.relations.is_within(oid, target));
    let typed = parts.typed_columns();
    before.types.changed(&after.types, (typed.as_slice(), is_altered))
}

/// Facts about a statement that the readings do not show.
fn known<'a>(statement: &Statement, counted: Counted, vacuumed: &'a BTreeSet<u32>) -> Known<'a> {
    let (is_reindex, is_truncate) = (statement.is_reindex(), statement.is_truncate());
    Known { counted, is_reindex, is_truncate, vacuumed }
}
