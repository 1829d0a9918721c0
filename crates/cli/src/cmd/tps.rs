//! `pgrig tps`: request → plan → run → run document and tables.

use measure::{Environment, Event, FORMAT_VERSION, Finding, Metrics, Note, Run, Status, Trial};
use pgserver::Home;
use serde_json::json;
use tokio::runtime::Builder;
use workload::fill::DataDirectory;
use workload::surroundings::Surroundings;
use workload::tps::watch::Watched;
use workload::tps::{End, Outcome, Parsed, Plan, TPS, TpsError};

use super::fill::{farewell, on_server};
use super::tps_live::Live;
use super::{tps_matrix, tps_text, tps_watched};
use crate::args::TpsArgs;
use crate::exit::Unhappy;
use crate::interrupt::interrupted_telling;
use crate::printer::Printer;
use crate::runs::{RunFile, identify};
use crate::target::Chosen;

/// Measures the server that the arguments name.
pub(crate) fn run(arguments: &TpsArgs, printer: &Printer) -> anyhow::Result<()> {
    if let Some(shown) = arguments.shown() {
        return Ok(printer.result(shown?)?);
    }
    if arguments.matrix.is_asked() {
        return tps_matrix::run(arguments, printer);
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
) -> anyhow::Result<()> {
    let connection = chosen.connect(printer).await?;
    let own = match chosen.data_directory(None)? {
        DataDirectory::Own(directory) => Some(directory),
        DataDirectory::Named(_) | DataDirectory::Asked => None,
    };
    let surroundings = Surroundings::of(&connection, own).await?;
    let environment = surroundings.environment;
    let plan = parsed.plan(&connection).await?;
    let planned = tps_text::plan(arguments, &plan, &environment);
    if arguments.explain {
        if arguments.save.json.is_some() {
            let document = json!({ "request": plan.request.document(), "plan": plan.document() });
            return Ok(Printer::json(&serde_json::to_string_pretty(&document)?)?);
        }
        return Ok(printer.result(planned)?);
    }
    printer.say(planned + "\n");
    for warning in &plan.warnings {
        printer.warn(warning);
    }

    let mut file = Saved::new(arguments, &plan, environment, home)?;
    for failure in plan.prepare(&connection).await? {
        printer.warn(failure);
    }
    // The run has sessions of its own.
    connection.close().await;
    let live = Live::new(&plan.request, arguments.progress, printer);
    let interrupt = interrupted_telling(|text| live.tell(text));
    let (result, watched) = tps_watched::run(&chosen.target, &plan, &live, interrupt).await;
    drop(live);
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => {
            if let Err(unsaved) = file.failed(&error) {
                printer.warn(format!("{unsaved:#}"));
            }
            return Err(error.into());
        }
    };
    let findings = judge(arguments, &plan, &outcome);
    let lost = tps_text::lost(&plan, &outcome);
    let saved = file.ended(&outcome, &watched, &findings, &lost);
    printer.result(tps_text::results(arguments, &plan, &outcome, &watched, &file.run.environment))?;
    for finding in &findings {
        printer.result(format!("{}: {}", if finding.missed { "missed" } else { "kept" }, finding.text))?;
    }
    printer.say("");
    for note in &watched.notes {
        printer.say(format!("note: {note}"));
    }
    for hint in tps_text::hints(&plan, &outcome) {
        printer.say(hint);
    }
    farewell(chosen, &file.file, printer);
    saved?;
    ended(outcome.end, &lost, &findings)
}

/// A run's document, in its file.
struct Saved {
    run: Run,
    file: RunFile,
}

impl Saved {
    /// As it is before the run.
    fn new(arguments: &TpsArgs, plan: &Plan, environment: Environment, home: &Home) -> anyhow::Result<Self> {
        let (id, started_at) = identify("tps");
        let file = RunFile::new(home.root(), &id, arguments.save.json.as_deref())?;
        let mut request = plan.request.document();
        request["seed_chosen"] = arguments.random_seed.is_chosen.into();
        request["fail_if"] = arguments.fail_if.iter().map(ToString::to_string).collect();
        let run = Run {
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
            notes: Vec::new(),
        };
        file.save(&run)?;
        Ok(Self { run, file })
    }

    /// Nothing was measured.
    fn failed(&mut self, error: &TpsError) -> anyhow::Result<()> {
        self.run.status = match error {
            TpsError::Interrupted => Status::Interrupted,
            _ => Status::Failed,
        };
        self.run.notes.push(Note { text: error.to_string() });
        self.file.finish(&self.run)
    }

    /// Something was.
    fn ended(
        &mut self,
        outcome: &Outcome,
        watched: &Watched,
        findings: &[Finding],
        lost: &[String],
    ) -> anyhow::Result<()> {
        self.run.status = match outcome.end {
            End::Complete => Status::Done,
            End::Interrupted => Status::Interrupted,
            End::Lost => Status::Failed,
        };
        self.run.trials.push(trial(outcome, watched, findings));
        let notes = watched.notes.iter().chain(lost);
        self.run.notes.extend(notes.map(|text| Note { text: text.clone() }));
        self.file.finish(&self.run)
    }
}

fn trial(outcome: &Outcome, watched: &Watched, findings: &[Finding]) -> Trial {
    let mut trial = outcome.trial(TPS);
    watched.observe(outcome, &mut trial);
    let at = outcome.seconds.last().map_or(0.0, |last| last.at);
    trial.events.extend(findings.iter().map(|finding| Event {
        at,
        text: finding.text.clone(),
        what: json!({ "event": "threshold", "threshold": finding.threshold, "missed": finding.missed }),
    }));
    trial
}

/// Holds the thresholds against what was measured.
fn judge(arguments: &TpsArgs, plan: &Plan, outcome: &Outcome) -> Vec<Finding> {
    let (counts, request) = (&outcome.all.counts, &plan.request);
    let metrics = Metrics {
        tps: outcome.tps(),
        due: counts.due(),
        succeeded: counts.succeeded,
        failed: counts.all_failed(),
        retried: counts.retried,
        skipped: request.rate.and(request.latency_limit).map(|_| counts.skipped),
        late: request.latency_limit.map(|_| counts.late),
        latency: &outcome.all.latency,
        lag: request.rate.map(|_| &outcome.all.lag),
    };
    arguments.fail_if.iter().map(|threshold| threshold.judge(&metrics)).collect()
}

/// What the exit status says: the worst first.
fn ended(end: End, lost: &[String], findings: &[Finding]) -> anyhow::Result<()> {
    let missed: Vec<String> = findings
        .iter()
        .filter(|finding| finding.missed)
        .map(|finding| format!("--fail-if '{}': {}", finding.threshold, finding.text))
        .collect();
    match end {
        End::Lost => Err(Unhappy::Lost(lost.join("\n")).into()),
        End::Interrupted => Err(Unhappy::Interrupted.into()),
        End::Complete if !missed.is_empty() => Err(Unhappy::Missed(missed).into()),
        End::Complete => Ok(()),
    }
}
