//! A bench's plan, trials and results as people read them, and the commands to use what helped.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use comfy_table::Table;
use measure::human::{bytes, latency};
use measure::{Environment, IntervalKind};
use serde_json::{Value, json};
use workload::testdb::bench::{Advice, BenchPlan, Done, Failure, Finding, Means, Variant};

use super::bench_results::Results;
use crate::args::BenchArgs;
use crate::cmd::fill_text::trimmed;
use crate::cmd::tps_text::{duration, release, rounded};
use crate::table::{align_right, new_table};
use crate::target::Chosen;

/// What will be done.
pub(super) fn plan(plan: &BenchPlan) -> String {
    let mut text = "plan".to_owned();
    let mut line = |name: &str, value: String| {
        let _ = write!(text, "\n  {name:<12} {value}");
    };
    for (number, variant) in plan.choice.variants.iter().enumerate() {
        line(if number == 0 { "ways" } else { "" }, variant.to_string());
    }
    for (variant, why) in &plan.choice.left_out {
        line("left out", format!("{variant}: {why}"));
    }
    if plan.template_size > 0 {
        line("template", bytes(plan.template_size));
    }
    if let Some(copying) = &plan.copying {
        let took =
            copying.strategies.iter().map(|timed| format!("{} {}", timed.strategy, latency(timed.median)));
        line(
            "copied by",
            format!("{}, the fastest ({})", copying.fastest, took.collect::<Vec<_>>().join(", ")),
        );
    }
    line("trials", format!("{} in {} rounds of balanced order", plan.trials(), plan.rounds.len()));
    text
}

/// The run document's `plan`.
pub(super) fn document(plan: &BenchPlan) -> Value {
    let left_out = plan.choice.left_out.iter();
    json!({
        "variants": plan.choice.variants,
        "left_out": left_out.map(|(variant, why)| json!({ "variant": variant, "why": why })).collect::<Vec<_>>(),
        "cells": plan.cells.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rounds": plan.rounds,
        "template_size": plan.template_size,
        "copying": plan.copying,
        "normal": plan.normal,
    })
}

/// What one trial took, and when all will be over.
pub(super) fn trial(done: &Done, trials: usize, left: Option<Duration>) -> String {
    let Done { number, cell, figures, .. } = done;
    let what = match &done.outcome {
        Some(outcome) => format!("{} tps, prepared in {}", rounded(outcome.tps()), latency(figures.prepare)),
        None => format!(
            "{} (prepare {}, command {})",
            latency(figures.total()),
            latency(figures.prepare),
            latency(figures.work)
        ),
    };
    let warm_up = if done.is_judged { "" } else { ", which does not count" };
    let left = left.filter(|_| *number < trials);
    let left = left.map_or(String::new(), |left| format!("; about {} left", duration(left)));
    format!("trial {number} of {trials}, {cell}{warm_up}: {what}{left}")
}

/// Why a variant is out.
pub(super) fn failure(failure: &Failure) -> String {
    let Failure { variant, how, .. } = failure;
    format!("{variant} is out: {how}")
}

/// The tables.
pub(super) fn results(results: &Results, environment: &Environment) -> String {
    let clients = results.clients();
    let findings = results.findings(clients.last().copied().flatten());
    let table = if clients.contains(&None) { totals(results, &findings) } else { transactions(results) };
    let interval = match findings.first().map(|finding| finding.total.interval.kind) {
        Some(IntervalKind::Confidence { level }) => {
            format!("the {:.0} % interval of the median", level * 100.0)
        }
        _ => "the least and the greatest".to_owned(),
    };
    format!(
        "{}\n\n{}\n\n{}; medians of trials, in parentheses {interval}; times: beside normal of the same round",
        trimmed(&table),
        trimmed(&active(results)),
        release(environment),
    )
}

/// A line for each way.
fn totals(results: &Results, findings: &[Finding]) -> Table {
    let mut table = new_table(&["way", "total", "", "prepare", "command", "times", "", "verdict"]);
    for variant in &results.plan.choice.variants {
        let verdict = results.failure(*variant).map(|failure| format!("failed: {}", failure.how));
        let Some(found) = findings.iter().find(|finding| finding.variant == *variant) else {
            let dash = || "-".to_owned();
            let verdict = verdict.unwrap_or_else(dash);
            table.add_row([variant.to_string(), dash(), dash(), dash(), dash(), dash(), dash(), verdict]);
            continue;
        };
        let range = found.total.interval;
        let times = |times: f64| format!("{times:.2}");
        let of_times = found.change.and_then(|change| change.interval);
        table.add_row([
            variant.to_string(),
            latency(found.total.median),
            format!("({}–{})", latency(range.low), latency(range.high)),
            latency(found.prepare),
            latency(found.work),
            found.change.map_or(String::new(), |change| times(change.ratio)),
            of_times.map_or(String::new(), |range| format!("({}–{})", times(range.low), times(range.high))),
            verdict.or_else(|| Some(found.change?.verdict.to_string())).unwrap_or_default(),
        ]);
    }
    align_right(&mut table, 1..7);
    table
}

/// The article's table: ways and clients.
fn transactions(results: &Results) -> Table {
    let clients = results.clients();
    let plural = |clients: usize| format!("{clients} {}", if clients == 1 { "client" } else { "clients" });
    let header: Vec<String> = clients.iter().flatten().map(|clients| plural(*clients)).collect();
    let header: Vec<&str> = std::iter::once("tps").chain(header.iter().map(String::as_str)).collect();
    let mut table = new_table(&header);
    let found: Vec<Vec<Finding>> = clients.iter().map(|clients| results.findings(*clients)).collect();
    for variant in &results.plan.choice.variants {
        let of = |findings: &Vec<Finding>| match findings.iter().find(|finding| finding.variant == *variant) {
            Some(finding) => summary(finding),
            None => "-".to_owned(),
        };
        let summaries: Vec<String> = found.iter().map(of).collect();
        table.add_row(std::iter::once(variant.to_string()).chain(summaries));
    }
    align_right(&mut table, 1..clients.len() + 1);
    table
}

/// `8,123 (7,900–8,300) ×5.21 improved`. Seconds of a transaction, as transactions per second.
fn summary(finding: &Finding) -> String {
    let tps = |seconds: f64| rounded(1.0 / seconds);
    let range = finding.total.interval;
    let mut text = format!("{} ({}–{})", tps(finding.total.median), tps(range.high), tps(range.low));
    if finding.has_failed {
        text += " failed";
    } else if let Some(change) = finding.change {
        let _ = write!(text, " ×{:.2} {}", 1.0 / change.ratio, change.verdict);
    }
    text
}

/// What was in force.
fn active(results: &Results) -> Table {
    let mut table = new_table(&[
        "active",
        "fsync",
        "full_page_writes",
        "synchronous_commit",
        "wal_level",
        "logged tables",
        "unlogged",
    ]);
    for variant in &results.plan.choice.variants {
        let Some((_, active)) = results.active.iter().find(|(other, _)| other == variant) else { continue };
        table.add_row([
            variant.to_string(),
            active.fsync.clone(),
            active.full_page_writes.clone(),
            active.synchronous_commit.clone(),
            active.wal_level.clone(),
            active.logged_tables.to_string(),
            active.unlogged_tables.to_string(),
        ]);
    }
    align_right(&mut table, 5..7);
    table
}

/// What to use, how, and what that may cost.
pub(super) fn advice(results: &Results, arguments: &BenchArgs, chosen: &Chosen) -> String {
    let used = match results.advice() {
        Advice::Nothing => {
            return "nothing helps: PostgreSQL is not what this suite waits for".to_owned();
        }
        Advice::Unsure => {
            return format!(
                "nothing is proved to help, and nothing to be useless: give more trials (--trials {})",
                (results.plan.rounds.len() * 2).max(6)
            );
        }
        Advice::Use(variant) => variant,
    };
    let own = chosen.ground().is_own;
    let from = match (arguments.script(), own) {
        (Some(script), _) => From::Script(script),
        (None, true) => From::Nothing,
        (None, false) => From::Database(chosen.target.dbname()),
    };
    let mut text = format!("use {used}: {}", commands(used, from).join("; "));
    if let Some(cost) = cost(used) {
        let _ = write!(text, "\n{cost}");
    }
    text
}

/// Where databases come from.
#[derive(Clone, Copy)]
enum From<'a> {
    Nothing,
    Script(&'a Path),
    Database(&'a str),
}

/// What a person types to have databases made so.
fn commands(variant: Variant, from: From<'_>) -> Vec<String> {
    let mut commands = Vec::new();
    if variant.has(Means::Tmpfs) {
        commands.push("export PGRIG_HOME=/dev/shm/pgrig".to_owned());
    }
    match (variant.has(Means::Dangerous), variant.has(Means::Tmpfs)) {
        (true, _) => commands.push("pgrig server start --profile dangerous".to_owned()),
        (false, true) => commands.push("pgrig server start".to_owned()),
        (false, false) => {}
    }
    let unlogged = if variant.has(Means::Unlogged) { " --unlogged" } else { "" };
    match from {
        From::Script(script) if variant.has(Means::Template) => {
            commands.push(format!(
                "eval \"$(pgrig testdb new --from {}{unlogged})\"",
                quoted(&script.display().to_string())
            ));
        }
        From::Script(script) if variant.has(Means::Unlogged) => {
            commands.push(format!(
                "pgrig testdb unlog {} -o unlogged.sql",
                quoted(&script.display().to_string())
            ));
        }
        From::Database(name) if variant.has(Means::Template) => {
            commands.push(format!("eval \"$(pgrig testdb new --from-database {}{unlogged})\"", quoted(name)));
        }
        From::Database(name) if variant.has(Means::Unlogged) => {
            commands.push(format!("pgrig testdb unlog -d {}", quoted(name)));
        }
        From::Nothing | From::Script(_) | From::Database(_) => {}
    }
    commands
}

/// As a word of a shell command.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What a crash may cost, once and plainly.
fn cost(variant: Variant) -> Option<String> {
    let costs = [
        (Means::Unlogged, "unlogged tables are empty after a crash of the server"),
        (Means::Tmpfs, "data in memory are gone when the machine restarts"),
        (Means::Dangerous, "with dangerous settings a crash of the machine may cost the whole cluster"),
    ];
    let costs = costs.into_iter().filter(|(means, _)| variant.has(*means)).map(|(_, cost)| cost);
    let costs: Vec<&str> = costs.collect();
    (!costs.is_empty()).then(|| format!("only for data that can be made again: {}", costs.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(variant: &str, from: From<'_>) -> String {
        commands(variant.parse().unwrap(), from).join("; ")
    }

    #[test]
    fn commands_are_for_where_databases_come_from() {
        let script = From::Script(Path::new("my schema.sql"));
        assert_eq!(typed("template", script), "eval \"$(pgrig testdb new --from 'my schema.sql')\"");
        assert_eq!(typed("unlogged", script), "pgrig testdb unlog 'my schema.sql' -o unlogged.sql");
        assert_eq!(
            typed("dangerous+template+tmpfs", script),
            "export PGRIG_HOME=/dev/shm/pgrig; pgrig server start --profile dangerous; \
             eval \"$(pgrig testdb new --from 'my schema.sql')\""
        );
        assert_eq!(typed("unlogged", From::Database("shop")), "pgrig testdb unlog -d shop");
        assert_eq!(typed("dangerous", From::Nothing), "pgrig server start --profile dangerous");
    }

    #[test]
    fn what_a_crash_may_cost_is_told_of_what_costs_something() {
        assert_eq!(cost("template".parse().unwrap()), None);
        let both = cost("unlogged+dangerous".parse().unwrap()).unwrap();
        assert!(both.contains("empty after a crash") && both.contains("whole cluster"), "{both}");
    }
}
