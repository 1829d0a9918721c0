//! Makes texts that replace the original's.

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

/// Makes an ascending text for each original: with the same length as far as all can differ, in the same order, and different from
/// all originals; an empty text stays. If an alphabet has too few texts so short, all letters and digits take its place; if these are
/// too few, the originals replace each other.
pub(crate) fn texts(originals: &[&str], most: Option<u32>, rng: &mut Rng) -> Vec<String> {
    // Blanks at the end are those of char(n).
    let trimmed: Vec<&str> = originals.iter().map(|original| original.trim_end()).collect();
    let full: Vec<&str> = trimmed.iter().copied().filter(|text| !text.is_empty()).collect();
    let alphabet = alphabet_of(full.iter().copied());
    let characters: Vec<u8> = match alphabet {
        Alphabet::Digits => (b'0'..=b'9').collect(),
        Alphabet::Hex => (b'0'..=b'9').chain(b'a'..=b'f').collect(),
        Alphabet::Upper => (b'A'..=b'Z').collect(),
        Alphabet::Mixed => (b'0'..=b'9').chain(b'a'..=b'z').collect(),
        Alphabet::Lower | Alphabet::Words => (b'a'..=b'z').collect(),
    };
    let all: Vec<u8> = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').collect();
    let replaced = others(&full, &characters, most, rng)
        .or_else(|| others(&full, &all, most, rng))
        .unwrap_or_else(|| exchanged(&full, rng));
    let mut replaced = replaced.into_iter();
    let one = |(original, trimmed): (&&str, &str)| {
        let next = if trimmed.is_empty() { None } else { replaced.next() };
        next.unwrap_or_else(|| (*original).to_owned())
    };
    originals.iter().zip(trimmed).map(one).collect()
}

/// Ascending texts of these characters (in ascending order), none of which begins like one of the originals. None if there are too few.
fn others(originals: &[&str], characters: &[u8], most: Option<u32>, rng: &mut Rng) -> Option<Vec<String>> {
    let (base, count) = (characters.len() as u64, originals.len() as u64);
    // Twice as many as there are texts, so that one that is an original can give way to its neighbour.
    let mut ordered = 1;
    while base.saturating_pow(ordered) < 2 * count && most.is_none_or(|most| ordered < most) {
        ordered += 1;
    }
    let length_of_order = ordered as usize;
    // A text's first characters as a number; none if it is shorter, or has others.
    let number = |text: &&str| {
        let digits = text.chars().take(length_of_order).map(|character| {
            let byte = u8::try_from(character).ok()?;
            characters.iter().position(|other| *other == byte)
        });
        let digits: Vec<usize> = digits.collect::<Option<_>>()?;
        let whole = digits.iter().fold(0, |number: u64, digit| number * base + *digit as u64);
        (digits.len() == length_of_order).then_some(whole)
    };
    let mut taken: Vec<u64> = originals.iter().filter_map(number).collect();
    taken.sort_unstable();
    taken.dedup();
    let free = base.saturating_pow(ordered).saturating_sub(taken.len() as u64);
    if free < count {
        return None;
    }
    let mut replaced = Vec::with_capacity(originals.len());
    let mut passed = 0;
    for (at, original) in (0_u64..).zip(originals) {
        // The free number at this place among all free ones.
        let place = u64::try_from(u128::from(at) * u128::from(free) / u128::from(count)).ok()?;
        while taken.get(passed).is_some_and(|taken| *taken <= place + passed as u64) {
            passed += 1;
        }
        let mut rest = place + passed as u64;
        let mut text = vec![0; length_of_order];
        for digit in text.iter_mut().rev() {
            *digit = characters[usize::try_from(rest % base).ok()?];
            rest /= base;
        }
        let length = original.chars().count().clamp(length_of_order, length_of_order.max(200));
        let mut text = String::from_utf8(text).ok()?;
        // As many bytes, as far as the texts need not be ordered by these.
        let longer: Vec<&[char]> = original.chars().filter_map(alike).collect();
        for more in 0..length - length_of_order {
            match longer.get(more) {
                Some(alike) => text.push(alike[rng.usize(..alike.len())]),
                None => text.push(char::from(characters[rng.usize(..characters.len())])),
            }
        }
        replaced.push(text);
    }
    Some(replaced)
}

/// Letters of two bytes in UTF-8 that take the place of such a letter. Encodings that have a script's letters have these: the Latin ones, WIN1256 and
/// EUC_CN have é and ü.
fn alike(char: char) -> Option<&'static [char]> {
    match char {
        '\u{c0}'..='\u{17f}' => Some(&['é', 'ü']),
        '\u{391}'..='\u{3c9}' => Some(&['α', 'δ', 'ε', 'λ', 'ν', 'π', 'σ', 'τ']),
        '\u{410}'..='\u{44f}' => Some(&['а', 'в', 'д', 'и', 'к', 'н', 'о', 'р', 'с', 'т']),
        _ => None,
    }
}

/// Orders of the originals that are tried.
const TRIED: u32 = 64;

/// The originals in another order, in which none keeps its place.
fn exchanged(originals: &[&str], rng: &mut Rng) -> Vec<String> {
    let mut order: Vec<usize> = (0..originals.len()).collect();
    let is_moved =
        |order: &[usize]| order.iter().enumerate().all(|(place, at)| originals[*at] != originals[place]);
    for _ in 0..TRIED {
        rng.shuffle(&mut order);
        if is_moved(&order) {
            return order.into_iter().map(|at| originals[at].to_owned()).collect();
        }
    }
    (0..originals.len()).map(|place| originals[(place + 1) % originals.len()].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
                    let different: HashSet<&String> = replaced.iter().collect();
                    assert_eq!(different.len(), originals.len(), "{replaced:?}");
                    if originals.len() < 62 {
                        assert!(replaced.is_sorted(), "{replaced:?}");
                        let is_new =
                            |text: &String| !originals.iter().any(|original| original.trim_end() == text);
                        assert!(replaced.iter().all(is_new), "{replaced:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn all_texts_of_two_digits_become_others() {
        let all: Vec<String> = (0..100).map(|number| format!("{number:02}")).collect();
        let originals: Vec<&str> = all.iter().map(String::as_str).collect();
        let replaced = texts(&originals, Some(2), &mut Rng::with_seed(1));
        assert!(replaced.windows(2).all(|pair| pair[0] < pair[1]), "{replaced:?}");
        assert!(replaced.iter().all(|text| text.len() == 2 && !all.contains(text)));
    }

    #[test]
    fn neighbours_of_originals_are_taken_in_their_place() {
        let first_five = ["a", "b", "c", "d", "e"];
        let replaced = texts(&first_five, Some(1), &mut Rng::with_seed(1));
        assert_eq!(replaced, ["f", "j", "n", "r", "v"]);
        // Of longer texts, too, whose first characters all are originals'.
        let codes: Vec<String> = (0..400).map(|number| format!("{number:03}x")).collect();
        let originals: Vec<&str> = codes.iter().map(String::as_str).collect();
        let replaced = texts(&originals, None, &mut Rng::with_seed(1));
        assert!(replaced.windows(2).all(|pair| pair[0] < pair[1]), "{replaced:?}");
        assert!(replaced.iter().all(|text| text.len() == 4 && !codes.contains(text)));
    }

    #[test]
    fn empty_texts_stay() {
        assert_eq!(texts(&["", " ", "x"], None, &mut Rng::with_seed(1))[..2], ["", " "]);
        assert_eq!(texts(&["     "], Some(5), &mut Rng::with_seed(1)), ["     "]);
        assert_ne!(texts(&["", "x"], None, &mut Rng::with_seed(1))[1], "x");
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
