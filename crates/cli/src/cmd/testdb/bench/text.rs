//! Plan, trials and results of a bench for people, and the commands for the recommended variant.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use measure::Environment;
use measure::human::{bytes, latency};
use serde_json::{Value, json};
use server::quote::shell_word;
use server::settings::ServerRef;
use testdb::bench::{Advice, BenchPlan, Done, Failure, Finding, Means, Variant};

use crate::app::numbers::{duration, interval, rounded};
use crate::app::table::{align_right, new_table, trimmed};
use crate::app::target::Chosen;
use crate::cmd::testdb::args::BenchArgs;
use crate::cmd::testdb::bench::original;
use crate::cmd::testdb::bench::results::Results;

/// The plan.
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
    let rounds = match plan.rounds.len() {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    line("trials", format!("{} in {rounds} of balanced order", plan.trials()));
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

/// The tables.
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

/// The recommendation, the commands for it, and its risks.
pub(crate) fn advice(results: &Results, arguments: &BenchArgs, chosen: &Chosen) -> String {
    let advice = match results.advice() {
        Advice::Nothing => {
            "no variant is faster than normal: the database is probably not the bottleneck of the suite"
                .to_owned()
        }
        Advice::NothingElse => "no variant that completed is faster than normal".to_owned(),
        Advice::Unknown => "no recommendation: only normal completed".to_owned(),
        Advice::Unsure => format!(
            "no variant is proved faster, but some may be: give --rounds {}",
            (results.plan.rounds.len() * 2).max(12)
        ),
        Advice::Use(variant) => used(variant, arguments, chosen),
    };
    let costs = costs(&results.plan.choice.variants);
    if costs.is_empty() { advice } else { format!("{advice}\n{costs}") }
}

/// The recommended variant, with its commands.
fn used(variant: Variant, arguments: &BenchArgs, chosen: &Chosen) -> String {
    let embedded = &arguments.server.address.embedded;
    let place = chosen.place();
    let server = match &place {
        ServerRef::Named(recipe) => format!(" -d {}", shell_word(recipe)),
        // The environment may name another one.
        ServerRef::Own(_) if embedded.any() => instance(embedded.instance.as_deref().unwrap_or("default")),
        ServerRef::Own(_) => String::new(),
    };
    let release = match (&embedded.pg_version, &embedded.pg_bin) {
        (Some(major), _) => format!(" --pg-version {major}"),
        (None, Some(directory)) => format!(" --pg-bin {}", shell_word(&directory.display().to_string())),
        (None, None) => String::new(),
    };
    let script = arguments.script().map(|script| shell_word(&script.display().to_string()));
    let from = match (&script, original(arguments, chosen), &place) {
        (Some(script), _, _) => From::Script(script),
        (None, None, _) => From::Nothing,
        (None, Some(name), ServerRef::Named(_)) => From::Database(name),
        (None, Some(name), ServerRef::Own(instance)) => From::OwnDatabase { name, instance },
    };
    // Without a dump, for example, the rest is of no use.
    let commands = commands(variant, from, &server, &release).join(" && ");
    format!("use {variant}: {}", in_build(commands, cfg!(feature = "serve")))
}

/// The commands, with a remedy if this build of pgrig does not have all of them.
fn in_build(commands: String, can_serve: bool) -> String {
    if can_serve || !commands.contains("pgrig testdb new") {
        return commands;
    }
    commands + " (this pgrig has no testdb new: build it with the feature serve)"
}

/// Source of the databases.
#[derive(Clone, Copy)]
enum From<'a> {
    Nothing,
    /// A file, quoted for a shell.
    Script(&'a str),
    /// A database of the measured server.
    Database(&'a str),
    /// A database of an instance of pgrig's own.
    OwnDatabase {
        name: &'a str,
        instance: &'a str,
    },
}

/// The commands that make databases of this variant. `server` is the option that names the measured
/// server, or empty; `release` has the options for a server like it.
fn commands(variant: Variant, from: From<'_>, server: &str, release: &str) -> Vec<String> {
    let profile = if variant.has(Means::Dangerous) { "dangerous" } else { "stock" };
    if !variant.has(Means::Tmpfs) && !variant.has(Means::Dangerous) {
        return databases(variant, from, server);
    }
    // A server that is dangerous or in memory is one for tests alone, and pgrig's own.
    let mut commands = Vec::new();
    match from {
        From::Database(_) => {
            commands.push(format!("pg_dump --no-owner --no-privileges{server} -f dump.sql"));
        }
        From::OwnDatabase { name, instance } => {
            // After the bench, the instance may be stopped.
            commands.push(format!("pgrig server start --instance {instance}"));
            let url = format!("\"$(pgrig server url --instance {instance} {})\"", shell_word(name));
            commands.push(format!("pg_dump --no-owner --no-privileges -d {url} -f dump.sql"));
        }
        From::Nothing | From::Script(_) => {}
    }
    if variant.has(Means::Tmpfs) {
        commands.push("export PGRIG_HOME=/dev/shm/pgrig".to_owned());
    }
    let server = instance(&format!("testdb-{profile}"));
    commands.push(format!("pgrig server start{server} --profile {profile}{release}"));
    let from = match from {
        From::Database(_) | From::OwnDatabase { .. } => From::Script("dump.sql"),
        From::Nothing | From::Script(_) => from,
    };
    commands.extend(databases(variant, from, &server));
    if let From::Script(_) = from
        && !variant.has(Means::Template)
    {
        // One to load the script into.
        commands.extend(databases(variant, From::Nothing, &server));
    }
    commands
}

/// The commands for databases on the measured server.
fn databases(variant: Variant, from: From<'_>, server: &str) -> Vec<String> {
    let [is_template, is_unlogged] = [Means::Template, Means::Unlogged].map(|means| variant.has(means));
    let new_on = |what: &str, server: &str| format!("eval \"$(pgrig testdb new{what}{server})\"");
    let new = |what: &str| new_on(what, server);
    match from {
        From::Nothing => vec![new("")],
        From::Script(script) if is_template => {
            vec![new(&format!(" --from {script}{}", if is_unlogged { " --unlogged" } else { "" }))]
        }
        // Of a dump, so no server is named.
        From::Script(script) => {
            let unlog = format!("pgrig testdb unlog {script} -o unlogged.sql");
            Vec::from_iter(is_unlogged.then_some(unlog))
        }
        From::Database(name) => {
            let unlog = is_unlogged.then(|| format!("pgrig testdb unlog{server}"));
            let template = is_template.then(|| new(&format!(" --template {}", shell_word(name))));
            unlog.into_iter().chain(template).collect()
        }
        From::OwnDatabase { name, instance: own } => {
            let (name, server) = (shell_word(name), instance(own));
            let unlog = is_unlogged.then(|| format!("pgrig testdb unlog -d {name}{server}"));
            let template = is_template.then(|| new_on(&format!(" --template {name}"), &server));
            unlog.into_iter().chain(template).collect()
        }
    }
}

fn instance(name: &str) -> String {
    format!(" --instance {name}")
}

/// The effects of a crash on the variants, each once.
fn costs(variants: &[Variant]) -> String {
    let costs = [
        (Means::Unlogged, "unlogged tables are empty after a crash of the server"),
        (Means::Tmpfs, "a restart of the machine destroys data in memory"),
        (Means::Dangerous, "with dangerous settings a crash of the machine may destroy the whole cluster"),
    ];
    let tried = |means: Means| variants.iter().any(|variant| variant.has(means));
    let costs: Vec<&str> =
        costs.into_iter().filter(|(means, _)| tried(*means)).map(|(_, cost)| cost).collect();
    if costs.is_empty() {
        return String::new();
    }
    format!("only for data that you can create again: {}", costs.join("; "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::app::args::ServerAction;
    use crate::cmd::line::{Cli, Verb};
    use crate::cmd::testdb::args::TestdbAction;
    #[cfg(feature = "serve")]
    use crate::cmd::testdb::lend::args::LendAction;

    fn typed(variant: &str, from: From<'_>, server: &str) -> String {
        commands(variant.parse().unwrap(), from, server, " --pg-version 15").join(" && ")
    }

    #[test]
    fn commands_are_for_where_databases_come_from() {
        let script = From::Script("'my schema.sql'");
        assert_eq!(typed("template", script, ""), "eval \"$(pgrig testdb new --from 'my schema.sql')\"");
        assert_eq!(
            typed("unlogged+template", script, " -d x"),
            "eval \"$(pgrig testdb new --from 'my schema.sql' --unlogged -d x)\""
        );
        assert_eq!(typed("unlogged", script, ""), "pgrig testdb unlog 'my schema.sql' -o unlogged.sql");
        assert_eq!(
            typed("dangerous+template+tmpfs", script, " -d x"),
            "export PGRIG_HOME=/dev/shm/pgrig && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --from 'my schema.sql' --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("unlogged+template", From::Database("shop"), " -d host=db"),
            "pgrig testdb unlog -d host=db && eval \"$(pgrig testdb new --template shop -d host=db)\""
        );
        let own = From::OwnDatabase { name: "my shop", instance: "mine" };
        assert_eq!(
            typed("unlogged+template", own, ""),
            "pgrig testdb unlog -d 'my shop' --instance mine && \
             eval \"$(pgrig testdb new --template 'my shop' --instance mine)\""
        );
        assert_eq!(
            typed("dangerous+template", own, ""),
            "pgrig server start --instance mine && pg_dump --no-owner --no-privileges \
             -d \"$(pgrig server url --instance mine 'my shop')\" -f dump.sql && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --from dump.sql --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("dangerous", From::Nothing, ""),
            "pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("unlogged+dangerous", From::Database("shop"), " -d host=db"),
            "pg_dump --no-owner --no-privileges -d host=db -f dump.sql && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             pgrig testdb unlog dump.sql -o unlogged.sql && eval \"$(pgrig testdb new --instance testdb-dangerous)\""
        );
        assert_eq!(shell_word("host=db dbname=it's"), r"'host=db dbname=it'\''s'");
    }

    #[test]
    fn a_build_without_lending_names_the_feature_that_a_command_needs() {
        let unlog = typed("unlogged", From::Script("a.sql"), "");
        assert_eq!(in_build(unlog.clone(), false), unlog);
        let new = typed("template", From::Script("a.sql"), "");
        assert_eq!(in_build(new.clone(), true), new);
        assert!(in_build(new, false).ends_with("build it with the feature serve)"));
    }

    /// As a shell splits it.
    fn words(command: &str) -> Vec<String> {
        let command =
            command.strip_prefix("eval \"$(").and_then(|rest| rest.strip_suffix(")\"")).unwrap_or(command);
        let script = format!("printf '%s\n' {command}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{command}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Checks that the shell finds the files and servers that each command names.
    #[test]
    fn every_command_finds_what_it_names() {
        let own = [Means::Dangerous, Means::Tmpfs];
        let all = [Means::Unlogged, Means::Dangerous, Means::Template, Means::Tmpfs];
        let recipe = "user=me dbname='my shop' host=/tmp";
        let named = format!(" -d {}", shell_word(recipe));
        for bits in 1..16 {
            let means: Vec<Means> = (0..4).filter(|bit| bits & 1 << bit != 0).map(|bit| all[bit]).collect();
            let variant = Variant::of(&means);
            let is_own = own.iter().any(|means| variant.has(*means));
            for (from, server) in [
                (From::Nothing, ""),
                (From::Nothing, " --instance mine"),
                (From::Script("'my schema.sql'"), ""),
                (From::Script("'my schema.sql'"), &named),
                (From::Database("my shop"), &named),
            ] {
                let (mut files, mut started) = (vec!["my schema.sql".to_owned()], None);
                let typed = commands(variant, from, server, " --pg-version 15");
                assert!(!typed.is_empty(), "{variant}");
                for command in &typed {
                    let words = words(command);
                    if words[0] == "pg_dump" {
                        assert_eq!(words[3..], ["-d", recipe, "-f", "dump.sql"]);
                        files.push("dump.sql".to_owned());
                        continue;
                    }
                    if words[0] == "export" {
                        continue;
                    }
                    let parsed =
                        Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{command}: {error}"));
                    let action = match parsed.verb {
                        Verb::Server(server) => {
                            let ServerAction::Start { embedded, .. } = server.action else {
                                panic!("{command}")
                            };
                            started = embedded.instance;
                            continue;
                        }
                        Verb::Testdb(testdb) => testdb.action,
                        _ => panic!("{command}"),
                    };
                    match action {
                        // An existing dump, or a database of the measured server; never input that a person types.
                        TestdbAction::Unlog(unlog) => match &unlog.file {
                            Some(file) => {
                                assert!(
                                    !unlog.is_live() && files.contains(&file.display().to_string()),
                                    "{command}"
                                );
                            }
                            None => assert_eq!(unlog.server.dbname.as_deref(), Some(recipe), "{command}"),
                        },
                        #[cfg(feature = "serve")]
                        TestdbAction::Lend(LendAction::New(new)) => {
                            assert_eq!(is_own, started.is_some(), "{typed:?}");
                            if is_own {
                                assert_eq!(new.server.address.embedded.instance, started, "{typed:?}");
                            }
                            if let Some(file) = &new.from {
                                assert!(files.contains(&file.display().to_string()), "{command}");
                            }
                            if let Some(name) = &new.template {
                                assert_eq!(
                                    (name.as_str(), new.server.dbname.as_deref()),
                                    ("my shop", Some(recipe))
                                );
                            }
                        }
                        _ => panic!("{command}"),
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_crash_may_cost_is_told_of_what_costs_something() {
        let variants = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(costs(&variants(&["normal", "template"])), "");
        let both = costs(&variants(&["normal", "unlogged+template", "dangerous"]));
        assert!(both.contains("empty after a crash") && both.contains("whole cluster"), "{both}");
        assert!(!both.contains("in memory"), "{both}");
    }
}
