//! `tsquery` (`TSQueryData` in `tsearch/ts_type.h`), from the forms in which rowgen writes it: words, and words that are
//! joined by `&`.

/// Words of letters and digits are stored as they are given.
const LONGEST: usize = 64;
/// `QI_VAL`, `QI_OPR`; `OP_AND`.
const VALUE: u8 = 1;
const OPERATOR: u8 = 2;
const AND: u8 = 2;

/// Number of items; operators before their operands, the right one first; the words in their order.
pub(super) fn payload(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let words: Vec<&str> = text.split(" & ").map(word).collect::<Option<_>>()?;
    let operators = words.len() - 1;
    out.extend(u32::try_from(words.len() + operators).ok()?.to_le_bytes());
    let mut places = Vec::new();
    let mut place = 0;
    for word in &words {
        places.push(u32::try_from(place).ok()?);
        place += word.len() + 1;
    }
    // `a & b & c` is `(a & b) & c`, which is stored as & c & b a.
    for (word, place) in words.iter().zip(places).rev() {
        let is_first = place == 0;
        if !is_first {
            // The left operand comes after the right one.
            out.extend([OPERATOR, AND, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        }
        out.extend([VALUE, 0, 0, 0]);
        out.extend(checksum(word.as_bytes()).to_le_bytes());
        // Twelve bits of length, twenty of the place.
        out.extend((u32::try_from(word.len()).ok()? | place << 12).to_le_bytes());
    }
    for word in words {
        out.extend_from_slice(word.as_bytes());
        out.push(0);
    }
    Some(())
}

/// `word` or `'word'`.
fn word(item: &str) -> Option<&str> {
    let word = match item.strip_prefix('\'') {
        Some(quoted) => quoted.strip_suffix('\'')?,
        None => item,
    };
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && (1..=LONGEST).contains(&word.len())).then_some(word)
}

/// `COMP_LEGACY_CRC32` (`port/pg_crc32c.h`, `utils/pg_crc.h`), which mixes two ways to use the table.
fn checksum(bytes: &[u8]) -> u32 {
    let entry = |index: u32| {
        (0..8).fold(index, |entry, _| if entry & 1 == 1 { entry >> 1 ^ 0xEDB8_8320 } else { entry >> 1 })
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| entry((sum >> 24 ^ u32::from(*byte)) & 0xFF) ^ sum << 8)
}
