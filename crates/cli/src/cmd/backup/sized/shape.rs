//! The data of a forecast: from a file, from the catalogs of a database, or pgbench's.

use backup::Shape;
use catalog::CatalogError;
use fill::FillError;
use model::{Model, Privacy};
use server::Survey;
use tokio::runtime::Builder;

use crate::app::conduct::on_server;
use crate::app::failure::{Failure, Usage};
use crate::app::input;
use crate::app::printer::Printer;
use crate::app::steps::ShownSteps;
use crate::app::target::{self, ServerKind};
use crate::app::version::VERSION;
use crate::cmd::backup::args::RehearseArgs;

/// Values of fewer rows are replaced in the model of a database, as `pgrig model capture` does.
const K: u32 = 20;

/// Data, and the major version of the server that they are from.
pub(super) struct ReadShape {
    pub(super) shape: Shape,
    pub(super) major: Option<u16>,
}

/// Reads files or catalogs.
pub(super) fn read(arguments: &RehearseArgs, printer: &Printer) -> Result<ReadShape, Failure> {
    let major = arguments.server.address.embedded.pg_version.map(pgserver::Major::number);
    let text = |option: &str, path: &std::path::PathBuf| {
        let name = input::shown(path);
        let text = input::file_or_stdin(path).map_err(|error| {
            let error =
                if option == "--model" { input::for_model(error) } else { input::for_schema(error, path) };
            Usage(format!("cannot read {option} {name}: {error}"))
        })?;
        Ok::<_, Usage>((text, name))
    };
    if let Some(path) = &arguments.sized.schema_file {
        let (text, name) = text("--schema-file", path)?;
        let shape = Shape::of_script(&text, name.clone());
        let shape = shape.map_err(|error| Usage(format!("--schema-file {name}: {}", problem(&error))))?;
        return Ok(ReadShape { shape, major });
    }
    if let Some(path) = &arguments.sized.model {
        let (text, name) = text("--model", path)?;
        let failed = |error: &dyn std::fmt::Display| Usage(format!("--model {name}: {error}"));
        let model = Model::read(&text).map_err(|error| failed(&error))?;
        let shape = Shape::of_model(&model, format!("model {name}"));
        let shape = shape.map_err(|error| failed(&problem(&error)))?;
        return Ok(ReadShape { shape, major });
    }
    let server = &arguments.server;
    let is_database = server.dbname.is_some() || server.address.embedded.instance.is_some();
    if !is_database && target::server_kind(server)? == ServerKind::Own {
        return Ok(ReadShape { shape: Shape::pgbench(), major });
    }
    of_database(arguments, printer)
}

/// Reads the catalogs of a database.
fn of_database(arguments: &RehearseArgs, printer: &Printer) -> Result<ReadShape, Failure> {
    let mut found = None;
    let mut runtime = Builder::new_current_thread();
    let server = arguments.server.planned(arguments.explain);
    on_server(&server, &mut runtime, printer, async |_, chosen| {
        let connection = chosen.connect(printer).await?;
        let survey = Survey::for_reading(&connection, &chosen.data_directory(None)?, VERSION).await?;
        let shown = ShownSteps::new(printer, "");
        let steps = |text: &str| shown.step(text);
        let facts = catalog::capture(&connection.client, None, None, catalog::TIMEOUT, &steps).await;
        drop(shown);
        let facts = match facts {
            Ok(facts) => facts,
            Err(CatalogError::Server(error)) => return Err(connection.explain(error).await.into()),
            Err(error) => return Err(error.into()),
        };
        connection.close().await;
        for unseen in &facts.unseen {
            printer.warn(unseen);
        }
        let model = Model::of(&facts, &Privacy { k: K, keep: Vec::new(), seed: fastrand::u64(..) });
        let name = format!("database {}", chosen.target.dbname());
        let shape = Shape::of_database(&model, &name)
            .map_err(|error| Usage(format!("{name}: {}", problem(&error))))?;
        let major = u16::try_from(survey.server.version_num / 10_000).ok();
        found = Some(ReadShape { shape, major });
        Ok(())
    })?;
    found.ok_or_else(|| Usage("the database was not read".to_owned()).into())
}

/// The error of a schema, without options of `pgrig fill`.
fn problem(error: &FillError) -> String {
    error.of_sql().unwrap_or_else(|| error.to_string())
}
