//! `pgrig testdb unlog` of a live database: request → plan → one transaction → table.

mod progress;
mod text;

use testdb::unlog::{Direction, UnlogRequest, apply, plan};
use tokio::runtime::Builder;

use crate::app::conduct::on_server;
use crate::app::failure::Failure;
use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::target::{self, Chosen};
use crate::cmd::testdb::args::UnlogArgs;

use crate::cmd::testdb::unlog::live::progress::UnlogProgress;

/// Changes the database that the arguments name.
pub(crate) fn run(arguments: &UnlogArgs, printer: &Printer) -> Result<(), Failure> {
    let request = request(arguments);
    let server = arguments.server.planned(arguments.explain);
    let done = on_server(&server, &mut Builder::new_current_thread(), printer, async |_, chosen| {
        Box::pin(unlog(arguments, &request, chosen, printer)).await
    });
    // Without options, this verb reads a dump.
    done.map_err(|failure| {
        target::only_by_instance(failure, &arguments.server, "-d then names one of its databases")
    })
}

fn request(arguments: &UnlogArgs) -> UnlogRequest {
    let direction = if arguments.back { Direction::Logged } else { Direction::Unlogged };
    let whole = UnlogRequest::whole_database(direction);
    UnlogRequest {
        schemas: arguments.schema.clone(),
        keep: arguments.keep.clone(),
        sequences: !arguments.no_sequences,
        lock_timeout: arguments.lock_timeout.map_or(whole.lock_timeout, |length| length.0),
        ..whole
    }
}

async fn unlog(
    arguments: &UnlogArgs,
    request: &UnlogRequest,
    chosen: &Chosen,
    printer: &Printer,
) -> Result<(), Failure> {
    chosen.connect(printer).await?.close().await;
    let target = &chosen.target;
    let plan = plan(target, request).await?;
    if arguments.explain {
        return Ok(printer.result(text::script(&plan).trim_end())?);
    }
    printer.say(text::plan(&plan, target.dbname()));
    if plan.is_empty() {
        return Ok(printer.result(text::nothing_to_do(&plan, target.dbname()))?);
    }
    let progress = UnlogProgress::new(&plan, printer);
    let done = apply(target, &plan, &progress, interrupted(printer)).await;
    let times = progress.finish();
    printer.result(text::done(&plan, &done?, &times, target.dbname()))?;
    Ok(())
}
