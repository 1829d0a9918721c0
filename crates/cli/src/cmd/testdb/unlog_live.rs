//! `pgrig testdb unlog` of a live database: request → plan → one transaction → table.

use testdb::unlog::{Direction, UnlogRequest, apply, plan};
use tokio::runtime::Builder;

use super::unlog_live_progress::UnlogProgress;
use super::unlog_live_text;
use crate::args::UnlogArgs;
use crate::cmd::fill::on_server;
use crate::interrupt::interrupted;
use crate::printer::Printer;
use crate::target::Chosen;

/// Changes the database that the arguments name.
pub(crate) fn run(arguments: &UnlogArgs, printer: &Printer) -> anyhow::Result<()> {
    let request = request(arguments);
    on_server(&arguments.server, &mut Builder::new_current_thread(), printer, async |_, chosen| {
        Box::pin(unlog(arguments, &request, chosen, printer)).await
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
) -> anyhow::Result<()> {
    chosen.connect(printer).await?.close().await;
    let target = &chosen.target;
    let plan = plan(target, request).await?;
    if arguments.dry_run {
        return Ok(printer.result(unlog_live_text::script(&plan).trim_end())?);
    }
    printer.say(unlog_live_text::plan(&plan, target.dbname()));
    if plan.is_empty() {
        return Ok(printer.result(unlog_live_text::nothing_to_do(&plan, target.dbname()))?);
    }
    let progress = UnlogProgress::new(&plan, printer);
    let done = apply(target, &plan, &progress, interrupted(printer)).await;
    let times = progress.finish();
    printer.result(unlog_live_text::done(&plan, &done?, &times, target.dbname()))?;
    Ok(())
}
