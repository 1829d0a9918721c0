//! Plan and results of a `micro` for people.

use std::fmt::Write;

use measure::human::{counted, grouped, latency};
use measure::paired::{Estimate, Judged, Judgement};
use measure::{Sample, Verdict};
use micro::{Calibration, Conclusion, Outcome, Plan, Request, Role, Saved};

use crate::app::table::{align_right, new_table, trimmed};
use crate::cmd::micro::table::by_speed;

/// Longest name in tables, characters; longer ones are cut. The plan shows them in full.
const WIDEST_NAME: usize = 44;
/// The longest budget that pgrig suggests, seconds.
const LONGEST_BUDGET: f64 = 3600.0;

/// The plan of a run, as --explain and the beginning of a run show it.
pub(crate) fn plan(plan: &Plan, request: &Request) -> String {
    let mut text = "plan".to_owned();
    let mut line = |name: &str, value: String| {
        let _ = write!(text, "\n  {name:<12} {value}");
    };
    for (number, name) in plan.candidates().enumerate() {
        line(if number == 0 { "candidates" } else { "" }, name.to_owned());
    }
    for out in &plan.left_out {
        line("left out", format!("{}: {}", out.name, first_line(&out.because)));
    }
    let shortest = plan.arms.iter().filter(|arm| arm.role == Role::Candidate);
    let shortest = shortest.filter_map(|arm| arm.sample).reduce(f64::min);
    let subtracted = if plan.has_empty() { ", which pgrig subtracts with the empty loop" } else { "" };
    let fixed = plan.fixed_share().map_or(String::new(), |share| {
        format!("; {} of that is the fixed time of a statement{subtracted}", percent(share))
    });
    let about = shortest.map_or(String::new(), |seconds| format!(", {} or more{fixed}", latency(seconds)));
    line(
        "a sample",
        if request.has_rows() {
            format!("{}{about}", counted(plan.rows, "row"))
        } else {
            format!("one execution{about}")
        },
    );
    let with = match (plan.has_empty(), plan.candidates().count()) {
        (true, 1) => "the candidate, the empty loop and the candidate again",
        (true, _) => "all candidates, the empty loop and the first candidate again",
        (false, _) => "all candidates and the first one again",
    };
    line("a round", format!("{with}, in balanced random order"));
    line(
        "rounds",
        format!(
            "until each interval is narrow compared with the threshold, or for {} at most",
            seconds(request.budget.as_secs_f64())
        ),
    );
    if let Some(schema) = plan.schema.as_ref() {
        line("schema", format!("{schema}, for the objects of the run; dropped at the end"));
    }
    let settings: Vec<String> =
        plan.settings.iter().map(|given| format!("{} {}", given.name, given.value)).collect();
    line("settings", settings.join(", "));
    text
}

/// The SQL that the server would execute.
pub(crate) fn explained(plan: &Plan) -> String {
    let mut parts = Vec::new();
    for arm in &plan.arms {
        let what = match arm.role {
            Role::Candidate => arm.name.clone(),
            Role::Empty => "the empty loop (subtracted)".to_owned(),
            Role::Repeat => continue,
        };
        let mut text = what;
        let mut field = |name: &str, value: &str| {
            let indented = value.replace('\n', &format!("\n{:13}", ""));
            let _ = write!(text, "\n  {name:<10} {indented}");
        };
        if let Some(ddl) = &arm.ddl {
            field("table", ddl);
        }
        field("sent", &arm.sql);
        field("executed", &arm.executed);
        if let Some(shape) = &arm.shape {
            field("plan", shape);
        }
        for finding in plan.findings.iter().filter(|finding| finding.candidate == arm.name) {
            let what = if finding.kind.is_refused() { "refused" } else { "warning" };
            field(what, &finding.kind.to_string());
        }
        parts.push(text);
    }
    for out in &plan.left_out {
        parts.push(format!("{}\n  left out   {}", out.name, out.because));
    }
    let settings: Vec<String> =
        plan.settings.iter().map(|given| format!("{} = {}", given.name, given.value)).collect();
    parts.push(format!("settings\n  {}", settings.join(", ")));
    parts.extend(plan.notes.iter().map(|note| format!("note: {note}")));
    parts.join("\n\n")
}

/// The results without the table of candidates.
pub(crate) fn details(outcome: &Outcome, request: &Request) -> String {
    match outcome.judged(request) {
        Some(judged) => {
            let remarks = remarks(outcome, &judged, request);
            format!("{remarks}\n\n{}", samples(outcome, request, Some(&judged)))
        }
        None => samples(outcome, request, None),
    }
}

/// Remarks on the limits of the results.
fn remarks(outcome: &Outcome, judged: &Judged, request: &Request) -> String {
    let warm = outcome.rounds.iter().filter(|round| !round.cold).count();
    let mut lines =
        vec![format!("{} of {}", counted(warm as u64, "round"), counted(outcome.plan.rows, "row"))];
    lines.extend(unmeasurable(outcome, judged, request));
    lines.push(format!(
        "noise: the first candidate differs from itself by {} ns ({} to {}); pgrig reports no difference below {} ns",
        ns(judged.repeat.value),
        ns(judged.repeat.low),
        ns(judged.repeat.high),
        ns(judged.repeat.reach())
    ));
    if let Some(empty) = &judged.empty {
        lines.push(format!("subtracted: the empty loop's {} ns ({})", ns(empty.value), interval(empty)));
    }
    if let Some(cold) = outcome.rounds.iter().find(|round| round.cold) {
        let first: Vec<String> = by_speed(judged)
            .into_iter()
            .map(|arm| ns(cold.seconds[arm] / outcome.plan.rows as f64))
            .collect();
        lines.push(format!(
            "the first, cold round does not count; its times in the order of the table: {} ns",
            first.join(", ")
        ));
    }
    if let Some(drift) = judged.drift {
        let word = if drift > 0.0 { "slower" } else { "faster" };
        lines.push(format!(
            "drift: rounds got {} {word} from the first third to the last; this changes times, not differences",
            percent(drift.abs())
        ));
    }
    if judged.pairs.iter().any(|pair| pair.autocorrelated) {
        lines.push(
            "successive rounds are correlated: for the intervals, pgrig resampled groups of successive rounds (block bootstrap)"
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// Why candidates have no measurable time of their own.
fn unmeasurable(outcome: &Outcome, judged: &Judged, request: &Request) -> Vec<String> {
    let names = outcome.plan.candidates().enumerate();
    let names = names.filter(|(candidate, _)| !judged.is_measurable(*candidate));
    names
        .map(|(candidate, name)| {
            let why = if judged.own[candidate].high >= 0.0 {
                "its time does not differ from that of the empty loop"
            } else if request.empty.is_some() {
                "it is faster than the --empty statement: give an --empty statement that does less"
            } else {
                "it is faster than the empty loop, because the empty loop reads i and the expression does not: use i in the \
                 expression"
            };
            format!("not measurable: {}: {why}; differences between candidates are valid", short(name))
        })
        .collect()
}

/// The article's figures: nothing is subtracted. `judged`: what the table above shows, if there is one.
fn samples(outcome: &Outcome, request: &Request, judged: Option<&Judged>) -> String {
    let order: Vec<usize> = judged.map_or_else(|| (0..outcome.plan.candidates().count()).collect(), by_speed);
    let per = if request.has_rows() { "ns per row" } else { "ns per statement" };
    let (with, included) = match &request.empty {
        _ if !outcome.plan.has_empty() => ("", None),
        None => (" + loop", Some("the empty loop")),
        Some(_) => (" + --empty", Some("the --empty statement")),
    };
    let above = if judged.is_some() { "; those of the table above do not" } else { "" };
    let included = included.map_or_else(String::new, |what| format!("\nthese times include {what}{above}"));
    let mut table = new_table(&[
        &format!("{per}{with}"),
        "mean",
        "sd",
        "min",
        "max",
        "trimmed: mean",
        "sd",
        "min",
        "max",
    ]);
    let others = outcome.arms(Role::Empty).chain(outcome.arms(Role::Repeat));
    for number in order.into_iter().chain(others) {
        let Some(all) = outcome.per_row(number) else { continue };
        let arm = &outcome.plan.arms[number];
        let cut = all.truncated().unwrap_or_else(|| all.clone());
        let figures =
            |sample: &Sample| [sample.mean(), sd(sample), sample.lowest(), sample.highest()].map(ns);
        table.add_row([vec![short(&arm.name)], figures(&all).to_vec(), figures(&cut).to_vec()].concat());
    }
    align_right(&mut table, 1..9);
    format!(
        "{}\ntrimmed: without samples below the 10th or above the 90th percentile{included}",
        trimmed(&table)
    )
}

/// Hints for the next command.
pub(crate) fn hints(outcome: &Outcome, request: &Request) -> Vec<String> {
    let Some(judged) = outcome.judged(request) else {
        return vec!["no verdict yet: give --budget 1min".to_owned()];
    };
    let names: Vec<&str> = outcome.plan.candidates().collect();
    let rounds = outcome.rounds.iter().filter(|round| !round.cold).count() as f64;
    let inconclusive: Vec<&Judgement> =
        judged.pairs.iter().filter(|pair| pair.verdict == Verdict::Inconclusive).collect();
    if inconclusive.is_empty() {
        return Vec::new();
    }
    let mut hints = Vec::new();
    let needed = inconclusive.iter().filter_map(|pair| pair.rounds_needed).max();
    if let Some(more) = needed {
        let budget = request.budget.as_secs_f64() * (rounds + f64::from(more)) / rounds;
        if budget <= LONGEST_BUDGET {
            hints.push(format!(
                "inconclusive: a verdict needs about {}: give --budget {}",
                counted(u64::from(more), "more round"),
                option(budget)
            ));
        } else {
            hints.push(format!(
                "inconclusive: a verdict needs about {} more rounds, which take more than an hour: give a larger \
                 --threshold, or use a quieter machine",
                grouped(u64::from(more))
            ));
        }
    }
    for pair in inconclusive.iter().filter(|pair| pair.rounds_needed.is_none()) {
        hints.push(format!(
            "{} compared with {}: more rounds do not help, because the difference is too close to the threshold ({} \
             ns) or to the noise ({} ns): give a smaller or a larger --threshold, or use a quieter machine",
            short(names[pair.candidate]),
            short(names[pair.baseline]),
            ns(pair.margin),
            ns(pair.noise_floor)
        ));
    }
    hints
}

/// The objects and rows that were written to the database.
pub(crate) fn saved(saved: &Saved, run_id: &str) -> String {
    let made =
        if saved.made.is_empty() { String::new() } else { format!("made {}; ", saved.made.join(", ")) };
    format!(
        "{made}{} added to benchmark.outcome; to see the verdicts, run:\n  SELECT * FROM benchmark.compare_outcome_threshold \
         WHERE run_id = '{run_id}';",
        counted(saved.rows, "row")
    )
}

/// The statement and the rows of the calibrated samples.
pub(crate) fn calibrated(found: &Calibration) -> String {
    let name = found.plan.candidates().next().unwrap_or_default();
    format!("count({name}), per row, by the number of rows in a sample; in shuffled order\n")
}

/// The conclusion of a calibration.
pub(crate) fn concluded(found: &Calibration) -> String {
    let cut = "trimmed: without samples below the 10th or above the 90th percentile";
    let counts = |rows: &[u64]| rows.iter().map(|rows| grouped(*rows)).collect::<Vec<_>>().join(", ");
    let conclusion = match found.conclusion() {
        None => return cut.to_owned(),
        Some(Conclusion::Steadiest { rows, alike }) => {
            let alike = if alike.is_empty() {
                String::new()
            } else {
                format!(" (those of {} rows do not vary clearly more)", counts(&alike))
            };
            format!(
                "samples of {} rows vary least{alike}. Without --rows, pgrig micro uses more and shorter samples, and \
                 compares within rounds",
                grouped(rows)
            )
        }
        Some(Conclusion::TooFew { rows, budget }) => format!(
            "too few samples of {} rows to find the number of rows at which the times vary least: give --budget {budget}s, which is probably enough",
            counts(&rows)
        ),
    };
    format!("{cut}\n\n{conclusion}")
}

/// Seconds as the value of --budget; many of them in whole minutes.
fn option(seconds: f64) -> String {
    const MANY: f64 = 300.0;
    if seconds > MANY {
        format!("{:.0}min", (seconds / 60.0).ceil())
    } else {
        format!("{:.0}s", seconds.ceil())
    }
}

pub(crate) fn interval(estimate: &Estimate) -> String {
    format!("{} to {}", ns(estimate.low), ns(estimate.high))
}

/// Seconds as nanoseconds, to about four digits.
pub(crate) fn ns(seconds: f64) -> String {
    let nanoseconds = seconds * 1e9;
    match nanoseconds.abs() {
        ..9.995 => format!("{nanoseconds:.2}"),
        ..999.95 => format!("{nanoseconds:.1}"),
        _ => format!("{nanoseconds:.0}"),
    }
}

fn percent(share: f64) -> String {
    if share < 0.001 { "less than 0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.0} s") }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

pub(crate) fn short(name: &str) -> String {
    if name.chars().count() <= WIDEST_NAME {
        return name.to_owned();
    }
    name.chars().take(WIDEST_NAME - 1).chain(['…']).collect()
}

/// The standard deviation; 0 of a single value.
pub(crate) fn sd(sample: &Sample) -> f64 {
    sample.deviation().unwrap_or(0.0)
}
