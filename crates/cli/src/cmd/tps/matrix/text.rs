//! Plan and results of a matrix for people.

use std::fmt::Write;

use comfy_table::Table;
use measure::human::{bytes, counted};
use measure::{Censored, Environment, Latencies, Median, Percentile, Quantile, Run, Sample, Skipped, Trial};
use server::settings::Effect;
use tps::matrix::{Cell, MatrixPlan};
use tps::{Outcome, Request};

use crate::app::numbers::{duration, interval, rounded};
use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::tps::text::length;

/// The plan of a matrix, as text.
pub(crate) fn plan(plan: &MatrixPlan, environment: &Environment) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    line("server", format!("{}, {}", environment.server.release(), environment.transport));
    line("database", format!("{}, as role {}", environment.database, environment.role));
    let scripts: Vec<&str> = plan.base.sources.iter().map(script::Source::name).collect();
    line("scripts", scripts.join(", "));
    for (number, cell) in plan.cells.iter().enumerate() {
        line(if number == 0 { "cells" } else { "" }, cell.name());
    }
    let (clients, protocol) = (plan.base.clients, plan.base.protocol);
    if plan.cells.iter().all(|cell| cell.clients.is_none()) {
        line("clients", clients.to_string());
    }
    if plan.cells.iter().all(|cell| cell.protocol.is_none()) {
        line("protocol", protocol.name().to_owned());
    }
    let rounds = plan.rounds.len();
    line(
        "trials",
        format!(
            "{}: {rounds} of each of {} cells, in {} of balanced order (seed {})",
            plan.trials(),
            plan.cells.len(),
            counted(rounds as u64, "round"),
            plan.base.seed
        ),
    );
    let total = plan.duration().map_or(String::new(), |total| {
        format!("; about {} in total, plus the time between trials", duration(total))
    });
    line("length", format!("{} each{total}", length(&plan.base)));
    for (effect, how) in [
        (Effect::Session, "in pgrig's own sessions only"),
        (Effect::Reload, "of the whole server, with ALTER SYSTEM; restored afterwards"),
        (Effect::Restart, "of the whole server, with a restart; restored afterwards"),
    ] {
        let names = plan.varied(effect);
        if !names.is_empty() {
            line("changes", format!("{} {how}", names.join(", ")));
        }
    }
    if !plan.looked.tables.is_empty() {
        let names: Vec<&str> = plan.looked.tables.iter().map(|found| found.table.name.as_str()).collect();
        line(
            "unlogged",
            format!(
                "{}; each switch between logged and unlogged rewrites {}",
                names.join(", "),
                bytes(plan.rewritten())
            ),
        );
    }
    format!("plan\n{}", text.trim_end())
}

/// The results of one trial.
pub(crate) fn trial(request: &Request, outcome: &Outcome) -> String {
    let latency = Censored::new(&outcome.all.latency, request.skipped(outcome.all.counts.skipped));
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(|percentile| shown(&latency, percentile));
    format!("  {} tps, p50 {p50}, p99 {p99}", rounded(outcome.tps()))
}

/// The article's table, and one line for each cell.
pub(crate) fn results(plan: &MatrixPlan, run: &Run) -> String {
    let measured: Vec<Measured<'_>> = plan.cells.iter().map(|cell| Measured::of(cell, plan, run)).collect();
    let crossed = crossed(plan, &measured);
    let tps = measured.iter().find_map(|measured| measured.tps);
    let interval = interval(tps.map(|tps| tps.interval.kind));
    let times = measured.iter().any(|measured| measured.times.is_some());
    let times =
        if times { format!("; ratio: to {} in the same round", reference_name(plan)) } else { String::new() };
    format!(
        "{}\n\n{}\n\n{}; medians of trials, in parentheses {interval}{times}; latencies of all trials together",
        trimmed(&crossed),
        trimmed(&cells(&measured)),
        run.environment.server.release(),
    )
}

/// The measurements of a cell.
struct Measured<'a> {
    cell: &'a Cell,
    tps: Option<Median>,
    /// Ratio to the cell that it is compared with, round by round.
    times: Option<Median>,
    latency: Latencies,
    skipped: Option<Skipped>,
}

impl<'a> Measured<'a> {
    fn of(cell: &'a Cell, plan: &MatrixPlan, run: &Run) -> Self {
        let own = tps(cell, run);
        let reference = reference(cell, plan).filter(|reference| *reference != cell);
        let pairs: Option<Vec<(f64, f64)>> =
            reference.map(|reference| tps(reference, run).into_iter().zip(own.iter().copied()).collect());
        let mut latency = Latencies::default();
        for histogram in trials(cell, run).flat_map(|trial| &trial.histograms) {
            if histogram.name == "latency" {
                latency += &histogram.latencies;
            }
        }
        let skipped = trials(cell, run).filter_map(|trial| trial.value("skipped")).sum::<f64>();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let skipped = plan.base.skipped(skipped.round() as u64);
        Self {
            cell,
            skipped,
            tps: Sample::new(own).map(|sample| Median::of(&sample)),
            times: pairs.and_then(|pairs| Median::of_ratio(&pairs)),
            latency,
        }
    }
}

/// A cell's trials, round by round.
fn trials<'r>(cell: &Cell, run: &'r Run) -> impl Iterator<Item = &'r Trial> {
    let name = cell.name();
    run.trials.iter().filter(move |trial| trial.config == name)
}

fn tps(cell: &Cell, run: &Run) -> Vec<f64> {
    trials(cell, run).filter_map(|trial| Some(trial.value("succeeded")? / trial.value("elapsed")?)).collect()
}

/// The cell that a cell is compared with: the same one with normal durability, or in the first row.
fn reference<'p>(cell: &Cell, plan: &'p MatrixPlan) -> Option<&'p Cell> {
    let normal = cell.normal();
    let find = |wanted: &Cell| plan.cells.iter().find(|cell| *cell == wanted);
    find(&normal).or_else(|| {
        let first = plan.cells.first()?.row();
        plan.cells.iter().find(|other| other.row() == first && other.clients == cell.clients)
    })
}

fn reference_name(plan: &MatrixPlan) -> String {
    let normal = plan.cells.first().map(Cell::normal);
    match normal.filter(|normal| plan.cells.contains(normal)) {
        Some(_) => "normal".to_owned(),
        None => {
            plan.cells.first().map(Cell::row).filter(|row| !row.is_empty()).unwrap_or("itself".to_owned())
        }
    }
}

/// A row for each combination of the other axes, a column for each number of clients.
fn crossed(plan: &MatrixPlan, measured: &[Measured<'_>]) -> Table {
    let clients = |cell: &Cell| cell.clients.unwrap_or(plan.base.clients);
    let mut columns: Vec<usize> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    for cell in &plan.cells {
        if !columns.contains(&clients(cell)) {
            columns.push(clients(cell));
        }
        if !rows.contains(&cell.row()) {
            rows.push(cell.row());
        }
    }
    let plural = |number: &usize| format!("{number} {}", if *number == 1 { "client" } else { "clients" });
    let header: Vec<String> = columns.iter().map(plural).collect();
    let header: Vec<&str> = std::iter::once("tps").chain(header.iter().map(String::as_str)).collect();
    let mut table = new_table(&header);
    for row in rows {
        let of = |column: &usize| {
            let found = measured.iter().find(|m| m.cell.row() == row && clients(m.cell) == *column);
            found.map_or(String::new(), summary)
        };
        let summaries: Vec<String> = columns.iter().map(of).collect();
        let label = if row.is_empty() { "all".to_owned() } else { row.clone() };
        table.add_row(std::iter::once(label).chain(summaries));
    }
    align_right(&mut table, 1..columns.len() + 1);
    table
}

/// `8,123 (7,900–8,300) ×5.21`.
fn summary(measured: &Measured<'_>) -> String {
    let Some(tps) = measured.tps else { return "-".to_owned() };
    let times = measured.times.map_or(String::new(), |times| format!(" ×{:.2}", times.median));
    format!("{} {}{times}", rounded(tps.median), between(&tps, rounded))
}

/// `(7,900–8,300)`.
fn between(estimate: &Median, shown: impl Fn(f64) -> String) -> String {
    format!("({}–{})", shown(estimate.interval.low), shown(estimate.interval.high))
}

/// A line for each cell, with its latencies.
fn cells(measured: &[Measured<'_>]) -> Table {
    let mut table = new_table(&["cell", "trials", "tps", "ratio", "", "p50", "p95", "p99"]);
    let number = |number: f64| format!("{number:.2}");
    for m in measured {
        let latency = Censored::new(&m.latency, m.skipped);
        let at = |percentile| shown(&latency, percentile);
        table.add_row([
            m.cell.name(),
            m.tps.map_or(0, |tps| tps.trials).to_string(),
            m.tps.map_or("-".to_owned(), |tps| rounded(tps.median)),
            m.times.map_or(String::new(), |times| number(times.median)),
            m.times.map_or(String::new(), |times| between(&times, number)),
            at(Percentile::P50),
            at(Percentile::P95),
            at(Percentile::P99),
        ]);
    }
    align_right(&mut table, 1..8);
    table
}

fn shown(latency: &Censored<'_>, percentile: Percentile) -> String {
    latency.percentile(percentile).map_or("-".to_owned(), Quantile::shown)
}
