//! `pgrig backup rehearse --size`: three sizes of data, and a forecast.

mod again;
pub(crate) mod args;
mod held;
mod shape;
mod text;

use std::rc::Rc;
use std::time::Duration;

use backup::{
    BackupError, DataSize, Format, Held, Observer, Outcome, Plan, Rto, Shape, SizesRequest, SizesSite, Tool,
    Trial, WalOfLoad, Way,
};
use measure::{Environment, Note, Trial as Document};
use pgserver::{Home, Profile};
use serde_json::{Value, json};
use server::machine::cores;
use tokio::runtime::Builder;

use self::args::{CHANGES, UP_TO};
use self::shape::ReadShape;
use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown};
use crate::app::failure::{BadResult, Failure, Usage};
use crate::app::interrupt::{self, interrupted};
use crate::app::json;
use crate::app::printer::{Printer, first_paragraph};
use crate::app::steps::ShownSteps;
use crate::app::version::VERSION;
use crate::cmd::backup::args::RehearseArgs;
use crate::cmd::backup::progress::Progress;

/// Rehearses at three sizes.
pub(super) fn run(arguments: &RehearseArgs, printer: &Printer) -> Result<(), Failure> {
    let embedded = &arguments.server.address.embedded;
    if embedded.profile.is_some_and(|profile| profile != Profile::Stock) {
        let text = "the servers of a forecast have the profile stock: leave out --profile, and give settings with --set";
        return Err(Usage(text.to_owned()).into());
    }
    let ReadShape { shape, major } = shape::read(arguments, printer)?;
    let asked = asked(arguments, shape)?;
    let home = Home::locate()?;
    let site = SizesSite {
        home: &home,
        pg_bin: embedded.pg_bin.clone(),
        major,
        set: &embedded.set,
        cores: u16::try_from(cores()).unwrap_or(u16::MAX),
        pgrig: VERSION,
    };
    if arguments.explain {
        let plan = backup::plan_sizes(&site, &asked).map_err(|error| of_version(arguments, error))?;
        return conduct::explained(printer, &arguments.save, &plan, super::text::plan(&plan));
    }
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    interrupt::block_on(runtime, printer, Box::pin(rehearse(arguments, &site, &asked, printer)))
}

/// The error, without a remedy for the version of the servers if that is the original's.
fn of_version(arguments: &RehearseArgs, error: BackupError) -> BackupError {
    let embedded = &arguments.server.address.embedded;
    let has_original = arguments.server.dbname.is_some() || embedded.instance.is_some();
    let is_chosen = !has_original && (embedded.pg_version.is_some() || embedded.pg_bin.is_some());
    if is_chosen { error } else { error.of_fixed_version() }
}

/// The request, with the size of the original if none is given.
fn asked(arguments: &RehearseArgs, shape: Shape) -> Result<SizesRequest, Usage> {
    let sized = &arguments.sized;
    if sized.changes.is_some() && !arguments.way.iter().any(|way| way.format == Format::Incremental) {
        return Err(Usage("--changes is for incremental backups: add --way incremental".to_owned()));
    }
    let load = sized.load.load()?;
    if load.is_none() && arguments.way.iter().any(|way| way.format == Format::Pitr) {
        let text = "--way pitr replays the WAL of a load: give one, for example --load simple-update -R 500";
        return Err(Usage(text.to_owned()));
    }
    if load.is_none() && arguments.tools.tool_restore.iter().any(|command| Tool::is_to_a_time(command)) {
        let text = "a --tool-restore with {time} replays the WAL of a load: give one, for example --load simple-update -R 500";
        return Err(Usage(text.to_owned()));
    }
    let size = sized.size.map(|size| size.0).or(shape.bytes).ok_or_else(|| {
        Usage(format!("no size is given, and that of {} is not known: give --size SIZE", shape.origin))
    })?;
    Ok(SizesRequest {
        request: arguments.request()?,
        shape,
        size,
        up_to: sized.up_to.map_or(UP_TO, |size| size.0),
        price: sized.price_per_gb_month.map(|price| price.0),
        rto: sized.rto.map(|rto| rto.0.as_secs_f64()),
        changes: sized.changes.map_or(CHANGES, |changes| changes.0) / 100.0,
        load,
    })
}

async fn rehearse(
    arguments: &RehearseArgs,
    site: &SizesSite<'_>,
    asked: &SizesRequest,
    printer: &Printer,
) -> Result<(), Failure> {
    let shown = Rc::new(ShownSteps::new(printer, ""));
    let mut progress =
        SizedProgress { arguments, site, asked, shown, plan: None, state: RecordingState::Planned };
    let result = backup::rehearse_sizes(site, asked, &mut progress, interrupted(printer)).await;
    let result = result.map_err(|error| of_version(arguments, error));
    progress.shown.clear();
    let (mut recording, plan) = match (progress.state, progress.plan) {
        (RecordingState::Measuring(progress), Some(plan)) => (progress.end().0, plan),
        (RecordingState::Failed(failure), _) => return Err(failure),
        // It failed before there was a server.
        _ => return result.map(drop).map_err(Failure::from),
    };
    let end = match result {
        Ok(outcome) => {
            outcome.notes.iter().chain(&outcome.unmeasured).for_each(|note| recording.note(note));
            tell(&mut recording.run.trials, &outcome);
            let results = text::results(&outcome, &plan, asked);
            // The forecasts come last.
            let table = if outcome.forecasts.is_empty() { results.first() } else { results.last() };
            let reminder = table.map(|table| first_paragraph(table).to_owned());
            let shown = Shown { results, reminder, ..Shown::default() };
            RunEnd { outcome: Some(shown), result: judged(&outcome, asked) }
        }
        Err(error) => RunEnd::from(Err(error)),
    };
    recording.conclude(end, None, printer, async |shown, _| Ok(shown)).await
}

/// Adds each forecast to the last trial of its way at the largest size.
fn tell(trials: &mut [Document], outcome: &Outcome) {
    for forecast in &outcome.forecasts {
        let name = forecast.way.to_string();
        let Some(last) = trials.iter_mut().rev().find(|trial| trial.config == name) else { continue };
        let what = json!({ "event": "forecast", "forecast": forecast });
        let at = last.events.last().map_or(0.0, |event| event.at);
        last.events.push(measure::Event { at, text: "forecast".to_owned(), what });
    }
}

/// A way that failed makes the command fail; then comes the time that a restore may take.
fn judged(outcome: &Outcome, asked: &SizesRequest) -> Result<(), Failure> {
    super::judged(outcome)?;
    let Some(rto) = asked.rto else { return Ok(()) };
    if outcome.forecasts.iter().any(|forecast| forecast.rto == Some(Rto::Keeps)) {
        return Ok(());
    }
    let rto = crate::app::numbers::duration(Duration::from_secs_f64(rto));
    let not_known = outcome.forecasts.iter().filter(|forecast| forecast.rto == Some(Rto::NotKnown)).count();
    let more = if not_known > 0 {
        format!("; the restore time of {} is not known", measure::human::counted(not_known as u64, "way"))
    } else {
        String::new()
    };
    Err(BadResult::Missed(vec![format!("no --way is certain to restore within {rto} (--rto){more}")]).into())
}

/// Prints progress. The document begins once there is a server.
struct SizedProgress<'a> {
    arguments: &'a RehearseArgs,
    site: &'a SizesSite<'a>,
    asked: &'a SizesRequest,
    shown: Rc<ShownSteps<'a>>,
    plan: Option<Plan>,
    state: RecordingState<'a>,
}

enum RecordingState<'a> {
    Planned,
    Measuring(Box<Progress<'a>>),
    Failed(Failure),
}

impl SizedProgress<'_> {
    fn measuring(&mut self, tell: impl FnOnce(&mut Progress)) {
        if let RecordingState::Measuring(progress) = &mut self.state {
            tell(progress);
        }
    }

    fn begin(&self, environment: &Environment) -> Result<Recording, Failure> {
        let note = text::caution(self.asked);
        let begun = Begun {
            verb: "backup",
            save: &self.arguments.save,
            request: json::value(self.asked)?,
            plan: self.plan.as_ref().map_or(Ok(Value::Null), json::value)?,
            environment: environment.clone(),
            notes: vec![Note { text: note }],
        };
        Recording::begin(self.site.home, begun)
    }
}

impl Observer for SizedProgress<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.shown.stage(super::text::plan(plan) + "\n");
        self.shown.warn(text::caution(self.asked));
        self.plan = Some(plan.clone());
    }

    fn stage(&mut self, text: &str) {
        self.shown.stage(text);
    }

    fn step(&mut self, text: &str) {
        self.shown.step(text);
    }

    fn surveyed(&mut self, environment: &Environment) {
        if !matches!(self.state, RecordingState::Planned) {
            return;
        }
        self.state = match (self.begin(environment), &self.plan) {
            (Ok(recording), Some(plan)) => {
                let mut progress = Progress::new(recording, Rc::clone(&self.shown));
                progress.record(plan);
                RecordingState::Measuring(Box::new(progress))
            }
            (Ok(_), None) => RecordingState::Planned,
            (Err(failure), _) => RecordingState::Failed(failure),
        };
    }

    fn begins(&mut self, way: &Way, round: u32, at: Option<DataSize>) {
        self.measuring(|progress| progress.begins(way, round, at));
    }

    fn done(&mut self, trial: &Trial, left: Duration) {
        self.measuring(|progress| progress.done(trial, left));
    }

    fn counted(&mut self, trial: &Trial) {
        self.measuring(|progress| progress.counted(trial));
    }

    fn measured(&mut self, wal: &WalOfLoad) {
        self.measuring(|progress| progress.measured(wal));
    }

    fn held(&mut self, held: &Held) {
        self.measuring(|progress| progress.held(held));
    }

    fn cut_short(&mut self, way: &Way, trials: usize, why: &str) {
        self.measuring(|progress| progress.cut_short(way, trials, why));
    }

    fn failed(&mut self, way: &Way, why: &str) {
        self.measuring(|progress| progress.failed(way, why));
    }
}
