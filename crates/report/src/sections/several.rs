//! Several runs of one verb: drawn in one plot, compared, and over time.

use measure::compare::{Comparison, Options, Sides};
use measure::{Figure, Run, Verdict, judged_figures};

use super::latency;
use super::tps::{CONFIG, rates};
use super::{Section, Shown, dots};
use crate::document::{began, name, series};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Dot, Dots, Line, Lines, Plot, Table};
use crate::quantity::Quantity;

/// Points as x and y.
type Points = Vec<(f64, f64)>;

/// Most runs whose lines are drawn in one plot.
const MOST_LINES: usize = 8;
/// Most figures whose values are drawn for each run.
const MOST_FIGURES: usize = 40;

pub(super) fn shown(runs: &[&Run]) -> Shown {
    let names = names(runs);
    let mut sections = Vec::new();
    let sides = sides(runs);
    let comparison = sides.as_ref().map(|sides| Comparison::of(sides, &Options::default()));
    if let Some((sides, comparison)) = sides.as_ref().zip(comparison.as_ref()) {
        sections.push(compared(sides, comparison));
    }
    sections.extend(values(runs, &names));
    if runs[0].verb == "tps" && runs.iter().all(|run| !run.request["matrix"].is_object()) {
        sections.extend(over_time(runs, &names));
    }
    let result = match (&sides, &comparison) {
        (Some(sides), Some(comparison)) => verdicts(sides, comparison),
        _ => format!(
            "{} runs of {}, from {} to {}",
            runs.len(),
            runs[0].verb,
            began(runs[0]),
            began(runs[runs.len() - 1])
        ),
    };
    Shown { result, sections }
}

/// The runs' labels, with the start if several runs have the same.
fn names(runs: &[&Run]) -> Vec<String> {
    let of = |(at, run): (usize, &&Run)| {
        let is_shared = runs.iter().enumerate().any(|(other, one)| other != at && name(one) == name(run));
        if is_shared {
            format!("{} {}", run.label.as_deref().unwrap_or_default(), began(run)).trim().to_owned()
        } else {
            name(run)
        }
    };
    let named: Vec<String> = runs.iter().enumerate().map(of).collect();
    let is_double = |at: usize| named.iter().enumerate().any(|(other, one)| other != at && *one == named[at]);
    (0..named.len())
        .map(|at| if is_double(at) { format!("{} ({})", named[at], at + 1) } else { named[at].clone() })
        .collect()
}

/// The runs as two sides: those of two labels, or two single runs.
fn sides(runs: &[&Run]) -> Option<Sides> {
    let mut labels: Vec<Option<&String>> = Vec::new();
    for run in runs {
        if !labels.contains(&run.label.as_ref()) {
            labels.push(run.label.as_ref());
        }
    }
    let of = |side: usize| -> Vec<Run> {
        let on = |(at, run): (usize, &&Run)| {
            let is_there = if runs.len() == 2 { at == side } else { run.label.as_ref() == labels[side] };
            is_there.then(|| (*run).clone())
        };
        runs.iter().enumerate().filter_map(on).collect()
    };
    if runs.len() == 2 || labels.len() == 2 { Sides::new(of(0), of(1)) } else { None }
}

fn side(runs: &[Run]) -> String {
    let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    format!("{} ({count})", name(&runs[0]))
}

fn verdicts(sides: &Sides, comparison: &Comparison) -> String {
    let said: Vec<String> = comparison
        .judged()
        .map(|(one, verdict)| format!("{} {verdict} ({})", one.figure.full_name(), change(one.ratio)))
        .collect();
    let said = if said.is_empty() { "no figure is judged".to_owned() } else { said.join("; ") };
    let needed =
        comparison.needed.map_or_else(String::new, |needed| format!("; a verdict needs at least {needed}"));
    format!("{} beside {}: {said}{needed}", side(sides.candidate()), side(sides.baseline()))
}

fn change(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

fn compared(sides: &Sides, comparison: &Comparison) -> Section {
    let row = |(one, verdict): (&measure::compare::Compared, Verdict)| Dot {
        name: one.figure.full_name(),
        value: one.ratio - 1.0,
        interval: one.interval.map(|interval| (interval.low - 1.0, interval.high - 1.0)),
        observed: Vec::new(),
        remark: verdict.to_string(),
    };
    let rows: Vec<Dot> = comparison.judged().map(row).collect();
    let mut table = Table::new(&["figure", "baseline", "candidate", "change", "95 % interval", "verdict"]);
    for one in &comparison.compared {
        let quantity = Quantity::of_figure(one.figure.unit);
        let interval = one.interval.map_or_else(
            || "–".to_owned(),
            |found| format!("{} to {}", change(found.low), change(found.high)),
        );
        let verdict = one.verdict.map_or_else(|| "–".to_owned(), |verdict| verdict.to_string());
        table.add([
            one.figure.full_name(),
            quantity.text(one.typical[0]),
            quantity.text(one.typical[1]),
            change(one.ratio),
            interval,
            verdict,
        ]);
    }
    let mut differences = Table::new(&["differs", "baseline", "candidate", ""]);
    for one in &comparison.differences {
        let hinders = if one.hinders { "may explain the results" } else { "" };
        differences.add([one.what.clone(), one.baseline.clone(), one.candidate.clone(), hinders.to_owned()]);
    }
    let hinders = comparison.hindrances().count();
    let mut text = vec![format!(
        "The baseline is {}, the candidate {}.",
        side(sides.baseline()),
        side(sides.candidate())
    )];
    if hinders > 0 {
        text.push(format!(
            "Beware: {hinders} differences between the runs may explain the results; they are listed below."
        ));
    }
    if sides.is_apart() {
        text.push(
            "One side ran before the other: a change in the machine's speed looks like a difference."
                .to_owned(),
        );
    }
    let caption = format!(
        "Change of each judged figure with its 95 % interval; changes within the band, below 5 %, do not matter. {}.",
        verdicts(sides, comparison)
    );
    let chart = Dots {
        axis: Axis::new("change", Quantity::Share, Spread::Linear),
        rows,
        reference: Some(0.0),
        band: Some((-0.05, 0.05, "changes that do not matter".to_owned())),
    };
    let is_judged = comparison.judged().next().is_some();
    let plots = if is_judged {
        vec![Plot::new("changes", "Changes", caption, Chart::Dots(chart))]
    } else {
        Vec::new()
    };
    let mut tables = vec![("All figures".to_owned(), table)];
    if !differences.rows.is_empty() {
        tables.push(("Differences between the runs".to_owned(), differences));
    }
    Section { title: "Comparison".to_owned(), text, plots, tables }
}

/// History: the judged figures of each run in order of start. It has no verdict.
fn values(runs: &[&Run], names: &[String]) -> Option<Section> {
    let mut figures: Vec<Figure> = Vec::new();
    let of_each: Vec<Vec<(Figure, f64)>> = runs.iter().map(|run| judged_figures(run, &[])).collect();
    for (figure, _) in of_each.iter().flatten() {
        if !figures.contains(figure) {
            figures.push(figure.clone());
        }
    }
    let plot = |(number, figure): (usize, &Figure)| {
        let quantity = Quantity::of_figure(figure.unit);
        let row = |(run, name): (&Vec<(Figure, f64)>, &String)| {
            let value = run.iter().find(|(known, _)| known == figure)?.1;
            Some(Dot {
                name: name.clone(),
                value,
                interval: None,
                observed: Vec::new(),
                remark: String::new(),
            })
        };
        let rows: Vec<Dot> = of_each.iter().zip(names).filter_map(row).collect();
        let [first, .., last] = rows.as_slice() else { return None };
        let caption = format!(
            "{} of each run, the oldest first: {} in {}, {} in {}. No verdict is drawn.",
            figure.full_name(),
            quantity.text(first.value),
            first.name,
            quantity.text(last.value),
            last.name
        );
        Some(Plot::new(
            &format!("figure-{}", number + 1),
            &figure.full_name(),
            caption,
            dots(&figure.name, quantity, rows),
        ))
    };
    let plots: Vec<Plot> = figures.iter().take(MOST_FIGURES).enumerate().filter_map(plot).collect();
    (!plots.is_empty()).then(|| Section::new("Each run", plots))
}

fn over_time(runs: &[&Run], names: &[String]) -> Vec<Section> {
    let shown = || runs.iter().zip(names).take(MOST_LINES);
    let lines = |of: &dyn Fn(&Run) -> Option<Points>| {
        shown()
            .filter_map(|(run, name)| Some(Line { name: name.clone(), points: of(run)? }))
            .collect::<Vec<Line>>()
    };
    let first = |run: &Run, name: &str| {
        run.trials
            .iter()
            .find(|trial| trial.config == CONFIG)
            .and_then(|trial| series(trial, name))
            .map(<[_]>::to_vec)
    };
    let left_out = runs.len().saturating_sub(MOST_LINES);
    let left_out = if left_out > 0 { format!(" {left_out} more runs are not drawn.") } else { String::new() };
    let x = || Axis::new("time", Quantity::Elapsed, Spread::Linear);
    let tps = Lines {
        x: x(),
        y: Axis::new("transactions per second", Quantity::PerSecond, Spread::Linear),
        series: lines(&|run| first(run, "succeeded").map(|points| rates(&points))),
        spans: Vec::new(),
    };
    let p99 = Lines {
        x: x(),
        y: Axis::new("latency, p99", Quantity::Seconds, Spread::Log),
        series: lines(&|run| first(run, "latency-p99")),
        spans: Vec::new(),
    };
    let mut plots = Vec::new();
    if !tps.series.is_empty() {
        plots.push(Plot::new(
            "tps",
            "Transactions per second over time",
            format!("The first trial of each run.{left_out}"),
            Chart::Lines(tps),
        ));
    }
    if !p99.series.is_empty() {
        plots.push(Plot::new(
            "p99",
            "p99 over time",
            format!("The first trial of each run.{left_out}"),
            Chart::Lines(p99),
        ));
    }
    plots.extend(latency::plot(lines(&|run| {
        latency::merged(run, None, "latency").map(|found| latency::percentiles(&found))
    })));
    if plots.is_empty() { Vec::new() } else { vec![Section::new("On top of each other", plots)] }
}
