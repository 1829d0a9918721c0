//! `pgrig tps`: request → plan → run → run document and tables.

pub(crate) mod args;
pub(crate) mod database;
mod hints;
pub(crate) mod live;
pub(crate) mod matrix;
mod merged;
mod targets;
pub(crate) mod text;
mod trials;
mod watched;

use connect::Connection;
use measure::{Environment, Event, Finding, Metrics};
use pgserver::Home;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tps::{Outcome, Parsed, Plan, TPS, TpsError};

use crate::app::args::ServerChoice;
use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown, on_server};
use crate::app::failure::{BadResult, Failure, Usage};
use crate::app::instance::{create_database, existing_or};
use crate::app::printer::Printer;
use crate::app::target::{Chosen, ServerKind, server_kind};
use crate::cmd::tps::args::TpsArgs;
use crate::cmd::tps::targets::Targets;

use crate::cmd::tps::trials::{Ended, Measured, Trials};

/// Measures the server that the arguments name.
pub(crate) fn run(arguments: &TpsArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(shown) = arguments.shown() {
        return Ok(printer.result(shown?)?);
    }
    measured(arguments, printer).map_err(|failure| {
        let error = failure.error::<TpsError>();
        let unfilled = error.and_then(|error| error.with_server(&arguments.server().shown()));
        unfilled.map_or(failure, |text| Usage(text).into())
    })
}

/// Measures a matrix, or one run.
fn measured(arguments: &TpsArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(word) = &arguments.database {
        let server = arguments.server_without_word().shown();
        database::check(word, &server, arguments.time, arguments.latency_limit)?;
    }
    if arguments.matrix.is_asked() {
        if arguments.others().next().is_some() {
            return Err(Usage(
                "--matrix gives one server the settings of each cell: give -d once".to_owned(),
            )
            .into());
        }
        return matrix::run(arguments, printer);
    }
    let mut request = arguments.request()?;
    request.targets = targets::names(arguments)?;
    merged::check(arguments, request.part.as_ref())?;
    let parsed = Plan::parse(request)?;
    if parsed.needs_tables() {
        refuse_new_instance(&arguments.server())?;
    }
    let server = arguments.server().planned(arguments.explain);
    on_server(&server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
        let measured = measure(arguments, parsed, home, chosen, printer).await;
        measured.map_err(|failure| off_path(failure, chosen))
    })
}

/// Refuses an instance that does not exist: the built-in scripts would find no tables on it.
fn refuse_new_instance(server: &ServerChoice) -> Result<(), Failure> {
    let own = &server.address.embedded;
    let Some(name) = own.instance.as_deref().filter(|_| !own.asks_for_more_than_a_name()) else {
        return Ok(());
    };
    if server_kind(server)? == ServerKind::Named {
        return Ok(());
    }
    let remedy = match &server.dbname {
        None => format!("pgrig fill --scale 10{} creates it, with pgbench's tables", server.shown()),
        Some(database) => format!("{} creates it, with this database", create_database(name, database)),
    };
    existing_or(&Home::locate()?, name, &remedy)?;
    Ok(())
}

/// The error of tables outside the search path of pgrig's own server, which does not read PGOPTIONS.
fn off_path(failure: Failure, chosen: &Chosen) -> Failure {
    let error = failure.error::<TpsError>();
    let searched = error.and_then(|error| error.searched_by(|sql| chosen.command_for(sql)));
    searched.map_or(failure, Failure::from)
}

async fn measure(
    arguments: &TpsArgs,
    parsed: Parsed,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let (connection, survey) = conduct::surveyed(chosen, printer).await?;
    let environment = survey.environment;
    let plan = parsed.clone().plan(&connection).await?;
    let targets = Targets::open(arguments, &plan, parsed, chosen, printer).await?;
    if plan.request.targets.is_empty() {
        tps::refuse_too_many(&chosen.target, &connection, &plan.request).await?;
    }
    let planned = text::plan(arguments, &plan, &environment) + &targets.plan(&plan.request);
    if arguments.explain {
        let document = json!({ "request": request(arguments, &plan), "plan": plan.document() });
        return conduct::explained(printer, &arguments.save, &document, planned);
    }
    conduct::announced(printer, &planned, &plan.warnings);
    if plan.request.part.is_some() {
        chosen.refuse_parts()?;
    }

    let exchange = merged::open(arguments, &plan, chosen).await?;
    let begun = Begun {
        verb: "tps",
        save: &arguments.save,
        request: request(arguments, &plan),
        plan: plan.document(),
        environment: environment.clone(),
        notes: Vec::new(),
    };
    let mut run = None;
    let ended = conduct::recorded(
        begun,
        home,
        chosen,
        printer,
        async |recording| {
            let trials = Trials { arguments, plan: &plan, chosen, targets: &targets, printer };
            run_trials(&trials, connection, &environment, recording).await
        },
        async |shown, finished| {
            run = exchange.is_some().then(|| finished.run.clone());
            Ok(shown)
        },
    )
    .await;
    if let (Some(exchange), Some(part), Some(run)) = (&exchange, &plan.request.part, run) {
        ended.and(merged::exchange(exchange, part, run, arguments, printer).await)
    } else {
        ended
    }
}

/// Runs the trials, and records and judges them.
async fn run_trials(
    trials: &Trials<'_>,
    connection: Connection,
    environment: &Environment,
    recording: &mut Recording,
) -> RunEnd<Shown> {
    let (arguments, plan) = (trials.arguments, trials.plan);
    trials.targets.note().into_iter().for_each(|note| recording.note(note));
    let done =
        trials.run(connection, |number, trial| add(recording, arguments.trials(), number, trial)).await;
    if let Some(number) = done.left_out {
        recording.note(format!("trial {number} of {} is not complete and is left out", arguments.trials()));
    }
    let Some(pooled) = Outcome::pooled(done.trials.iter().map(|trial| &trial.outcome)) else {
        return RunEnd { outcome: None, result: ended(done.ended, &[]) };
    };
    let findings = judge(arguments, plan, &pooled, done.trials.len());
    if let (Some(last), Some(measured)) = (recording.run.trials.last_mut(), done.trials.last()) {
        let at = measured.outcome.seconds.last().map_or(0.0, |second| second.at);
        last.events.extend(findings.iter().map(|finding| Event {
            at,
            text: finding.text.clone(),
            what: json!({ "event": "threshold", "threshold": finding.threshold, "missed": finding.missed }),
        }));
    }
    let mut results = vec![text::results(arguments, plan, &pooled, &done.trials, environment)];
    results.extend(
        findings
            .iter()
            .map(|finding| format!("{}: {}", if finding.missed { "missed" } else { "kept" }, finding.text)),
    );
    let hints = match done.ended {
        Ended::Complete => hints::hints(plan, &pooled, &arguments.dbnames()),
        Ended::Interrupted | Ended::Lost(..) | Ended::Failed(_) => Vec::new(),
    };
    let reminder = Some(text::headline(plan, &pooled));
    RunEnd {
        outcome: Some(Shown { results, hints, reminder, ..Shown::default() }),
        result: ended(done.ended, &findings),
    }
}

/// Adds a trial to the document.
fn add(recording: &mut Recording, trials: usize, number: usize, measured: &Measured) {
    let mut trial = measured.outcome.trial(TPS);
    measured.watched.observe(&measured.outcome, &mut trial);
    for note in &measured.watched.notes {
        recording.note(match trials {
            1 => note.clone(),
            _ => format!("trial {number}: {note}"),
        });
    }
    recording.add(trial);
}

/// The request, as run documents hold it.
fn request(arguments: &TpsArgs, plan: &Plan) -> Value {
    let mut request = plan.request.document();
    request["seed_chosen"] = arguments.random_seed.is_chosen.into();
    request["fail_if"] = arguments.fail_if.iter().map(ToString::to_string).collect();
    request["trials"] = json!(arguments.trials());
    request
}

/// Compares the thresholds with all trials together.
fn judge(arguments: &TpsArgs, plan: &Plan, outcome: &Outcome, trials: usize) -> Vec<Finding> {
    let (counts, request) = (&outcome.all.counts, &plan.request);
    let metrics = Metrics {
        tps: outcome.tps(),
        due: counts.due(),
        succeeded: counts.succeeded,
        failed: counts.all_failed(),
        retried: counts.retried,
        skipped: request.skipped(counts.skipped),
        late: request.latency_limit.map(|_| counts.late),
        latency: &outcome.all.latency,
        lag: request.rate.map(|_| &outcome.all.lag),
    };
    let together = if trials > 1 { format!(" ({trials} trials together)") } else { String::new() };
    let judged = arguments.fail_if.iter().map(|threshold| {
        let Finding { threshold, missed, text } = threshold.judge(&metrics);
        Finding { threshold, missed, text: text + &together }
    });
    judged.collect()
}

/// The result that follows from how a run ended and from its thresholds; the worst counts.
fn ended(ended: Ended, findings: &[Finding]) -> Result<(), Failure> {
    let missed: Vec<String> = findings
        .iter()
        .filter(|finding| finding.missed)
        .map(|finding| format!("--fail-if '{}': {}", finding.threshold, finding.text))
        .collect();
    match ended {
        Ended::Failed(error) => Err(error.into()),
        Ended::Lost(why, class) => Err(BadResult::Lost(why, class).into()),
        Ended::Interrupted => Err(BadResult::Interrupted.into()),
        Ended::Complete if !missed.is_empty() => Err(BadResult::Missed(missed).into()),
        Ended::Complete => Ok(()),
    }
}
