//! `pgrig micro`: request → plans looked at → rounds → run document and tables.

pub(crate) mod args;
mod progress;
mod table;
mod text;

use std::time::{Duration, Instant};

use connect::Connection;
use measure::{FORMAT_VERSION, Note, Run, Series, Status, Trial, Unit};
use micro::{self, Calibration, Ended, MicroError, Observer, Outcome, Outlook, Plan, Request, Round};
use pgserver::Home;
use server::Survey;
use server::disturbance::Checkpoints;
use tokio::runtime::Builder;

use crate::app::json;
use crate::app::failure::{Context, Failure};
use crate::app::args::{MicroArgs, TableFormat};
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::runs::{RunFile, identify};
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::fill::{disturbances, farewell, on_server};
use crate::cmd::micro::progress::RoundsProgress;

/// Between saved states of a run that goes on: a killed one loses no more.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// Measures on the server that the arguments name.
pub(crate) fn run(arguments: &MicroArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    request.check()?;
    // One thread: an answer then reaches whoever times it without waking another one.
    on_server(&arguments.server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
        let connection = chosen.connect(printer).await?;
        let bench =
            Conducted { arguments, request: &request, home, chosen, connection: &connection, printer };
        if arguments.explain {
            bench.explain().await
        } else if arguments.calibrate {
            Box::pin(bench.calibrate()).await
        } else {
            Box::pin(bench.measure()).await
        }
    })
}

/// A request on its server.
struct Conducted<'a> {
    arguments: &'a MicroArgs,
    request: &'a Request,
    home: &'a Home,
    chosen: &'a Chosen,
    connection: &'a Connection,
    printer: &'a Printer,
}

/// Takes rounds as they come.
struct Recorder<'a> {
    run: &'a mut Run,
    file: &'a RunFile,
    outcome: Option<Outcome>,
    request: &'a Request,
    progress: RoundsProgress<'a>,
    printer: &'a Printer,
    saved: Instant,
    unsaved: Option<Failure>,
}

impl Recorder<'_> {
    /// Takes the bar off the screen.
    fn end(self) -> (Option<Outcome>, Option<Failure>) {
        (self.outcome, self.unsaved)
    }

    fn save(&mut self) {
        if let Some(outcome) = &self.outcome {
            self.run.trials = outcome.trials(self.request);
        }
        self.unsaved = self.file.save(self.run).err();
        self.saved = Instant::now();
    }
}

impl Observer for Recorder<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.printer.say(text::plan(plan, self.request) + "\n");
        for finding in &plan.findings {
            self.printer.warn(finding);
        }
        match json::value(plan) {
            Ok(plan) => self.run.plan = plan,
            Err(error) => self.unsaved = Some(error),
        }
        self.outcome = Some(Outcome::new(plan.clone()));
        self.save();
    }

    fn round(&mut self, round: &Round, outlook: Outlook) {
        if let Some(outcome) = &mut self.outcome {
            outcome.rounds.push(round.clone());
        }
        self.progress.show(outlook);
        if self.saved.elapsed() > SAVE_INTERVAL {
            self.save();
        }
    }
}

impl Conducted<'_> {
    async fn explain(&self) -> Result<(), Failure> {
        let interrupt = interrupted(self.printer);
        let plan = micro::explain(&self.chosen.target, self.connection, self.request, interrupt).await?;
        if self.arguments.save.json.is_some() {
            return Ok(Printer::json(&json::pretty(&plan)?)?);
        }
        Ok(self.printer.result(text::explained(&plan))?)
    }

    /// A document that holds nothing yet.
    async fn document(&self) -> Result<(Run, RunFile), Failure> {
        let survey = Survey::for_tables(self.connection, &self.chosen.data_directory(None)?, VERSION).await?;
        let (id, started_at) = identify("micro");
        let file = RunFile::new(self.home.root(), &id, self.arguments.save.json.as_deref())?;
        let run = Run {
            format_version: FORMAT_VERSION,
            id,
            verb: "micro".to_owned(),
            label: self.arguments.save.label.clone(),
            started_at,
            status: Status::Unfinished,
            request: json::value(self.request)?,
            plan: serde_json::json!({}),
            environment: survey.environment,
            trials: Vec::new(),
            notes: Vec::new(),
        };
        file.save(&run)?;
        Ok((run, file))
    }

    async fn measure(&self) -> Result<(), Failure> {
        if self.arguments.save_in_database {
            micro::check_saving(&self.chosen.target).await?;
        }
        let (mut run, mut file) = self.document().await?;
        let checkpoints = Checkpoints::so_far(&self.connection.client).await;
        let mut recorder = Recorder {
            run: &mut run,
            file: &file,
            outcome: None,
            request: self.request,
            progress: RoundsProgress::new("rounds", self.printer),
            printer: self.printer,
            saved: Instant::now(),
            unsaved: None,
        };
        let interrupt = interrupted(self.printer);
        let (target, connection) = (&self.chosen.target, self.connection);
        let ended = micro::run(target, connection, self.request, &mut recorder, interrupt).await;
        let (outcome, unsaved) = recorder.end();
        let ended = ended.unwrap_or_else(|error| Ended {
            result: Err(error),
            notes: Vec::new(),
            own_checkpoints: 0,
            left_behind: None,
        });
        run.trials = outcome.as_ref().map_or(Vec::new(), |outcome| outcome.trials(self.request));
        run.notes.extend(ended.notes.into_iter().map(|text| Note { text }));
        let now = Checkpoints::so_far(&self.connection.client).await;
        run.notes.extend(disturbances(checkpoints, now, ended.own_checkpoints));
        if let Some(why) = &ended.left_behind {
            self.printer.warn(format!("not all could be cleared up: {why}"));
            run.notes.push(Note { text: format!("not all could be cleared up: {why}") });
        }
        self.finish(&mut run, &mut file, &ended.result)?;
        unsaved.map_or(Ok(()), Err).context("while rounds went on")?;
        // What an interrupted run has measured is not lost.
        if let Some(outcome) = outcome.filter(|outcome| outcome.rounds.len() > 1) {
            self.show(&outcome)?;
            for note in &run.notes {
                self.printer.say(format!("note: {}", note.text));
            }
            for hint in text::hints(&outcome, self.request) {
                self.printer.say(hint);
            }
            if self.arguments.save_in_database && ended.result.is_ok() {
                let saved = micro::save(&self.chosen.target, &run.id, &outcome).await?;
                self.printer.say(text::saved(&saved, &run.id));
            }
        }
        ended.result?;
        farewell(self.chosen, &file, self.printer);
        Ok(())
    }

    /// The table to standard output; there too, if it is for people, all that belongs to it.
    fn show(&self, outcome: &Outcome) -> Result<(), Failure> {
        let (request, format) = (self.request, self.arguments.format);
        let judged = outcome.judged(request);
        let table = judged.map(|judged| table::results(outcome, &judged, request.has_rows(), format));
        let few = "too few rounds to tell anything";
        let details = text::details(outcome, request);
        if format == TableFormat::Text {
            self.printer.result(format!("{}\n\n{details}", table.as_deref().unwrap_or(few)))?;
        } else {
            match table {
                Some(table) => self.printer.result(table)?,
                None => self.printer.warn(few),
            }
            self.printer.say(format!("\n{details}"));
        }
        self.printer.say("");
        Ok(())
    }

    async fn calibrate(&self) -> Result<(), Failure> {
        let (mut run, mut file) = self.document().await?;
        let mut progress = RoundsProgress::new("calibrating", self.printer);
        let mut so_far: Option<Calibration> = None;
        let interrupt = interrupted(self.printer);
        let mut observer = |found: &Calibration, outlook: Outlook| {
            so_far = Some(found.clone());
            progress.show(outlook);
        };
        let (target, connection) = (&self.chosen.target, self.connection);
        let result = micro::calibrate(target, connection, self.request, &mut observer, interrupt).await;
        drop(progress);
        let ended = result.map(|found| so_far = Some(found));
        if let Some(found) = &so_far {
            run.plan = json::value(&found.plan)?;
            run.trials = vec![calibration_trial(found)];
        }
        self.finish(&mut run, &mut file, &ended)?;
        if let Some(found) = &so_far {
            let table = table::calibration(found, self.arguments.format);
            let (title, conclusion) = (text::calibrated(found), text::concluded(found));
            if self.arguments.format == TableFormat::Text {
                self.printer.result(format!("{title}\n{table}\n{conclusion}"))?;
            } else {
                self.printer.say(title);
                self.printer.result(table)?;
                self.printer.say(format!("\n{conclusion}"));
            }
        }
        ended?;
        self.printer.say("");
        farewell(self.chosen, &file, self.printer);
        Ok(())
    }

    /// Saves the document for the last time. An interruption is told by the caller, who has results to show.
    fn finish(
        &self,
        run: &mut Run,
        file: &mut RunFile,
        result: &Result<(), MicroError>,
    ) -> Result<(), Failure> {
        run.status = match result {
            Ok(()) => Status::Done,
            Err(MicroError::Interrupted { .. }) => Status::Interrupted,
            Err(_) => Status::Failed,
        };
        if let Err(error) = result {
            run.notes.push(Note { text: error.to_string() });
        }
        match (result, file.finish(run)) {
            // What went wrong first is what counts; a full disk may be why both did.
            (Err(_), Err(unsaved)) => {
                self.printer.warn(format!("{unsaved:#}"));
                Ok(())
            }
            (_, saved) => saved,
        }
    }
}

/// Samples of each number of rows as a series: the how-manieth, and seconds.
fn calibration_trial(found: &Calibration) -> Trial {
    let mut trial = Trial { config: "calibration".to_owned(), ..Trial::default() };
    for point in &found.points {
        let mut series = Series::new(&format!("rows-{}", point.rows), Unit::Count, Unit::Seconds);
        series.points =
            point.seconds.iter().enumerate().map(|(number, seconds)| (number as f64, *seconds)).collect();
        trial.series.push(series);
        trial.observe(&format!("rows-{}-spilled", point.rows), point.spilled as f64, Unit::Blocks);
    }
    trial
}
