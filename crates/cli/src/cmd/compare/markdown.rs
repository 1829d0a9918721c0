//! A comparison in Markdown, for pull requests and the summaries of CI jobs.

use std::fmt::Write;

use measure::compare::{Compared, Comparison, Sides};

use crate::app::markdown::{cell, inline, table};
use crate::cmd::compare::args::JudgeArgs;
use crate::cmd::compare::effects;
use crate::cmd::compare::text::{self, HEADER};

/// Most differences that are listed; further ones are only counted.
const MOST_DIFFERENCES: usize = 20;

/// The verdict, the sides, and tables of the figures, judged ones first. `named` are the names of
/// baseline and candidate.
pub(crate) fn comparison(
    named: [&str; 2],
    sides: &Sides,
    comparison: &Comparison,
    judge: &JudgeArgs,
) -> String {
    let [baseline, candidate] = named.map(inline);
    let conclusion = text::conclusion(sides, comparison, &inline);
    let mut shown = format!("**{conclusion}**\n\n- baseline: {baseline}\n- candidate: {candidate}\n\n");
    let (judged, others): (Vec<&Compared>, Vec<&Compared>) =
        comparison.compared.iter().partition(|one| one.verdict.is_some());
    if !judged.is_empty() {
        shown += &(figures(&judged, comparison) + "\n\n");
    }
    let effects = effects::lines(sides, &effects::of(sides));
    if !effects.is_empty() {
        let lines: Vec<String> = effects.iter().map(|line| format!("- {}", inline(line))).collect();
        shown += &(lines.join("\n") + "\n\n");
    }
    let footer = text::footer(comparison, judge).replace('\n', "; ");
    let _ = writeln!(shown, "{footer}.");
    if sides.is_apart() {
        let _ = writeln!(shown, "\nNote: {}.", text::apart(sides));
    }
    if !others.is_empty() {
        let title = if others.len() == 1 {
            "1 other figure".to_owned()
        } else {
            format!("{} other figures", others.len())
        };
        shown += &folded(&title, &figures(&others, comparison));
    }
    let differences = &comparison.differences;
    if !differences.is_empty() {
        let mut lines: Vec<String> = differences
            .iter()
            .take(MOST_DIFFERENCES)
            .map(|difference| format!("- {}", inline(&difference.to_string())))
            .collect();
        if differences.len() > MOST_DIFFERENCES {
            lines.push(format!("- and {} more; --json lists all", differences.len() - MOST_DIFFERENCES));
        }
        shown += &folded("the runs differ in", &lines.join("\n"));
    }
    shown.trim_end().to_owned()
}

fn figures(figures: &[&Compared], comparison: &Comparison) -> String {
    let rows = figures.iter().map(|one| {
        let mut cells = text::row(one, comparison).to_vec();
        cells[0] = cell(&cells[0]);
        cells
    });
    table(&HEADER, &(1..HEADER.len() - 1), rows)
}

fn folded(title: &str, text: &str) -> String {
    format!("\n<details><summary>{title}</summary>\n\n{text}\n\n</details>\n")
}
