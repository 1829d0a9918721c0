//! Rewrites text with long columns of numbers, so that xz makes less of it.
//!
//! In a run document, the series of a trial are lists of pairs, and most series have the same times: xz alone spends 3 bytes
//! or more on each repetition of a time, and a byte or more on the brackets and blanks around it. So the text is taken as a
//! sequence of numbers with other text between them:
//!
//! - A number that followed the number two before it when that one came first is replaced by one byte, which says how many
//!   such steps lead to it (1 to 8): a series that has only some of the times needs two steps or more.
//! - Text between numbers that is the same as the text two before it is replaced by one byte.
//!
//! An hour of `tps` with waits, 4.7 MB, is 192 kB instead of 321 kB after xz (a prototype of the same rewriting).

use std::collections::HashMap;

/// Stands for the text between numbers that came two before.
const SAME: char = '\u{e}';
/// Steps to a number: the bytes 1 to 8 stand for them.
const STEPS: u8 = 8;

/// Text that is not the result of [`packed`], or unpacks to more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpacking {
    Damaged,
    Long,
}

/// The rewritten text; nothing for text that has the bytes that stand for others.
pub(super) fn packed(text: &str) -> Option<String> {
    if text.bytes().any(is_mark) {
        return None;
    }
    let mut written = String::with_capacity(text.len() / 2);
    let mut known = Known::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (between, after) = rest.split_at(start_of_number(rest));
        if known.is_same(between) {
            written.push(SAME);
        } else {
            written += between;
        }
        known.note_between(between);
        let (number, after) = after.split_at(length_of_number(after));
        match known.steps_to(number) {
            Some(steps) => written.push(char::from(steps)),
            None => written += number,
        }
        known.note_number(number);
        rest = after;
    }
    Some(written)
}

/// The text that was rewritten, if it has at most so many bytes.
pub(super) fn unpacked(packed: &str, longest: usize) -> Result<String, Unpacking> {
    let mut written = String::new();
    let mut known = Known::default();
    let mut rest = packed;
    while !rest.is_empty() {
        let (between, after) = if let Some(after) = rest.strip_prefix(SAME) {
            (known.between[0].ok_or(Unpacking::Damaged)?, after)
        } else {
            rest.split_at(start_of_number(rest))
        };
        known.note_between(between);
        let (number, after) = match after.bytes().next() {
            Some(steps @ 1..=STEPS) => (known.after(steps).ok_or(Unpacking::Damaged)?, &after[1..]),
            Some(byte) if is_mark(byte) => return Err(Unpacking::Damaged),
            _ => after.split_at(length_of_number(after)),
        };
        known.note_number(number);
        if written.len() + between.len() + number.len() > longest {
            return Err(Unpacking::Long);
        }
        written += between;
        written += number;
        rest = after;
    }
    Ok(written)
}

fn is_mark(byte: u8) -> bool {
    byte == SAME as u8 || (1..=STEPS).contains(&byte)
}

/// Where the first number begins, at a digit or at a minus before one; or the mark of one.
fn start_of_number(text: &str) -> usize {
    let found = text.bytes().position(|byte| byte.is_ascii_digit() || is_mark(byte));
    let found = found.unwrap_or(text.len());
    let is_digit = text[found..].starts_with(|c: char| c.is_ascii_digit());
    if is_digit && text[..found].ends_with('-') { found - 1 } else { found }
}

/// Bytes of the number at the start of the text.
fn length_of_number(text: &str) -> usize {
    text.bytes().position(|byte| !byte.is_ascii_digit() && !b".eE+-".contains(&byte)).unwrap_or(text.len())
}

/// The numbers and the text between them, so far.
#[derive(Default)]
struct Known<'a> {
    /// The text between numbers, two before and one before.
    between: [Option<&'a str>; 2],
    /// The number two before, and the one before.
    numbers: [Option<&'a str>; 2],
    /// For each number, the number two places after its first occurrence.
    next: HashMap<&'a str, &'a str>,
}

impl<'a> Known<'a> {
    fn is_same(&self, between: &str) -> bool {
        self.between[0] == Some(between)
    }

    fn note_between(&mut self, between: &'a str) {
        self.between = [self.between[1], Some(between)];
    }

    /// The steps from the number two before to this one.
    fn steps_to(&self, number: &str) -> Option<u8> {
        let mut at = self.numbers[0]?;
        for steps in 1..=STEPS {
            at = self.next.get(at)?;
            if at == number {
                return Some(steps);
            }
        }
        None
    }

    /// The number so many steps after the one two before.
    fn after(&self, steps: u8) -> Option<&'a str> {
        (0..steps).try_fold(self.numbers[0]?, |number, _| self.next.get(number).copied())
    }

    fn note_number(&mut self, number: &'a str) {
        if let Some(before) = self.numbers[0] {
            self.next.entry(before).or_insert(number);
        }
        self.numbers = [self.numbers[1], Some(number)];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repeated_times_and_brackets_are_one_byte_each() {
        let series = |values: [u32; 4]| {
            let points: Vec<String> =
                values.iter().zip(1..).map(|(value, at)| format!("[{at}.000173, {value}.5]")).collect();
            format!("[{}]", points.join(", "))
        };
        let text = format!("{} {}", series([11, 12, 13, 14]), series([15, 16, 17, 18]));
        let short = packed(&text).unwrap();
        assert!(short.ends_with("17.5\u{e}\u{1}\u{e}18.5]]"), "{short:?}");
        assert_eq!(unpacked(&short, text.len()), Ok(text));
    }

    #[test]
    fn a_time_that_was_left_out_is_a_step_more() {
        let text = "[1.1, 5], [2.2, 6], [3.3, 7], [4.4, 8], [1.1, 20], [4.4, 30]";
        let short = packed(text).unwrap();
        assert!(short.ends_with("20\u{e}\u{3}\u{e}30]"), "{short:?}");
        assert_eq!(unpacked(&short, text.len()), Ok(text.to_owned()));
    }

    #[test]
    fn hostile_text_is_refused() {
        assert_eq!(packed("a\u{e}b"), None);
        assert_eq!(packed("a\u{1}b"), None);
        assert_eq!(unpacked("\u{e}1", 100), Err(Unpacking::Damaged));
        assert_eq!(unpacked("a\u{3}", 100), Err(Unpacking::Damaged));
        // A long text between numbers, again and again by a byte.
        let bomb = format!("{0}1{0}2{1}", "x".repeat(1000), "\u{e}3".repeat(1000));
        assert_eq!(unpacked(&bomb, 100_000), Err(Unpacking::Long));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "(?s)(-|[0-9]|[.eE+]| |,|\\[|\n|[a-z]|.){0,200}") {
            if let Some(short) = packed(&text) {
                prop_assert_eq!(unpacked(&short, text.len()), Ok(text));
            }
        }

        #[test]
        fn columns_come_back(values in prop::collection::vec((0..9_u8, -3..3_i8), 0..200)) {
            let text = values.iter().map(|(x, y)| format!("[{x},{y}]")).collect::<Vec<_>>().join(",");
            let short = packed(&text).unwrap();
            prop_assert!(short.len() <= text.len());
            prop_assert_eq!(unpacked(&short, text.len()), Ok(text));
        }

        #[test]
        fn any_packed_text_is_read_or_refused(packed in "([\u{1}-\u{8}]|\u{e}|[0-9]|-|,|x){0,60}") {
            if let Ok(text) = unpacked(&packed, 10_000) {
                prop_assert!(text.len() <= 10_000);
            }
        }
    }
}
