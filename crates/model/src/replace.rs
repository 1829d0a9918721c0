//! Makes texts that replace the original's.

use std::collections::HashSet;

use fastrand::Rng;
use rowgen::Alphabet;

/// The alphabet that fits these texts.
pub(crate) fn alphabet_of<'a>(texts: impl Iterator<Item = &'a str>) -> Alphabet {
    let mut seen = Seen::default();
    for char in texts.flat_map(|text| text.trim_end().chars()) {
        match char {
            '0'..='9' => seen.digit = true,
            'a'..='f' => seen.hex = true,
            'g'..='z' => seen.lower = true,
            'A'..='Z' => seen.upper = true,
            ' ' => seen.blank = true,
            _ => seen.other = true,
        }
    }
    match seen {
        Seen { blank: true, .. } => Alphabet::Words,
        Seen { other: true, .. } => Alphabet::Mixed,
        Seen { digit: true, hex: false, lower: false, upper: false, .. } => Alphabet::Digits,
        Seen { digit: true, hex: true, lower: false, upper: false, .. } => Alphabet::Hex,
        Seen { digit: true, .. } => Alphabet::Mixed,
        Seen { upper: true, hex: false, lower: false, .. } => Alphabet::Upper,
        _ => Alphabet::Lower,
    }
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a class of characters")]
struct Seen {
    digit: bool,
    hex: bool,
    lower: bool,
    upper: bool,
    blank: bool,
    other: bool,
}

/// Makes an ascending text for each original: with the same length as far as all can differ, in the
/// same order, and different from all originals. If there are too few texts so short, some are the same, or in another order.
pub(crate) fn texts(originals: &[&str], most: Option<u32>, rng: &mut Rng) -> Vec<String> {
    let alphabet = alphabet_of(originals.iter().copied());
    let characters: Vec<u8> = match alphabet {
        Alphabet::Digits | Alphabet::Hex => {
            b"0123456789abcdef"[..if alphabet == Alphabet::Digits { 10 } else { 16 }].to_vec()
        }
        Alphabet::Upper => (b'A'..=b'Z').collect(),
        Alphabet::Mixed => (b'0'..=b'9').chain(b'a'..=b'z').collect(),
        Alphabet::Lower | Alphabet::Words => (b'a'..=b'z').collect(),
    };
    let base = characters.len() as u64;
    // Twice as many as there are texts, so that one that is an original can give way to its neighbour.
    let room = 2 * originals.len() as u64;
    let mut ordered = 1;
    while base.saturating_pow(ordered) < room && most.is_none_or(|most| ordered < most) {
        ordered += 1;
    }
    let all = base.saturating_pow(ordered);
    // Blanks at the end are those of char(n).
    let taken: HashSet<&str> = originals.iter().map(|original| original.trim_end()).collect();
    let mut replaced = Vec::with_capacity(originals.len());
    for (at, original) in originals.iter().enumerate() {
        let least = u32::try_from(original.trim_end().chars().count()).unwrap_or(u32::MAX);
        let length = least.clamp(ordered, ordered.max(200)) as usize;
        let slot = all / originals.len() as u64;
        let first = at as u64 * all / originals.len() as u64;
        let longer: Vec<&[char]> = original.chars().filter_map(alike).collect();
        let text = (0..slot.max(1)).map(|offset| {
            let mut rest = (first + offset) % all;
            let mut text = vec![0; ordered as usize];
            for place in text.iter_mut().rev() {
                *place = characters[usize::try_from(rest % base).expect("below the base")];
                rest /= base;
            }
            let mut text = String::from_utf8(text).expect("ASCII");
            // As many bytes, as far as the texts need not be ordered by these.
            let more = length.saturating_sub(ordered as usize);
            for at in 0..more {
                match longer.get(at) {
                    Some(alike) => text.push(alike[rng.usize(..alike.len())]),
                    None => text.push(char::from(characters[rng.usize(..characters.len())])),
                }
            }
            text
        });
        let mut text = text.take(64);
        let one = text.find(|text| !taken.contains(text.as_str()));
        replaced.push(one.unwrap_or_else(|| another(original.trim_end(), &characters, length, &taken)));
    }
    replaced
}

/// Letters of two bytes in UTF-8 that take the place of such a letter. The encodings that have one of a script's letters have these.
fn alike(char: char) -> Option<&'static [char]> {
    match char {
        '\u{c0}'..='\u{17f}' => Some(&['ä', 'é', 'ö', 'ü']),
        '\u{391}'..='\u{3c9}' => Some(&['α', 'δ', 'ε', 'λ', 'ν', 'π', 'σ', 'τ']),
        '\u{410}'..='\u{44f}' => Some(&['а', 'в', 'д', 'и', 'к', 'н', 'о', 'р', 'с', 'т']),
        _ => None,
    }
}

/// A text of one character that differs from the original; and from all of them, if there is such a text.
fn another(original: &str, characters: &[u8], length: usize, taken: &HashSet<&str>) -> String {
    let others = (b'0'..=b'9').chain(b'a'..=b'z').chain(b'A'..=b'Z');
    let texts = || {
        let each = characters.iter().copied().chain(others.clone());
        each.map(|character| char::from(character).to_string().repeat(length))
    };
    let free = texts().find(|text| !taken.contains(text.as_str()));
    free.or_else(|| texts().find(|text| text != original)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_keep_length_class_and_order() {
        let originals = ["Aachen", "Berlin", "Köln", "a b c d e", "zz"];
        let replaced = texts(&originals, None, &mut Rng::with_seed(1));
        assert!(replaced.is_sorted());
        for (original, replaced) in originals.iter().zip(&replaced) {
            assert_eq!(original.chars().count(), replaced.chars().count());
            assert_eq!(original.len(), replaced.len(), "{original} {replaced}");
            assert!(!originals.contains(&replaced.as_str()));
        }
    }

    #[test]
    fn short_texts_differ_as_far_as_they_can() {
        let replaced = texts(&["A", "F", "M"], Some(1), &mut Rng::with_seed(1));
        assert!(replaced.windows(2).all(|pair| pair[0] < pair[1]), "{replaced:?}");
        assert!(replaced.iter().all(|text| text.len() == 1 && !["A", "F", "M"].contains(&text.as_str())));
    }

    #[test]
    fn no_text_replaces_itself() {
        let all = |range: std::ops::RangeInclusive<u8>| -> Vec<String> {
            range.map(|character| char::from(character).to_string()).collect()
        };
        let mut every = all(b'a'..=b'z');
        every.extend([all(b'A'..=b'Z'), all(b'0'..=b'9')].concat());
        // Alphabets that are used up; characters of all; blanks at the end, as the server prints char(3).
        for originals in [all(b'a'..=b'z'), all(b'A'..=b'Z'), all(b'0'..=b'9'), every] {
            for padded in ["", "  "] {
                let originals: Vec<String> = originals.iter().map(|text| format!("{text}{padded}")).collect();
                let originals: Vec<&str> = originals.iter().map(String::as_str).collect();
                for seed in 0..20 {
                    let replaced = texts(&originals, Some(1), &mut Rng::with_seed(seed));
                    for (original, replaced) in originals.iter().zip(&replaced) {
                        assert_ne!(original.trim_end(), replaced);
                        assert_eq!(replaced.len(), 1);
                    }
                    if originals.len() < 62 {
                        let is_new =
                            |text: &String| !originals.iter().any(|original| original.trim_end() == text);
                        assert!(replaced.iter().all(is_new), "{replaced:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn alphabets_are_told_apart() {
        for (texts, alphabet) in [
            (&["017", "5"][..], Alphabet::Digits),
            (&["de", "US"], Alphabet::Lower),
            (&["DE", "US"], Alphabet::Upper),
            (&["0af", "b1"], Alphabet::Hex),
            (&["a b"], Alphabet::Words),
            (&["a-b"], Alphabet::Mixed),
        ] {
            assert_eq!(alphabet_of(texts.iter().copied()), alphabet, "{texts:?}");
        }
    }
}
