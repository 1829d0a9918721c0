//! `pgrig fill` of all tables of a schema: request → plan → run → run document and tables.

mod text;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fill::{
    FilledTable, Observer, PlannedTable, Request, SchemaLimits, SchemaObserver, SchemaOutcome, SchemaPlan,
    SchemaRequest, Sizes, plan_schema, plan_schema_and_space, run_schema,
};
use indicatif::{MultiProgress, ProgressDrawTarget};
use measure::{Note, Trial, Unit};
use pgserver::Home;

use crate::app::conduct::{self, Recording, RunEnd, Shown};
use crate::app::failure::Failure;
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::steps::ShownSteps;
use crate::app::target::Chosen;
use crate::cmd::fill::args::FillArgs;
use crate::cmd::fill::progress::{AllTables, FillProgress, OfSeveral, planning};
use crate::cmd::fill::{arrival, begun, clear_abandoned, records};

/// Whether the fill of a schema was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// All tables are filled, or only explained.
    All,
    /// Nothing was filled, because there is only a single table.
    None,
}

/// Fills all tables, unless there is only one, without materialized views. `single` is the request for that table.
pub(super) async fn fill(
    arguments: &FillArgs,
    request: &SchemaRequest,
    single: Option<&Request>,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Filled, Failure> {
    let (connection, survey) =
        conduct::surveyed_for_tables(chosen, arguments.data_directory.as_deref(), printer).await?;
    let arrival = arrival(arguments, request.part, chosen, printer).await?;
    if !arguments.explain {
        clear_abandoned(home, chosen, &connection, &survey, printer).await;
    }
    let subject = single.map(|single| &single.subject);
    let steps = planning(printer);
    let told = |text: &str| steps.step(text);
    let resume = !arguments.no_resume;
    let found = if arguments.explain {
        plan_schema_and_space(&survey, &connection, request, subject, resume, &told).await?
    } else {
        let plan = plan_schema(&survey, &connection, request, subject, resume, &told).await?;
        plan.map(|plan| (plan, Ok(())))
    };
    drop(steps);
    let Some((plan, space)) = found else { return Ok(Filled::None) };
    let limits = arguments.limits();
    let planned = text::plan(&plan, &survey, &limits, arguments.explain);
    if arguments.explain {
        conduct::explained(printer, &arguments.save, &plan, planned)?;
        space?;
        return Ok(Filled::All);
    }
    let script = if arguments.model.is_some() { "the model's ddl" } else { "--ddl" };
    let skipped = plan.skipped.iter().map(|skipped| skipped.of_fill(script));
    let warnings = skipped.chain(plan.warnings.iter().cloned());
    conduct::announced(printer, &planned, warnings);
    conduct::recorded(
        begun(arguments, request, &plan, &survey)?,
        home,
        chosen,
        printer,
        async |recording| {
            let progress = SchemaProgress {
                plan: &plan,
                all: all_tables(&plan),
                printer,
                steps: ShownSteps::new(printer, "tables"),
                waits: Mutex::default(),
            };
            let limits = SchemaLimits { limits, survey: &survey, arrival };
            let interrupt = interrupted(printer);
            let work = run_schema(&chosen.target, &plan, limits, Some(records(home)), &progress, interrupt);
            let result = Box::pin(work).await;
            drop(progress);
            if let Ok(outcome) = &result {
                record(outcome, &plan, recording);
            }
            RunEnd::from(result)
        },
        async |outcome: SchemaOutcome, _| Ok(Shown::of(vec![text::outcome(&outcome, &plan, &survey)])),
    )
    .await?;
    Ok(Filled::All)
}

/// Adds trials and notes to the run document.
fn record(outcome: &SchemaOutcome, plan: &SchemaPlan, recording: &mut Recording) {
    for FilledTable { place, outcome } in &outcome.tables {
        let table = &plan.tables[*place];
        if let Some(of_table) = table.plan() {
            recording.run.trials.push(outcome.trial(
                &format!("{}.{}", table.schema, table.name),
                of_table,
                None,
            ));
        }
    }
    recording.run.trials.push(whole(outcome));
    if let Some(reason) = &outcome.stopped {
        recording.note(text::stopped(reason, outcome, plan));
    }
    recording.run.notes.extend(text::absent(outcome).map(|text| Note { text }));
    let views = outcome.refreshed.join(", ");
    if !views.is_empty() {
        recording.note(format!("refreshed {views}"));
    }
    for unpopulated in &outcome.unpopulated {
        recording.note(format!(
            "{}: give values with which it works (--column TABLE.COLUMN=SPEC); or change the rows, and run REFRESH MATERIALIZED VIEW {}",
            unpopulated.warning(),
            unpopulated.view
        ));
    }
}

/// The whole fill as one trial of the run document.
fn whole(outcome: &SchemaOutcome) -> Trial {
    let mut trial = Trial { config: "all tables".to_owned(), ..Trial::default() };
    trial.observe("total", outcome.elapsed.as_secs_f64(), Unit::Seconds);
    if !outcome.foreign_keys.is_zero() {
        trial.observe("foreign-keys", outcome.foreign_keys.as_secs_f64(), Unit::Seconds);
    }
    trial.observe("rows", outcome.rows() as f64, Unit::Rows);
    let sum =
        |of: fn(Sizes) -> u64| outcome.tables.iter().map(|table| of(table.outcome.sizes)).sum::<u64>() as f64;
    trial.observe("heap", sum(|sizes| sizes.heap), Unit::Bytes);
    trial.observe("index", sum(|sizes| sizes.index), Unit::Bytes);
    trial.events = outcome.part_events();
    trial
}

/// Progress of a schema fill: the tables that are being filled, and the share of all tables.
struct SchemaProgress<'a> {
    plan: &'a SchemaPlan,
    all: Arc<AllTables>,
    printer: &'a Printer,
    /// Steps before the first table and after the last one.
    steps: ShownSteps<'a>,
    /// The wait that this part last printed.
    waits: Mutex<String>,
}

fn all_tables(plan: &SchemaPlan) -> Arc<AllTables> {
    let all = plan.predicted().max(1) as f64;
    let filled = |table: &PlannedTable| if table.plan().is_none() { 1.0 } else { 0.0 };
    Arc::new(AllTables {
        started: Instant::now(),
        shares: plan.tables.iter().map(|table| table.predicted as f64 / all).collect(),
        filled: Mutex::new(plan.tables.iter().map(filled).collect()),
        bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)),
    })
}

impl SchemaProgress<'_> {
    fn of(&self, place: usize, table: &PlannedTable) -> OfSeveral {
        let name = format!("{} ({} of {})", table.name, place + 1, self.plan.tables.len());
        OfSeveral { name, place, all: Arc::clone(&self.all) }
    }
}

impl SchemaObserver for SchemaProgress<'_> {
    fn step(&self, text: &str) {
        self.steps.step(text);
    }

    fn table_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        self.steps.clear();
        Box::new(FillProgress::of_several(table.plan(), self.of(place, table), self.printer))
    }

    fn foreign_key_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        Box::new(FillProgress::of_several(None, self.of(place, table), self.printer))
    }

    fn waiting(&self, phrase: &str) {
        let is_new = self.waits.lock().is_ok_and(|mut known| {
            let is_new = *known != phrase;
            phrase.clone_into(&mut known);
            is_new
        });
        if is_new {
            self.all.bars.suspend(|| self.printer.say(format!("waiting {phrase}")));
        }
    }
}

/// A duration in seconds with two decimals.
fn seconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64())
}
