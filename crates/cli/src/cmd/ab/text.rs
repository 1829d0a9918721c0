//! Output of `pgrig ab` for people.

use std::fmt::Write;
use std::time::Duration;

use indicatif::HumanDuration;
use measure::compare::{Comparison, Difference, Looks, Options, Sides};
use measure::{Figure, Run, human, judged_figures};
use server::quote::shell_word;

use crate::app::plain::plain;
use crate::cmd::ab::Arm;
use crate::cmd::ab::args::AbArgs;
use crate::cmd::compare::args::JudgeArgs;
use crate::cmd::compare::text::{conclusion, figures, footer, shown};

/// Most differences that are shown; further ones are only counted.
const MOST_DIFFERENCES: usize = 12;
/// Longest value that is not cut, characters.
const MOST_CHARACTERS: usize = 48;

/// The plan: commands, rounds and looks.
pub(crate) fn plan(arms: &[Arm], arguments: &AbArgs, looks: &Looks) -> String {
    let mut text = "plan\n".to_owned();
    for arm in arms {
        let _ = writeln!(text, "  {}        {}", arm.letter, arm.shown);
    }
    let warm_up = if arguments.no_warm_up { "" } else { " after a warm-up round" };
    let _ = write!(text, "  rounds   {} in balanced random order{warm_up}", arguments.rounds);
    let early: Vec<String> =
        looks.all().iter().rev().skip(1).rev().map(|look| look.round.to_string()).collect();
    if !early.is_empty() {
        let _ = write!(text, "\n  stop     after round {}, if all judged figures differ", early.join(", "));
    }
    text + "\n"
}

/// `round 3 of 10, 2 min left`.
pub(crate) fn title(number: usize, rounds: usize, left: f64) -> String {
    let width = rounds.to_string().len();
    if number == rounds {
        format!("round {number:width$} of {rounds}")
    } else {
        format!("round {number:width$} of {rounds}, {} left", HumanDuration(Duration::from_secs_f64(left)))
    }
}

/// The first judged figure of each arm.
pub(crate) fn round(title: &str, runs: &[Run], arguments: &AbArgs) -> String {
    let first = |run: &Run| judged_figures(run, &arguments.judge.figures).into_iter().next();
    let shown = |figure: &Figure, value: f64| human::figure(figure.unit, value);
    let name = first(&runs[0]).map_or_else(String::new, |(figure, _)| {
        let judged = judged_figures(&runs[0], &arguments.judge.figures);
        let is_alone = judged.iter().all(|(other, _)| other.config == figure.config);
        if is_alone { figure.name } else { figure.full_name() }
    });
    let values: Vec<String> = runs
        .iter()
        .zip('a'..='z')
        .filter_map(|(run, letter)| {
            first(run).map(|(figure, value)| format!("{letter} {}", shown(&figure, value)))
        })
        .collect();
    format!("{title:<32} {name} {}", values.join("   "))
}

/// The comparison of a command with the first one.
pub(crate) fn result(
    baseline: &Arm,
    candidate: &Arm,
    sides: &Sides,
    comparison: &Comparison,
    judge: &JudgeArgs,
) -> String {
    let rounds = sides.baseline().len();
    let mut text = format!("\nbaseline   {}\ncandidate  {}\n\n", baseline.shown, candidate.shown);
    text += &figures(comparison);
    text += &differences(comparison);
    let _ = write!(
        text,
        "\n\n{}\n{}\n{}",
        if rounds == 1 { "1 paired round".to_owned() } else { format!("{rounds} paired rounds") },
        footer(comparison, judge),
        conclusion(sides, comparison, &shown)
    );
    text
}

/// Differences between the commands. Differences of plans and between rounds are only in --json.
fn differences(comparison: &Comparison) -> String {
    let is_told = |difference: &&Difference| {
        !difference.what.starts_with("plan.") && !difference.what.contains(" within the ")
    };
    let told: Vec<&Difference> = comparison.differences.iter().filter(is_told).collect();
    if told.is_empty() {
        return String::new();
    }
    let lines = told.iter().take(MOST_DIFFERENCES).map(|difference| {
        let Difference { what, baseline, candidate, .. } = difference;
        format!("\n  {what}: {} → {}", short(baseline), short(candidate))
    });
    let more = match told.len().saturating_sub(MOST_DIFFERENCES) {
        0 => String::new(),
        more => format!("\n  and {more} more; --json lists all"),
    };
    format!("\n\nthe commands differ in{}{more}", lines.collect::<String>())
}

fn short(text: &str) -> String {
    if text.chars().count() <= MOST_CHARACTERS {
        return plain(text).into_owned();
    }
    let kept: String = text.chars().take(MOST_CHARACTERS - 1).collect();
    format!("{}…", plain(&kept))
}

/// A message that a look, or all rounds, are too few for a verdict.
pub(crate) fn too_few(round: usize, rounds: usize, figures: usize, needed: usize) -> String {
    let figures = if figures == 1 { "1 figure".to_owned() } else { format!("{figures} figures") };
    if round == rounds {
        let rounds = if rounds == 1 { "1 round is".to_owned() } else { format!("{rounds} rounds are") };
        format!("{rounds} too few for a verdict on {figures}: give --rounds {needed} or more")
    } else {
        format!(
            "pgrig cannot stop after round {round}: a verdict on {figures} needs at least {needed} rounds"
        )
    }
}

/// A message on the rounds that were saved before an error or an interruption.
pub(crate) fn saved(complete: usize, rounds: usize, labels: &[&str]) -> String {
    format!("{complete} of {rounds} rounds are complete; their runs have the labels {}", labels.join(", "))
}

/// Notes of the runs, each kind once: notes that differ only in numbers are of the same kind.
pub(crate) fn notes(runs: &[Vec<Run>]) -> Vec<String> {
    let count = runs.iter().map(Vec::len).sum::<usize>();
    let kind =
        |text: &str| text.chars().filter(|c| !c.is_ascii_digit() && !".,".contains(*c)).collect::<String>();
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for note in runs.iter().flatten().flat_map(|run| &run.notes) {
        let kind = kind(&note.text);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, _, times)) => *times += 1,
            None => kinds.push((kind, &note.text, 1)),
        }
    }
    let told = kinds.iter().map(|(_, text, times)| format!("note in {times} of {count} runs: {text}"));
    told.collect()
}

/// Commands that repeat the comparison of the saved runs, with the options that decide the verdicts.
pub(crate) fn again(labels: &[&str], judge: &JudgeArgs) -> String {
    let options = judging(judge);
    let commands = labels[1..].iter().map(|label| {
        format!("to compare these runs again: pgrig compare --paired --anyway {options}{} {label}", labels[0])
    });
    commands.collect::<Vec<_>>().join("\n")
}

/// The options of `compare` that judge in the same way, each with a space after it.
fn judging(judge: &JudgeArgs) -> String {
    let mut options = String::new();
    if !judge.figures.is_empty() {
        let _ = write!(options, "--figures {} ", shell_word(&judge.figures.join(",")));
    }
    if judge.threshold.to_bits() != Options::default().threshold.to_bits() {
        // Without the digits that the division by 100 has added.
        let _ = write!(options, "--threshold {}% ", (judge.threshold * 1e8).round() / 1e6);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::compare::args::Format;

    #[test]
    fn the_command_judges_the_runs_in_the_same_way() {
        let judge = |figures: &[&str], percent: f64| JudgeArgs {
            threshold: percent / 100.0,
            figures: figures.iter().map(|&name| name.to_owned()).collect(),
            fail_on: Vec::new(),
            format: Format::Text,
            json: None,
        };
        for (judge, labels, told) in [
            (judge(&[], 5.0), &["x-a", "x-b"][..], "pgrig compare --paired --anyway x-a x-b"),
            (
                judge(&["tps", "wal"], 7.0),
                &["x-a", "x-b"],
                "pgrig compare --paired --anyway --figures tps,wal --threshold 7% x-a x-b",
            ),
            (judge(&[], 0.1), &["x-a", "x-b"], "pgrig compare --paired --anyway --threshold 0.1% x-a x-b"),
        ] {
            assert_eq!(again(labels, &judge), format!("to compare these runs again: {told}"));
        }
        assert_eq!(again(&["x-a", "x-b", "x-c"], &judge(&["tps"], 5.0)).lines().count(), 2);
    }
}
