//! Escapes users' text for HTML and SVG.

use std::fmt::Write;

/// The text for an element or an attribute in double quotes. Characters that are invisible, or that
/// change the direction of text, are replaced by their number: `U+202E`.
pub(crate) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            hidden if is_hidden(hidden) => {
                let _ = write!(escaped, "\u{ab}U+{:04X}\u{bb}", u32::from(hidden));
            }
            shown => escaped.push(shown),
        }
    }
    escaped
}

/// Whether a character is invisible, or turns the text after it: controls, and Unicode's marks of direction, of joining,
/// and of order (Bidi_Control, Default_Ignorable_Code_Point).
pub(crate) fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// At most so many characters; the last one is … if the text was shortened.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if one_line.chars().count() <= most {
        return one_line;
    }
    one_line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_and_hidden_characters_are_shown() {
        assert_eq!(
            html("</script><b a='1' b=\"2\">&"),
            "&lt;/script&gt;&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;"
        );
        assert_eq!(html("a\u{202e}b\0c\u{7f}"), "a«U+202E»b«U+0000»c«U+007F»");
        assert_eq!(html("Größe\n中"), "Größe\n中");
    }

    #[test]
    fn long_text_ends_with_an_ellipsis() {
        assert_eq!(shortened("SELECT\n  1", 8), "SELECT 1");
        assert_eq!(shortened("SELECT\n  12", 8), "SELECT …");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_ends_text(text in "(?s).*") {
            let escaped = html(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            prop_assert!(!escaped.chars().any(is_hidden));
        }
    }
}
