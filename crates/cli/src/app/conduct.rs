//! Conducts a verb: chooses the server, shows the plan, records the run, prints results and hints.
//!
//! ```text
//! on_server ─▶ surveyed ─▶ (verb's plan) ─▶ explained | recorded: begin ─▶ (verb's run) ─▶ finish ─▶ (verb's text) ─▶ show
//! ```

use std::fmt::Display;
use std::path::{Path, PathBuf};

use connect::Connection;
use measure::{Environment, FORMAT_VERSION, Note, Run, Status, Trial};
use pgserver::Home;
use serde::Serialize;
use serde_json::Value;
use server::disturbance::Checkpoints;
use server::{Survey, SurveyError, removal};
use tokio::runtime::Builder;

use crate::app::args::{SaveArgs, ServerChoice};
use crate::app::failure::{Failure, MachineFailure};
use crate::app::instance::psql;
use crate::app::printer::{OutputPosition, Printer};
use crate::app::runs::{RunFile, identify};
use crate::app::target::{self, Chosen};
use crate::app::version::VERSION;
use crate::app::{command_line, interrupt, json, report};

/// Does the work in a runtime, on the server that the arguments name, and leaves that server in the
/// state in which it was found.
pub(crate) fn on_server(
    server: &ServerChoice,
    runtime: &mut Builder,
    printer: &Printer,
    work: impl AsyncFnOnce(&Home, &Chosen) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let home = Home::locate()?;
    // Started on the main thread, which outlives everything: the server ends when it does.
    let chosen = target::choose(server, &home, printer)?;
    chosen.check_restored(&home, printer)?;
    let runtime = runtime.enable_all().build()?;
    let result = interrupt::block_on(runtime, printer, work(&home, &chosen));
    let log = chosen.log();
    let released = chosen.release(printer);
    if let (Err(failure), Some(log)) = (&result, log)
        && failure.is_explained_by_log()
    {
        printer.say(format!("the server's log: {}", log.display()));
    }
    match (result, released) {
        // pgrig's own server has ended by itself: the sessions have only lost it, and its last words tell why.
        (Err(failure), Err(ended)) if failure.is_lost_server() => Err(ended),
        (result, released) => result.and(released),
    }
}

/// Connects to the chosen server, and looks at it.
///
/// # Errors
/// If the server cannot be reached or asked.
pub(crate) async fn surveyed(chosen: &Chosen, printer: &Printer) -> Result<(Connection, Survey), Failure> {
    let connection = chosen.connect(printer).await?;
    let survey = Survey::of(&connection, &chosen.data_directory(None)?, VERSION).await?;
    Ok((connection, survey))
}

/// Connects to the chosen server, and looks at it for a verb that makes tables there. `directory` is the data directory that
/// the user names.
///
/// # Errors
/// If the server cannot be reached or asked, or if no tables can be made there.
pub(crate) async fn surveyed_for_tables(
    chosen: &Chosen,
    directory: Option<&Path>,
    printer: &Printer,
) -> Result<(Connection, Survey), Failure> {
    let connection = chosen.connect(printer).await?;
    let surveyed = Survey::for_tables(&connection, &chosen.data_directory(directory)?, VERSION).await;
    match surveyed {
        Ok(survey) => Ok((connection, survey)),
        Err(SurveyError::ReadOnly { by_client: false }) if chosen.another_database().is_some() => {
            Err(read_only(chosen, &connection).await)
        }
        Err(error) => Err(error.into()),
    }
}

/// The error of a session of pgrig's own server that is read-only: PGOPTIONS has no effect there.
async fn read_only(chosen: &Chosen, connection: &Connection) -> Failure {
    let removal = match removal(&connection.client, "default_transaction_read_only").await {
        Ok(removal) => removal,
        Err(error) => return connection.explain(error).await.into(),
    };
    // ALTER SYSTEM runs in no transaction with other statements.
    let statement = removal.strip_prefix("run ").filter(|statement| !statement.starts_with("ALTER SYSTEM"));
    let command = statement
        .and_then(|statement| chosen.command_for(&format!("SET transaction_read_only = off; {statement}")));
    let way = command.map_or(removal, |command| format!("run {command}"));
    let text = "this session is read-only (default_transaction_read_only is on): to let pgrig write";
    MachineFailure(format!("{text}, {way}")).into()
}

/// Prints the plan of --explain: as JSON if --json is given, else as text.
pub(crate) fn explained(
    printer: &Printer,
    save: &SaveArgs,
    plan: &impl Serialize,
    text: impl Display,
) -> Result<(), Failure> {
    match &save.json {
        Some(_) => Ok(Printer::json(&json::pretty(plan)?)?),
        None => Ok(printer.result(text)?),
    }
}

/// Prints the plan of a run that begins, and its warnings.
pub(crate) fn announced(printer: &Printer, planned: &str, warnings: impl IntoIterator<Item = impl Display>) {
    printer.say(format!("{planned}\n"));
    for warning in warnings {
        printer.warn(warning);
    }
}

/// Conducts a run: saves its document as it begins, runs it, saves the document with its status, and prints the results.
///
/// # Errors
/// The run's own failure, or if its document could not be saved.
pub(crate) async fn recorded<O>(
    begun: Begun<'_>,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
    run: impl AsyncFnOnce(&mut Recording) -> RunEnd<O>,
    text: impl AsyncFnOnce(O, &Finished) -> Result<Shown, Failure>,
) -> Result<(), Failure> {
    let mut recording = Recording::begin(home, begun)?;
    let end = Box::pin(run(&mut recording)).await;
    recording.conclude(end, Some(chosen), printer, text).await
}

/// The end of a verb's run.
pub(crate) struct RunEnd<O> {
    /// The outcome that is shown; none if there are no results.
    pub(crate) outcome: Option<O>,
    pub(crate) result: Result<(), Failure>,
}

impl<O, E: Into<Failure>> From<Result<O, E>> for RunEnd<O> {
    fn from(result: Result<O, E>) -> Self {
        match result {
            Ok(outcome) => Self { outcome: Some(outcome), result: Ok(()) },
            Err(error) => Self { outcome: None, result: Err(error.into()) },
        }
    }
}

/// A run as it begins.
pub(crate) struct Begun<'a> {
    /// The verb's name.
    pub(crate) verb: &'static str,
    /// Destination of its document.
    pub(crate) save: &'a SaveArgs,
    pub(crate) request: Value,
    pub(crate) plan: Value,
    pub(crate) environment: Environment,
    pub(crate) notes: Vec<Note>,
}

/// A running measurement and its document, which is saved after each trial.
pub(crate) struct Recording {
    pub(crate) run: Run,
    file: RunFile,
    /// The file of --report.
    report: Option<String>,
    /// Notes that the user has seen: the end of the run does not repeat them.
    seen: Vec<String>,
    /// Why the last save failed.
    unsaved: Option<Failure>,
}

impl Recording {
    /// Saves the document of a run that begins.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub(crate) fn begin(home: &Home, begun: Begun<'_>) -> Result<Self, Failure> {
        let recording = Self::unsaved(home, begun)?;
        recording.file.save(&recording.run)?;
        Ok(recording)
    }

    /// A recording that saves nothing yet, because the request has not been checked.
    ///
    /// # Errors
    /// If the document cannot be written later.
    pub(crate) fn unsaved(home: &Home, begun: Begun<'_>) -> Result<Self, Failure> {
        let (id, started_at) = identify(begun.verb);
        let file = RunFile::new(home.root(), &id, begun.save.json.as_deref())?;
        let run = Run {
            format_version: FORMAT_VERSION,
            id,
            verb: begun.verb.to_owned(),
            label: begun.save.label.clone(),
            started_at,
            command: command_line::of_this_process(),
            status: Status::Unfinished,
            request: begun.request,
            plan: begun.plan,
            environment: begun.environment,
            trials: Vec::new(),
            notes: begun.notes,
        };
        Ok(Self { run, file, report: begun.save.report.clone(), seen: Vec::new(), unsaved: None })
    }

    /// Adds a trial, and saves.
    pub(crate) fn add(&mut self, trial: Trial) {
        self.run.trials.push(trial);
        self.save();
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.run.notes.push(Note { text: text.into() });
    }

    /// Adds a note that is printed already, for example as a warning.
    pub(crate) fn note_seen(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.seen.contains(&text) {
            self.note(text.clone());
            self.seen.push(text);
        }
    }

    /// Saves the run as it is so far. If this fails, the verb continues, and reports it at the end of the run.
    pub(crate) fn save(&mut self) {
        self.unsaved = self.file.save(&self.run).err();
    }

    /// Sets the plan of a run that makes it after its begin. If it has no form in JSON, the end of the run reports that.
    pub(crate) fn set_plan(&mut self, plan: &impl Serialize) {
        match json::value(plan) {
            Ok(plan) => self.run.plan = plan,
            Err(failure) => self.unsaved = Some(failure),
        }
    }

    /// The document's path.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The end of [`recorded`], for a run that owns its recording. `chosen` is the server, unless the run had servers of its own.
    ///
    /// # Errors
    /// As [`recorded`].
    pub(crate) async fn conclude<O>(
        self,
        RunEnd { outcome, result }: RunEnd<O>,
        chosen: Option<&Chosen>,
        printer: &Printer,
        text: impl AsyncFnOnce(O, &Finished) -> Result<Shown, Failure>,
    ) -> Result<(), Failure> {
        let finished = self.finish(result);
        let Some(outcome) = outcome else { return finished.end(printer) };
        let place = OutputPosition::here();
        let shown = text(outcome, &finished).await?;
        finished.show(shown, place, chosen, printer)
    }

    /// Saves the document for the last time, with the status that follows from the result.
    pub(crate) fn finish(mut self, result: Result<(), Failure>) -> Finished {
        let notes = self.run.notes.iter().map(|note| note.text.clone());
        let notes: Vec<String> = notes.filter(|text| !self.seen.contains(text)).collect();
        self.run.status = match &result {
            Ok(()) => Status::Done,
            // Whatever failed then, failed because of that.
            Err(failure) if interrupt::was_asked() && failure.run_status() == Status::Failed => {
                Status::Interrupted
            }
            Err(failure) => failure.run_status(),
        };
        for text in result.as_ref().err().map(Failure::run_notes).unwrap_or_default() {
            self.note(text);
        }
        let saved = self.file.finish(&self.run).and(self.unsaved.map_or(Ok(()), Err));
        let reported = self.report.as_deref().map_or(Ok(()), |name| report::of_run(name, &self.run));
        let saved = saved.and(reported);
        Finished { path: self.file.path().to_owned(), run: self.run, notes, result, saved }
    }
}

/// A run that is over.
pub(crate) struct Finished {
    pub(crate) run: Run,
    /// Its notes, without those that the user has seen, and those on how it ended.
    notes: Vec<String>,
    path: PathBuf,
    pub(crate) result: Result<(), Failure>,
    saved: Result<(), Failure>,
}

/// Results of a run, for people.
#[derive(Default)]
pub(crate) struct Shown {
    /// For standard output.
    pub(crate) results: Vec<String>,
    /// Lines after the notes: the next commands.
    pub(crate) hints: Vec<String>,
    /// The part of the results that is printed again at the end, if it has scrolled off the screen.
    pub(crate) reminder: Option<String>,
    /// Whether the run left no data that a user could look at.
    pub(crate) leaves_nothing: bool,
    /// Whether nothing follows the results: neither notes and hints nor the path of the document.
    pub(crate) only_results: bool,
}

impl Shown {
    /// Results without more.
    pub(crate) fn of(results: Vec<String>) -> Self {
        Self { results, ..Self::default() }
    }
}

impl Finished {
    /// Prints results, notes, hints and the path of the document. The verb's output began at `place`.
    fn show(
        self,
        shown: Shown,
        place: OutputPosition,
        chosen: Option<&Chosen>,
        printer: &Printer,
    ) -> Result<(), Failure> {
        for result in shown.results {
            printer.result(result)?;
        }
        if shown.only_results {
            return self.end(printer);
        }
        printer.say("");
        for note in &self.notes {
            printer.say(format!("note: {note}"));
        }
        for hint in shown.hints {
            printer.say(hint);
        }
        let chosen = chosen.filter(|_| !shown.leaves_nothing);
        let psql = chosen.and_then(|chosen| Some(psql(chosen.stopped_instance()?, chosen.target.dbname())));
        farewell(psql.as_deref(), &self.path, printer);
        let ended = self.end(printer);
        if let Some(text) = shown.reminder {
            printer.remind(place, &text)?;
        }
        ended
    }

    /// The document's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Prints no results. Returns the result of the run.
    ///
    /// # Errors
    /// The run's own failure, or if its document could not be saved.
    pub(crate) fn end(self, printer: &Printer) -> Result<(), Failure> {
        match (self.result, self.saved) {
            (Ok(()), saved) => saved,
            // The first failure counts; a full disk may have caused both.
            (Err(failure), saved) => {
                if let Err(unsaved) = saved {
                    printer.warn(unsaved);
                }
                Err(failure)
            }
        }
    }
}

/// Prints where the results of the run can be found. `psql` opens the database of a server that is stopped again.
fn farewell(psql: Option<&str>, document: &Path, printer: &Printer) {
    if let Some(psql) = psql {
        printer.say(format!("the server is stopped again; to look at its data: {psql}"));
    }
    printer.say(format!("run document: {}", document.display()));
}

/// A note on checkpoints between two readings; `own` is the number that the verb itself asked for.
pub(crate) fn disturbances(
    before: Option<Checkpoints>,
    after: Option<Checkpoints>,
    own: u64,
) -> Option<Note> {
    // The last of our own may have been cut short by the commit, and not be counted on our side.
    let ran = after?.since(before?).saturating_sub(if own > 0 { own + 1 } else { 0 });
    let plural = if ran == 1 { "checkpoint" } else { "checkpoints" };
    (ran > 0)
        .then(|| Note { text: format!("{ran} {plural} began during the run and took a part of the time") })
}
