//! `pgrig model check`: compares statistics and plans of a copy with the original's.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use catalog::{Aggregates, CatalogError};
use connect::{ConnectError, ConnectOptions, Connection, SqlState, Target, resolve};
use measure::Note;
use model::{Facts, Fidelity, Model, Plans, PlansCompared, QueryPlan, Shapes};
use pgserver::Home;
use serde_json::{Value, json};
use server::quote::shell_word;
use server::{DataDirectory, Steps, Survey, run_sql};
use tokio::runtime::Builder;

use super::args::{CheckArgs, K};
use super::document::trial;
use super::execute::{self, Executed};
use super::fidelity;
use super::sides::{checked, refuse_same, refuse_unrelated};
use crate::app::args::ServerChoice;
use crate::app::command_line::exchanged;
use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown, on_server};
use crate::app::failure::{Failure, MachineFailure, Usage};
use crate::app::input;
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::steps::ShownSteps;
use crate::app::target::{Chosen, only_by_instance};
use crate::app::version::VERSION;

/// Number of ANALYZE runs on the original, and on the copy.
const OF_ORIGINAL: usize = 11;
const OF_COPY: usize = 5;
/// The cause and the remedy for a query with parameters.
const PARAMETERS: &str = "it has parameters ($1): write their values instead";

/// The original: a database, or a model of one.
enum Original {
    Database(Box<Target>),
    Model(Box<Model>),
}

/// Facts and plans of a database after each ANALYZE.
#[derive(Default)]
struct Seen {
    facts: Vec<Facts>,
    plans: Plans,
    /// Queries that were executed.
    executed: Vec<Executed>,
}

/// A query with the name of its file.
pub(super) struct Query {
    pub(super) name: String,
    pub(super) sql: String,
}

pub(super) fn run(arguments: &CheckArgs, printer: &Printer) -> Result<(), Failure> {
    if arguments.server.dbname.is_some() {
        let text = "ORIGINAL and COPY name the databases (each a name or a URI): leave out -d";
        return Err(Usage(text.to_owned()).into());
    }
    if is_model(&arguments.copy) {
        return Err(copy_in_file(&arguments.original, &arguments.copy).into());
    }
    let queries = arguments.queries.as_deref().map(queries).transpose()?.unwrap_or_default();
    let model = read_model(&arguments.original)?;
    if model.is_some() && (arguments.analyze_original || arguments.queries.is_some() || arguments.columns) {
        let text = "a model can be neither analyzed nor queried: give the original database for --analyze-original, --queries and --columns";
        return Err(Usage(text.to_owned()).into());
    }
    let server = server(arguments, model.is_some());
    let done = on_server(&server, &mut Builder::new_current_thread(), printer, async |home, chosen| {
        let original = match model {
            Some(model) => Original::Model(Box::new(model)),
            None => Original::Database(Box::new(target(&arguments.original, chosen)?)),
        };
        let work = check(arguments, &original, &queries, home, chosen, printer);
        tokio::select! {
            result = Box::pin(work) => result,
            () = interrupted(printer) => Err(crate::app::failure::BadResult::Stopped.into()),
        }
    });
    done.map_err(|failure| only_by_instance(failure, &server, "ORIGINAL and COPY then name its databases"))
}

/// The server that a name of a database has the same effect on as with `-d`.
fn server(arguments: &CheckArgs, is_model: bool) -> ServerChoice {
    let databases = [&arguments.original, &arguments.copy].into_iter().skip(usize::from(is_model));
    let mut databases: Vec<&String> = databases.collect();
    // A plain name first: only it needs the server that the options choose.
    databases.sort_by_key(|name| names_server(name));
    let is_usable = |name: &&&String| !names_server(name) || !arguments.server.any();
    let dbname = databases.first().filter(is_usable).map(|name| (*name).clone());
    ServerChoice { dbname, ..arguments.server.clone() }
}

/// Whether it is a URI or a keyword string.
fn names_server(name: &str) -> bool {
    name.contains("://") || name.contains('=')
}

/// The error of a file in the place of the copy.
fn copy_in_file(original: &str, copy: &str) -> Usage {
    Usage(if is_model(original) {
        let model = shell_word(original);
        format!(
            "{copy} is a file, and the copy must be a database: fill one with pgrig fill --model {model} -d copy, then run \
             pgrig model check {model} copy"
        )
    } else {
        format!("{copy} is a file: give the model first, then the copy: {}", exchanged(copy, original))
    })
}

/// Whether the name is that of a file, and not of a database.
fn is_model(name: &str) -> bool {
    Path::new(name).is_file() || name.to_ascii_lowercase().ends_with(".toml")
}

/// The model, if the name is a file's.
fn read_model(name: &str) -> Result<Option<Model>, Failure> {
    if !is_model(name) {
        return Ok(None);
    }
    let failed = |error: String| Usage(format!("{name}: {error}"));
    let text = input::file(Path::new(name)).map_err(|error| failed(input::for_model(error)))?;
    Ok(Some(Model::read(&text).map_err(|error| failed(error.to_string()))?))
}

/// The database of that name on the chosen server, or the target of a URI or keyword string.
fn target(name: &str, chosen: &Chosen) -> Result<Target, Failure> {
    if names_server(name) {
        let options = ConnectOptions { dbname: Some(name.to_owned()), ..ConnectOptions::default() };
        return Ok(resolve(&options, &|name| std::env::var(name).ok())?);
    }
    Ok(chosen.target.clone().with_database(name))
}

/// Connects to ORIGINAL or COPY, which no -d names.
async fn connected(
    target: &Target,
    argument: &str,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Connection, ConnectError> {
    match target.connect_when_ready(&|text| printer.say(text)).await {
        Ok(connection) => Ok(connection),
        Err(error) => {
            let error = chosen.refused(target, error).await;
            Err(error.with_another_database(&format!("give another {argument}")))
        }
    }
}

fn queries(directory: &Path) -> Result<Vec<Query>, Failure> {
    let failed = |error: std::io::Error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "the directory does not exist; check the path".to_owned(),
            ErrorKind::NotADirectory => "it is not a directory; give a directory with files *.sql".to_owned(),
            _ => error.to_string(),
        };
        Usage(format!("--queries {}: {why}", directory.display()))
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Usage(format!("--queries {}: there is no file *.sql", directory.display())).into());
    }
    files.sort();
    let read = |path: PathBuf| {
        let sql = input::file(&path).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Query { name, sql: sql.trim().trim_end_matches(';').to_owned() })
    };
    files.into_iter().map(read).collect()
}

async fn check(
    arguments: &CheckArgs,
    original: &Original,
    queries: &[Query],
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let schema = arguments.schema.as_deref();
    let copy_target = target(&arguments.copy, chosen)?;
    let copy = connected(&copy_target, "COPY", chosen, printer).await?;
    let survey = Survey::of(&copy, &DataDirectory::Asked, VERSION).await?;
    let begun = Begun {
        verb: "model",
        save: &arguments.save,
        request: json!({
            "original": match original {
                Original::Database(target) => place(target),
                Original::Model(_) => arguments.original.clone(),
            },
            "copy": place(&copy_target),
            "schema": schema,
            "analyze_original": arguments.analyze_original,
            "columns": arguments.columns,
            "queries": queries.len(),
            "execute": arguments.execute,
        }),
        plan: json!({}),
        environment: survey.environment.clone(),
        notes: Vec::new(),
    };
    conduct::recorded(
        begun,
        home,
        chosen,
        printer,
        async |recording| {
            let both = both(arguments, original, queries, (&copy_target, &copy), chosen, printer).await;
            RunEnd::from(both.map(|both| record(arguments, original, queries, &both, recording)))
        },
        async |results, _| Ok(Shown::of(vec![results])),
    )
    .await
}

/// The original and the copy, and distributions of their columns.
struct Both {
    before: Seen,
    after: Seen,
    shapes: Option<Shapes>,
}

/// Looks at both. `copy_target` leads to the copy.
async fn both(
    arguments: &CheckArgs,
    original: &Original,
    queries: &[Query],
    (copy_target, copy): (&Target, &Connection),
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Both, Failure> {
    let schema = arguments.schema.as_deref();
    let execute = arguments.execute.then_some(arguments.execute_timeout);
    let shown = ShownSteps::new(printer, "");
    let steps = |text: &str| shown.step(text);
    let (before, original) = match original {
        Original::Model(model) => {
            let facts = model.facts();
            refuse_unrelated(&facts, &checked(copy, copy_target, schema, "copy", &steps).await?)?;
            (Seen { facts: vec![facts], ..Seen::default() }, None)
        }
        Original::Database(target) => {
            let connection = connected(target, "ORIGINAL", chosen, printer).await?;
            refuse_same(&connection, copy, target.dbname()).await?;
            let first = checked(&connection, target, schema, "original", &steps).await?;
            let second = checked(copy, copy_target, schema, "copy", &steps).await?;
            refuse_unrelated(&first, &second)?;
            let times = if arguments.analyze_original { OF_ORIGINAL } else { 0 };
            let seen = look(&connection, schema, times, queries, execute, "original", &shown).await?;
            (seen, Some(connection))
        }
    };
    let after = look(copy, schema, OF_COPY, queries, execute, "copy", &shown).await?;
    let shapes = match original.filter(|_| arguments.columns) {
        Some(original) => Some(shapes(&original, copy, schema, &shown).await?),
        None => None,
    };
    Ok(Both { before, after, shapes })
}

/// Compares both, and adds trial and notes to the run document. Returns the results as text.
fn record(
    arguments: &CheckArgs,
    original: &Original,
    queries: &[Query],
    Both { before, after, shapes }: &Both,
    recording: &mut Recording,
) -> String {
    let k = match original {
        Original::Model(model) => model.k,
        Original::Database(_) => K,
    };
    let fidelity = Fidelity::of(&before.facts, &after.facts, k);
    let plans = (!queries.is_empty()).then(|| PlansCompared::of(&before.plans, &after.plans));
    let executed = arguments.execute.then(|| execute::compared(&before.executed, &after.executed));
    let mut trial = trial(&fidelity, plans.as_ref(), shapes.as_ref());
    if let Some(executed) = &executed {
        execute::observe(&mut trial, executed);
        trial.events.extend(execute::events(queries, &before.executed, &after.executed));
    }
    recording.run.trials.push(trial);
    recording.run.notes.extend(notes(arguments, original, &fidelity, plans.as_ref(), queries));
    for (executed, name) in [(&before.executed, "original"), (&after.executed, "copy")] {
        let left_out = execute::left_out(queries, executed, name, arguments.execute_timeout);
        recording.run.notes.extend(left_out.into_iter().map(|text| Note { text }));
    }
    let unseen = shapes.iter().flat_map(|shapes| &shapes.unseen);
    recording.run.notes.extend(unseen.map(|text| Note { text: text.clone() }));
    fidelity::shown(&fidelity, plans.as_ref(), executed.as_ref(), shapes.as_ref())
}

/// Distributions of both databases' columns.
async fn shapes(
    original: &Connection,
    copy: &Connection,
    schema: Option<&str>,
    shown: &ShownSteps<'_>,
) -> Result<Shapes, Failure> {
    let drawing = explained(original, catalog::drawing(&original.client, schema, K).await).await?;
    let mut drawn = Vec::with_capacity(2);
    for (connection, name) in [(original, "original"), (copy, "copy")] {
        shown.stage(format!("distributions of the {name}'s columns"));
        let steps = |text: &str| shown.step(text);
        let found = catalog::draw(&connection.client, &drawing, &steps).await;
        drawn.push(explained(connection, found).await?);
    }
    Ok(Shapes::of(&drawn[0], &drawn[1]))
}

/// Database and hosts only: the user's text may hold a password.
fn place(target: &Target) -> String {
    format!("{} on {}", target.dbname(), target.host_list())
}

/// Facts and plans after each of `analyzes` ANALYZE runs, or without any as they are.
async fn look(
    connection: &Connection,
    schema: Option<&str>,
    times: usize,
    queries: &[Query],
    execute: Option<u64>,
    name: &str,
    shown: &ShownSteps<'_>,
) -> Result<Seen, Failure> {
    let steps = |text: &str| shown.step(text);
    let mut seen = Seen::default();
    for time in 0..times.max(1) {
        if times > 0 {
            shown.stage(format!("ANALYZE {} of {times} of the {name}", time + 1));
            let facts = match seen.facts.last() {
                Some(facts) => facts.clone(),
                None => capture(connection, schema, None, catalog::TIMEOUT, &steps).await?,
            };
            let of = facts.tables.len();
            for (place, table) in facts.tables.iter().enumerate() {
                steps(&format!("{}, table {} of {of}", table.name, place + 1));
                run_sql(connection, &format!("ANALYZE {}", table.sql_name)).await?;
            }
        }
        seen.facts.push(capture(connection, schema, None, catalog::TIMEOUT, &steps).await?);
        let mut plans = Vec::with_capacity(queries.len());
        for query in queries {
            plans.push(plan(connection, query, name).await?);
        }
        seen.plans.push(plans);
    }
    if let Some(seconds) = execute {
        for query in queries {
            shown.stage(format!("query {} on the {name}", query.name));
            seen.executed.push(execute::execute(connection, query, seconds).await?);
        }
    }
    Ok(seen)
}

pub(super) async fn capture(
    connection: &Connection,
    schema: Option<&str>,
    aggregates: Option<Aggregates>,
    timeout: u64,
    steps: Steps<'_>,
) -> Result<Facts, Failure> {
    match catalog::capture(&connection.client, schema, aggregates, timeout, steps).await {
        Err(error) if error.is_statement_timeout() => Err(MachineFailure(format!(
            "the server cancelled a query of the catalogs after {timeout} s: give a greater --timeout"
        ))
        .into()),
        facts => explained(connection, facts).await,
    }
}

/// A server's failure with its reason.
pub(super) async fn explained<T>(
    connection: &Connection,
    result: Result<T, CatalogError>,
) -> Result<T, Failure> {
    match result {
        Ok(found) => Ok(found),
        Err(CatalogError::Server(error)) => Err(connection.explain(error).await.into()),
        Err(error) => Err(error.into()),
    }
}

async fn plan(connection: &Connection, query: &Query, name: &str) -> Result<QueryPlan, Failure> {
    let sql = format!("EXPLAIN (FORMAT JSON) {}", query.sql);
    let found = match connection.client.prepare(&sql).await {
        Ok(statement) if !statement.params().is_empty() => {
            return Err(Usage(format!("query {} on the {name}: {PARAMETERS}", query.name)).into());
        }
        Ok(statement) => connection.client.query_one(&statement, &[]).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(row) => Ok(QueryPlan::read(&row.get::<_, Value>(0)).ok_or_else(|| {
            Usage(format!(
                "query {}: EXPLAIN returns no plan: remove the query, or make it a single SELECT",
                query.name
            ))
        })?),
        Err(error) => match error.as_db_error() {
            Some(why) => {
                let remedy = if why.message().contains("multiple commands") {
                    ". Give one query for each file".to_owned()
                } else if *why.code() == SqlState::INDETERMINATE_DATATYPE
                    && why.message().contains("parameter $")
                {
                    format!("; {PARAMETERS}")
                } else {
                    String::new()
                };
                let text = format!("query {} on the {name}: {}{remedy}", query.name, why.message());
                Err(Usage(text).into())
            }
            None => Err(connection.explain(error).await.into()),
        },
    }
}

/// Properties that a copy need not have.
fn not_promised(original: &Original) -> String {
    let asked = match original {
        Original::Model(model) => model.aggregates,
        Original::Database(_) => false,
    };
    if asked {
        return "a model does not reproduce dependence among three or more columns that no two of them show, or dependence between \
            columns of different tables"
            .to_owned();
    }
    "a model captured without --aggregates does not reproduce sizes of joins, how many rows reference one row, and dependence between \
     columns without extended statistics: to include them, capture with --aggregates"
        .to_owned()
}

fn notes(
    arguments: &CheckArgs,
    original: &Original,
    fidelity: &Fidelity,
    plans: Option<&PlansCompared>,
    queries: &[Query],
) -> Vec<Note> {
    let mut notes = vec![not_promised(original)];
    if !arguments.analyze_original {
        notes.push(
            "tolerances come from repeated ANALYZE of the copy: to measure them on the original too, give --analyze-original"
                .to_owned(),
        );
    }
    if !fidelity.missing.is_empty() {
        notes.push(format!(
            "the copy lacks these columns, or this role can read no statistics of them: {}. If the columns exist, run ANALYZE \
             on the copy as the tables' owner",
            fidelity.missing.join(", ")
        ));
    }
    notes.extend(fidelity::smaller(&fidelity.sizes));
    if let Some(plans) = plans.filter(|plans| !plans.different.is_empty()) {
        let names: Vec<&str> = plans.different.iter().map(|&at| queries[at].name.as_str()).collect();
        notes.push(format!("these queries have another plan on the copy: {}", names.join(", ")));
    }
    notes.into_iter().map(|text| Note { text }).collect()
}
