//! `pgrig fill`: request → plan → run → run document and tables.

pub(crate) mod args;
mod ladder;
pub(crate) mod level;
mod mark;
pub(crate) mod progress;
mod request;
mod schema;
pub(crate) mod text;
pub(crate) mod values;

use std::cell::Cell;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use connect::Connection;
use fill::{
    self, Abandoned, Amount, Arrival, Conduct, FillError, InitStep, Outcome, Part, Plan, Rehearsed, Request,
    SCRATCH_SCHEMA, SchemaRequest, Spread, turning_point,
};
use measure::human::{bytes, counted, grouped};
use measure::{Note, Trial, Unit, rate_changes, rate_sentences};
use pgserver::Home;
use serde::Serialize;
use server::disturbance::Checkpoints;
use tokio::runtime::Builder;

use server::Survey;

use crate::app::conduct::{self, Begun, RunEnd, Shown, disturbances, on_server};
use crate::app::failure::{Failure, Usage};
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::printer::Printer;
use crate::app::target::Chosen;
use crate::cmd::fill::args::FillArgs;
use crate::cmd::fill::progress::{FillProgress, planning};

/// Fills the server that the arguments name.
pub(crate) fn run(arguments: &FillArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(size) = arguments.ladder {
        return ladder::run(size.0, arguments, printer);
    }
    if arguments.schema.as_deref() == Some(SCRATCH_SCHEMA) {
        let text =
            format!("schema {SCRATCH_SCHEMA} is for --ladder, which drops its tables: give another --schema");
        return Err(Usage(text).into());
    }
    let schema = arguments.schema_request()?;
    if let Some(all) = &schema {
        all.check()?;
    }
    // SQL that creates a single table without materialized views is filled as that.
    let is_of_schema = schema.as_ref().is_some_and(|all| {
        let is_single = all.ddl.is_some() && all.rules.is_empty() && all.part.is_none();
        !is_single || arguments.model.is_some() || arguments.unlogged
    });
    let single = if is_of_schema { None } else { Some(arguments.request()?) };
    if let Some(single) = &single {
        if single.amount == Amount::Nothing && single.steps.include(InitStep::Generate) {
            let remedy = "give SIZE, --scale N, --rows N, or a limit (--brim, --until-free or --for)";
            return Err(arguments.without_amount(remedy).into());
        }
        single.check()?;
    }
    let spent = Cell::new(None);
    let server = arguments.server.planned(arguments.explain);
    on_server(&server, &mut Builder::new_multi_thread(), printer, async |home, chosen| {
        if chosen.target.dbname() == "template1" {
            let text = "template1 is the template of every new database, which would get the tables, too: give another database with -d";
            return Err(Usage(text.to_owned()).into());
        }
        let requests = (schema.as_ref(), single.as_ref());
        let filled = Box::pin(all_or_one(arguments, requests, home, chosen, printer)).await;
        let filled = filled.map_err(|failure| elsewhere(of_model(failure, arguments), chosen));
        spent.set(filled?);
        Ok(())
    })?;
    if let Some(line) =
        spent.get().and_then(|spent: TimeSpent| text::whole_command(&spent, printer.elapsed()))
    {
        printer.say(line);
    }
    Ok(())
}

/// Fills all tables of a schema, or a single one. Returns the times of the single one.
async fn all_or_one(
    arguments: &FillArgs,
    (schema, single): (Option<&SchemaRequest>, Option<&Request>),
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Option<TimeSpent>, Failure> {
    if let Some(request) = schema {
        let filled = schema::fill(arguments, request, single, home, chosen, printer);
        if Box::pin(filled).await? == schema::Filled::All {
            return Ok(None);
        }
    }
    match single {
        Some(request) => Box::pin(fill(arguments, request, home, chosen, printer)).await,
        None => Ok(None),
    }
}

/// The error of tables that exist, or have rows, on pgrig's own server: -d alone would name another server, and other clients do not
/// reach this one.
fn elsewhere(failure: Failure, chosen: &Chosen) -> Failure {
    let of_own = |error: &FillError| {
        let moved = chosen.another_database().and_then(|way| error.in_another_database(&way));
        moved.or_else(|| error.truncated_by(|sql| chosen.command_for(sql)))
    };
    let error = failure.error::<FillError>().and_then(of_own);
    error.map_or(failure, Failure::from)
}

/// The error of a column of the model, with the model's file.
fn of_model(failure: Failure, arguments: &FillArgs) -> Failure {
    let text = failure.error::<FillError>().map(ToString::to_string);
    match (text.filter(|text| text.starts_with(fill::OF_MODEL)), &arguments.model) {
        (Some(text), Some(file)) => Usage(format!("--model {}: {text}", file.display())).into(),
        _ => failure,
    }
}

/// Parts of a command's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSpent {
    /// Time until the steps began: the server's start, the connection and the plan.
    pub(crate) before: Duration,
    /// Time of all steps.
    pub(crate) steps: Duration,
    /// Time of the sample for the compression.
    pub(crate) sample: Duration,
}

async fn fill(
    arguments: &FillArgs,
    request: &Request,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Option<TimeSpent>, Failure> {
    let (connection, survey) =
        conduct::surveyed_for_tables(chosen, arguments.data_directory.as_deref(), printer).await?;
    let arrival = arrival(arguments, request.part, chosen, printer).await?;
    if !arguments.explain {
        clear_abandoned(home, chosen, &connection, &survey, printer).await;
    }
    let steps = planning(printer);
    let resume = !arguments.no_resume;
    let (plan, space) = if arguments.explain {
        fill::plan_and_space(&survey, &connection, request, resume).await?
    } else {
        (fill::plan(&survey, &connection, request, resume).await?, Ok(()))
    };
    drop(steps);
    let limits = arguments.limits();
    let mut conduct = Conduct {
        volume_monitor: fill::volume_monitor(&survey, &connection, &plan, &limits).await?,
        limits,
        probe: arguments.probe.clone(),
        records: Some(records(home)),
        arrival,
        ..Conduct::default()
    };
    let mut planned = planned(arguments, &plan, &survey, &mut conduct)?;
    if arguments.explain {
        if fill::rehearse(&chosen.target, &plan, conduct).await? == Rehearsed::Locked {
            planned += "\n  drops        not checked: another session holds a lock on the tables";
        }
        conduct::explained(printer, &arguments.save, &plan, planned)?;
        space?;
        return Ok(None);
    }
    let of_limits = conduct.limits.warning(conduct.volume_monitor.as_ref());
    conduct::announced(printer, &planned, plan.warnings.iter().cloned().chain(of_limits));

    let mut spent = None;
    conduct::recorded(
        begun(arguments, request, &plan, &survey)?,
        home,
        chosen,
        printer,
        async |recording| {
            let checkpoints = Checkpoints::so_far(&connection.client).await;
            let progress = FillProgress::new(&plan, conduct.limits.duration, printer);
            let before = printer.elapsed();
            let work = fill::run(&chosen.target, &plan, conduct, &progress, interrupted(printer));
            let result = Box::pin(work).await;
            let events = progress.events();
            drop(progress);
            match &result {
                Ok(outcome) => {
                    recording.run.trials.push(outcome.trial("fill", &plan, arguments.probe.as_ref()));
                    recording.run.notes.extend(findings(outcome, &plan, arguments));
                    let now = Checkpoints::so_far(&connection.client).await;
                    recording.run.notes.extend(disturbances(checkpoints, now, outcome.own_checkpoints));
                    spent = Some(TimeSpent { before, steps: outcome.elapsed(), sample: outcome.sampling });
                }
                Err(_) if events.is_empty() => {}
                Err(_) => {
                    let trial = Trial { config: "fill".to_owned(), events, ..Trial::default() };
                    recording.run.trials.push(trial);
                }
            }
            RunEnd::from(result)
        },
        async |outcome: Outcome, _| {
            let mut results = vec![text::outcome(&outcome, &plan, &survey)];
            if !outcome.probes.is_empty() {
                results.push(text::probes(&outcome.probes));
            }
            Ok(Shown::of(results))
        },
    )
    .await?;
    Ok(spent)
}

/// Waits until no other part arrives, if this process is one of several that fill.
async fn arrival(
    arguments: &FillArgs,
    part: Option<Part>,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<Option<Arrival>, Failure> {
    if part.is_none() || arguments.explain {
        return Ok(None);
    }
    chosen.refuse_parts()?;
    let waiting = || printer.say("waiting until another part has prepared the tables");
    Ok(Some(fill::arrive(&chosen.target, &waiting).await?))
}

/// The run of a fill that begins.
fn begun<'a>(
    arguments: &'a FillArgs,
    request: &impl Serialize,
    plan: &impl Serialize,
    survey: &Survey,
) -> Result<Begun<'a>, Failure> {
    Ok(Begun {
        verb: "fill",
        save: &arguments.save,
        request: json::value(request)?,
        plan: json::value(plan)?,
        environment: survey.environment.clone(),
        notes: Vec::new(),
    })
}

/// The plan as text.
fn planned(
    arguments: &FillArgs,
    plan: &Plan,
    survey: &Survey,
    conduct: &mut Conduct,
) -> Result<String, FillError> {
    let mut planned = text::plan(plan, survey);
    planned += &match &mut conduct.volume_monitor {
        Some(volume_monitor) => {
            let kept = volume_monitor.kept(&conduct.limits)?;
            text::limits(&conduct.limits, Some((volume_monitor.volume(), &kept)))
        }
        None => text::limits(&conduct.limits, None),
    };
    if let Some(level) = arguments.level {
        let _ = write!(planned, "\n  flags        {}", level.flags());
    }
    Ok(planned)
}

/// Directory in which direct fills record the files that they write.
pub(crate) fn records(home: &Home) -> PathBuf {
    home.root().join("direct")
}

/// Removes files that a crash of the server left behind from a direct fill.
pub(crate) async fn clear_abandoned(
    home: &Home,
    chosen: &Chosen,
    connection: &Connection,
    survey: &Survey,
    printer: &Printer,
) {
    for abandoned in fill::remove_abandoned(&chosen.target, connection, survey, &records(home)).await {
        match abandoned {
            Abandoned::Removed { pid, files, bytes: size } => printer.say(format!(
                "pgrig removed {} ({}) that a fill with --method direct (pgrig process {pid}) left behind when the server crashed",
                counted(files as u64, "file"),
                bytes(size)
            )),
            Abandoned::Left { record, why } => printer.warn(format!(
                "a crash of the server may have left files of a fill with --method direct, and pgrig did not remove them: {why}. {} lists \
                 the files: check them, and delete those that no relation uses",
                record.display()
            )),
        }
    }
}

/// Notes on the outcome: dead rows, changes of the write rate, probes that became slow.
fn findings(outcome: &Outcome, plan: &Plan, arguments: &FillArgs) -> Vec<Note> {
    let dead = outcome.dead_space(plan).map(|dead| {
        format!(
            "rolled-back transactions left {} of dead rows in the table: run VACUUM {}, so that new rows can use \
             the space",
            bytes(dead),
            plan.bulk_qualified()
        )
    });
    let rate = outcome.rate.as_ref().map_or(Vec::new(), |rate| {
        let bytes_per_row = outcome.grown().heap as f64 / outcome.rows.max(1) as f64;
        let points: Vec<(f64, f64)> =
            rate.points.iter().map(|(at, rows)| (*at, rows * bytes_per_row)).collect();
        rate_sentences("the write rate", &rate_changes(&points), Unit::Bytes)
    });
    let turn = arguments.probe.as_ref().and_then(|kind| turning_point(kind, &outcome.probes));
    let partial = (plan.rows().is_none() && plan.is_resumed())
        .then(|| format!("{} existed before", counted(plan.rows_done(), "row")));
    let by_hash = matches!(plan.chunking.spread, Spread::Hash { .. });
    let gaps = outcome.gaps.iter().map(|rows| {
        format!(
            "{} {} to {} are missing: their chunk did not fit, and a later chunk did; to have every id, free space \
             and fill empty tables again",
            if by_hash { "some of the ids" } else { "ids" },
            grouped(rows.start + 1),
            grouped(rows.end)
        )
    });
    let texts =
        dead.into_iter().chain(gaps).chain(rate).chain(turn.map(|turn| turn.to_string())).chain(partial);
    texts.map(|text| Note { text }).collect()
}
