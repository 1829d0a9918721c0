//! A comparison as people read it.

use comfy_table::{CellAlignment, Table, presets};
use measure::compare::{Compared, Comparison, FigureUnit};
use measure::human::{bytes, count, time};
use measure::{Run, Sample, Verdict};

use super::fill_text::trimmed;

/// A line for each figure.
pub(super) fn comparison(baseline: &Run, candidate: &Run, comparison: &Comparison) -> String {
    let compared = &comparison.compared;
    let has_configs = compared.iter().any(|one| one.figure.config != compared[0].figure.config);
    let mut table = Table::new();
    let header = ["figure", "baseline", "candidate", "change", "95 % of cases", "verdict"];
    table.load_style(presets::NOTHING).set_header(header);
    for one in compared {
        table.add_row([
            if has_configs { named(one) } else { one.figure.name.clone() },
            value(one, &one.baseline),
            value(one, &one.candidate),
            percent(one.change.ratio),
            one.change.interval.map_or_else(
                || "-".to_owned(),
                |interval| format!("{} to {}", percent(interval.low), percent(interval.high)),
            ),
            one.change.verdict.to_string(),
        ]);
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let parts = [
        format!("baseline   {}\ncandidate  {}", origin(baseline), origin(candidate)),
        trimmed(&table),
        format!("medians; {}", tally(compared)),
    ];
    parts.join("\n\n") + few(compared)
}

fn origin(run: &Run) -> String {
    let release = run.environment.server.version.split(" on ").next().unwrap_or_default();
    format!("{} of {}, {release}", run.verb, run.started_at)
}

/// How many figures have which verdict.
fn tally(compared: &[Compared]) -> String {
    let all = [Verdict::Improved, Verdict::Regressed, Verdict::NoChange, Verdict::Inconclusive];
    let counted = all.map(|verdict| {
        let found = compared.iter().filter(|one| one.change.verdict == verdict).count();
        format!("{found} {verdict}")
    });
    counted.join(", ")
}

fn few(compared: &[Compared]) -> &'static str {
    let is_few = |one: &Compared| one.change.interval.is_none();
    if compared.iter().any(is_few) {
        "\nfewer than four trials each tell nothing: give both runs more"
    } else {
        ""
    }
}

/// One figure in a sentence.
pub(super) fn in_words(one: &Compared) -> String {
    format!(
        "{} {}: {} instead of {} ({})",
        named(one),
        one.change.verdict,
        value(one, &one.candidate),
        value(one, &one.baseline),
        percent(one.change.ratio)
    )
}

fn named(one: &Compared) -> String {
    format!("{}: {}", one.figure.config, one.figure.name)
}

fn value(one: &Compared, sample: &Sample) -> String {
    let median = sample.median();
    match one.figure.unit {
        FigureUnit::Seconds => time(median),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes that were observed"
        )]
        FigureUnit::Bytes => bytes(median.max(0.0).round() as u64),
        FigureUnit::PerSecond => format!("{}/s", count(median)),
    }
}

/// By how much more or less a ratio is than 1.
fn percent(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}
