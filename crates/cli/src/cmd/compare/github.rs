//! A comparison for GitHub Actions: workflow commands for annotations, and a file for the job's
//! summary.
//!
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>

use std::fs::File;
use std::io::Write;

use measure::Verdict;
use measure::compare::{Comparison, Sides};

use crate::app::failure::Failure;
use crate::app::plain::plain;
use crate::app::printer::Printer;
use crate::cmd::compare::args::JudgeArgs;
use crate::cmd::compare::{effects, text};

/// The variable that names the file of the job's summary.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// Marks a workflow command in the old syntax, which may be anywhere in a line.
const OLD_COMMAND: &str = "##[";

/// Prints the annotations, and appends the Markdown to the job's summary. Without a summary it is printed, too.
pub(crate) fn show(commands: &str, markdown: &str, printer: &Printer) -> Result<(), Failure> {
    printer.result(commands)?;
    let Some(file) = std::env::var_os(SUMMARY).filter(|file| !file.is_empty()) else {
        return Ok(printer.result(format!("\n{markdown}"))?);
    };
    let appended = File::options().append(true).create(true).open(&file);
    let appended = appended.and_then(|mut file| file.write_all(format!("{markdown}\n\n").as_bytes()));
    // The verdict counts, and the exit status is its.
    if let Err(error) = appended {
        printer.warn(format!("cannot append to {SUMMARY} ({}): {error}", file.display()));
    }
    Ok(())
}

/// An annotation for each verdict that matters; at least one. `title` distinguishes several
/// comparisons.
pub(crate) fn commands(title: &str, sides: &Sides, comparison: &Comparison, judge: &JudgeArgs) -> String {
    let level = |verdict: Verdict| match verdict {
        verdict if judge.fails_on(verdict) => Some("error"),
        Verdict::Regressed => Some("warning"),
        Verdict::Improved | Verdict::Inconclusive => Some("notice"),
        Verdict::NoChange => None,
    };
    let judged = comparison.judged();
    let mut told: Vec<(&str, String)> =
        judged.filter_map(|(one, verdict)| Some((level(verdict)?, text::in_words(one, verdict)))).collect();
    let effects = effects::of(sides);
    told.extend(effects.iter().filter_map(|one| Some((level(one.verdict)?, one.in_words()))));
    let inconclusive = if judge.fails_on(Verdict::Inconclusive) { "error" } else { "warning" };
    told.extend(
        comparison
            .unmeasured
            .iter()
            .map(|figure| (inconclusive, format!("{} is not measurable in some runs", figure.full_name()))),
    );
    let hindrances: Vec<String> = comparison.hindrances().map(ToString::to_string).collect();
    if !hindrances.is_empty() {
        told.push(("warning", format!("compared despite {}", hindrances.join("; "))));
    }
    if sides.is_apart() {
        told.push(("warning", text::apart(sides)));
    }
    if told.is_empty() || comparison.needed.is_some() {
        told.push(("notice", text::conclusion(sides, comparison, &text::shown)));
    }
    let lines = told
        .iter()
        .map(|(level, text)| format!("::{level} title={}::{}", property(title), data(&plain(text))));
    lines.collect::<Vec<_>>().join("\n")
}

/// The text, escaped as data of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The text, escaped as a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The text with commands in the old syntax made harmless, for other lines.
pub(crate) fn inert(text: &str) -> String {
    text.replace(OLD_COMMAND, "# #[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_a_command() {
        assert_eq!(data("50 %\r\n::error::x"), "50 %25%0D%0A::error::x");
        assert_eq!(property("a: b, c%0A"), "a%3A b%2C c%250A");
        assert_eq!(inert("x ##[add-path]/tmp"), "x # #[add-path]/tmp");
    }
}
