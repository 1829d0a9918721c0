//! `pgrig ddl`: request → run → run document and table.

pub(crate) mod args;
mod details;
mod gate;
mod hints;
mod limits;
mod progress;
mod rowless;
mod text;
mod thinned;
mod whole;

use connect::{ConnectError, SqlState};
use ddl::{DdlError, Outcome, Request, Schema, Site, StatementOutcome};
use fill::FillError;
use pgserver::Home;
use server::Survey;
use server::quote::shell_word;
use tokio::runtime::Builder;

use crate::app::args::ServerChoice;
use crate::app::command_line::{exchanged, without_passwords};
use crate::app::conduct::{self, Begun, RunEnd, Shown, on_server};
use crate::app::failure::{BadResult, Failure, MachineFailure, Usage};
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::printer::{Printer, first_paragraph};
use crate::app::steps::ShownSteps;
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::ddl::args::{DdlArgs, Origin};
use crate::cmd::ddl::progress::Progress;

/// Measures the migration that the arguments name.
pub(crate) fn run(arguments: &DdlArgs, printer: &Printer) -> Result<(), Failure> {
    let script = arguments.script()?;
    if let Some(disorder) = arguments.disorder() {
        printer.warn(disorder);
    }
    for warning in &script.warnings {
        printer.warn(warning);
    }
    for note in &script.notes {
        printer.say(format!("note: {note}"));
    }
    let probes = arguments.probes()?;
    let schema = match arguments.origin()? {
        Origin::Read(schema) => *schema,
        Origin::Database(choice) => {
            let mut schema = None;
            let read = on_server(&choice, &mut Builder::new_current_thread(), printer, async |_, chosen| {
                let connection = chosen.connect(printer).await?;
                let database = chosen.target.dbname();
                let steps = ShownSteps::new(printer, "");
                steps.step(&format!("reading the catalogs and statistics of database {database}"));
                let read = Schema::of_database(&connection, database).await?;
                connection.close().await;
                schema = Some(read);
                Ok(())
            });
            read.map_err(|failure| unread(failure, &choice, arguments.embedded.instance.as_deref()))?;
            schema.ok_or_else(|| Usage("the database was not read".to_owned()))?
        }
    };
    for unseen in &schema.unseen {
        printer.warn(unseen);
    }
    let request = arguments.request(schema, script, probes);
    if let Some(estimated) = request.estimated() {
        printer.warn(estimated);
    }
    if arguments.explain {
        return conduct::explained(printer, &arguments.save, &request, text::request(&request));
    }
    let measured =
        on_server(&arguments.server(), &mut Builder::new_multi_thread(), printer, async |home, chosen| {
            Box::pin(measure(arguments, &request, home, chosen, printer)).await
        });
    measured.map_err(|failure| match failure.error() {
        // Nobody else has that instance.
        Some(pgserver::Error::InUse { instance, pid, .. }) if instance == DdlArgs::INSTANCE => {
            let text = format!(
                "another pgrig ddl (process {pid}) is running: wait until it ends, or give --instance OTHER"
            );
            Usage(text).into()
        }
        _ => unreached(failure, arguments),
    })
}

async fn measure(
    arguments: &DdlArgs,
    request: &Request,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let connection = chosen.connect(printer).await?;
    let directory = chosen.data_directory(None)?;
    let survey = Survey::for_tables(&connection, &directory, VERSION).await?;
    connection.close().await;
    let version = survey.environment.server.version_num;
    let begun = Begun {
        verb: "ddl",
        save: &arguments.save,
        request: json::value(request)?,
        plan: serde_json::json!({}),
        environment: survey.environment,
        notes: Vec::new(),
    };
    let site =
        Site { target: &chosen.target, directory: &directory, restarter: chosen.restarter(), pgrig: VERSION };
    conduct::recorded(
        begun,
        home,
        chosen,
        printer,
        async |recording| {
            for text in told_before(arguments, request) {
                recording.note_seen(text);
            }
            let mut progress = Progress::new(recording, request, printer);
            let result = ddl::run(&site, request, &mut progress, interrupted(printer)).await;
            drop(progress);
            match result {
                Ok(outcome) => {
                    recording.run.trials = outcome.trials();
                    for warning in warnings(arguments, &outcome) {
                        printer.warn(&warning);
                        recording.note_seen(warning);
                    }
                    for warning in of_trials(arguments, request, &outcome) {
                        printer.warn(warning);
                    }
                    let result = judged(arguments, &outcome);
                    RunEnd { outcome: Some(outcome), result }
                }
                Err(error) => RunEnd::from(Err(swapped(error, arguments))),
            }
        },
        async |outcome: Outcome, _| {
            let results = vec![text::outcome(&outcome)];
            let reminder = Some(first_paragraph(&results[0]).to_owned());
            let mut hints = hints::of(&outcome, version);
            hints.extend(whole::hint(arguments, &outcome));
            Ok(Shown { results, hints, reminder, leaves_nothing: true, ..Shown::default() })
        },
    )
    .await
}

/// The texts that were printed before the run: warnings about the migration and the schema, and notes on the way in which pgrig reads them.
fn told_before(arguments: &DdlArgs, request: &Request) -> Vec<String> {
    let (script, schema) = (&request.script, &request.schema);
    let texts = script.warnings.iter().chain(&script.notes).chain(&schema.unseen).cloned();
    arguments.disorder().into_iter().chain(texts).chain(request.estimated()).collect()
}

/// Warnings about a result that become notes of the run document.
fn warnings(arguments: &DdlArgs, outcome: &Outcome) -> Vec<String> {
    let of_unfilled = |(table, number): &(String, usize)| {
        format!(
            "statement {number} uses {table}, which pgrig left empty, because no statement used it while all tables were empty: \
             give --rows {table}=ROWS"
        )
    };
    let of_skipped = |one: &StatementOutcome| {
        let why = one.skipped()?;
        Some(format!(
            "statement {} did nothing to tables: {why}. If the original has a table or column that is missing here, add it to the schema",
            one.number
        ))
    };
    let unfilled = outcome.unfilled.iter().map(of_unfilled);
    let skipped = outcome.statements.iter().filter_map(of_skipped);
    unfilled.chain(skipped).chain(gate::unlimited(&arguments.fail_if, outcome)).collect()
}

/// Warnings about a result whose facts the trials have, so that reports have sentences of their own.
fn of_trials(arguments: &DdlArgs, request: &Request, outcome: &Outcome) -> Vec<String> {
    let of_locks = |one: &StatementOutcome| {
        let why = one.found.as_ref()?.unknown_locks.as_ref()?;
        Some(format!("the locks of statement {} are not all known: {why}", one.number))
    };
    let mut warnings: Vec<String> = outcome.statements.iter().filter_map(of_locks).collect();
    warnings.extend(rowless::warnings(outcome, request.schema.is_copy()));
    warnings.extend(thinned::warnings(outcome));
    warnings.extend(gate::failed(&arguments.fail_if, outcome));
    warnings
}

/// The error of a run. A --schema-file that uses a table which it does not create may be the migration. For objects that the copy of a database
/// lacks, with the commands that measure with all objects.
fn swapped(error: DdlError, arguments: &DdlArgs) -> Failure {
    if matches!(error, DdlError::Incomplete { .. })
        && let Some(advice) = whole::advice(arguments)
    {
        return Usage(format!("{error}: {advice}")).into();
    }
    let lacks_table = matches!(
        &error,
        DdlError::Sql { error, .. }
            if matches!(&**error, FillError::Ddl { sqlstate: Some(state), .. } if *state == SqlState::UNDEFINED_TABLE)
    );
    match (arguments.files.as_slice(), &arguments.schema_file) {
        ([migration], Some(schema)) if lacks_table && migration != schema => {
            let [migration, schema] = [migration, schema].map(|path| path.to_string_lossy());
            Usage(format!(
                "{error}. Are the migration and --schema-file swapped? Then run {}",
                exchanged(&migration, &schema)
            ))
            .into()
        }
        _ => error.into(),
    }
}

/// The result of the command: a statement that failed is a wrong request, also if others miss a condition.
fn judged(arguments: &DdlArgs, outcome: &Outcome) -> Result<(), Failure> {
    let mut failed: Vec<String> = outcome
        .failed()
        .map(|(one, failed)| {
            let remedy = failed.remedy.as_ref();
            let remedy = remedy.map_or(String::new(), |remedy| format!(". {}", text::sentence(remedy)));
            let (number, place, message) = (one.number, one.statement.place(), &failed.message);
            format!("statement {number} ({place}) is not measurable: {message}{remedy}")
        })
        .collect();
    let missed = gate::missed(&arguments.fail_if, outcome);
    if !failed.is_empty() {
        failed.extend(missed);
        return Err(Usage(failed.join("\n")).into());
    }
    if missed.is_empty() { Ok(()) } else { Err(BadResult::Missed(missed).into()) }
}

/// The error of a --scratch without a host. It names no database that pgrig reads, and allows no --instance.
fn unreached(failure: Failure, arguments: &DdlArgs) -> Failure {
    match (failure.error::<ConnectError>(), &arguments.scratch) {
        (Some(ConnectError::NoSocket { port, .. }), Some(scratch)) => MachineFailure(format!(
            "--scratch {}: no PostgreSQL server listens on a local socket with port {port}: name the server, for example --scratch \
             postgresql://HOST/DBNAME; to measure on pgrig's own PostgreSQL, leave out --scratch",
            without_passwords(scratch)
        ))
        .into(),
        _ => failure,
    }
}

/// The error of a database that cannot be read, with the remedy if it is meant as one of pgrig's own server: of the instance that
/// --instance names.
fn unread(failure: Failure, choice: &ServerChoice, instance: Option<&str>) -> Failure {
    match failure.error::<ConnectError>() {
        Some(ConnectError::NoSocket { port, .. }) => {
            let name = choice.dbname.as_deref().unwrap_or("DBNAME");
            let of = instance.map_or(String::new(), |name| format!(" --instance {}", shell_word(name)));
            MachineFailure(format!(
                "no PostgreSQL server listens on a local socket with port {port}, so pgrig cannot read database {name}: \
                 name the server with -h HOST and -p PORT; for a database of pgrig's own PostgreSQL, run pgrig server \
                 start{of}, then give -d \"$(pgrig server url {}{of})\"",
                shell_word(name)
            ))
            .into()
        }
        _ => failure,
    }
}
