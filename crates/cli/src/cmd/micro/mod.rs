//! `pgrig micro`: request → plans looked at → rounds → run document and tables.

pub(crate) mod args;
mod progress;
mod table;
mod text;

use std::time::{Duration, Instant};

use connect::Connection;
use measure::{Series, Trial, Unit};
use micro::{self, Calibration, Ended, Observer, Outcome, Plan, Request, Round, RunProgress};
use pgserver::Home;
use server::Survey;
use server::disturbance::Checkpoints;
use tokio::runtime::Builder;

use crate::app::conduct::{self, Begun, Finished, Recording, RunEnd, Shown, disturbances, on_server};
use crate::app::failure::Failure;
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::printer::Printer;
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::micro::args::{MicroArgs, TableFormat};

use crate::cmd::micro::progress::RoundsProgress;

/// Interval at which a running run is saved: if pgrig is killed, no more than this is lost.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// Measures on the server that the arguments name.
pub(crate) fn run(arguments: &MicroArgs, printer: &Printer) -> Result<(), Failure> {
    let request = arguments.request()?;
    request.check()?;
    // One thread: an answer then reaches the task that times it without waking another thread.
    let server = arguments.server.planned(arguments.explain);
    on_server(&server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
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

/// A request with its server.
struct Conducted<'a> {
    arguments: &'a MicroArgs,
    request: &'a Request,
    home: &'a Home,
    chosen: &'a Chosen,
    connection: &'a Connection,
    printer: &'a Printer,
}

/// Records rounds as they are completed.
struct Recorder<'a> {
    recording: &'a mut Recording,
    outcome: Option<Outcome>,
    request: &'a Request,
    progress: RoundsProgress<'a>,
    printer: &'a Printer,
    saved: Instant,
}

impl Recorder<'_> {
    /// Takes the bar off the screen.
    fn end(self) -> Option<Outcome> {
        self.outcome
    }

    fn save(&mut self) {
        if let Some(outcome) = &self.outcome {
            self.recording.run.trials = outcome.trials(self.request);
        }
        self.recording.save();
        self.saved = Instant::now();
    }
}

impl Observer for Recorder<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.printer.say(text::plan(plan, self.request) + "\n");
        for finding in &plan.findings {
            self.printer.warn(finding);
        }
        self.recording.set_plan(plan);
        self.outcome = Some(Outcome::new(plan.clone()));
        self.save();
    }

    fn round(&mut self, round: &Round, progress: RunProgress) {
        if let Some(outcome) = &mut self.outcome {
            outcome.rounds.push(round.clone());
        }
        self.progress.show(progress);
        if self.saved.elapsed() > SAVE_INTERVAL {
            self.save();
        }
    }
}

impl Conducted<'_> {
    async fn explain(&self) -> Result<(), Failure> {
        let interrupt = interrupted(self.printer);
        let plan = micro::explain(&self.chosen.target, self.connection, self.request, interrupt).await?;
        conduct::explained(self.printer, &self.arguments.save, &plan, text::explained(&plan))
    }

    /// The run that begins.
    async fn begun(&self) -> Result<Begun<'_>, Failure> {
        let directory = self.chosen.data_directory(None)?;
        let survey = if self.request.creates_objects() {
            Survey::for_tables(self.connection, &directory, VERSION).await?
        } else {
            Survey::for_reading(self.connection, &directory, VERSION).await?
        };
        Ok(Begun {
            verb: "micro",
            save: &self.arguments.save,
            request: json::value(self.request)?,
            plan: serde_json::json!({}),
            environment: survey.environment,
            notes: Vec::new(),
        })
    }

    async fn measure(&self) -> Result<(), Failure> {
        if self.arguments.save_in_database {
            micro::check_saving(&self.chosen.target).await?;
        }
        conduct::recorded(
            self.begun().await?,
            self.home,
            self.chosen,
            self.printer,
            async |recording| self.rounds(recording).await,
            async |outcome: Outcome, finished| self.results(&outcome, finished).await,
        )
        .await
    }

    /// Runs the rounds, and records them. An interrupted run shows and saves the results that it has.
    async fn rounds(&self, recording: &mut Recording) -> RunEnd<Outcome> {
        let checkpoints = Checkpoints::so_far(&self.connection.client).await;
        let mut recorder = Recorder {
            recording,
            outcome: None,
            request: self.request,
            progress: RoundsProgress::new("rounds", self.printer),
            printer: self.printer,
            saved: Instant::now(),
        };
        let interrupt = interrupted(self.printer);
        let (target, connection) = (&self.chosen.target, self.connection);
        let ended = micro::run(target, connection, self.request, &mut recorder, interrupt).await;
        let outcome = recorder.end();
        let ended = ended.unwrap_or_else(|error| Ended {
            result: Err(error),
            notes: Vec::new(),
            own_checkpoints: 0,
            left_behind: None,
        });
        recording.run.trials = outcome.as_ref().map_or(Vec::new(), |outcome| outcome.trials(self.request));
        ended.notes.into_iter().for_each(|text| recording.note(text));
        let now = Checkpoints::so_far(&self.connection.client).await;
        recording.run.notes.extend(disturbances(checkpoints, now, ended.own_checkpoints));
        if let Some(why) = &ended.left_behind {
            self.printer.warn(why);
            recording.note(why.clone());
        }
        let outcome = outcome.filter(|outcome| outcome.rounds.len() > 1);
        RunEnd { outcome, result: ended.result.map_err(Failure::from) }
    }

    /// Prints the results, and saves them in the database if the user wants that.
    async fn results(&self, outcome: &Outcome, finished: &Finished) -> Result<Shown, Failure> {
        let reminder = self.show(outcome)?;
        let mut hints = finished.result.as_ref().err().map_or(Vec::new(), Failure::run_notes);
        for why in &mut hints {
            why.insert_str(0, "note: ");
        }
        hints.extend(text::hints(outcome, self.request));
        if self.arguments.save_in_database && finished.result.is_ok() {
            let saved = micro::save(&self.chosen.target, &finished.run.id, outcome).await?;
            hints.push(text::saved(&saved, &finished.run.id));
        }
        Ok(Shown { hints, reminder, ..Shown::default() })
    }

    /// Prints the table to standard output; in the text format also everything that belongs to it.
    /// Returns the table in the text format.
    fn show(&self, outcome: &Outcome) -> Result<Option<String>, Failure> {
        let (request, format) = (self.request, self.arguments.format);
        let judged = outcome.judged(request);
        let table = judged.map(|judged| table::results(outcome, &judged, request.has_rows(), format));
        let few = "too few rounds for a result";
        let details = text::details(outcome, request);
        if format == TableFormat::Text {
            self.printer.result(format!("{}\n\n{details}", table.as_deref().unwrap_or(few)))?;
            return Ok(table);
        }
        match table {
            Some(table) => self.printer.result(table)?,
            None => self.printer.warn(few),
        }
        self.printer.say(format!("\n{details}"));
        Ok(None)
    }

    async fn calibrate(&self) -> Result<(), Failure> {
        conduct::recorded(
            self.begun().await?,
            self.home,
            self.chosen,
            self.printer,
            async |recording| self.samples(recording).await,
            async |found: Calibration, finished| {
                self.show_calibration(&found)?;
                Ok(Shown { only_results: finished.result.is_err(), ..Shown::default() })
            },
        )
        .await
    }

    /// Times numbers of rows, and records the samples. An interrupted calibration has the samples so far.
    async fn samples(&self, recording: &mut Recording) -> RunEnd<Calibration> {
        let mut progress = RoundsProgress::new("calibrating", self.printer);
        let mut so_far: Option<Calibration> = None;
        let interrupt = interrupted(self.printer);
        let mut observer = |found: &Calibration, now: RunProgress| {
            so_far = Some(found.clone());
            progress.show(now);
        };
        let (target, connection) = (&self.chosen.target, self.connection);
        let result = micro::calibrate(target, connection, self.request, &mut observer, interrupt).await;
        drop(progress);
        let result = result.map(|found| so_far = Some(found)).map_err(Failure::from);
        if let Some(found) = &so_far {
            recording.set_plan(&found.plan);
            recording.run.trials = vec![calibration_trial(found)];
        }
        RunEnd { outcome: so_far, result }
    }

    fn show_calibration(&self, found: &Calibration) -> Result<(), Failure> {
        let table = table::calibration(found, self.arguments.format);
        let (title, conclusion) = (text::calibrated(found), text::concluded(found));
        if self.arguments.format == TableFormat::Text {
            self.printer.result(format!("{title}\n{table}\n{conclusion}"))?;
        } else {
            self.printer.say(title);
            self.printer.result(table)?;
            self.printer.say(format!("\n{conclusion}"));
        }
        Ok(())
    }
}

/// Samples of each number of rows as a series: x is the sample's number, y its time in seconds.
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
