//! `pgrig blockio`: request → plan → trials → run document and tables.

pub(crate) mod args;
mod progress;
mod text;

use std::path::Path;

use blockio::{self, Baseline, BlockioError, Plan, Request};
use measure::{FORMAT_VERSION, Note, Run, Status};
use pgserver::Home;
use server::Survey;
use tokio::runtime::Builder;

use crate::app::json;
use crate::app::failure::{Context, Failure, Usage};
use crate::app::args::BlockioArgs;
use crate::app::input;
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::runs::{RunFile, identify};
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::blockio::progress::BlockioProgress;
use crate::cmd::fill::{farewell, on_server};

/// Measures the server that the arguments name.
pub(crate) fn run(arguments: &BlockioArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request();
    request.check()?;
    let baseline = arguments.baseline.as_deref().map(|file| baseline(file, &request)).transpose()?;
    // One thread: an answer then reaches whoever times it without waking another one.
    on_server(&arguments.server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
        measure(arguments, &request, baseline.as_ref(), home, chosen, printer).await
    })
}

/// Read before anything is done, so that a wrong one costs nothing.
fn baseline(file: &Path, request: &Request) -> Result<Baseline, Failure> {
    let text = input::file(file)
        .map_err(|error| Usage(format!("cannot read --baseline {}: {error}", file.display())))?;
    Ok(Baseline::read(&text, request)?)
}

async fn measure(
    arguments: &BlockioArgs,
    request: &Request,
    baseline: Option<&Baseline>,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let connection = chosen.connect(printer).await?;
    let survey = Survey::for_tables(&connection, &chosen.data_directory(None)?, VERSION).await?;
    if !arguments.explain {
        blockio::clear_leftovers(&chosen.target, request).await?;
    }
    let plan = Plan::new(&connection, &survey, request).await?;
    // The run has sessions of its own.
    connection.close().await;
    if arguments.explain {
        if arguments.save.json.is_some() {
            return Ok(Printer::json(&json::pretty(&plan)?)?);
        }
        return Ok(printer.result(text::plan(&plan, &survey))?);
    }
    printer.say(text::plan(&plan, &survey) + "\n");

    let (id, started_at) = identify("blockio");
    let mut file = RunFile::new(home.root(), &id, arguments.save.json.as_deref())?;
    let mut run = Run {
        format_version: FORMAT_VERSION,
        id,
        verb: "blockio".to_owned(),
        label: arguments.save.label.clone(),
        started_at,
        status: Status::Unfinished,
        request: json::value(request)?,
        plan: json::value(&plan)?,
        environment: survey.environment.clone(),
        trials: Vec::new(),
        notes: Vec::new(),
    };
    file.save(&run)?;
    let progress = BlockioProgress::new(&plan, printer);
    let mut unsaved = None;
    let work = blockio::run(&chosen.target, &survey, &plan, &progress, interrupted(printer), |outcome| {
        run.trials.extend(outcome.trials(&plan));
        for text in outcome.notes {
            let note = Note { text };
            if !run.notes.contains(&note) {
                run.notes.push(note);
            }
        }
        unsaved = file.save(&run).err();
    });
    let result = Box::pin(work).await;
    drop(progress);
    run.status = match &result {
        Ok(()) => Status::Done,
        Err(BlockioError::Interrupted { .. }) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    if let Err(error) = &result {
        run.notes.push(Note { text: error.to_string() });
    }
    let saved = file.finish(&run);
    if let Err(error) = result {
        // What went wrong first is what counts; a full disk may be why both did.
        if let Err(unsaved) = saved {
            printer.warn(format!("{unsaved:#}"));
        }
        return Err(error.into());
    }
    saved?;
    unsaved.map_or(Ok(()), Err).context("while trials went on")?;
    printer.result(text::results(&plan, &run))?;
    if let Some(baseline) = baseline {
        printer.result(text::comparison(baseline, request, &run))?;
    }
    printer.say("");
    for note in &run.notes {
        printer.say(format!("note: {}", note.text));
    }
    for hint in text::hints(arguments, &plan, &run) {
        printer.say(hint);
    }
    farewell(chosen, &file, printer);
    Ok(())
}
