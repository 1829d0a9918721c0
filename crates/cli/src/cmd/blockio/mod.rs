//! `pgrig blockio`: request → plan → trials → run document and tables.

pub(crate) mod args;
mod progress;
mod text;

use blockio::{self, Baseline, Plan, Request};
use measure::Note;
use pgserver::Home;
use tokio::runtime::Builder;

use crate::app::conduct::{self, Begun, RunEnd, Shown, on_server};
use crate::app::failure::{Context, Failure};
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::printer::{Printer, first_paragraph};
use crate::app::runs::{Labelled, Selection};
use crate::app::target::Chosen;
use crate::cmd::blockio::args::BlockioArgs;
use crate::cmd::blockio::progress::BlockioProgress;

/// Measures the server that the arguments name.
pub(crate) fn run(arguments: &BlockioArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    request.check()?;
    let baseline = arguments.baseline.as_deref().map(|word| baseline(word, &request, printer)).transpose()?;
    // One thread: an answer then reaches the task that times it without waking another thread.
    let server = arguments.server.planned(arguments.explain);
    on_server(&server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
        measure(arguments, &request, baseline.as_ref(), home, chosen, printer).await
    })
}

/// Reads the baseline before anything is measured, so that a wrong one costs no time.
fn baseline(word: &str, request: &Request, printer: &Printer) -> Result<Baseline, Failure> {
    let found = Selection::new(Labelled::Complete, printer)?.document(word);
    let run = found.with_context(|| format!("--baseline {word}"))?.run;
    Ok(Baseline::new(run, request)?)
}

async fn measure(
    arguments: &BlockioArgs,
    request: &Request,
    baseline: Option<&Baseline>,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let (connection, survey) = conduct::surveyed_for_tables(chosen, None, printer).await?;
    if !arguments.explain {
        blockio::clear_leftovers(&chosen.target, request).await?;
    }
    let (plan, space) = if arguments.explain {
        Plan::and_space(&connection, &survey, request).await?
    } else {
        (Plan::new(&connection, &survey, request).await?, Ok(()))
    };
    // The run has sessions of its own.
    connection.close().await;
    if arguments.explain {
        conduct::explained(printer, &arguments.save, &plan, text::plan(&plan, &survey))?;
        return Ok(space?);
    }
    printer.say(text::plan(&plan, &survey) + "\n");

    let begun = Begun {
        verb: "blockio",
        save: &arguments.save,
        request: json::value(request)?,
        plan: json::value(&plan)?,
        environment: survey.environment.clone(),
        notes: Vec::new(),
    };
    conduct::recorded(
        begun,
        home,
        chosen,
        printer,
        async |recording| {
            let progress = BlockioProgress::new(&plan, printer);
            let mut finished = |outcome: blockio::Outcome| {
                recording.run.trials.extend(outcome.trials(&plan));
                for text in outcome.notes {
                    let note = Note { text };
                    if !recording.run.notes.contains(&note) {
                        recording.run.notes.push(note);
                    }
                }
                recording.save();
            };
            let interrupt = interrupted(printer);
            let result =
                blockio::run(&chosen.target, &survey, &plan, &progress, interrupt, &mut finished).await;
            RunEnd::from(result)
        },
        async |(), finished| {
            let run = &finished.run;
            let mut results = vec![text::results(&plan, run)];
            let reminder = Some(first_paragraph(&results[0]).to_owned());
            results.extend(baseline.map(|baseline| text::comparison(baseline, request, run)));
            let hints = text::hints(arguments, &plan, run);
            Ok(Shown { results, hints, reminder, ..Shown::default() })
        },
    )
    .await
}
