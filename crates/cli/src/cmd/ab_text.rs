//! `pgrig ab` as people read it.

use std::fmt::Write;
use std::time::Duration;

use indicatif::HumanDuration;
use measure::compare::{Comparison, Looks, Sides};
use measure::{Figure, Run, judged_figures};

use super::ab::Arm;
use super::compare_text::{conclusion, figure_value, figures, footer};
use crate::args::{AbArgs, JudgeArgs};

/// What will run.
pub(super) fn plan(arms: &[Arm], arguments: &AbArgs, looks: &Looks) -> String {
    let mut text = "plan\n".to_owned();
    for arm in arms {
        let _ = writeln!(text, "  {}        {}", arm.letter, arm.shown);
    }
    let warm_up = if arguments.no_warm_up { "" } else { " after one that warms up" };
    let _ = write!(text, "  rounds   {} in balanced random order{warm_up}", arguments.rounds);
    let early: Vec<String> =
        looks.all().iter().rev().skip(1).rev().map(|look| look.round.to_string()).collect();
    if !early.is_empty() {
        let _ =
            write!(text, "\n  looks    after round {}: stops if all judged figures differ", early.join(", "));
    }
    text + "\n"
}

/// `round 3 of 10, 2 min left`.
pub(super) fn title(number: usize, rounds: usize, left: f64) -> String {
    let width = rounds.to_string().len();
    if number == rounds {
        format!("round {number:width$} of {rounds}")
    } else {
        format!("round {number:width$} of {rounds}, {} left", HumanDuration(Duration::from_secs_f64(left)))
    }
}

/// The first judged figure of each arm.
pub(super) fn round(title: &str, runs: &[Run], arguments: &AbArgs) -> String {
    let first = |run: &Run| judged_figures(run, &arguments.judge.figures).into_iter().next();
    let shown = |figure: &Figure, value: f64| figure_value(figure.unit, value);
    let name = first(&runs[0]).map_or_else(String::new, |(figure, _)| figure.name);
    let values: Vec<String> = runs
        .iter()
        .zip('a'..='z')
        .filter_map(|(run, letter)| {
            first(run).map(|(figure, value)| format!("{letter} {}", shown(&figure, value)))
        })
        .collect();
    format!("{title:<28} {name} {}", values.join("   "))
}

/// One command beside the first.
pub(super) fn result(
    baseline: &Arm,
    candidate: &Arm,
    sides: &Sides,
    comparison: &Comparison,
    judge: &JudgeArgs,
) -> String {
    let rounds = sides.baseline().len();
    let mut text = format!("\nbaseline   {}\ncandidate  {}\n\n", baseline.shown, candidate.shown);
    text += &figures(comparison);
    if !comparison.differences.is_empty() {
        text += "\n\nthe runs differ in";
        for difference in &comparison.differences {
            let _ = write!(text, "\n  {difference}");
        }
    }
    let _ = write!(
        text,
        "\n\n{rounds} paired rounds\n{}\n{}",
        footer(comparison, judge),
        conclusion(sides, comparison)
    );
    text
}

/// How to compare the same runs again.
pub(super) fn again(labels: &[&str]) -> String {
    let commands = labels[1..]
        .iter()
        .map(|label| format!("the same runs again: pgrig compare --paired --anyway {} {label}", labels[0]));
    commands.collect::<Vec<_>>().join("\n")
}
