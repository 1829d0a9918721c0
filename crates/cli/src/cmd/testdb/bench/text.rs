//! Plan, trials and results of a bench for people.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use measure::Environment;
use measure::human::{bytes, counted, latency};
use serde_json::{Value, json};
use testdb::bench::{BenchPlan, Done, Failure, Finding};

use crate::app::numbers::{duration, interval, rounded};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::testdb::bench::results::Results;

/// The plan of a bench, as text.
pub(crate) fn plan(plan: &BenchPlan) -> String {
    let mut text = "plan".to_owned();
    let mut line = |name: &str, value: String| {
        let _ = write!(text, "\n  {name:<12} {value}");
    };
    for (number, variant) in plan.choice.variants.iter().enumerate() {
        line(if number == 0 { "variants" } else { "" }, variant.to_string());
    }
    for missing in plan.choice.left_out.chunk_by(|(_, one), (_, other)| one == other) {
        let variants: Vec<String> = missing.iter().map(|(variant, _)| variant.to_string()).collect();
        line("left out", format!("{}: {}", variants.join(", "), missing[0].1));
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
    let rounds = counted((plan.rounds.len() - usize::from(plan.warm_up)) as u64, "round");
    let warm_up = if plan.warm_up { "a warm-up round and " } else { "" };
    line("trials", format!("{}: {warm_up}{rounds}, in balanced order", plan.trials()));
    text
}

/// The run document's `plan`.
pub(crate) fn document(plan: &BenchPlan) -> Value {
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

/// The times of one trial, and the time left.
pub(crate) fn trial(done: &Done, trials: usize, left: Option<Duration>) -> String {
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

/// Why a variant failed.
pub(crate) fn failure(failure: &Failure) -> String {
    let Failure { variant, how, .. } = failure;
    format!("{variant} failed, and pgrig does not try it any more: {how}")
}

/// The results as tables.
pub(crate) fn results(results: &Results, environment: &Environment) -> String {
    let clients = results.clients();
    let findings = results.findings(clients.last().copied().flatten());
    let table = if clients.contains(&None) { totals(results, &findings) } else { transactions(results) };
    let interval = interval(findings.first().map(|finding| finding.total.interval.kind));
    format!(
        "{}\n\n{}\n\n{}; medians of trials, in parentheses {interval}; ratio: to normal in the same round",
        trimmed(&table),
        trimmed(&active(results)),
        environment.server.release(),
    )
}

/// A line for each variant.
fn totals(results: &Results, findings: &[Finding]) -> Table {
    let mut table = new_table(&["variant", "total", "", "prepare", "command", "ratio", "", "verdict"]);
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

/// The article's table: variants by numbers of clients.
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

/// `8,123 (7,900–8,300) ×5.21 improved`: the time of a transaction as transactions per second.
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

/// The active settings.
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
