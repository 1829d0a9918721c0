//! Texts that match patterns: regular expressions and those of LIKE.
//!
//! PostgreSQL's regular expressions are not quite those that are parsed here: the server judges the texts.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassBytes, Hir, HirKind, Repetition};

use super::random::Random;

/// Most repetitions beyond the least number.
const MORE: u32 = 8;
/// The same for one text of [`SELDOM`].
const MANY: u32 = 40;
const SELDOM: u64 = 8;
/// Escapes that match no character.
const CONSTRAINTS: [&str; 6] = ["\\m", "\\M", "\\y", "\\Y", "\\A", "\\Z"];

/// `count` texts that match a pattern; none if the text is not a valid pattern.
pub(super) fn matching(pattern: &str, count: usize, random: &mut Random) -> Vec<String> {
    let mut texts = Vec::new();
    if pattern.contains(['%', '_']) {
        texts.extend((0..count).map(|_| like(pattern, random)));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_:,/".contains(&byte);
    if !pattern.bytes().all(is_plain)
        && let Some(expression) = parsed(pattern)
    {
        texts.extend((0..count).filter_map(|_| {
            let mut bytes = Vec::new();
            write(&expression, random, &mut bytes);
            String::from_utf8(bytes).ok()
        }));
    }
    texts
}

fn parsed(pattern: &str) -> Option<Hir> {
    let plain = CONSTRAINTS.iter().fold(pattern.to_owned(), |pattern, escape| pattern.replace(escape, ""));
    // Characters beyond ASCII stand for themselves; classes of them are not needed.
    ParserBuilder::new().unicode(false).utf8(false).nest_limit(50).build().parse(&plain).ok()
}

/// Appends a text that matches.
fn write(expression: &Hir, random: &mut Random, out: &mut Vec<u8>) {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => out.extend(one_of(class, random)),
        HirKind::Class(Class::Unicode(class)) => {
            let first = class.ranges().first();
            out.extend(first.map(|range| range.start().to_string().into_bytes()).unwrap_or_default());
        }
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let more = if random.below(SELDOM) == 0 { MANY } else { MORE };
            let most = max.unwrap_or(u32::MAX).min(min.saturating_add(more));
            let times = u64::from(*min) + random.below(u64::from(most - min) + 1);
            (0..times).for_each(|_| write(sub, random, out));
        }
        HirKind::Capture(capture) => write(&capture.sub, random, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, random, out)),
        HirKind::Alternation(parts) => write(random.one_of(parts), random, out),
    }
}

/// A letter or digit if there is one, else a character that can be seen.
fn one_of(class: &ClassBytes, random: &mut Random) -> Option<u8> {
    let members = || class.iter().flat_map(|range| range.start()..=range.end());
    let preferred: [fn(&u8) -> bool; 3] = [u8::is_ascii_alphanumeric, u8::is_ascii_graphic, u8::is_ascii];
    let found = preferred.iter().map(|is| members().filter(is).collect::<Vec<u8>>());
    // Where a class has more than letters and digits, those come too.
    let graphic: Vec<u8> = members().filter(u8::is_ascii_graphic).collect();
    if !graphic.is_empty() && graphic.len() < 90 {
        return Some(*random.one_of(&graphic));
    }
    found.into_iter().find(|found| !found.is_empty()).map(|found| *random.one_of(&found))
}

fn like(pattern: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => (0..random.below(9)).for_each(|_| text.push(letter(random))),
            '_' => text.push(letter(random)),
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

fn letter(random: &mut Random) -> char {
    char::from(*random.one_of(b"abcdefghijklmnopqrstuvwxyz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_pattern() {
        let mut random = Random::new(1);
        for pattern in ["^[A-Z]{3}-[0-9]+$", "^(a|b)?\\d{2,4}$", "^[^@ ]+@[a-z]+\\.[a-z]{2,}$", "^\\S+$"] {
            let expression = parsed(pattern).unwrap();
            assert!(matches!(expression.kind(), HirKind::Concat(_)));
            assert_eq!(matching(pattern, 20, &mut random).len(), 20, "{pattern}");
        }
        let dashed = matching("^[A-Z]{3}-[0-9]+$", 50, &mut random);
        assert!(dashed.iter().all(|text| text.as_bytes()[3] == b'-' && text.len() > 4), "{dashed:?}");
        assert!(matching("sku-%", 5, &mut random).iter().any(|text| text.starts_with("sku-")));
        assert_eq!(matching("plain text", 5, &mut random), Vec::<String>::new());
        assert_eq!(matching("^(unclosed", 5, &mut random), Vec::<String>::new());
    }
}
