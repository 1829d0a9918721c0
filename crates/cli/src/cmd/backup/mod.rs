//! `pgrig backup`: request → plan → run → run document and table.

pub(crate) mod args;
mod beside;
mod check;
mod incremental;
pub(crate) mod load;
mod pitr;
mod progress;
mod restore;
mod rto;
pub(crate) mod sized;
mod text;
mod tool;

use std::rc::Rc;

use backup::{BackupError, Outcome, Site, Way};
use failure::Class;
use pgserver::Home;
use server::Survey;
use server::machine::cores;
use tokio::runtime::Builder;

use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown, on_server};
use crate::app::failure::{BadResult, Failure};
use crate::app::interrupt::interrupted;
use crate::app::json;
use crate::app::printer::{Printer, first_paragraph};
use crate::app::steps::ShownSteps;
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::backup::args::{BackupAction, BackupArgs, RehearseArgs};
use crate::cmd::backup::progress::Progress;

/// Runs the command that the arguments name.
pub(crate) fn run(arguments: &BackupArgs, printer: &Printer) -> Result<(), Failure> {
    match &arguments.action {
        BackupAction::Rehearse(arguments) if arguments.sized.any() => sized::run(arguments, printer),
        BackupAction::Rehearse(arguments) => {
            arguments.refuse_forecasts()?;
            let server = arguments.server.planned(arguments.explain);
            on_server(&server, &mut Builder::new_multi_thread(), printer, async |home, chosen| {
                Box::pin(rehearse(arguments, home, chosen, printer)).await
            })
        }
        BackupAction::Check(arguments) => check::run(arguments, printer),
    }
}

async fn rehearse(
    arguments: &RehearseArgs,
    home: &Home,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    let connection = chosen.connect(printer).await?;
    let survey = Survey::for_reading(&connection, &chosen.data_directory(None)?, VERSION).await?;
    // The survey holds for this server.
    let target = chosen.target.pinned_to(connection.address());
    connection.close().await;
    let request = arguments.request()?;
    // Another instance does not have a database that the user names.
    let is_fixed = chosen.is_named() || arguments.server.dbname.is_some();
    let of_version = |error: BackupError| if is_fixed { error.of_fixed_version() } else { error };
    let site = Site {
        target: &target,
        version_num: survey.server.version_num,
        home,
        pg_bin: arguments.server.address.embedded.pg_bin.clone(),
        data: survey.data_directory,
        own: survey.site.own,
        cores: u16::try_from(cores()).unwrap_or(u16::MAX),
    };
    if arguments.explain {
        let plan = backup::plan(&site, &request).await.map_err(of_version)?;
        return conduct::explained(printer, &arguments.save, &plan, text::plan(&plan));
    }
    let rto = arguments.sized.rto.map(|rto| rto.0);
    let mut document = json::value(&request)?;
    if let Some(rto) = rto {
        document["rto"] = rto.as_secs_f64().into();
    }
    let begun = Begun {
        verb: "backup",
        save: &arguments.save,
        request: document,
        plan: serde_json::json!({}),
        environment: survey.environment,
        notes: Vec::new(),
    };
    let shown = Rc::new(ShownSteps::new(printer, ""));
    let mut progress = Progress::new(Recording::begin(home, begun)?, shown);
    let result = backup::rehearse(&site, &request, &mut progress, interrupted(printer)).await;
    let result = result.map_err(of_version);
    let (mut recording, plan) = progress.end();
    let end = match (result, plan) {
        (Ok(outcome), Some(plan)) => {
            outcome.notes.iter().for_each(|note| recording.note(note));
            let mut results = text::results(&outcome, &plan);
            let mut judgement = judged(&outcome);
            if let Some(rto) = rto.filter(|_| !results.is_empty()) {
                results.push(rto::text(&outcome, &plan, rto));
                judgement = judgement.and_then(|()| rto::check(&outcome, &plan, rto));
            }
            let reminder = results.first().map(|table| first_paragraph(table).to_owned());
            RunEnd { outcome: Some(Shown { results, reminder, ..Shown::default() }), result: judgement }
        }
        (result, _) => RunEnd { outcome: None, result: result.map(drop).map_err(Failure::from) },
    };
    recording.conclude(end, Some(chosen), printer, async |shown, _| Ok(shown)).await
}

/// A way that failed, or that was cut short, makes the command fail, whatever the others did.
fn judged(outcome: &Outcome) -> Result<(), Failure> {
    let mut failed = sentences(&outcome.failed, "no result");
    failed.extend(sentences(&outcome.cut_short, "fewer trials than planned"));
    failed.extend(outcome.unmeasured.iter().cloned());
    if failed.is_empty() { Ok(()) } else { Err(BadResult::Lost(failed, Class::Machine).into()) }
}

/// A sentence for each reason, with the ways of which it holds.
fn sentences(ways: &[(Way, String)], what: &str) -> Vec<String> {
    let mut found: Vec<(Vec<String>, &str)> = Vec::new();
    for (way, why) in ways {
        match found.iter_mut().find(|(_, known)| *known == why.as_str()) {
            Some((names, _)) => names.push(way.to_string()),
            None => found.push((vec![way.to_string()], why.as_str())),
        }
    }
    let have = |names: &[String]| if names.len() == 1 { "has" } else { "have" };
    found.iter().map(|(names, why)| format!("{} {} {what}: {why}", names.join(", "), have(names))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_with_the_same_reason_are_in_one_sentence() {
        let of = |way: &str, why: &str| (way.parse::<Way>().unwrap(), why.to_owned());
        let all = [of("plain", "gone"), of("base", "full"), of("custom:none", "gone")];
        assert_eq!(
            sentences(&all, "no result"),
            ["plain:none, custom:none have no result: gone", "base has no result: full"]
        );
    }
}
