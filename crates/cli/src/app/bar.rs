//! How progress is drawn: one line, whatever the width of the terminal.

use console::Term;
use indicatif::ProgressStyle;

/// Narrower terminals have no room for a bar beside the text: they show the percentage alone.
const WIDE: u16 = 110;

/// A bar with its percentage and its message, after the text `before`. A message that does not fit is cut off.
pub(crate) fn style(before: &str) -> ProgressStyle {
    let (_, columns) = Term::stderr().size();
    with_template(&template(before, columns))
}

/// A message without a bar.
pub(crate) fn style_without_end(before: &str) -> ProgressStyle {
    with_template(&format!("{before}{{wide_msg}}"))
}

fn template(before: &str, columns: u16) -> String {
    let bar = if columns < WIDE { "" } else { "{bar:30} " };
    format!("{before}{bar}{{percent:>3}} %  {{wide_msg}}")
}

fn with_template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template that was tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for before in ["", "{prefix:12} "] {
            for columns in [0, 80, WIDE, u16::MAX] {
                with_template(&template(before, columns));
            }
            style_without_end(before);
        }
    }
}
