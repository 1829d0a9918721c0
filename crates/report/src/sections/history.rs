//! Figures of many runs over time, and the changes that a rule finds in them.

use std::fmt::Write;

use measure::compare::differences;
use measure::{Figure, Median, Run, Sample, Trial, judged_figures, shift};

use super::Section;
use super::several::figure_name;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Chart, Dot, Dots, Plot};
use crate::quantity::{Quantity, change};

/// Figures of which each run's value is drawn.
const MOST_FIGURES: usize = 40;
/// Rows of a history; longer ones have a row for each day.
const MOST_ROWS: usize = 40;
/// Probability that the report marks any change in a history in which nothing changes.
const FALSE_ALARMS: f64 = 0.01;
/// Changes of less than this do not matter, as for `pgrig compare`.
const THRESHOLD: f64 = 0.05;
/// With fewer runs the rule cannot find a change.
const FEWEST: usize = 10;

/// Runs of a row.
struct Row {
    name: String,
    runs: Vec<usize>,
}

/// The judged figures over time, the oldest first. Changes are looked for unless the runs are compared as two sides.
pub(super) fn section(runs: &[&Run], names: &[String], is_compared: bool) -> Option<Section> {
    let mut figures: Vec<Figure> = Vec::new();
    let of_each: Vec<Vec<(Figure, f64)>> = runs.iter().map(|run| judged_figures(run, &[])).collect();
    for (figure, _) in of_each.iter().flatten() {
        if !figures.contains(figure) {
            figures.push(figure.clone());
        }
    }
    figures.truncate(MOST_FIGURES);
    let rows = rows(runs, names);
    let plot = |(number, figure): (usize, &Figure)| {
        let value =
            |run: &usize| of_each[*run].iter().find(|(known, _)| known == figure).map(|found| found.1);
        let quantity = Quantity::of_figure(figure.unit);
        let mut dots_of: Vec<(Dot, usize)> = rows
            .iter()
            .filter_map(|row| {
                let mut observed: Vec<f64> = row.runs.iter().filter_map(value).collect();
                if let [run] = row.runs.as_slice() {
                    let trials = of_trials(runs[*run], figure);
                    observed = if trials.len() > 1 { trials } else { observed };
                }
                Some((dot(&row.name, observed)?, *row.runs.last()?))
            })
            .collect();
        if dots_of.len() < 2 {
            return None;
        }
        let by_value = |one: &&(Dot, usize), other: &&(Dot, usize)| one.0.value.total_cmp(&other.0.value);
        let (least, most) = dots_of.iter().min_by(by_value).zip(dots_of.iter().max_by(by_value))?;
        let mut caption = format!(
            "{}, the oldest first: from {} in {} to {} in {}.",
            figure_name(figure),
            quantity.text(least.0.value),
            least.0.name,
            quantity.text(most.0.value),
            most.0.name
        );
        if !is_compared {
            for (dot, run) in &mut dots_of {
                let differing = differences(runs[0], runs[*run]);
                if differing.iter().any(|one| one.hinders && one.what.starts_with("request")) {
                    "other options".clone_into(&mut dot.remark);
                }
            }
            let there: Vec<usize> = (0..runs.len()).filter(|run| value(run).is_some()).collect();
            let values: Vec<f64> = there.iter().filter_map(value).collect();
            let alpha = FALSE_ALARMS / figures.len() as f64;
            let found = shift(&values, alpha).filter(|found| (found.ratio - 1.0).abs() >= THRESHOLD);
            if let Some(found) = found {
                let run = there[found.first];
                if let Some((dot, _)) = dots_of.iter_mut().find(|(_, last)| *last >= run) {
                    dot.remark.insert_str(0, &format!("◀ changed: {} ", change(found.ratio)));
                    dot.remark.truncate(dot.remark.trim_end().len());
                }
                let differing = differences(runs[there[found.first - 1]], runs[run]);
                let explained = match differing.iter().filter(|one| one.hinders).count() {
                    0 => String::new(),
                    1 => "; a difference between the runs before and after may explain it".to_owned(),
                    several => {
                        format!("; {several} differences between the runs before and after may explain it")
                    }
                };
                let _ = write!(
                    caption,
                    " The level changed at {}: the median of the {} runs from this run on differs by {} from that of the {} runs before{explained}.",
                    names[run],
                    values.len() - found.first,
                    change(found.ratio),
                    found.first
                );
            } else if values.len() >= FEWEST {
                caption += " No lasting change is marked.";
            }
        }
        let rows = dots_of.into_iter().map(|(dot, _)| dot).collect();
        // Not from zero: a drift is small beside its level.
        let axis = Axis { from_zero: false, ..Axis::new(&figure.name, quantity, Spread::Linear) };
        let chart = Chart::Dots(Dots { axis, rows, reference: None, band: None });
        Some(Plot::new(&format!("figure-{}", number + 1), &figure_name(figure), caption, chart))
    };
    let plots: Vec<Plot> = figures.iter().enumerate().filter_map(plot).collect();
    let mut text =
        vec!["Circles are single values, a dot is their median, the bar its 95 % interval, or their range if they are fewer than six. The axis need not start at zero.".to_owned()];
    if !is_compared && runs.len() >= FEWEST {
        text.push(
            "pgrig marks one lasting change of 5 % or more, if the ranks of the runs before it and after it differ by more than chance \
             explains (Pettitt's test). Of 100 reports on runs without a change, one marks a change. This holds for independent runs: if \
             the machine slowly becomes faster or slower, pgrig marks a change, too. It does not mark single outliers, or a change that \
             is undone later."
                .to_owned(),
        );
    }
    if !is_compared && runs.len() < FEWEST {
        text.push("With fewer than 10 runs, pgrig looks for no change.".to_owned());
    }
    (!plots.is_empty()).then(|| Section { title: "History".to_owned(), text, plots, ..Section::default() })
}

/// A row for each label if labels name groups of runs, else for each run, or for each day if there are many.
fn rows(runs: &[&Run], names: &[String]) -> Vec<Row> {
    let grouped = |key: &dyn Fn(usize) -> String| {
        let mut rows: Vec<Row> = Vec::new();
        for run in 0..runs.len() {
            let name = key(run);
            match rows.iter_mut().find(|row| row.name == name) {
                Some(row) => row.runs.push(run),
                None => rows.push(Row { name, runs: vec![run] }),
            }
        }
        rows
    };
    if runs.iter().all(|run| run.label.is_some()) {
        let by_label = grouped(&|run| runs[run].label.clone().unwrap_or_default());
        // Runs of a label that came back later are no step of a history.
        let is_in_order = by_label.iter().all(|row| row.runs.windows(2).all(|pair| pair[1] == pair[0] + 1));
        if by_label.len() > 1 && by_label.len() <= MOST_ROWS && is_in_order {
            return by_label;
        }
    }
    if runs.len() <= MOST_ROWS {
        return (0..runs.len()).map(|run| Row { name: names[run].clone(), runs: vec![run] }).collect();
    }
    let day = |run: usize| runs[run].started_at.chars().take(10).collect::<String>();
    let mut by_day = grouped(&day);
    let left_out = by_day.len().saturating_sub(MOST_ROWS);
    by_day.split_off(left_out)
}

/// The figure of each trial of a run; none of `micro`, whose trials are rounds.
fn of_trials(run: &Run, figure: &Figure) -> Vec<f64> {
    if run.verb == "micro" {
        return Vec::new();
    }
    let mut alone = run.clone();
    alone.trials.clear();
    let trials = run.trials.iter().filter(|trial| trial.config == figure.config);
    let of = |trial: &Trial| {
        alone.trials = vec![trial.clone()];
        let figures = judged_figures(&alone, std::slice::from_ref(&figure.name));
        figures.into_iter().find(|(known, _)| known == figure).map(|found| found.1)
    };
    trials.filter_map(of).collect()
}

fn dot(name: &str, observed: Vec<f64>) -> Option<Dot> {
    let median = Median::of(&Sample::new(observed.clone())?);
    let interval = (observed.len() > 1).then_some((median.interval.low, median.interval.high));
    let observed = if observed.len() > 1 { observed } else { Vec::new() };
    Some(Dot { name: name.to_owned(), value: median.median, interval, observed, remark: String::new() })
}
