//! `tsvector` (`TSVectorData` in `tsearch/ts_type.h`), from the forms in which rowgen writes it.

use std::collections::BTreeMap;

/// Words of letters and digits are stored as they are given.
const LONGEST: usize = 64;
/// Positions of a word, and greatest position, at most: less than the server's own limits.
const MOST: usize = 100;
const LAST: u16 = 10_000;

/// Number of words; of each whether it has positions, its length, where it begins; the words in order, each with the
/// number of its positions and these.
pub(super) fn payload(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let mut words: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for item in text.split(' ').filter(|item| !item.is_empty()) {
        let (word, position) = read(item)?;
        words.entry(word).or_default().extend(position);
    }
    let mut entries = Vec::new();
    let mut data = Vec::new();
    for (word, mut positions) in words {
        positions.sort_unstable();
        positions.dedup();
        if positions.len() > MOST {
            return None;
        }
        let begin = u32::try_from(data.len()).ok()?;
        let length = u32::try_from(word.len()).ok()?;
        entries.push(u32::from(!positions.is_empty()) | length << 1 | begin << 12);
        data.extend_from_slice(word.as_bytes());
        if !positions.is_empty() {
            data.resize(data.len().next_multiple_of(2), 0);
            let count = u16::try_from(positions.len()).ok()?;
            // A position of weight D, whose bits are 0.
            data.extend([count].iter().chain(&positions).flat_map(|number| number.to_le_bytes()));
        }
    }
    out.extend(u32::try_from(entries.len()).ok()?.to_le_bytes());
    out.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
    out.extend_from_slice(&data);
    Some(())
}

/// `word` or `'word':7`.
fn read(item: &str) -> Option<(&str, Option<u16>)> {
    let (word, position) = match item.strip_prefix('\'') {
        Some(quoted) => {
            let (word, position) = quoted.split_once("':")?;
            let digits = position.bytes().all(|byte| byte.is_ascii_digit());
            let position =
                position.parse().ok().filter(|position| digits && (1..=LAST).contains(position))?;
            (word, Some(position))
        }
        None => (item, None),
    };
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && (1..=LONGEST).contains(&word.len())).then_some((word, position))
}
