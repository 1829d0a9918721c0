//! A comparison for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use measure::compare::{Compared, Comparison, Sides};
use measure::{FigureUnit, Run, Verdict, human};

use crate::app::plain::plain;
use crate::app::table::trimmed;
use crate::cmd::compare::args::JudgeArgs;
use crate::cmd::compare::effects;

/// Verbs of the commands that pgrig ab runs in turn.
const IN_TURN: [&str; 5] = ["fill", "blockio", "micro", "tps", "testdb"];

/// Titles of the columns.
pub(crate) const HEADER: [&str; 6] =
    ["figure", "baseline", "candidate", "change", "95 % interval", "verdict"];

/// A sentence that is printed if one side ran before the other.
pub(crate) fn apart(sides: &Sides) -> String {
    let remedy = if runs_in_turn(sides) {
        "compare with pgrig ab, which alternates the two sides"
    } else {
        "make the runs of the two sides in turn"
    };
    format!(
        "one side ran before the other: a change in the machine's speed looks like a difference. To avoid this, {remedy}"
    )
}

/// Whether pgrig ab makes such runs.
fn runs_in_turn(sides: &Sides) -> bool {
    IN_TURN.contains(&sides.baseline()[0].verb.as_str())
}

/// The sides, a line for each figure, and the verdict.
pub(crate) fn comparison(sides: &Sides, comparison: &Comparison, judge: &JudgeArgs) -> String {
    let mut text =
        format!("baseline   {}\ncandidate  {}\n\n", origin(sides.baseline()), origin(sides.candidate()));
    text += &figures(comparison);
    for line in effects::lines(sides, &effects::of(sides)) {
        let _ = write!(text, "\n{line}");
    }
    let _ = write!(text, "\n\n{}\n{}", footer(comparison, judge), conclusion(sides, comparison, &shown));
    text
}

/// The cells of a figure, under [`HEADER`].
pub(crate) fn row(one: &Compared, comparison: &Comparison) -> [String; 6] {
    let compared = &comparison.compared;
    let has_configs = compared.iter().any(|one| one.figure.config != compared[0].figure.config);
    let name = if has_configs { one.figure.full_name() } else { one.figure.name.clone() };
    [
        plain(&name).into_owned(),
        value(one, one.typical[0]),
        value(one, one.typical[1]),
        percent(one.ratio),
        one.interval.map_or_else(
            || "-".to_owned(),
            |interval| format!("{} to {}", percent(interval.low), percent(interval.high)),
        ),
        one.verdict.map_or_else(|| "-".to_owned(), |verdict| verdict.to_string()),
    ]
}

/// A line for each figure, judged ones first.
pub(crate) fn figures(comparison: &Comparison) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(HEADER);
    for one in &comparison.compared {
        table.add_row(row(one, comparison));
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trimmed(&table)
}

/// Number, verb, label, server and time of the runs of a side.
pub(crate) fn origin(runs: &[Run]) -> String {
    let (first, last) = (&runs[0], &runs[runs.len() - 1]);
    let release = first.environment.server.release();
    // Without parts of a second.
    let at =
        |run: &Run| run.started_at.split('.').next().unwrap_or_default().trim_end_matches('Z').to_owned();
    let times = if runs.len() == 1 { at(first) } else { format!("{} to {}", at(first), at(last)) };
    let runs = self::runs(runs.len());
    let label = first.label.as_ref().map_or_else(String::new, |label| format!(" \"{label}\""));
    plain(&format!("{runs} of {}{label}, {release}, {times} UTC", first.verb)).into_owned()
}

pub(crate) fn footer(comparison: &Comparison, judge: &JudgeArgs) -> String {
    let judged = comparison.judged().count();
    let threshold = percent(1.0 + judge.threshold);
    let threshold = threshold.trim_start_matches('+');
    let figures = match judged {
        1 => "1 figure is judged".to_owned(),
        _ => format!("{judged} figures are judged together"),
    };
    let several = if judged > 1 {
        "; so a figure can be inconclusive although its 95 % interval excludes 0"
    } else {
        ""
    };
    format!(
        "baseline and candidate: the medians of the two sides, scaled so that their ratio is the change\n{}\
         improved and regressed: a change of {threshold} or more; no change: an interval within ± {threshold}\n\
         {figures}; at most 5 of 100 such comparisons give a false verdict{several}",
        per_transaction(comparison)
    )
}

/// A line that names the figures of one transaction; empty if there are none.
fn per_transaction(comparison: &Comparison) -> String {
    let units =
        [FigureUnit::SecondsPerTransaction, FigureUnit::BytesPerTransaction, FigureUnit::PerTransaction];
    let mut names: Vec<&str> = Vec::new();
    for figure in comparison.compared.iter().map(|one| &one.figure).filter(|one| units.contains(&one.unit)) {
        let name = match figure.name.split_once('-') {
            Some(("disk", _)) => "disk-…",
            Some(("wait", _)) => "wait-…",
            _ => figure.name.as_str(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let Some((last, first)) = names.split_last() else { return String::new() };
    let listed =
        if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) };
    let verb = if first.is_empty() && !last.ends_with('…') { "is" } else { "are" };
    let samples =
        if names.contains(&"wait-…") { "; wait-… counts samples of sessions in that state" } else { "" };
    format!("{listed} {verb} per transaction{samples}\n")
}

/// The name of a figure as people read it.
pub(crate) fn shown(name: &str) -> String {
    plain(name).into_owned()
}

/// The last line: all verdicts, or why there are none. `shown` converts names of figures for the
/// format.
pub(crate) fn conclusion(sides: &Sides, comparison: &Comparison, shown: &dyn Fn(&str) -> String) -> String {
    let unmeasured = match comparison.unmeasured.as_slice() {
        [] => String::new(),
        figures => {
            let names: Vec<String> = figures.iter().map(|figure| shown(&figure.full_name())).collect();
            format!("; not measurable in some runs, and not judged: {}", names.join(", "))
        }
    };
    if let Some(needed) = comparison.needed.filter(|_| comparison.judged().next().is_some()) {
        let there = match (sides.is_paired(), sides.baseline().len(), sides.candidate().len()) {
            (true, 1, _) => "there is only 1 round".to_owned(),
            (true, rounds, _) => format!("there are only {rounds} rounds"),
            (false, 1, 1) => "there is only 1 run on each side".to_owned(),
            (false, baseline, candidate) => {
                format!(
                    "there are only {} of the baseline and {} of the candidate",
                    runs(baseline),
                    runs(candidate)
                )
            }
        };
        let remedy =
            if sides.is_paired() || !runs_in_turn(sides) { "" } else { ", for example with pgrig ab" };
        return format!("verdict: inconclusive, because {there}; make at least {needed}{remedy}{unmeasured}");
    }
    let judged: Vec<(&Compared, Verdict)> = comparison.judged().collect();
    let all = [Verdict::Regressed, Verdict::Improved, Verdict::NoChange, Verdict::Inconclusive];
    let parts = all.into_iter().filter_map(|verdict| {
        let named: Vec<String> = judged
            .iter()
            .filter(|(_, found)| *found == verdict)
            .map(|(one, _)| short(one, &judged, shown))
            .collect();
        (!named.is_empty()).then(|| format!("{verdict}: {}", named.join(", ")))
    });
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [] => format!("verdict: none: no figure is judged; give figures with --figures{unmeasured}"),
        parts => format!("verdict: {}{unmeasured}", parts.join("; ")),
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// The figure's name and its change; with its configuration, if several figures have the same name.
fn short(one: &Compared, judged: &[(&Compared, Verdict)], shown: &dyn Fn(&str) -> String) -> String {
    let is_alone = judged.iter().all(|(other, _)| other.figure.config == one.figure.config);
    let name = if is_alone { one.figure.name.clone() } else { one.figure.full_name() };
    format!("{} ({})", shown(&name), percent(one.ratio))
}

/// One figure in a sentence.
pub(crate) fn in_words(one: &Compared, verdict: Verdict) -> String {
    let [baseline, candidate] = one.typical;
    format!(
        "{} {verdict}: {} instead of {} ({})",
        plain(&one.figure.full_name()),
        value(one, candidate),
        value(one, baseline),
        percent(one.ratio)
    )
}

fn value(one: &Compared, value: f64) -> String {
    human::figure(one.figure.unit, value)
}

/// Difference of a ratio from 1, as text.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}
