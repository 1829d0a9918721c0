//! Several runs of one verb: drawn in one plot, compared, and over time.

use measure::compare::{Compared, Comparison, Options, Sides, differences};
use measure::{Better, Figure, Run, Verdict};

use super::tps::CONFIG;
use super::{Section, Shown, history, together};
use crate::document::{began, name, release};
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Dot, Dots, Plot, Table};
use crate::quantity::{Quantity, change};

/// Most figures whose verdicts stand in one sentence.
const TOLD: usize = 3;

pub(super) fn shown(runs: &[&Run]) -> Shown {
    let names = names(runs);
    let mut sections = Vec::new();
    let sides = sides(runs);
    let comparison = sides.as_ref().map(|sides| Comparison::of(sides, &Options::default()));
    if let Some((sides, comparison)) = sides.as_ref().zip(comparison.as_ref()) {
        sections.push(compared(sides, comparison));
    }
    sections.extend(together::section(runs, &names));
    sections.extend(history::section(runs, &names, sides.is_some()));
    if sides.is_none() {
        sections.extend(differing(runs, &names));
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

/// Labels, with the start where several runs share one; and PostgreSQL's release where it differs.
fn names(runs: &[&Run]) -> Vec<String> {
    let is_one_release = runs.iter().all(|run| release(run) == release(runs[0]));
    let with_release = |run: &Run, name: String| {
        if is_one_release { name } else { format!("{name}, {}", release(run)) }
    };
    let of = |(at, run): (usize, &&Run)| {
        let is_shared = runs.iter().enumerate().any(|(other, one)| other != at && name(one) == name(run));
        if is_shared {
            format!("{} {}", run.label.as_deref().unwrap_or_default(), began(run)).trim().to_owned()
        } else {
            name(run)
        }
    };
    let named: Vec<String> =
        runs.iter().enumerate().map(|(at, run)| with_release(run, of((at, run)))).collect();
    let is_double = |at: usize| named.iter().enumerate().any(|(other, one)| other != at && *one == named[at]);
    (0..named.len())
        .map(|at| if is_double(at) { format!("{} ({})", named[at], at + 1) } else { named[at].clone() })
        .collect()
}

/// The name of a figure. The only configuration of a run of `tps` is called like the verb, and says nothing.
pub(super) fn figure_name(figure: &Figure) -> String {
    if figure.config == CONFIG { figure.name.clone() } else { figure.full_name() }
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
    let judged: Vec<(&Compared, Verdict)> = comparison.judged().collect();
    let said = match judged.len() {
        0 => "no figure is judged".to_owned(),
        1..=TOLD => judged
            .iter()
            .map(|(one, verdict)| format!("{} {verdict} ({})", figure_name(&one.figure), change(one.ratio)))
            .collect::<Vec<_>>()
            .join("; "),
        all => format!("of {all} figures, {}", counted(&judged)),
    };
    let needed =
        comparison.needed.map_or_else(String::new, |needed| format!("; a verdict needs at least {needed}"));
    format!("{} beside {}: {said}{needed}", side(sides.candidate()), side(sides.baseline()))
}

/// The number of figures with each verdict, and the largest changes of those that regressed or improved.
fn counted(judged: &[(&Compared, Verdict)]) -> String {
    let of = |(verdict, said): (Verdict, &str)| {
        let mut found: Vec<&Compared> =
            judged.iter().filter(|(_, one)| *one == verdict).map(|(one, _)| *one).collect();
        let count = found.len();
        if count == 0 {
            return None;
        }
        if !matches!(verdict, Verdict::Regressed | Verdict::Improved) {
            return Some(format!("{count} {said}"));
        }
        found.sort_by(|one, other| other.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
        let mut named: Vec<String> = found
            .iter()
            .take(TOLD)
            .map(|one| format!("{} {}", figure_name(&one.figure), change(one.ratio)))
            .collect();
        if count > TOLD {
            named.push("…".to_owned());
        }
        Some(format!("{count} {said} ({})", named.join(", ")))
    };
    let groups = [
        (Verdict::Regressed, "regressed"),
        (Verdict::Improved, "improved"),
        (Verdict::NoChange, "without change"),
        (Verdict::Inconclusive, "inconclusive"),
    ];
    groups.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn compared(sides: &Sides, comparison: &Comparison) -> Section {
    let row = |(one, verdict): (&Compared, Verdict)| Dot {
        name: format!(
            "{} ({} is better)",
            figure_name(&one.figure),
            if one.figure.better() == Better::More { "more" } else { "less" }
        ),
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
            figure_name(&one.figure),
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
        text.push(match hinders {
            1 => "A difference between the runs may explain the results; it is listed below.".to_owned(),
            _ => format!(
                "{hinders} differences between the runs may explain the results; they are listed below."
            ),
        });
    }
    if sides.is_apart() {
        text.push(
            "One side ran before the other: a change in the machine's speed looks like a difference."
                .to_owned(),
        );
    }
    let is_known = rows.iter().any(|row| row.interval.is_some());
    let intervals = if is_known {
        "with its 95 % interval"
    } else {
        "as a hollow dot: its interval is not known, so a change outside of the band may be chance"
    };
    let caption = format!(
        "Change of each judged figure {intervals}. Changes within the band, below 5 %, do not matter. {}.",
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
    Section { title: "Comparison".to_owned(), text, plots, tables, ..Section::default() }
}

/// Differences of each run from the oldest: the list that a comparison has.
fn differing(runs: &[&Run], names: &[String]) -> Option<Section> {
    let mut table = Table::new(&["differs", "run", "value", &names[0], ""]);
    for (run, name) in runs.iter().zip(names).skip(1) {
        for one in differences(runs[0], run) {
            let hinders = if one.hinders { "may explain the results" } else { "" };
            table.add([one.what, name.clone(), one.candidate, one.baseline, hinders.to_owned()]);
        }
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "Differences".to_owned(),
        text: vec![format!("Each run beside the oldest, {}.", names[0])],
        tables: vec![("Differences between the runs".to_owned(), table)],
        ..Section::default()
    })
}
