//! A report as Markdown: for pull requests and the summaries of CI.

use std::fmt::Write;

use crate::document::{Document, began};
use crate::escape::is_hidden;
use crate::page::{conditions_of, parts, repeat};
use crate::plot::{Chart, Table};

/// Rows of a table that a summary shows.
const MOST: usize = 60;
/// Rows of a series that a summary shows: longer ones are to be looked at.
const MOST_OF_SERIES: usize = 40;

/// The report as Markdown.
pub(crate) fn markdown(documents: &[Document]) -> String {
    let mut text = String::new();
    for part in parts(documents) {
        let _ = write!(text, "## pgrig {}: {}\n\n", cell(&part.verb), cell(&part.shown.result));
        for run in &part.runs {
            let conditions: Vec<String> =
                conditions_of(run).iter().map(|(name, value)| format!("{name}: {}", cell(value))).collect();
            let _ = write!(text, "{} UTC; {}\n\n", cell(&began(run)), conditions.join("; "));
            for note in &run.notes {
                let _ = writeln!(text, "- {}", cell(&note.text));
            }
            if !run.notes.is_empty() {
                text.push('\n');
            }
            if let Some(command) = repeat(run) {
                let _ = write!(text, "{}\n\n", code(&command));
            }
        }
        for section in &part.shown.sections {
            for sentence in &section.text {
                let _ = write!(text, "{}\n\n", cell(sentence));
            }
            if let Some((title, first)) = &section.first {
                let _ = write!(text, "### {}\n\n{}", cell(title), table(first));
            }
            for plot in &section.plots {
                let _ = write!(text, "### {}\n\n{}\n\n", cell(&plot.title), cell(&plot.caption));
                let is_series = matches!(plot.drawing, Chart::Lines(_) | Chart::Stack(_));
                if plot.table().rows.len() <= if is_series { MOST_OF_SERIES } else { MOST } {
                    text += &table(&plot.table());
                }
            }
            for (title, found) in &section.tables {
                let _ = write!(text, "### {}\n\n{}", cell(title), table(found));
            }
        }
    }
    text
}

fn table(table: &Table) -> String {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(table.header.len()));
    let rows: String = table.rows.iter().take(MOST).map(|row| line(row)).collect();
    let left_out = table.rows.len().saturating_sub(MOST);
    let left_out = match left_out {
        0 => String::new(),
        1 => "\n1 more row is left out.\n".to_owned(),
        more => format!("\n{more} more rows are left out.\n"),
    };
    format!("{}{rule}{rows}{left_out}\n", line(&table.header))
}

/// The text on one line, with all markup escaped.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\t' => escaped.push(' '),
            hidden if is_hidden(hidden) => {
                let _ = write!(escaped, "\u{ab}U+{:04X}\u{bb}", u32::from(hidden));
            }
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '>' | '@' => {
                escaped.extend(['\\', character]);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// A block of code, in a fence longer than any in it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let shown: String = text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    format!("{fence}sh\n{shown}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(cell("<b>|`x`|\n[a](b) @all\u{202e}"), "&lt;b\\>\\|\\`x\\`\\| \\[a\\](b) \\@all«U+202E»");
        assert_eq!(code("a ``` b"), "````sh\na ``` b\n````");
    }
}
