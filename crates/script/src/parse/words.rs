//! The words of a meta command, up to its line's end (`exprscan.l`, initial state).

/// A word and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// Reads words from a place on.
pub(super) struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn from(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// Offset up to which words have been read; the line's end once there are no more.
    pub(super) fn place(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let (at, ended) = skip(self.text, self.at);
        self.at = at;
        if ended {
            return None;
        }
        let rest = &self.text.as_bytes()[at..];
        let length = rest.iter().take_while(|byte| **byte != b'\n' && !is_space(**byte)).count();
        let word = &self.text[at..at + length];
        self.at += length;
        // A backslash at the line's end is none of the word.
        let text = match word.strip_suffix('\\') {
            Some(before) if continuation(self.text, self.at - 1).is_some() => {
                self.at -= 1;
                before
            }
            _ => word,
        };
        Some(Word { text, at })
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

/// End of blanks and continued lines. Returns true, and the offset after the line, if the command
/// ends there.
pub(super) fn skip(text: &str, mut at: usize) -> (usize, bool) {
    loop {
        match text.as_bytes().get(at) {
            None => return (at, true),
            Some(b'\n') => return (at + 1, true),
            Some(byte) if is_space(*byte) => at += 1,
            Some(_) => match continuation(text, at) {
                Some(end) => at = end,
                None => return (at, false),
            },
        }
    }
}

/// Start of the next line, if there is a backslash at the end of this one.
fn continuation(text: &str, at: usize) -> Option<usize> {
    match &text.as_bytes()[at..] {
        [b'\\', b'\n', ..] => Some(at + 2),
        [b'\\', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    }
}
