//! Text from documents in Markdown: code, in which no character is markup, a mention or a link.

use std::fmt::Write;
use std::ops::Range;

use crate::app::plain::plain;

/// Text in a cell of a table. A line break would end the row.
pub(crate) fn cell(text: &str) -> String {
    let text = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().all(|each| each.is_alphanumeric() || " ,.".contains(each)) {
        return text;
    }
    if text.contains(['`', '\\']) { escaped(&text) } else { format!("`{}`", text.replace('|', "\\|")) }
}

/// Text in a sentence.
pub(crate) fn inline(text: &str) -> String {
    let text = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || text.contains('`') { escaped(&text) } else { format!("`{text}`") }
}

/// A table: titles, then rows of cells. In the columns `right` numbers stand below each other.
pub(crate) fn table(
    titles: &[&str],
    right: &Range<usize>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let rule = (0..titles.len()).map(|column| if right.contains(&column) { "---:" } else { "---" });
    let mut lines = vec![line(titles.iter().copied()), line(rule)];
    lines.extend(rows.map(|cells| line(cells.iter().map(String::as_str))));
    lines.join("\n")
}

fn line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// Each mark as its number, which is a character of text and never markup.
fn escaped(text: &str) -> String {
    let mut escaped = "<code>".to_owned();
    for char in text.chars() {
        if char.is_ascii_punctuation() {
            let _ = write!(escaped, "&#{};", u32::from(char));
        } else {
            escaped.push(char);
        }
    }
    escaped + "</code>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_cell() {
        for (name, in_markdown) in [
            ("bigint, identity", "bigint, identity"),
            ("a | b * c", r"`a \| b * c`"),
            ("say \"x\"\n  -- y", "`say \"x\" -- y`"),
            ("a ` | \\| b", "<code>a &#96; &#124; &#92;&#124; b</code>"),
            ("<b>_i_</b>", "`<b>_i_</b>`"),
            ("@team\u{202e}", "<code>&#64;team&#92;u&#123;202e&#125;</code>"),
        ] {
            assert_eq!(cell(name), in_markdown);
        }
        assert_eq!(inline("a|b \\ @team"), "`a|b \\ @team`");
        assert_eq!(inline("`x` <img>"), "<code>&#96;x&#96; &#60;img&#62;</code>");
        assert_eq!(inline(""), "<code></code>");
    }
}
