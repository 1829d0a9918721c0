//! Carries a measurement out: rehearses the migration without rows, fills databases at several sizes, looks at each
//! statement in a copy of the largest, and times them in further copies of each.

mod assumed;
mod blockers;
mod bounds;
mod called;
mod cascades;
mod changes;
mod clock;
mod copies;
mod cost;
mod counters;
mod databases;
mod defaults;
mod dependents;
mod disk;
mod events;
mod facts;
mod failure;
mod files;
mod fill;
mod forecasts;
mod goal;
mod keys;
mod left_out;
mod locale;
mod look;
mod mappings;
mod minimal;
mod missed;
mod missing;
mod named;
mod original;
mod others;
mod pace;
mod reach;
mod rehearsal;
pub(crate) mod rehearse;
mod removal;
mod roles;
mod rounds;
mod rowless;
mod rules;
mod settings;
mod space;
mod stall;
mod suit;
pub(crate) mod types;
mod unfired;
mod unmatched;
pub(crate) mod unsuited;
mod vacuum;
mod watch;
mod workers;
mod zone;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use ::failure::Classified as _;
use connect::Target;
use futures_util::future::LocalBoxFuture;
use server::fault::caught;
use server::interruption::{Ended, Stopped, stop, until_stopped};
use server::{DataDirectory, Restarter};

use self::clock::{Clock, Speeds, Work};
use self::copies::Copies;
use self::databases::Databases;
use self::defaults::DefaultRows;
use self::fill::{Filled, Filler, Scales};
use self::forecasts::{Forecasts, Sizes};
use self::minimal::Minimal;
use self::rehearsal::Rehearsed;
use self::roles::Roles;
use self::rounds::{BothProbed, Rounds};
use self::rowless::Partitions;
use self::settings::Conditions;
use crate::better::{self, Better};
use crate::error::DdlError;
use crate::find::shown_relation;
use crate::outcome::{Alternative, Outcome, StatementOutcome};
use crate::plan::{Plan, PlannedSize, PlannedTable};
use crate::request::{Amount, Effort, Request};
use crate::script::Statement;
use crate::transaction::is_in_transaction;

/// The server on which is measured.
pub struct Site<'a> {
    /// The server; databases of pgrig's own are made beside the one that it names.
    pub target: &'a Target,
    /// Its data directory.
    pub directory: &'a DataDirectory,
    /// Restarts the server, which is pgrig's own and has no other user; none if it is not to be restarted.
    pub restarter: Option<&'a dyn Restarter>,
    /// pgrig's version.
    pub pgrig: &'a str,
}

/// Is told of progress, in order.
pub trait Observer {
    /// The work that is planned.
    fn planned(&mut self, plan: &Plan);
    /// A stage begins: a phrase for people.
    fn stage(&mut self, text: &str);
    /// A step of the stage begins: a phrase for people.
    fn step(&mut self, _: &str) {}
    /// A statement begins to be looked at, of so many.
    fn statement(&mut self, number: usize, of: usize, statement: &Statement);
    /// So much time is left, about.
    fn left(&mut self, left: Duration);
    /// A warning: a sentence about what stays on the server, or about statements of the schema that the server cannot run.
    fn warned(&mut self, _: &str) {}
}

/// Measures a migration. `interrupt` resolves when the user wants to stop. In any case the databases and roles that it makes are
/// dropped; the databases that a killed run left, too.
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
        let roles = Rc::new(Roles::default());
        // Its statements are cancelled, and not those of other sessions on the same server.
        let target = site.target.clone().apart();
        let result = {
            let (stop, stopped) = stop();
            let roles = Rc::clone(&roles);
            let measurement = Measurement { site, request, target: &target, roles, stopped };
            let work = pin!(caught(measurement.run(&name, observer)));
            match until_stopped(&target, interrupt, work, || stop.tell()).await {
                Ended::Done(result) => result,
                Ended::Stopped(_) => Err(DdlError::Interrupted),
            }
        };
        let result = result.map_err(|error: DdlError| error.of_schema(&request.schema).of_full_disk());
        observer.step("dropping the databases of this run");
        let (warnings, finished) = databases::finish(&target.clone().apart(), &name, &roles).await;
        for warning in &warnings {
            observer.warned(warning);
        }
        match (finished, result) {
            (Ok(()), result) => result,
            // A lost server explains both.
            (Err(_), Err(error @ (DdlError::Connect(_) | DdlError::Restart { .. }))) => Err(error),
            (Err(_), Err(error)) if error.is_lost_server() => Err(error),
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
    roles: Rc<Roles>,
    stopped: Stopped,
}

impl Measurement<'_> {
    async fn run(&self, name: &str, observer: &mut dyn Observer) -> Result<Outcome, DdlError> {
        let mut databases =
            Databases::begin(self.target, name.to_owned(), Rc::clone(&self.roles), observer).await?;
        let conditions = settings::take_over(self.site, self.request, &mut databases, observer).await?;
        let Conditions { settings, of_server, memory, checkpoints, parallel_from, warnings } = conditions;
        locale::choose(&mut databases, &self.request.schema, observer).await?;
        let copies = Copies { databases: &databases, settings: &settings };
        observer.stage("running the migration on tables without rows");
        let rehearsed = self.rehearse(&copies, observer).await?;
        let Rehearsed {
            mut recipe,
            columns,
            unused,
            works,
            has_better,
            is_disturbed,
            waiting,
            had_mappings,
            roles,
            zone,
            refused,
            row_triggers,
        } = rehearsed;
        let empty = databases.create("plan").await?;
        let told = RefCell::new(&mut *observer);
        let scales = recipe.scales(&empty, &|text: &str| told.borrow_mut().step(text)).await;
        let scales = scales.map_err(|error| error.of_roles(&roles))?;
        databases.drop(&empty).await?;

        let taken_over = settings.iter().chain(&of_server).cloned().collect();
        let mut plan = self.plan(&recipe, &scales, taken_over);
        let Request { effort, seed, .. } = *self.request;
        let probes = self.request.probes.as_ref();
        let speeds = Speeds::assumed(&plan.tables, (plan.bytes(), self.site.restarter.is_some()), &works);
        let fills = effort.sizes().iter().map(|(part, _)| Work::Fill(*part));
        let times = if has_better { 2 } else { 1 };
        // As if as many transactions of better ways waited for a blocker.
        let runs = rounds::works(effort, probes, (is_disturbed, waiting));
        let runs = std::iter::repeat_n(runs, times).flatten();
        let mut clock = Clock::begin(speeds, fills.chain(runs));
        plan.seconds = clock.all().as_secs();
        plan.warnings.extend(warnings);
        plan.warnings.extend(settings::unknown_machine(memory, self.has_forecasts(&scales)));
        plan.warnings.extend(had_mappings.then(|| mappings::WARNING.to_owned()));
        observer.planned(&plan);
        let limits = (memory.max_wal_size, scales.up_to);
        disk::check(self.site, &databases, (&plan, &works), limits).await?;

        let mut filled: Vec<Filled> = Vec::new();
        let mut minimal = Minimal::new(self.site.restarter, of_server);
        let mut statements = dependents::outcomes(&self.request.script.statements, refused);
        for (number, (part, _)) in effort.sizes().iter().enumerate() {
            observer.stage(&format!("filling the tables, size {} of {}", number + 1, effort.sizes().len()));
            minimal.begin(&mut databases, observer).await?;
            let database = databases.create(&format!("size{number}")).await?;
            let (scale, method) = (scales.largest * part, minimal.method());
            let told = RefCell::new(&mut *observer);
            let steps = |text: &str| told.borrow_mut().step(text);
            filled.push(recipe.fill(database, scale, &scales.rules, method, self.interrupt(), &steps).await?);
            clock.did(Work::Fill(*part));
            if number == 0 && effort.sizes().len() > 1 {
                minimal.end(&mut databases, observer).await?;
                let site = Copies { databases: &databases, settings: &settings };
                let clock = &mut clock;
                let mut rounds =
                    Rounds { site: &site, effort, probes, seed, are_last: false, clock, observer };
                rounds.first(&filled, &mut statements).await?;
            }
        }
        filled.last().into_iter().flat_map(|at| &at.warnings).for_each(|warning| observer.warned(warning));
        minimal.end(&mut databases, observer).await?;
        clock.skip();
        databases.note_others().await?;
        let site = Copies { databases: &databases, settings: &settings };
        // A size that was measured needs no forecast, though files are a little smaller or larger than planned. Those of an original may
        // be bloated.
        let is_measured = scales.is_whole && self.request.amount != Amount::AsOriginal;
        let goal = if is_measured { Vec::new() } else { goal::goal(self.request, &scales, &filled) };
        let (clock, are_last) = (&mut clock, !self.request.alternatives);
        let mut rounds = Rounds { site: &site, effort, probes, seed, are_last, clock, observer };
        let of_users = rounds.all(&filled, &mut statements).await?;
        columns.name_in(&mut statements);
        row_triggers.note(&mut statements);
        missing::complete(&self.request.schema, &recipe.skipped, &mut statements);
        let partitions = Partitions::of(&filled, &columns, &self.request.schema);
        let (inserted, zone) = (&recipe.inserted, zone.as_ref());
        let locale = databases.doubt.as_ref();
        let sizes = Sizes { goal: &goal, memory, checkpoints, parallel_from };
        let forecasts = Forecasts { sizes, partitions, inserted, zone, locale };
        forecasts.add(&mut statements);
        let mut alternatives = match better::migration(&statements, databases.version()) {
            Some(better) if self.request.alternatives => {
                rounds.observer.stage("measuring better ways");
                rounds.are_last = true;
                Box::pin(alternatives(&mut rounds, &filled, (better, &statements), &forecasts)).await?
            }
            _ => Vec::new(),
        };
        for better in &mut alternatives {
            columns.name_in(&mut better.statements);
        }
        databases.others().iter().for_each(|warning| observer.warned(warning));
        Ok(outcome((statements, alternatives), of_users, &scales, (&filled, &unused)))
    }

    fn plan(&self, recipe: &Filler<'_>, scales: &Scales, settings: Vec<(String, String)>) -> Plan {
        let planned = scales.plan.as_ref();
        let tables =
            planned.map_or(&[][..], |plan| plan.tables.as_slice()).iter().map(|table| PlannedTable {
                name: shown_relation(&table.schema, &table.name),
                rows: table.rows,
                bytes: table.predicted,
            });
        let is_kept = |one: &&DefaultRows| recipe.specs.contains(&one.spec);
        let bytes = planned.map_or(0.0, fill::bytes);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a prediction")]
        let size = |(part, runs): &(f64, usize)| PlannedSize { bytes: (bytes * part) as u64, runs: *runs };
        Plan {
            tables: tables.collect(),
            empty: recipe.empty.clone(),
            without_rows: recipe.without_rows.clone(),
            sizes: self.request.effort.sizes().iter().map(size).collect(),
            suited: recipe
                .additions
                .iter()
                .map(|addition| addition.add.clone())
                .chain(recipe.specs.clone())
                .collect(),
            defaults: recipe.defaults.iter().filter(is_kept).map(|one| one.planned.clone()).collect(),
            settings,
            seconds: 0,
            // A fill has the SQL from --ddl.
            warnings: planned
                .map_or(&[][..], |plan| plan.warnings.as_slice())
                .iter()
                .map(|warning| warning.replace("--ddl", &self.request.schema.origin))
                .collect(),
        }
    }

    /// Whether costs are forecast.
    fn has_forecasts(&self, scales: &Scales) -> bool {
        let is_larger = !scales.is_whole || self.request.amount == Amount::AsOriginal;
        is_larger && self.request.effort == Effort::Full
    }

    /// Resolves when the user interrupts the run.
    fn interrupt(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(self.stopped.told())
    }
}

/// The outcome of the statements and of better ways, with the readers and writers.
fn outcome(
    (statements, alternatives): (Vec<StatementOutcome>, Vec<Alternative>),
    (probed, probed_blocked): BothProbed,
    scales: &Scales,
    (filled, unused): (&[Filled], &[String]),
) -> Outcome {
    let largest = filled.last().map_or(&[][..], |largest| largest.tables.as_slice());
    let bytes = largest.iter().map(|table| table.bytes).sum();
    let unfilled = fill::unfilled(&statements, largest, unused);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, not negative")]
    let up_to = scales.up_to.ceil() as u64;
    let is_whole = scales.is_whole;
    Outcome { statements, bytes, up_to, is_whole, probed, probed_blocked, unfilled, alternatives }
}

/// Measures better ways: as the migration itself, in its place.
async fn alternatives(
    rounds: &mut Rounds<'_>,
    filled: &[Filled],
    (better, replaced): (Better, &[StatementOutcome]),
    forecasts: &Forecasts<'_>,
) -> Result<Vec<Alternative>, DdlError> {
    let mut statements = StatementOutcome::of_all(&better.statements);
    if rounds.effort.sizes().len() > 1 {
        rounds.first(filled, &mut statements).await?;
    }
    rounds.all(filled, &mut statements).await?;
    forecasts.add(&mut statements);
    let mut found: Vec<Alternative> = Vec::new();
    for (one, of) in statements.into_iter().zip(better.of) {
        let Some(number) = of else { continue };
        if let Some(last) = found.last_mut().filter(|last| last.number == number) {
            last.statements.push(one);
        } else {
            let needs_own_migration = is_in_transaction(replaced, number);
            found.push(Alternative { number, needs_own_migration, statements: vec![one] });
        }
    }
    Ok(found)
}
