//! Plan and results of a `tps` run for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use measure::human::{counted, grouped};
use measure::{Censored, Environment, Latencies, Percentile, Quantile};
use script::Script;
use tps::{self, Connecting, Counts, End, Length, MeasuredCommand, Outcome, Plan, Request};

use crate::app::numbers::{duration, rounded};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::tps::args::TpsArgs;
use crate::cmd::tps::trials::Measured;
use crate::cmd::tps::{targets, trials};

/// Characters of a command that are shown.
const COMMAND_WIDTH: usize = 46;
/// Wait events that are shown.
const MOST_WAITS: usize = 6;

/// The plan of a run, as text.
pub(crate) fn plan(arguments: &TpsArgs, plan: &Plan, environment: &Environment) -> String {
    let request = &plan.request;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    line("server", format!("{}, {}", environment.server.release(), environment.transport));
    line("database", format!("{}, as role {}", environment.database, environment.role));
    let weights = plan.scripts.total_weight();
    for (number, script) in plan.scripts.iter().enumerate() {
        let weight = match plan.scripts.len() {
            1 => String::new(),
            _ => format!(", {} of transactions", percent(f64::from(script.weight()) / weights as f64)),
        };
        line(if number == 0 { "scripts" } else { "" }, format!("{}{weight}", script.name()));
    }
    line("scale", grouped(plan.scale.unsigned_abs()));
    let threads = match request.jobs.min(request.clients) {
        1 => "1 thread".to_owned(),
        jobs => format!("{jobs} threads"),
    };
    let each = match request.connecting {
        Connecting::Once => "",
        Connecting::EachTransaction => ", a new connection for each transaction",
    };
    line("clients", format!("{} on {threads}, protocol {}{each}", request.clients, request.protocol.name()));
    if let Some(part) = &request.part {
        line(
            "part",
            format!(
                "{} of {}; it waits for the others, and begins with them at a whole second of the server's clock",
                part.number, part.of
            ),
        );
    }
    if arguments.trials() > 1 {
        line("trials", format!("{}, one after the other", arguments.trials()));
    }
    line("length", length(request) + if arguments.is_time_chosen() { " (-T sets the length)" } else { "" });
    if let Some(rate) = request.rate {
        line("rate", format!("{} transactions begin per second, at random times", rounded(rate)));
    }
    if let Some(limit) = request.latency_limit {
        let skipped =
            if request.rate.is_some() { "; a transaction that would begin later is skipped" } else { "" };
        line("limit", format!("a transaction that takes longer than {} is late{skipped}", duration(limit)));
    }
    line("seed", format!("{0} (--random-seed {0} gives the same random numbers)", request.seed));
    format!("plan\n{}", text.trim_end())
}

pub(crate) fn length(request: &Request) -> String {
    let mut text = match request.length {
        Length::Time(time) => duration(time),
        Length::Transactions(1) => "1 transaction of each client".to_owned(),
        Length::Transactions(number) => format!("{} transactions of each client", grouped(number)),
    };
    let before = [(request.ramp, "a ramp"), (request.warmup, "a warm-up")];
    let before = before.into_iter().filter(|(time, _)| !time.is_zero());
    let before: Vec<String> = before.map(|(time, what)| format!("{what} of {}", duration(time))).collect();
    if !before.is_empty() {
        let _ = write!(text, ", after {}", before.join(" and "));
    }
    text
}

/// The results of one trial, or of several together.
pub(crate) fn results(
    arguments: &TpsArgs,
    plan: &Plan,
    outcome: &Outcome,
    trials: &[Measured],
    environment: &Environment,
) -> String {
    let mut parts = Vec::new();
    if trials.len() > 1 {
        let outcomes: Vec<&Outcome> = trials.iter().map(|trial| &trial.outcome).collect();
        parts.push(trials::text::table(&plan.request, &outcomes));
    }
    if outcome.all.counts.due() == 0 {
        parts.push(format!("nothing was measured: {}", why_nothing(plan, outcome)));
    } else {
        parts.push(headline(plan, outcome));
        parts.push(transactions(arguments, &plan.request, outcome));
        parts.push(latencies(plan, outcome));
    }
    if plan.scripts.len() > 1 {
        parts.push(scripts(plan, outcome));
    }
    for (script, measured) in plan.scripts.iter().zip(&outcome.scripts) {
        if !measured.commands.is_empty() {
            parts.push(commands(script, &measured.commands));
        }
    }
    parts.extend(targets::results(plan, outcome));
    parts.extend(waits(trials));
    parts.push(format!(
        "{}; scale {}; protocol {}; seed {}",
        environment.server.release(),
        plan.scale,
        plan.request.protocol.name(),
        plan.request.seed
    ));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn why_nothing(plan: &Plan, outcome: &Outcome) -> &'static str {
    match outcome.end {
        End::Interrupted => "the run was interrupted before a counted transaction ended",
        End::Lost => "clients were lost before a counted transaction ended",
        End::Parted => "another part of the run ended before a counted transaction ended",
        End::Complete if plan.request.rate.is_some() => {
            "no transaction was due in that time: give a higher rate, or more time"
        }
        End::Complete => "no transaction ended in that time: give more time",
    }
}

/// `8,123 tps: 81,234 transactions in 10.0 s by 8 clients`.
pub(crate) fn headline(plan: &Plan, outcome: &Outcome) -> String {
    let request = &plan.request;
    let succeeded = outcome.all.counts.succeeded;
    let plural = |number: u64| if number == 1 { "" } else { "s" };
    let connecting = match request.connecting {
        Connecting::Once => format!("connecting took {} and is not counted", duration(outcome.connecting)),
        Connecting::EachTransaction => format!(
            "{} took {} each, which tps includes",
            counted(outcome.connections, "connection"),
            duration(outcome.connecting.div_f64(outcome.connections.max(1) as f64))
        ),
    };
    format!(
        "{} tps: {} transaction{} in {} by {} client{}; {connecting}",
        rounded(outcome.tps()),
        grouped(succeeded),
        plural(succeeded),
        duration(outcome.elapsed),
        request.clients,
        plural(request.clients as u64)
    )
}

/// Numbers of all due transactions by outcome; they add up.
fn transactions(arguments: &TpsArgs, request: &Request, outcome: &Outcome) -> String {
    let counts = &outcome.all.counts;
    let due = counts.due();
    let mut table = new_table(&["transactions", "", "", ""]);
    let mut row = |name: &str, number: u64, of: u64, remark: String| {
        let share = if of == 0 { String::new() } else { percent(number as f64 / of as f64) };
        table.add_row([name.to_owned(), grouped(number), share, remark]);
    };
    row("succeeded", counts.succeeded, due, String::new());
    let limit = request.latency_limit.map(duration);
    row("failed", counts.all_failed(), due, failures(counts));
    if arguments.failures_detailed {
        row("  serialization", counts.failed.serialization, due, String::new());
        row("  deadlock", counts.failed.deadlock, due, String::new());
        row("  other", counts.failed.other, due, String::new());
    }
    match (request.rate, &limit) {
        (Some(_), Some(limit)) => {
            row("skipped", counts.skipped, due, format!("start would be more than {limit} late"));
        }
        (Some(_), None) if counts.skipped > 0 => {
            row("skipped", counts.skipped, due, "due, but not begun before the end".to_owned());
        }
        _ => {}
    }
    if request.rate.is_some() {
        row("due", due, 0, "had a scheduled start".to_owned());
    }
    if counts.retried > 0 {
        row("retried", counts.retried, due, format!("with {} retries", grouped(counts.retries)));
    }
    if let Some(limit) = &limit {
        row(
            "late",
            counts.late,
            counts.succeeded,
            format!("of those that succeeded; took more than {limit}"),
        );
    }
    align_right(&mut table, 1..3);
    trimmed(&table)
}

/// `serialization 10, deadlock 2`: kinds of failures that occurred.
fn failures(counts: &Counts) -> String {
    let kinds = [
        ("serialization", counts.failed.serialization),
        ("deadlock", counts.failed.deadlock),
        ("other errors", counts.failed.other),
    ];
    let told = kinds.into_iter().filter(|(_, number)| *number > 0);
    told.map(|(kind, number)| format!("{kind} {}", grouped(number))).collect::<Vec<_>>().join(", ")
}

/// Percentiles of all together, and of the schedule's lag where there is a schedule.
fn latencies(plan: &Plan, outcome: &Outcome) -> String {
    let mut header = vec!["milliseconds", "mean"];
    header.extend(Percentile::ALL.map(Percentile::name));
    let mut table = new_table(&header);
    let tps::Measured { latency, lag, counts } = &outcome.all;
    let with_skipped = Censored::new(latency, plan.request.skipped(counts.skipped));
    let mut rows =
        vec![("latency", Censored::new(latency, None)), ("schedule lag", Censored::new(lag, None))];
    if with_skipped.skipped().is_some() {
        rows.insert(1, ("with skipped", with_skipped));
    }
    let rows: Vec<_> = rows.into_iter().filter_map(|(name, of)| percentiles(name, &of)).collect();
    if rows.is_empty() {
        return String::new();
    }
    table.add_rows(rows);
    align_right(&mut table, 1..header.len());
    let from = match plan.request.rate {
        Some(_) => "latency from the scheduled start of a transaction, including lag",
        None => "latency of transactions that succeeded, from their start",
    };
    let skipped = with_skipped.skipped().map_or(String::new(), |skipped| {
        format!("; with skipped: each skipped transaction took more than {}", duration(skipped.limit))
    });
    format!("{}\n({from}{skipped})", trimmed(&table))
}

/// A row of the table of latencies; none if there are none.
fn percentiles(name: &str, latencies: &Censored<'_>) -> Option<Vec<String>> {
    let percentiles = Percentile::ALL.iter().filter_map(|percentile| latencies.percentile(*percentile));
    let values = std::iter::once(latencies.mean()?).chain(percentiles).map(|value| match value {
        Quantile::Is(latency) => milliseconds(latency),
        Quantile::Over(limit) => format!(">{}", milliseconds(limit)),
    });
    Some(std::iter::once(name.to_owned()).chain(values).collect())
}

/// Percentiles of scripts and commands, where there is less room.
const FEW: [Percentile; 4] = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];

fn few(latencies: &Latencies) -> Vec<String> {
    let percentiles = latencies.percentiles();
    FEW.map(|percentile| percentiles.map_or_else(|| "-".to_owned(), |all| milliseconds(all.get(percentile))))
        .into()
}

/// A line for each script.
fn scripts(plan: &Plan, outcome: &Outcome) -> String {
    let mut header = vec!["script", "succeeded", "tps"];
    header.extend(FEW.map(Percentile::name));
    header.push("failed");
    let mut table = new_table(&header);
    for (script, measured) in plan.scripts.iter().zip(&outcome.scripts) {
        let tps::Measured { counts, latency, .. } = &measured.measured;
        let seconds = outcome.elapsed.as_secs_f64();
        let tps = if seconds > 0.0 { counts.succeeded as f64 / seconds } else { 0.0 };
        let mut row = vec![script.name().to_owned(), grouped(counts.succeeded), rounded(tps)];
        row.extend(few(latency));
        row.push(grouped(counts.all_failed()));
        table.add_row(row);
    }
    align_right(&mut table, 1..header.len());
    format!("{}\n(milliseconds, of transactions that succeeded)", trimmed(&table))
}

/// A line for each command of a script.
fn commands(script: &Script, measured: &[MeasuredCommand]) -> String {
    let time = |command: &MeasuredCommand| {
        let mean = command.latency.mean().unwrap_or_default();
        mean.as_secs_f64() * command.latency.count() as f64
    };
    let total: f64 = measured.iter().map(time).sum();
    let has_errors = measured.iter().any(|command| command.failures + command.retries > 0);
    let mut header = vec!["line", script.name(), "time"];
    header.extend(FEW.map(Percentile::name));
    if has_errors {
        header.extend(["failures", "retries"]);
    }
    let mut table = new_table(&header);
    for (command, measured) in script.commands().iter().zip(measured) {
        let share = if total > 0.0 { percent(time(measured) / total) } else { "-".to_owned() };
        let mut row = vec![command.line().to_string(), shortened(command.text()), share];
        row.extend(few(&measured.latency));
        if has_errors {
            row.extend([measured.failures, measured.retries].map(grouped));
        }
        table.add_row(row);
    }
    align_right(&mut table, 0..1);
    align_right(&mut table, 2..header.len());
    format!("{}\n(milliseconds; time: share of the time of all commands)", trimmed(&table))
}

/// The beginning of the text, in one line.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= COMMAND_WIDTH {
        return text;
    }
    let begin: String = text.chars().take(COMMAND_WIDTH - 1).collect();
    format!("{begin}…")
}

/// Waits of the run's sessions, the most frequent first.
fn waits(trials: &[Measured]) -> Option<String> {
    let all: u64 = trials.iter().map(|trial| trial.watched.wait_samples).sum();
    let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
    for watched in trials.iter().map(|trial| &trial.watched) {
        for (wait, share) in &watched.waits {
            *shares.entry(wait).or_default() += share * watched.wait_samples as f64 / all as f64;
        }
    }
    let mut shares: Vec<(&str, f64)> = shares.into_iter().collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut table = new_table(&["state of the sessions", "share of samples"]);
    for (wait, share) in shares.into_iter().take(MOST_WAITS) {
        table.add_row([described(wait), percent(share)]);
    }
    align_right(&mut table, 1..2);
    (all > 0).then(|| trimmed(&table))
}

/// A wait event in words: `waiting for Lock:transactionid`.
fn described(wait: &str) -> String {
    match wait {
        "running on CPU" => wait.to_owned(),
        "Client:ClientRead" => "waiting for the client".to_owned(),
        wait => format!("waiting for {wait}"),
    }
}

/// The clients that were lost, grouped by reason.
pub(crate) fn lost(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<usize>)> = Vec::new();
    for lost in &outcome.lost {
        let at = lost.at.and_then(|(script, command)| {
            let script = plan.scripts.iter().nth(script)?;
            Some(format!("{}:{}: ", script.name(), script.commands().get(command)?.line()))
        });
        let why = format!("{}{}", at.unwrap_or_default(), lost.why);
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, clients)) => clients.push(lost.client),
            None => reasons.push((why, vec![lost.client])),
        }
    }
    let told = reasons.into_iter().map(|(why, clients)| match clients.as_slice() {
        [only] => format!("client {only} was lost: {why}"),
        [first, others @ ..] => format!("client {first} and {} more were lost: {why}", others.len()),
        [] => why,
    });
    told.collect()
}

/// Milliseconds with three digits at least.
pub(crate) fn milliseconds(duration: Duration) -> String {
    match duration.as_secs_f64() * 1e3 {
        number @ ..0.9995 => format!("{number:.3}"),
        number => rounded(number),
    }
}

/// `100 %`, `99.8 %`, `0.02 %`. A share below 1 is never shown as 100 %, and a share above 0 never as 0 %.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        number @ ..0.01 if number > 0.0 => "< 0.01 %".to_owned(),
        number @ ..9.95 => format!("{number:.2} %"),
        100.0 => "100 %".to_owned(),
        number => format!("{:.1} %", number.min(99.9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in
            [(0.0, "0.00"), (0.812, "0.81"), (8.123, "8.12"), (81.23, "81.2"), (8123.4, "8,123")]
        {
            assert_eq!(rounded(number), text);
        }
        assert_eq!(milliseconds(Duration::from_micros(118)), "0.118");
        assert_eq!(milliseconds(Duration::from_millis(1234)), "1,234");
        assert_eq!(duration(Duration::from_secs(10)), "10.0 s");
        assert_eq!(duration(Duration::from_mins(10)), "10.0 min");
    }

    #[test]
    fn a_share_is_all_or_nothing_only_if_it_is() {
        for (share, text) in [
            (0.0, "0 %"),
            (1e-6, "< 0.01 %"),
            (0.0002, "0.02 %"),
            (0.5, "50.0 %"),
            (0.9999, "99.9 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn a_command_is_shown_in_one_line() {
        assert_eq!(shortened("SELECT 1\n  FROM t;"), "SELECT 1 FROM t;");
        let long = shortened(&"x ".repeat(100));
        assert_eq!(long.chars().count(), COMMAND_WIDTH);
        assert!(long.ends_with('…'));
    }
}
