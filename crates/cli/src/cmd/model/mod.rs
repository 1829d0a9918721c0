//! `pgrig model`: statistics of a database → model.

pub(crate) mod args;
mod check;
mod document;
mod execute;
mod fidelity;
mod sides;
mod text;
mod warnings;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::time::Duration;

use catalog::{Aggregates, CatalogError};
use model::{Model, Privacy};
use pgserver::Spec;
use tokio::runtime::Builder;

use self::args::{CaptureArgs, ModelAction, ModelArgs, ShowArgs};
use self::sides::role;
use crate::app::args::{ServerAddress, ServerChoice};
use crate::app::conduct::on_server;
use crate::app::failure::{Context, Failure, MachineFailure, Usage};
use crate::app::input;
use crate::app::output::{Existing, refuse_unwritable, whole};
use crate::app::printer::Printer;
use crate::app::steps::ShownSteps;
use crate::app::target::{ServerKind, server_kind};

/// Runs the subcommand.
pub(crate) fn run(arguments: &ModelArgs, printer: &Printer) -> Result<(), Failure> {
    match &arguments.action {
        ModelAction::Capture(arguments) => capture(arguments, printer),
        ModelAction::Show(arguments) => show(arguments, printer),
        ModelAction::Check(arguments) => check::run(arguments, printer),
    }
}

fn capture(arguments: &CaptureArgs, printer: &Printer) -> Result<(), Failure> {
    let Some(file) = arguments.output.as_ref().filter(|_| !arguments.explain) else {
        return explain(arguments, printer);
    };
    let is_to_stdout = file.as_os_str() == "-";
    let existing = if arguments.force { Existing::Replaced } else { Existing::Kept };
    if !is_to_stdout {
        refuse_unwritable("--output", file, existing)?;
    }
    on_server(&arguments.server, &mut Builder::new_current_thread(), printer, async |_, chosen| {
        let connection = chosen.connect(printer).await?;
        let asked = arguments.aggregates.then_some(Aggregates { k: arguments.k });
        let shown = ShownSteps::new(printer, "");
        let steps = |text: &str| shown.step(text);
        let schema = arguments.schema.as_deref();
        let work = check::capture(&connection, schema, asked, arguments.timeout, &steps);
        let facts = answered(work, arguments.timeout, "--timeout").await;
        let facts = facts.map_err(|failure| with_schema(failure, schema))?;
        drop(shown);
        let keep = arguments.keep_values.clone();
        let model = Model::of(&facts, &Privacy { k: arguments.k, keep, seed: random() });
        if let Some(unknown) = text::not_kept(&model, &arguments.keep_values) {
            let text = format!(
                "--keep-values {unknown}: the model has no text with statistics in that column; give table.column"
            );
            return Err(Usage(text).into());
        }
        if !warnings::has_any_statistics(&model) {
            let text = "no table has statistics: run ANALYZE in that database, or connect as a role that may select from its tables; \
                        then capture again";
            return Err(Usage(text.to_owned()).into());
        }
        let written = model.write();
        if is_to_stdout {
            io::stdout().write_all(written.as_bytes())?;
        } else {
            whole(file, written.as_bytes(), existing)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        let warnings = warnings::of(&model, &facts, &role(&connection).await?);
        let of_facts = facts.unseen.iter().chain(&facts.elsewhere).cloned();
        for warning in of_facts.chain(warnings).chain(text::unread(&facts)) {
            printer.warn(warning);
        }
        let summary = text::captured(&model, file, written.len(), other_database(&arguments.server)?);
        if is_to_stdout {
            printer.say(summary);
        } else {
            printer.result(summary)?;
        }
        Ok(())
    })
}

/// If `pgrig fill` without options would fill a database that has data: the command that creates another one, and the options that name that.
/// Such a database is the captured one, or one of the server that the environment names.
fn other_database(captured: &ServerChoice) -> Result<Option<(&'static str, &'static str)>, Usage> {
    let ServerChoice { dbname, address: ServerAddress { embedded, .. }, .. } = captured;
    let is_default = embedded.instance.as_deref().is_none_or(|name| name == Spec::default().name);
    let is_first = dbname.as_deref().is_none_or(|name| name == "postgres");
    Ok(match (server_kind(&ServerChoice::default())?, server_kind(captured)?) {
        (ServerKind::Named, _) => Some(("createdb copy", "-d copy")),
        (ServerKind::Own, ServerKind::Own) if is_default && is_first => {
            Some(("pgrig server psql -- -c 'CREATE DATABASE copy'", "--instance default -d copy"))
        }
        _ => None,
    })
}

/// Prints the statements with which capture would read tables.
fn explain(arguments: &CaptureArgs, printer: &Printer) -> Result<(), Failure> {
    if !arguments.aggregates {
        let text = "capture reads catalogs, sizes, pg_stats and pg_stats_ext; no statement reads a table without --aggregates";
        return Ok(printer.result(text.to_owned())?);
    }
    let server = arguments.server.planned(true);
    on_server(&server, &mut Builder::new_current_thread(), printer, async |_, chosen| {
        let connection = chosen.connect(printer).await?;
        let asked = Aggregates { k: arguments.k };
        let found = catalog::statements(&connection.client, arguments.schema.as_deref(), asked).await;
        let statements = check::explained(&connection, found).await?;
        let text: Vec<String> = statements.into_iter().map(|statement| statement + ";").collect();
        Ok(printer.result(text.join("\n\n"))?)
    })
}

/// Seconds that the server has to answer that it ended a statement.
const PATIENCE: u64 = 5;

/// The result of work with the server, unless it is silent for longer than a statement may take, as the option says.
async fn answered<T>(
    work: impl Future<Output = Result<T, Failure>>,
    timeout: u64,
    option: &str,
) -> Result<T, Failure> {
    let most = Duration::from_secs(timeout.saturating_add(PATIENCE));
    let silent = async {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            if let Some(silence) = connect::silences().into_iter().find(|silence| silence.lasts > most) {
                break silence;
            }
        }
    };
    tokio::select! {
        result = work => result,
        silence = silent => Err(MachineFailure(format!(
            "no answer for {} s to: {}. The server should have cancelled the statement after {timeout} s ({option}), so the connection \
             is probably lost: check the network, and try again",
            silence.lasts.as_secs(),
            silence.statement
        )).into()),
    }
}

/// The error of schemas that the role may not use, with the option that leaves them out.
fn with_schema(failure: Failure, schema: Option<&str>) -> Failure {
    let is_closed = |error: &&CatalogError| {
        matches!(error, CatalogError::SchemaPrivilege { .. } | CatalogError::SchemaPrivileges { .. })
    };
    let error = failure.error::<CatalogError>().filter(is_closed).filter(|_| schema.is_none());
    let text = error.map(|error| format!("{error}, or give --schema NAME for a schema that it may use"));
    text.map_or(failure, |text| Usage(text).into())
}

/// A random seed. The user cannot choose it, so that nobody can undo the random replacements.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn show(arguments: &ShowArgs, printer: &Printer) -> Result<(), Failure> {
    let failed = |error: String| Usage(format!("{}: {error}", arguments.file.display()));
    let text = input::file(&arguments.file).map_err(|error| failed(input::for_model(error)))?;
    let model = Model::read(&text).map_err(|error| failed(error.to_string()))?;
    if arguments.values {
        return Ok(printer.result(text::values(&model))?);
    }
    Ok(printer.result(text::shown(&model))?)
}
