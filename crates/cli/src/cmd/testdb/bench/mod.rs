//! `pgrig testdb bench`: request → trials → run document, table and recommendation.
//!
//! It begins and ends its recording itself, without `conduct::recorded`: the log of the command is named after the document before
//! the request is checked, a refused request leaves no document, and pgrig has printed the notes before the results.

mod advice;
pub(crate) mod args;
mod memory;
mod results;
mod text;
pub(crate) mod words;

use std::time::Instant;

use measure::{Environment, Note};
use pgserver::{Home, Major, Spec};
use serde_json::json;
use server::settings::SYNC_BY_HAND;
use testdb::bench::{
    self, BenchError, BenchObserver, BenchPlan, BenchRequest, Cell, Choice, Content, Done,
    Failure as FailedVariant, Means, Output, Site, Work,
};
use testdb::source::Source;
use tokio::runtime::Builder;
use tps::Plan;

use crate::app::conduct::{self, Begun, Recording, on_server};
use crate::app::failure::{Failure, Usage};
use crate::app::interrupt::interrupted;
use crate::app::printer::{OutputPosition, Printer, first_paragraph};
use crate::app::recovery::journals;
use crate::app::target::{self, Chosen};
use crate::cmd::testdb::args::BenchArgs;

use crate::cmd::testdb::bench::memory::Memory;
use crate::cmd::testdb::bench::results::Results;

/// Measures on the server that the arguments name.
pub(crate) fn run(arguments: &BenchArgs, printer: &Printer) -> Result<(), Failure> {
    arguments.test_command()?;
    if let Some(request) = arguments.transactions()? {
        Plan::parse(request)?;
    }
    let source = arguments.script().map(Source::file).transpose().map_err(BenchError::from)?;
    Memory::clear(&Home::locate()?, printer);
    // Starting and stopping the server in memory blocks one thread.
    let measured =
        on_server(&arguments.server(), &mut Builder::new_multi_thread(), printer, async |home, chosen| {
            Box::pin(measure(arguments, source, home, chosen, printer)).await
        });
    measured.map_err(|error| match error.error() {
        // Nobody else has that instance.
        Some(pgserver::Error::InUse { instance, pid, .. })
            if instance == BenchArgs::INSTANCE && arguments.server.address.embedded.instance.is_none() =>
        {
            let told = format!(
                "another bench (pgrig process {pid}) is running: wait until it ends, or give --instance OTHER"
            );
            Usage(told).into()
        }
        _ => error,
    })
}

async fn measure(
    arguments: &BenchArgs,
    source: Option<Source>,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let environment = surroundings(chosen, printer).await?;
    let begun = Begun {
        verb: "testdb",
        save: &arguments.save,
        request: json!({}),
        plan: json!({}),
        environment: environment.clone(),
        notes: Vec::new(),
    };
    let mut recording = Recording::unsaved(home, begun)?;
    let log = recording.path().with_extension("log");
    let request = request(arguments, source, chosen, &log)?;
    recording.run.request = document(arguments, &request)?;
    let memory = Memory::new(home, memory_spec(arguments, &environment), printer);
    let own = if chosen.server_facts().is_own { Ok(()) } else { Err(arguments.how_to_have_own()) };
    let journals = journals(home);
    let site = Site {
        target: &chosen.target,
        place: chosen.place(),
        journals: &journals,
        tmpfs: match &own {
            Ok(()) => Ok(&memory),
            Err(how) => Err(format!(
                "pgrig does not move the data of your server to memory: use pgrig's own server ({how})"
            )),
        },
        own,
    };
    let missing = bench::check(&site, &request).await?;
    let choice = Choice::new(request.variants.as_deref(), &missing);
    if site.own.is_err() && choice.is_ok_and(|choice| choice.has(Means::Dangerous)) {
        printer.danger(
            "DANGEROUS until pgrig ends: it turns fsync and full_page_writes off for some trials; a crash of the machine \
             may corrupt EVERY database of that cluster beyond repair",
        );
    }
    recording.save();
    let mut recorder = Recorder::new(recording, arguments, printer);
    let result = bench::run(&site, &request, missing, &mut recorder, interrupted(printer)).await;
    let destroyed = tokio::task::block_in_place(|| memory.destroy());
    let Recorder { recording, results, .. } = recorder;
    let finished = recording.finish(result.map_err(Failure::from));
    let place = OutputPosition::here();
    let mut table = None;
    // The results so far are shown, however it ended.
    if let Some(results) = results.filter(|_| !finished.run.trials.is_empty()) {
        let shown = text::results(&results, &finished.run.environment);
        table = Some(first_paragraph(&shown).to_owned());
        printer.result(shown)?;
        if finished.result.is_ok() {
            printer.result(advice::shown(&results, arguments, chosen))?;
        }
    }
    printer.say(format!("\nrun document: {}", finished.path().display()));
    if log.exists() && !arguments.show_output {
        printer.say(format!("output of the command: {}", log.display()));
    }
    if let Some(table) = table {
        printer.remind(place, &table)?;
    }
    finished.end(printer)?;
    destroyed
}

async fn surroundings(chosen: &Chosen, printer: &Printer) -> Result<Environment, Failure> {
    let (connection, survey) = conduct::surveyed(chosen, printer).await?;
    // It may be the template, which nobody may be connected to.
    connection.close().await;
    Ok(survey.environment)
}

/// The database that is copied where there is no script: the one that -d names, or the one that the environment names with its
/// server.
fn original<'a>(arguments: &BenchArgs, chosen: &'a Chosen) -> Option<&'a str> {
    let is_named = chosen.is_named() || arguments.server.dbname.is_some();
    is_named.then(|| chosen.target.dbname())
}

fn request(
    arguments: &BenchArgs,
    source: Option<Source>,
    chosen: &Chosen,
    log: &std::path::Path,
) -> Result<BenchRequest, Failure> {
    let content = match source {
        Some(source) if !source.can_be_read_again() => return Err(BenchError::ReadOnce.into()),
        Some(source) => Content::Script(source),
        None => original(arguments, chosen).map_or(Content::Empty, |name| Content::Database(name.to_owned())),
    };
    let work = match (arguments.test_command()?, arguments.transactions()?) {
        (_, Some(request)) => {
            let clients = arguments.client.iter().map(|clients| *clients as usize);
            Work::Tps(Box::new(request), clients.collect())
        }
        (Some(command), None) => {
            Work::Command(command, Output { path: log.to_owned(), is_shown: arguments.show_output })
        }
        (None, None) => unreachable!("clap wants a command or --tps"),
    };
    Ok(BenchRequest {
        content,
        work,
        variants: Some(arguments.variants.clone()).filter(|variants| !variants.is_empty()),
        trials: usize::from(arguments.trials),
        warm_up: !arguments.no_warm_up,
        seed: arguments.seed(),
        allow_dangerous: arguments.allow_dangerous_settings,
    })
}

/// The run document's `request`.
fn document(arguments: &BenchArgs, request: &BenchRequest) -> Result<serde_json::Value, Failure> {
    let content = match &request.content {
        Content::Empty => json!({ "kind": "empty" }),
        Content::Script(source) => {
            json!({ "kind": "script", "sha256": source.hash().map_err(BenchError::from)? })
        }
        Content::Database(name) => json!({ "kind": "database", "name": name }),
    };
    let work = match &request.work {
        Work::Command(command, _) => json!({ "command": command.shown() }),
        Work::Tps(base, clients) => json!({ "tps": base.document(), "clients": clients }),
    };
    let variants = request.variants.as_ref();
    Ok(json!({
        "content": content,
        "work": work,
        "variants": variants.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "trials": request.trials,
        "warm_up": request.warm_up,
        "threshold": arguments.threshold,
        "seed": request.seed,
        "allow_dangerous_settings": request.allow_dangerous,
    }))
}

/// The specification of the server in memory, with the properties of the other server.
fn memory_spec(arguments: &BenchArgs, environment: &Environment) -> Spec {
    let spec = target::spec(&arguments.server().address.embedded);
    let major = u16::try_from(environment.server.version_num / 10_000).ok().and_then(Major::from_number);
    let version = if spec.pg_bin.is_some() { spec.version } else { major };
    Spec { version, ..spec }
}

/// Records trials as they are completed.
struct Recorder<'a> {
    recording: Recording,
    results: Option<Results>,
    threshold: f64,
    began: Instant,
    printer: &'a Printer,
}

impl<'a> Recorder<'a> {
    fn new(recording: Recording, arguments: &BenchArgs, printer: &'a Printer) -> Self {
        let threshold = arguments.threshold;
        Self { recording, results: None, threshold, began: Instant::now(), printer }
    }
}

impl BenchObserver for Recorder<'_> {
    fn stage(&mut self, text: &str) {
        self.printer.say(text);
    }

    fn planned(&mut self, plan: &BenchPlan) {
        self.printer.say(text::plan(plan) + "\n");
        self.recording.run.plan = text::document(plan);
        let left_out = plan.choice.left_out.iter();
        self.recording
            .run
            .notes
            .extend(left_out.map(|(variant, why)| Note { text: format!("{variant} was left out: {why}") }));
        self.results = Some(Results::new(plan.clone(), self.threshold));
        self.recording.save();
    }

    fn begins(&mut self, _number: usize, _trials: usize, _cell: Cell) {
        self.began = Instant::now();
    }

    fn done(&mut self, done: &Done) {
        let took = self.began.elapsed();
        let Some(results) = &mut self.results else { return };
        results.add(done, took);
        let left = results.left(done.number);
        self.printer.say(text::trial(done, results.plan.trials(), left));
        if done.is_judged {
            self.recording.add(done.trial());
        }
    }

    fn failed(&mut self, failure: &FailedVariant) {
        if let Some(results) = &mut self.results {
            results.fail(failure);
        }
        let FailedVariant { variant, how, output } = failure;
        self.recording.run.notes.push(Note { text: format!("{variant} failed: {how}") });
        self.printer.warn(text::failure(failure));
        if !output.is_empty() {
            self.printer.warn(format!("last lines of the command's output:\n{output}"));
        }
        self.recording.save();
    }

    fn putting_back(&mut self) {
        self.printer.say("restoring settings, dropping databases");
    }

    fn wants_sync(&mut self) {
        self.printer.danger(SYNC_BY_HAND);
        self.recording.run.notes.push(Note { text: SYNC_BY_HAND.to_owned() });
    }
}
