//! Carries a measurement out: rehearses the migration without rows, fills databases at several sizes, looks at each
//! statement in a copy of the largest, and times them in further copies of each.

mod blockers;
mod clock;
mod cost;
mod databases;
mod failure;
mod fill;
mod goal;
mod look;
mod rehearse;
mod stall;
mod suit;
mod watch;

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use ::fill::TableRows;
use connect::Target;
use futures_util::future::LocalBoxFuture;
use server::fault::caught;
use server::interruption::{Ended, until_stopped};
use server::{DataDirectory, Session, Survey};
use tokio::sync::watch as channel;

use self::clock::Clock;
use self::cost::Run;
use self::databases::Databases;
use self::fill::{Filled, Filler, Scales};
use self::look::{Look, Looked};
use self::rehearse::{Shape, Tables, changed};
use self::stall::Candidates;
use crate::error::DdlError;
use crate::find::shown_relation;
use crate::forecast::{Memory, forecast};
use crate::outcome::{AtSize, Outcome, Probed, Stall, StatementOutcome, TableAt};
use crate::plan::{Plan, PlannedSize, PlannedTable};
use crate::request::{Amount, Probes, Request};
use crate::script::StatementKind;

/// The server on which is measured.
pub struct Site<'a> {
    /// The server; databases of pgrig's own are made beside the one that it names.
    pub target: &'a Target,
    /// Its data directory.
    pub directory: &'a DataDirectory,
    /// pgrig's version.
    pub pgrig: &'a str,
}

/// Is told of progress, in order.
pub trait Observer {
    /// The work that is planned.
    fn planned(&mut self, plan: &Plan);
    /// A stage begins: a phrase for people.
    fn stage(&mut self, text: &str);
    /// A statement begins to be looked at, of so many.
    fn statement(&mut self, number: usize, of: usize);
    /// So much time is left, about.
    fn left(&mut self, left: Duration);
}

/// Measures a migration. `interrupt` resolves when the user wants to stop. In any case the databases that it makes are
/// dropped; those that a killed run left, too.
///
/// # Errors
/// If the server fails, the tables cannot be filled, or the user interrupts it. A statement that the server refuses is no
/// error: the outcome has it.
pub fn run<'a>(
    site: &'a Site<'a>,
    request: &'a Request,
    observer: &'a mut dyn Observer,
    interrupt: LocalBoxFuture<'a, ()>,
) -> LocalBoxFuture<'a, Result<Outcome, DdlError>> {
    Box::pin(async move {
        let name = Databases::name();
        // Its statements are cancelled, and not those of other sessions on the same server.
        let target = site.target.clone().apart();
        let (stop, stopped) = channel::channel(false);
        let measurement = Measurement { site, request, target: &target, stopped };
        let work = pin!(caught(measurement.run(&name, observer)));
        let ended = until_stopped(&target, interrupt, work, || {
            stop.send_replace(true);
        });
        let result = match ended.await {
            Ended::Done(result) => result,
            Ended::Stopped(_) => Err(DdlError::Interrupted),
        };
        match (databases::finish(&target.clone().apart(), &name).await, result) {
            (Ok(()), result) => result,
            // A lost server explains both.
            (Err(_), Err(error @ DdlError::Connect(_))) => Err(error),
            (Err((database, why)), result) => {
                Err(DdlError::NotDropped { database, why, ended: result.err().map(Box::new) })
            }
        }
    })
}

struct Measurement<'a> {
    site: &'a Site<'a>,
    request: &'a Request,
    target: &'a Target,
    stopped: channel::Receiver<bool>,
}

impl Measurement<'_> {
    async fn run(&self, name: &str, observer: &mut dyn Observer) -> Result<Outcome, DdlError> {
        let databases = Databases::begin(self.target, name.to_owned()).await?;
        let (settings, memory) = self.settings().await?;
        let site = Copies { databases: &databases, settings: &settings };
        observer.stage("running the migration on tables without rows");
        let mut recipe = self.rehearse(&site, observer).await?;
        let mut unused = recipe.empty.clone();
        let known_empty = self.request.schema.empty();
        unused.retain(|name| !known_empty.contains(name));
        let empty = databases.create("plan").await?;
        let scales = recipe.scales(&empty).await?;
        databases.drop(&empty).await?;
        observer.planned(&self.plan(&recipe, &scales, settings.clone()));

        let sizes = self.request.effort.sizes();
        let mut clock = Clock::begin(sizes);
        let mut filled: Vec<Filled> = Vec::new();
        let mut statements = self.statements();
        for (number, (part, _)) in sizes.iter().enumerate() {
            observer.stage(&format!("filling the tables, size {} of {}", number + 1, sizes.len()));
            let database = databases.create(&format!("size{number}")).await?;
            let scale = scales.largest * part;
            filled.push(recipe.fill(database, scale, &scales.rules, self.interrupt()).await?);
            clock.did(*part);
            if number == 0 && sizes.len() > 1 {
                // A statement that fails does so early, and the first run tells how long all take.
                site.look_at_all(&filled[0], &mut statements, observer).await?;
                site.time(&mut statements, &filled, 0).await?;
                clock.did(*part);
                observer.left(clock.left());
            }
        }
        let goal = goal::goal(self.request, &scales, &filled);
        let Some(largest) = filled.last() else { return Ok(Outcome::default()) };
        observer.stage("looking at each statement");
        site.look_at_all(largest, &mut statements, observer).await?;
        clock.did(1.0);
        self.rounds(&site, &filled, &mut statements, &mut clock, observer).await?;
        for one in &mut statements {
            let Some(found) = &one.found else { continue };
            let (bytes, rows) = sized(&one.tables, &goal);
            one.forecast = forecast(found.class, &one.measured, bytes, rows, memory);
        }
        let (probed, probed_blocked) = self.stalls(&site, largest, &mut statements, observer).await?;
        let bytes = largest.tables.iter().map(|table| table.bytes).sum();
        let unfilled = unfilled(&statements, &largest.tables, &unused);
        Ok(Outcome { statements, bytes, probed, probed_blocked, unfilled })
    }

    /// Times the statements: the sizes in turn, so that a machine which becomes slower changes all sizes alike.
    async fn rounds(
        &self,
        site: &Copies<'_>,
        filled: &[Filled],
        statements: &mut [StatementOutcome],
        clock: &mut Clock,
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let sizes = self.request.effort.sizes();
        let most = sizes.iter().map(|(_, runs)| *runs).max().unwrap_or_default();
        let all: usize = sizes.iter().map(|(_, runs)| runs).sum();
        let mut done = usize::from(sizes.len() > 1);
        for round in 0..most {
            for (place, (part, _)) in sizes.iter().enumerate().filter(|(_, (_, runs))| round < *runs) {
                // The first run at the smallest size was before.
                if round == 0 && place == 0 && sizes.len() > 1 {
                    continue;
                }
                done += 1;
                observer.stage(&format!("timing the statements, run {done} of {all}"));
                site.time(statements, filled, place).await?;
                clock.did(*part);
                if done < all {
                    observer.left(clock.left());
                }
            }
        }
        Ok(())
    }

    /// Measures the waits of readers and writers at the largest size; again with a blocker, if there is one.
    async fn stalls(
        &self,
        site: &Copies<'_>,
        largest: &Filled,
        statements: &mut [StatementOutcome],
        observer: &mut dyn Observer,
    ) -> Result<(Option<Probed>, Option<Probed>), DdlError> {
        let Some(probes) = &self.request.probes else { return Ok((None, None)) };
        observer.stage("measuring the waits of readers and writers during the migration");
        let (free, found) = site.stall(largest, statements, probes, None).await?;
        statements.iter_mut().zip(found).for_each(|(one, stall)| one.stall = stall);
        let Some(blocker) = probes.blocker else { return Ok((Some(free), None)) };
        observer.stage(&format!("the same, with a transaction that is open for {} s", blocker.as_secs_f64()));
        let (behind, found) = site.stall(largest, statements, probes, Some(blocker)).await?;
        statements.iter_mut().zip(found).for_each(|(one, stall)| one.blocked = stall);
        Ok((Some(free), Some(behind)))
    }

    fn statements(&self) -> Vec<StatementOutcome> {
        let statements = self.request.script.statements.iter().zip(1..);
        let outcome = |(statement, number): (&crate::script::Statement, usize)| StatementOutcome {
            number,
            statement: statement.clone(),
            found: None,
            failed: None,
            tables: Vec::new(),
            measured: Vec::new(),
            forecast: None,
            stall: None,
            blocked: None,
        };
        statements.map(outcome).collect()
    }

    /// Runs the migration on empty tables, and decides which are filled, and with what.
    async fn rehearse(&self, site: &Copies<'_>, observer: &mut dyn Observer) -> Result<Filler<'_>, DdlError> {
        let empty = site.databases.create("empty").await?;
        let session = Session::open(&empty).await?;
        ::fill::create_schema(&session.connection, &self.request.schema.sql).await?;
        session.close().await;
        let (tables, before) = (Tables::read(&empty).await?, Shape::read(&empty).await?);
        let mut statements = self.statements();
        let migrated = site.look(&empty, &mut statements, observer).await?;
        let after = Shape::read(&migrated).await?;
        site.databases.drop(&migrated).await?;
        let named = self.named();
        for (option, name) in &named {
            if !tables.filled().any(|(_, table)| table.is_named(name)) {
                let others = tables.filled().map(|(_, table)| shown_relation(&table.schema, &table.name));
                let (table, tables) = ((*name).to_owned(), others.collect::<Vec<_>>().join(", "));
                return Err(DdlError::NoSuchTable { option, table, tables });
            }
        }
        let named: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
        let used = tables.used(&statements, &named);
        let unused = tables.filled().filter(|(oid, _)| !used.contains(oid));
        let mut empty_ones: Vec<String> = unused.map(|(_, table)| table.plain_name()).collect();
        empty_ones.extend(self.request.schema.empty());
        let changed = changed(&statements);
        let additions = suit::additions(&empty, &tables, [&before, &after], &changed).await?;
        site.databases.drop(&empty).await?;
        let specs = before.casts.specs(&after.casts, &tables, &changed);
        Ok(Filler { site: self.site, request: self.request, empty: empty_ones, additions, specs })
    }

    /// The tables that options name, each with its option.
    fn named(&self) -> Vec<(&'static str, &str)> {
        let of_column = |text: &'_ str| -> Option<usize> { text.split('=').next()?.rfind('.') };
        let columns =
            self.request.columns.iter().filter_map(|text| Some(("--column", &text[..of_column(text)?])));
        let mut named: Vec<(&'static str, &str)> = columns.collect();
        match &self.request.amount {
            Amount::Sizes(sizes) => named.extend(sizes.iter().map(|size| ("--size", size.table.as_str()))),
            Amount::Rules(rules) => {
                for rule in rules {
                    named.push(("--rows", &rule.table));
                    if let TableRows::PerRow { of, .. } = &rule.rows {
                        named.push(("--rows", of));
                    }
                }
            }
            Amount::AsOriginal | Amount::Size(_) | Amount::Rows(_) => {}
        }
        named
    }

    fn plan(&self, recipe: &Filler<'_>, scales: &Scales, settings: Vec<(String, String)>) -> Plan {
        let planned = scales.plan.as_ref();
        let tables =
            planned.map_or(&[][..], |plan| plan.tables.as_slice()).iter().map(|table| PlannedTable {
                name: shown_relation(&table.schema, &table.name),
                rows: table.rows,
                bytes: table.predicted,
            });
        let bytes = planned.map_or(0.0, fill::bytes);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a prediction")]
        let size = |(part, runs): &(f64, usize)| PlannedSize { bytes: (bytes * part) as u64, runs: *runs };
        Plan {
            tables: tables.collect(),
            empty: recipe.empty.clone(),
            sizes: self.request.effort.sizes().iter().map(size).collect(),
            suited: recipe
                .additions
                .iter()
                .map(|addition| addition.add.clone())
                .chain(recipe.specs.clone())
                .collect(),
            settings,
            warnings: planned.map_or_else(Vec::new, |plan| plan.warnings.clone()),
        }
    }

    /// Resolves when the user interrupts the run.
    fn interrupt(&self) -> LocalBoxFuture<'_, ()> {
        let mut stopped = self.stopped.clone();
        Box::pin(async move {
            // The sender outlives this.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
    }

    /// The settings of the original that this server knows, and the server's memory. Refuses a server on which WAL would not
    /// be measured.
    async fn settings(&self) -> Result<(Vec<(String, String)>, Memory), DdlError> {
        let session = Session::open(self.target).await?;
        let survey = Survey::for_tables(&session.connection, self.site.directory, self.site.pgrig).await?;
        if survey.server.wal_level == "minimal" {
            return Err(DdlError::WalLevel);
        }
        let original = &self.request.schema.settings;
        let known: Vec<&String> = original.keys().collect();
        let query = "SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1)";
        let known: Vec<String> =
            session.rows(query, &[&known]).await?.iter().map(|row| row.get("name")).collect();
        session.close().await;
        let known = original.iter().filter(|(name, _)| known.contains(name));
        let settings: Vec<_> = known.map(|(name, value)| (name.clone(), value.clone())).collect();

        let session = Session::open(&with_settings(self.target, &settings)).await?;
        let query = "SELECT pg_catalog.pg_size_bytes(current_setting('maintenance_work_mem')) AS sort, \
                     pg_catalog.pg_size_bytes(current_setting('max_wal_size')) AS wal";
        let row = session.row(query, &[]).await?;
        session.close().await;
        let whole = |name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
        let is_here = survey.environment.server_is_local == Some(true);
        let memory = Memory {
            shared_buffers: survey.server.shared_buffers,
            maintenance_work_mem: whole("sort"),
            max_wal_size: whole("wal"),
            machine: if is_here { survey.environment.client.memory } else { 0 },
        };
        Ok((settings, memory))
    }
}

/// Runs the migration in copies of databases.
struct Copies<'a> {
    databases: &'a Databases,
    settings: &'a [(String, String)],
}

impl Copies<'_> {
    async fn look_at_all(
        &self,
        filled: &Filled,
        statements: &mut [StatementOutcome],
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let copy = self.look(&filled.database, statements, observer).await?;
        for one in statements {
            let oids = one.found.as_ref().map(|found| &found.tables);
            let is_of = |table: &&TableAt| oids.is_some_and(|oids| oids.contains(&table.oid));
            one.tables = filled.tables.iter().filter(is_of).map(|table| table.name.clone()).collect();
        }
        Ok(self.databases.drop(&copy).await?)
    }

    /// Looks at the statements in a copy, which it returns. If one fails, begins anew without it.
    async fn look(
        &self,
        original: &Target,
        statements: &mut [StatementOutcome],
        observer: &mut dyn Observer,
    ) -> Result<Target, DdlError> {
        loop {
            let copy = self.databases.copy(original, "look").await?;
            if self.look_once(&copy, statements, observer).await? {
                return Ok(copy);
            }
            self.databases.drop(&copy).await?;
        }
    }

    /// Whether all statements ran that had not failed before.
    async fn look_once(
        &self,
        copy: &Target,
        statements: &mut [StatementOutcome],
        observer: &mut dyn Observer,
    ) -> Result<bool, DdlError> {
        let migrating = self.with_settings(copy);
        let mut look = Look::begin(copy, &migrating).await?;
        let of = statements.len();
        let mut all_ran = true;
        let until = runnable(statements);
        for one in statements[..until].iter_mut().filter(|one| one.failed.is_none()) {
            observer.statement(one.number, of);
            match look.statement(&one.statement).await? {
                Looked::Ran(found) => one.found = found,
                Looked::Failed(failed) => {
                    (one.found, one.failed) = (None, Some(failed));
                    all_ran = false;
                    break;
                }
            }
        }
        look.end().await;
        Ok(all_ran)
    }

    /// Times the statements in a copy of the size at this place. If one fails that did not before, begins anew without it.
    async fn time(
        &self,
        statements: &mut [StatementOutcome],
        filled: &[Filled],
        place: usize,
    ) -> Result<(), DdlError> {
        let of = &filled[place];
        loop {
            let copy = self.databases.copy(&of.database, "cost").await?;
            let run =
                cost::measure(&copy, &self.with_settings(&copy), &statements[..runnable(statements)]).await?;
            self.databases.drop(&copy).await?;
            match run {
                Run::Failed(number, failed) => statements[number].failed = Some(failed),
                Run::Done(costs) => {
                    for (one, cost) in statements.iter_mut().zip(costs) {
                        let Some(cost) = cost else { continue };
                        if one.measured.len() <= place {
                            let (bytes, rows) = sized(&one.tables, &of.tables);
                            one.measured.push(AtSize { bytes, rows, runs: Vec::new() });
                        }
                        one.measured[place].runs.push(cost);
                    }
                    return Ok(());
                }
            }
        }
    }

    /// The waits of readers and writers in a copy, those of each statement by its place.
    async fn stall(
        &self,
        filled: &Filled,
        statements: &[StatementOutcome],
        probes: &Probes,
        blocker: Option<Duration>,
    ) -> Result<(Probed, Vec<Option<Stall>>), DdlError> {
        let copy = self.databases.copy(&filled.database, "stall").await?;
        let tables = Tables::read(&copy).await?;
        let held = statements.iter().filter_map(|one| one.found.as_ref()).flat_map(|found| found.held.keys());
        let roots: BTreeSet<u32> = held.filter_map(|oid| Some(tables.get(*oid)?.root())).collect();
        let mut oids: Vec<u32> =
            tables.filled().map(|(oid, _)| oid).filter(|oid| roots.contains(oid)).collect();
        let bytes =
            |oid: &u32| filled.tables.iter().find(|table| table.oid == *oid).map_or(0, |table| table.bytes);
        oids.sort_by_key(|oid| std::cmp::Reverse(bytes(oid)));
        let candidates = Candidates { tables: &tables, oids };
        let until = runnable(statements);
        let migrating = self.with_settings(&copy);
        let measured = stall::measure(&copy, &migrating, &statements[..until], &candidates, probes, blocker);
        let found = measured.await?;
        self.databases.drop(&copy).await?;
        Ok((found.probed, found.stalls))
    }

    fn with_settings(&self, target: &Target) -> Target {
        with_settings(target, self.settings)
    }
}

fn with_settings(target: &Target, settings: &[(String, String)]) -> Target {
    settings.iter().fold(target.clone(), |target, (name, value)| target.with_setting(name, value))
}

/// The statements before this place run: after a failure of one that begins or ends a transaction, none does.
fn runnable(statements: &[StatementOutcome]) -> usize {
    let ends =
        |one: &StatementOutcome| one.failed.is_some() && one.statement.kind == StatementKind::Transaction;
    statements.iter().position(ends).unwrap_or(statements.len())
}

/// Bytes and rows of these tables; of all if none is named.
fn sized(names: &[String], tables: &[TableAt]) -> (u64, u64) {
    let is_named = |table: &&TableAt| names.is_empty() || names.contains(&table.name);
    tables
        .iter()
        .filter(is_named)
        .fold((0, 0), |(bytes, rows), table| (bytes + table.bytes, rows + table.rows))
}

/// Tables that a statement used, and that were left empty because none had used them without rows.
fn unfilled(statements: &[StatementOutcome], tables: &[TableAt], empty: &[String]) -> Vec<(String, usize)> {
    let is_unfilled = |table: &&TableAt| table.rows == 0 && empty.contains(&table.name);
    let first = |table: &TableAt| {
        let uses = |one: &&StatementOutcome| {
            one.found.as_ref().is_some_and(|found| found.held.contains_key(&table.oid))
        };
        Some((table.name.clone(), statements.iter().find(uses)?.number))
    };
    tables.iter().filter(is_unfilled).filter_map(first).collect()
}
