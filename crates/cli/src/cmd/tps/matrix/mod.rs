//! `pgrig tps --matrix`: matrix → plan → trials → run document and tables.

pub(crate) mod args;
pub(crate) mod text;

use failure::Classified;
use measure::{FORMAT_VERSION, Note, Run, Status};
use pgserver::Home;
use serde_json::json;
use server::Survey;
use tokio::runtime::Builder;
use tps::matrix::{self, Cell, Matrix, MatrixObserver, MatrixPlan, ReadyTrial, Site};
use tps::watch::Watched;
use tps::{Outcome, Plan, Request, TpsError};

use crate::app::json;
use crate::app::failure::Failure;
use crate::app::args::TpsArgs;
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::recovery::journals;
use crate::app::runs::{RunFile, identify};
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::fill::{farewell, on_server};
use crate::cmd::tps::live::Live;
use crate::cmd::tps::watched;

/// Seconds between lines of a trial, where nobody said: trials are told when they are done, so this is for long ones.
pub(crate) const LINE_INTERVAL: u64 = 60;

/// Measures all combinations on the server that the arguments name.
pub(crate) fn run(arguments: &TpsArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    let matrix = arguments.matrix()?;
    matrix.check()?;
    Plan::parse(request.clone())?;
    // In a matrix they are axes, on any server.
    let mut server = arguments.server();
    server.embedded.set.clear();
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
    let connection = chosen.connect(printer).await?;
    let environment = Survey::of(&connection, &chosen.data_directory(None)?, VERSION).await?.environment;
    let plan = MatrixPlan::new(&chosen.target, &connection, request, matrix, chosen.ground()).await?;
    // Trials have sessions of their own.
    connection.close().await;
    let planned = text::plan(&plan, &environment);
    let mut request = plan.base.document();
    request["matrix"] = matrix.document();
    if arguments.explain {
        if arguments.save.json.is_some() {
            let document = json!({ "request": request, "plan": plan.document() });
            return Ok(Printer::json(&json::pretty(&document)?)?);
        }
        return Ok(printer.result(planned)?);
    }
    printer.say(planned + "\n");
    for warning in &plan.warnings {
        printer.warn(warning);
    }
    if let Some(danger) = plan.danger().filter(|_| !chosen.ground().is_own) {
        printer.danger(format!("DANGEROUS, until this has ended: {danger}"));
    }

    let (id, started_at) = identify("tps");
    let mut file = RunFile::new(home.root(), &id, arguments.save.json.as_deref())?;
    let mut run = Run {
        format_version: FORMAT_VERSION,
        id,
        verb: "tps".to_owned(),
        label: arguments.save.label.clone(),
        started_at,
        status: Status::Unfinished,
        request,
        plan: plan.document(),
        environment,
        trials: Vec::new(),
        notes: plan.warnings.iter().map(|text| Note { text: text.clone() }).collect(),
    };
    file.save(&run)?;
    let mut unsaved = None;
    let progress = Progress { plan: &plan, printer };
    let journals = journals(home);
    let site =
        Site { target: &chosen.target, place: chosen.place(), journals: &journals, restarter: Some(chosen) };
    let work = matrix::run(&site, &plan, &progress, interrupted(printer), async |trial| {
        let (outcome, watched) = measure_one(arguments, &trial, printer).await?;
        printer.say(text::trial(&plan.base, &outcome));
        let mut document = outcome.trial(&trial.cell.name());
        watched.observe(&outcome, &mut document);
        run.trials.push(document);
        let note =
            |text: &String| Note { text: format!("trial {}, {}: {text}", trial.number, trial.cell.name()) };
        run.notes.extend(watched.notes.iter().map(note));
        unsaved = file.save(&run).err();
        Ok(outcome)
    });
    let result = Box::pin(work).await;
    run.status = match &result {
        Ok(()) => Status::Done,
        Err(error) if error.is_interrupt() => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    let notes = run.notes.clone();
    if let Err(error) = &result {
        run.notes.push(Note { text: error.to_string() });
    }
    let saved = file.finish(&run).and(unsaved.map_or(Ok(()), Err));
    // What is there is told, however it ended.
    if !run.trials.is_empty() {
        printer.result(text::results(&plan, &run))?;
        printer.say("");
        for note in &notes {
            printer.say(format!("note: {}", note.text));
        }
        farewell(chosen, &file, printer);
    }
    match (result, saved) {
        (Ok(()), saved) => saved,
        (Err(error), Ok(())) => Err(error.into()),
        (Err(error), Err(unsaved)) => {
            printer.warn(format!("{unsaved:#}"));
            Err(error.into())
        }
    }
}

/// One trial, watched as any run is.
async fn measure_one(
    arguments: &TpsArgs,
    trial: &ReadyTrial<'_>,
    printer: &Printer,
) -> Result<(Outcome, Watched), TpsError> {
    let every = arguments.progress.unwrap_or(LINE_INTERVAL);
    let live = Live::new(&trial.plan.request, Some(every), printer);
    let (result, watched) = watched::run(trial.target, trial.plan, &live, trial.interrupted()).await;
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
        self.printer.say("putting settings and tables back");
    }

    fn warn(&self, text: &str) {
        self.printer.warn(text);
    }
}
