//! Text from documents, without characters that act on a terminal or hide others.

use std::borrow::Cow;
use std::fmt::Write;

/// The text in one line, with control characters, and characters without a width that change the order of others, as
/// `\u{1b}`.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '\n' | '\r' | '\t') {
            plain.push(' ');
        } else if acts(char) {
            let _ = write!(plain, "{}", char.escape_unicode());
        } else {
            plain.push(char);
        }
    }
    Cow::Owned(plain)
}

/// Whether a character controls the terminal or changes the order of others: Unicode's categories
/// Cc, Zl and Zp, and of Cf the direction marks and characters without a width.
fn acts(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        assert_eq!(plain("vorher ± 1 µs, ürgs"), "vorher ± 1 µs, ürgs");
        assert_eq!(plain("a\u{1b}[31m\nb\u{202e}c"), "a\\u{1b}[31m b\\u{202e}c");
    }
}
