//! Several targets, over which the clients are divided: `-d` more than once.

use std::fmt::Write;

use connect::Target;
use measure::human::{counted, grouped};
use server::ServerInfo;
use tps::{Moves, Outcome, Parsed, Plan, Request};

use crate::app::args::ServerChoice;
use crate::app::failure::{Failure, Usage};
use crate::app::pooler;
use crate::app::printer::Printer;
use crate::app::table::{align_right, new_table, trimmed};
use crate::app::target::{Chosen, ServerKind, named, server_kind};
use crate::cmd::tps::args::TpsArgs;
use crate::cmd::tps::text::percent;

/// Moves that are shown one by one.
const MOST_MOVES: usize = 10;

/// The targets, at least one.
pub(crate) struct Targets {
    all: Vec<Target>,
    /// Release and state of each, if there are several.
    servers: Vec<String>,
}

/// Names of the targets, without passwords; none if there is one target only.
pub(crate) fn names(arguments: &TpsArgs) -> Result<Vec<String>, Failure> {
    let others: Vec<ServerChoice> = arguments.others().collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }
    std::iter::once(arguments.server()).chain(others).map(|choice| name(&choice)).collect()
}

fn name(choice: &ServerChoice) -> Result<String, Failure> {
    if server_kind(choice)? == ServerKind::Own {
        return Ok(choice.dbname.clone().unwrap_or_default());
    }
    let target = named(choice)?;
    Ok(format!("{} on {}, port {}", target.dbname(), target.host_list(), target.port_list()))
}

impl Targets {
    /// Connects to each target once, and refuses those on which the plan cannot run.
    pub(crate) async fn open(
        arguments: &TpsArgs,
        plan: &Plan,
        parsed: Parsed,
        chosen: &Chosen,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let mut all = vec![chosen.target.clone()];
        let mut servers = Vec::new();
        for choice in arguments.others() {
            all.push(match server_kind(&choice)? {
                ServerKind::Own => {
                    chosen.target.clone().with_database(choice.dbname.as_deref().unwrap_or_default())
                }
                ServerKind::Named => named(&choice)?,
            });
        }
        if all.len() == 1 {
            return Ok(Self { all, servers });
        }
        let share = plan.request.clients.div_ceil(all.len());
        let request = Request { clients: share, ..plan.request.clone() };
        for (number, target) in (1..).zip(&all) {
            let connection = target.connect().await?;
            if number > 1 {
                pooler::refuse(target, &connection, true, printer).await?;
                let scale = parsed.clone().plan(&connection).await?.scale;
                if scale != plan.scale {
                    return Err(Usage(format!(
                        "pgbench's tables have scale {} on target 1 and {scale} on target {number}: fill all targets \
                         with the same --scale",
                        plan.scale
                    ))
                    .into());
                }
            }
            tps::refuse_too_many(target, &connection, &request).await?;
            let info = ServerInfo::ask(&connection).await?;
            let state = if info.in_recovery { ", a standby" } else { "" };
            servers.push(format!("{}{state}", info.record().release()));
            connection.close().await;
        }
        Ok(Self { all, servers })
    }

    /// The targets; pgrig observes the first.
    pub(crate) fn all(&self) -> &[Target] {
        &self.all
    }

    /// Lines of the plan; none if there is one target only.
    pub(crate) fn plan(&self, request: &Request) -> String {
        let mut text = String::new();
        for (number, (name, server)) in (1..).zip(request.targets.iter().zip(&self.servers)) {
            let head = if number == 1 { "targets" } else { "" };
            let _ = write!(text, "\n  {head:<12} {number}: {name}, {server}");
        }
        text
    }

    /// A note for the run document, if there are several.
    pub(crate) fn note(&self) -> Option<String> {
        let several = self.all.len() > 1;
        several.then(|| {
            "waits, WAL and settings are those of target 1; pgrig does not observe the others".to_owned()
        })
    }
}

/// Transactions of each target, and the clients that moved; none if there is one target only.
pub(crate) fn results(plan: &Plan, outcome: &Outcome) -> Option<String> {
    let names = &plan.request.targets;
    if names.is_empty() {
        return None;
    }
    let mut table = new_table(&["target", "", "succeeded", ""]);
    for (number, (name, succeeded)) in (1..).zip(names.iter().zip(&outcome.targets)) {
        let all = outcome.all.counts.succeeded;
        let share = if all == 0 { String::new() } else { percent(*succeeded as f64 / all as f64) };
        table.add_row([number.to_string(), name.clone(), grouped(*succeeded), share]);
    }
    align_right(&mut table, 2..4);
    let mut text = trimmed(&table);
    for Moves { at, from, to, clients, why } in outcome.moves.iter().take(MOST_MOVES) {
        let clients = if *clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        let _ = write!(
            text,
            "\nafter {at:.1} s, {clients} went from target {} to target {}: {why}",
            from + 1,
            to + 1
        );
    }
    if outcome.moves.len() > MOST_MOVES {
        let _ = write!(text, "\n(clients moved {} in all)", counted(outcome.moved(), "time"));
    }
    Some(text)
}
