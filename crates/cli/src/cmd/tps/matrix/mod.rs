//! `pgrig tps --matrix`: matrix → plan → trials → run document and tables.

pub(crate) mod args;
pub(crate) mod text;

use std::slice;

use measure::Note;
use pgserver::Home;
use serde_json::json;
use tokio::runtime::Builder;
use tps::matrix::{self, Cell, Matrix, MatrixObserver, MatrixPlan, ReadyTrial, Site};
use tps::watch::Watched;
use tps::{Outcome, Plan, Request, TpsError};

use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown, on_server};
use crate::app::failure::Failure;
use crate::app::interrupt::interrupted;
use crate::app::printer::{Printer, first_paragraph};
use crate::app::recovery::journals;
use crate::app::target::Chosen;
use crate::cmd::tps::args::TpsArgs;

use crate::cmd::tps::live::Live;
use crate::cmd::tps::watched;

/// Default interval of progress lines within a trial, seconds. It is long, because each trial
/// prints a line when it is done.
pub(crate) const LINE_INTERVAL: u64 = 60;

/// Measures all cells on the server that the arguments name.
pub(crate) fn run(arguments: &TpsArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    let matrix = arguments.matrix()?;
    matrix.check()?;
    Plan::parse(request.clone())?;
    // In a matrix they are axes, on any server.
    let mut server = arguments.server().planned(arguments.explain);
    server.address.embedded.set.clear();
    // A restart of the server blocks one thread.
    on_server(&server, &mut Builder::new_multi_thread(), printer, async |home, chosen| {
        measure(arguments, request, &matrix, home, chosen, printer).await
    })
}

async fn measure(
    arguments: &TpsArgs,
    request: Request,
    matrix: &Matrix,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let (connection, survey) = conduct::surveyed(chosen, printer).await?;
    let environment = survey.environment;
    let plan = MatrixPlan::new(&chosen.target, &connection, request, matrix, chosen.server_facts()).await?;
    // Trials have sessions of their own.
    connection.close().await;
    let planned = text::plan(&plan, &environment);
    let mut request = plan.base.document();
    request["matrix"] = matrix.document();
    if arguments.explain {
        let document = json!({ "request": request, "plan": plan.document() });
        return conduct::explained(printer, &arguments.save, &document, planned);
    }
    conduct::announced(printer, &planned, &plan.warnings);
    if let Some(danger) = plan.danger().filter(|_| !chosen.server_facts().is_own) {
        printer.danger(format!("DANGEROUS until pgrig ends: {danger}"));
    }

    let begun = Begun {
        verb: "tps",
        save: &arguments.save,
        request,
        plan: plan.document(),
        environment,
        notes: plan.warnings.iter().map(|text| Note { text: text.clone() }).collect(),
    };
    conduct::recorded(
        begun,
        home,
        chosen,
        printer,
        async |recording| {
            let result = measure_all(arguments, &plan, home, chosen, recording, printer).await;
            // The trials so far are shown, however it ended.
            let outcome = (!recording.run.trials.is_empty()).then_some(());
            RunEnd { outcome, result }
        },
        async |(), finished| {
            let results = text::results(&plan, &finished.run);
            let reminder = Some(first_paragraph(&results).to_owned());
            Ok(Shown { results: vec![results], reminder, ..Shown::default() })
        },
    )
    .await
}

/// Runs all trials, and records them.
async fn measure_all(
    arguments: &TpsArgs,
    plan: &MatrixPlan,
    home: &Home,
    chosen: &Chosen,
    recording: &mut Recording,
    printer: &Printer,
) -> Result<(), Failure> {
    let progress = Progress { plan, printer };
    let journals = journals(home);
    let site =
        Site { target: &chosen.target, place: chosen.place(), journals: &journals, restarter: Some(chosen) };
    let work = matrix::run(&site, plan, &progress, interrupted(printer), async |trial| {
        let (outcome, watched) = measure_one(arguments, &trial, printer).await?;
        printer.say(text::trial(&plan.base, &outcome));
        let mut document = outcome.trial(&trial.cell.name());
        watched.observe(&outcome, &mut document);
        let note =
            |text: &String| Note { text: format!("trial {}, {}: {text}", trial.number, trial.cell.name()) };
        recording.run.notes.extend(watched.notes.iter().map(note));
        recording.add(document);
        Ok(outcome)
    });
    Ok(Box::pin(work).await?)
}

/// One trial, watched as any run is.
async fn measure_one(
    arguments: &TpsArgs,
    trial: &ReadyTrial<'_>,
    printer: &Printer,
) -> Result<(Outcome, Watched), TpsError> {
    let every = arguments.progress.unwrap_or(LINE_INTERVAL);
    let live = Live::new(&trial.plan.request, Some(every), printer);
    let (result, watched) =
        watched::run(slice::from_ref(trial.target), trial.plan, &live, Box::pin(trial.interrupted())).await;
    drop(live);
    Ok((result?, watched))
}

struct Progress<'a> {
    plan: &'a MatrixPlan,
    printer: &'a Printer,
}

impl MatrixObserver for Progress<'_> {
    fn preparing(&self, number: usize, cell: &Cell) {
        self.printer.say(format!("trial {number} of {}, {}", self.plan.trials(), cell.name()));
    }

    fn putting_back(&self) {
        self.printer.say("restoring settings and tables");
    }

    fn warn(&self, text: &str) {
        self.printer.warn(text);
    }
}
