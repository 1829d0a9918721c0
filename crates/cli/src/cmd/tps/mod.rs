//! `pgrig tps`: request → plan → run → run document and tables.

pub(crate) mod args;
mod hints;
pub(crate) mod live;
pub(crate) mod matrix;
pub(crate) mod text;
mod trials;
mod watched;

use measure::{Environment, Event, FORMAT_VERSION, Finding, Metrics, Note, Run, Status};
use pgserver::Home;
use serde_json::{Value, json};
use server::Survey;
use tokio::runtime::Builder;
use tps::{Outcome, Parsed, Plan, TPS, TpsError};

use crate::app::json;
use crate::app::failure::{Failure, Unhappy};
use crate::app::args::TpsArgs;
use crate::app::printer::Printer;
use crate::app::runs::{RunFile, identify};
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::fill::{farewell, on_server};
use crate::cmd::tps::trials::{Done, Ended, Measured, Trials};

/// Measures the server that the arguments name.
pub(crate) fn run(arguments: &TpsArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(shown) = arguments.shown() {
        return Ok(printer.result(shown?)?);
    }
    if arguments.matrix.is_asked() {
        return matrix::run(arguments, printer);
    }
    let parsed = Plan::parse(arguments.request()?)?;
    on_server(&arguments.server(), &mut Builder::new_current_thread(), printer, async |home, chosen| {
        measure(arguments, parsed, home, chosen, printer).await
    })
}

async fn measure(
    arguments: &TpsArgs,
    parsed: Parsed,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let connection = chosen.connect(printer).await?;
    let surroundings = Survey::of(&connection, &chosen.data_directory(None)?, VERSION).await?;
    let environment = surroundings.environment;
    let plan = parsed.plan(&connection).await?;
    let planned = text::plan(arguments, &plan, &environment);
    if arguments.explain {
        if arguments.save.json.is_some() {
            let document = json!({ "request": request(arguments, &plan), "plan": plan.document() });
            return Ok(Printer::json(&json::pretty(&document)?)?);
        }
        return Ok(printer.result(planned)?);
    }
    printer.say(planned + "\n");
    for warning in &plan.warnings {
        printer.warn(warning);
    }

    let mut file = Saved::new(arguments, &plan, environment, home)?;
    let trials = Trials { arguments, plan: &plan, chosen, printer };
    let done = trials.run(connection, |number, trial| file.add(number, trial)).await;
    let Some(pooled) = Outcome::pooled(done.trials.iter().map(|trial| &trial.outcome)) else {
        if let Err(unsaved) = file.ended(&done, &[]) {
            printer.warn(format!("{unsaved:#}"));
        }
        return status(done.ended, &[]);
    };
    let findings = judge(arguments, &plan, &pooled, done.trials.len());
    let saved = file.ended(&done, &findings);
    printer.result(text::results(arguments, &plan, &pooled, &done.trials, &file.run.environment))?;
    for finding in &findings {
        printer.result(format!("{}: {}", if finding.missed { "missed" } else { "kept" }, finding.text))?;
    }
    printer.say("");
    for note in &file.notes {
        printer.say(format!("note: {note}"));
    }
    if matches!(done.ended, Ended::Complete) {
        for hint in hints::hints(&plan, &pooled) {
            printer.say(hint);
        }
    }
    farewell(chosen, &file.file, printer);
    saved?;
    status(done.ended, &findings)
}

/// The request, as run documents hold it.
fn request(arguments: &TpsArgs, plan: &Plan) -> Value {
    let mut request = plan.request.document();
    request["seed_chosen"] = arguments.random_seed.is_chosen.into();
    request["fail_if"] = arguments.fail_if.iter().map(ToString::to_string).collect();
    request["trials"] = json!(arguments.trials());
    request
}

/// A run's document, in its file.
struct Saved {
    run: Run,
    file: RunFile,
    trials: usize,
    /// Disturbances of the trials.
    notes: Vec<String>,
}

impl Saved {
    /// As it is before the run.
    fn new(arguments: &TpsArgs, plan: &Plan, environment: Environment, home: &Home) -> Result<Self, Failure> {
        let (id, started_at) = identify("tps");
        let file = RunFile::new(home.root(), &id, arguments.save.json.as_deref())?;
        let run = Run {
            format_version: FORMAT_VERSION,
            id,
            verb: "tps".to_owned(),
            label: arguments.save.label.clone(),
            started_at,
            status: Status::Unfinished,
            request: request(arguments, plan),
            plan: plan.document(),
            environment,
            trials: Vec::new(),
            notes: Vec::new(),
        };
        file.save(&run)?;
        Ok(Self { run, file, trials: arguments.trials(), notes: Vec::new() })
    }

    /// Adds a trial.
    fn add(&mut self, number: usize, measured: &Measured) {
        let mut trial = measured.outcome.trial(TPS);
        measured.watched.observe(&measured.outcome, &mut trial);
        self.run.trials.push(trial);
        let trials = self.trials;
        self.notes.extend(measured.watched.notes.iter().map(|note| match trials {
            1 => note.clone(),
            _ => format!("trial {number}: {note}"),
        }));
        self.run.notes = self.notes.iter().cloned().map(|text| Note { text }).collect();
        // If this fails, the last save fails too, or has all that is missing.
        let _ = self.file.save(&self.run);
    }

    /// All trials are over.
    fn ended(&mut self, done: &Done, findings: &[Finding]) -> Result<(), Failure> {
        if let Some(number) = done.left_out {
            self.notes.push(format!("trial {number} of {} is not complete and is left out", self.trials));
        }
        let (status, why) = match &done.ended {
            Ended::Complete => (Status::Done, Vec::new()),
            Ended::Interrupted => (Status::Interrupted, Vec::new()),
            Ended::Lost(why) => (Status::Failed, why.clone()),
            Ended::Failed(error @ TpsError::Interrupted) => (Status::Interrupted, vec![error.to_string()]),
            Ended::Failed(error) => (Status::Failed, vec![error.to_string()]),
        };
        self.run.status = status;
        self.run.notes = self.notes.iter().cloned().chain(why).map(|text| Note { text }).collect();
        if let (Some(last), Some(measured)) = (self.run.trials.last_mut(), done.trials.last()) {
            let at = measured.outcome.seconds.last().map_or(0.0, |second| second.at);
            last.events.extend(findings.iter().map(|finding| Event {
                at,
                text: finding.text.clone(),
                what: json!({ "event": "threshold", "threshold": finding.threshold, "missed": finding.missed }),
            }));
        }
        self.file.finish(&self.run)
    }
}

/// Holds the thresholds against all trials together.
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

/// What the exit status says: the worst first.
fn status(ended: Ended, findings: &[Finding]) -> Result<(), Failure> {
    let missed: Vec<String> = findings
        .iter()
        .filter(|finding| finding.missed)
        .map(|finding| format!("--fail-if '{}': {}", finding.threshold, finding.text))
        .collect();
    match ended {
        Ended::Failed(error) => Err(error.into()),
        Ended::Lost(why) => Err(Unhappy::Lost(why).into()),
        Ended::Interrupted => Err(Unhappy::Interrupted.into()),
        Ended::Complete if !missed.is_empty() => Err(Unhappy::Missed(missed).into()),
        Ended::Complete => Ok(()),
    }
}
