//! Fillers: fast to make, and as compressible as asked for.

use std::sync::LazyLock;

use crate::Payload;
use crate::random::Draw;

/// Appends so many bytes of printable ASCII without backslash: one character each.
pub(super) fn characters(payload: Payload, length: u32, draw: &mut Draw, out: &mut Vec<u8>) {
    match payload {
        Payload::Blank => out.resize(out.len() + length as usize, b' '),
        Payload::Text => words(length, draw, out),
        Payload::Random => blocks(length, out, || characters_of(random(draw))),
    }
}

/// Appends so many bytes for `bytea`.
pub(super) fn bytes(payload: Payload, length: u32, draw: &mut Draw, out: &mut Vec<u8>) {
    match payload {
        Payload::Blank => out.resize(out.len() + length as usize, 0),
        Payload::Text => words(length, draw, out),
        Payload::Random => blocks(length, out, || random(draw)),
    }
}

/// Bytes that are made in one step. The length is constant so that the compiler unrolls the loop.
type Block = [u8; 32];

fn blocks(length: u32, out: &mut Vec<u8>, mut block: impl FnMut() -> Block) {
    let mut left = length as usize;
    while left >= size_of::<Block>() {
        out.extend_from_slice(&block());
        left -= size_of::<Block>();
    }
    out.extend_from_slice(&block()[..left]);
}

fn random(draw: &mut Draw) -> Block {
    let mut block = Block::default();
    for eight in block.chunks_exact_mut(8) {
        eight.copy_from_slice(&draw.next().to_le_bytes());
    }
    block
}

/// Characters of crypt(3)'s alphabet, `./0-9A-Za-z`: the low 6 bits of each byte choose one. Without a
/// branch or a table, so that the processor does many at once.
fn characters_of(mut block: Block) -> Block {
    for byte in &mut block {
        let digit = *byte & 63;
        let from_a = if digit >= 12 { b'A' - b'9' - 1 } else { 0 };
        let from_small_a = if digit >= 38 { b'a' - b'Z' - 1 } else { 0 };
        *byte = b'.' + digit + from_a + from_small_a;
    }
    block
}

/// Longest of [`WORDS`] with the space after it.
const SLOT: usize = 12;
/// A power of two: nine random bits choose a word.
const SLOTS: usize = 512;

/// A word with a space after it, and how long both are.
#[derive(Clone, Copy)]
struct Word {
    bytes: [u8; SLOT],
    length: u8,
    /// The word without the space.
    text: &'static str,
}

/// Words by how often they come: as in a language the k-th about 1/k as often as the first.
static SLOTTED: LazyLock<[Word; SLOTS]> = LazyLock::new(|| {
    let words: Vec<&'static str> = WORDS.split_ascii_whitespace().collect();
    let total: f64 = (1..=words.len()).map(|rank| 1.0 / (rank as f64 + 12.0)).sum();
    let mut slots = [Word { bytes: [b' '; SLOT], length: 0, text: "" }; SLOTS];
    let (mut rank, mut reached) = (0, 1.0 / 13.0 / total);
    for (index, slot) in slots.iter_mut().enumerate() {
        while (index as f64 + 0.5) / SLOTS as f64 > reached && rank + 1 < words.len() {
            rank += 1;
            reached += 1.0 / (rank as f64 + 13.0) / total;
        }
        slot.bytes[..words[rank].len()].copy_from_slice(words[rank].as_bytes());
        slot.length = u8::try_from(words[rank].len() + 1).expect("words are short");
        slot.text = words[rank];
    }
    slots
});

/// The slot that the low bits choose.
#[expect(clippy::cast_possible_truncation)]
fn slot(bits: u64) -> usize {
    bits as usize % SLOTS
}

/// Appends so many bytes of words; the last one may be cut.
pub(super) fn words(length: u32, draw: &mut Draw, out: &mut Vec<u8>) {
    let slots = &*SLOTTED;
    let start = out.len();
    let end = start + length as usize;
    // Whole slots are copied, each over the excess bytes of the one before.
    out.resize(end + SLOT, 0);
    let mut at = start;
    while at < end {
        let mut bits = draw.next();
        for _ in 0..7 {
            if at >= end {
                break;
            }
            let word = slots[slot(bits)];
            out[at..at + SLOT].copy_from_slice(&word.bytes);
            at += usize::from(word.length);
            bits >>= 9;
        }
    }
    out.truncate(end);
    // As prose ends, and no blank at the end that some types ignore.
    if let Some(last @ b' ') = out[start..].last_mut() {
        *last = b'.';
    }
}

/// Appends whole words with spaces between them, as many as come before one that would make it longer than so many
/// bytes with a full stop.
pub(super) fn whole_words(most: usize, draw: &mut Draw, out: &mut Vec<u8>) {
    let slots = &*SLOTTED;
    let start = out.len();
    // Whole slots are copied, each over the excess bytes of the one before.
    out.resize(start + most + SLOT, 0);
    let mut end = start;
    loop {
        let word = slots[slot(draw.next())];
        // With the space before it; that after it is the full stop's place.
        let length = usize::from(word.length);
        if end - start + length + 1 > most {
            break;
        }
        let begin = if end == start { start } else { end + 1 };
        out[begin..begin + SLOT].copy_from_slice(&word.bytes);
        end = begin + length - 1;
    }
    out.truncate(end);
}

/// A word without the space after it.
pub(super) fn word(draw: &mut Draw) -> &'static str {
    SLOTTED[slot(draw.next())].text
}

/// Words by falling frequency.
const WORDS: &str = "the of and to in is was for that on as with by it at from his are were which \
    be this had or first one their has have also new but not been its two they who other after her \
    all time some only into most can there such more over used these would may then no when where \
    out year made many up he about any being between so she during later than before while years \
    through often known people city under system state world number since until part several war \
    them including same became found called well because did large early three another work both \
    film how order house if high each general long name second group use end small around line \
    place against what began million water without life area per much school team government set \
    power left force main left country music land common data book public held family home white \
    party south local still form great case service north show record season right level company \
    become within game river university national point led took final now day day four back good \
    change study history model result record student report office market value table field member \
    program support control science price quality method theory purpose product process research \
    current account branch customer balance payment invoice delivery quantity available different \
    important following published national education performance development production population \
    traditional information community president department popular political military international \
    particular position previous original addition language material increase activity computer \
    analysis building business practice standard property industry software pressure evidence";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn sample(payload: Payload, length: u32) -> Vec<u8> {
        let mut out = b"kept".to_vec();
        characters(payload, length, &mut Stream::new(1, &["t"]).draw(0), &mut out);
        assert!(out.starts_with(b"kept"));
        out.split_off(4)
    }

    #[test]
    fn every_length_is_met() {
        for payload in [Payload::Blank, Payload::Text, Payload::Random] {
            for length in 0..100 {
                assert_eq!(sample(payload, length).len(), length as usize, "{payload:?}");
            }
        }
    }

    #[test]
    fn the_64_characters_are_about_equally_frequent() {
        let mut counts = [0_u32; 256];
        for byte in sample(Payload::Random, 640_000) {
            counts[usize::from(byte)] += 1;
        }
        for (byte, count) in (0..=u8::MAX).zip(counts) {
            let expected = byte.is_ascii_alphanumeric() || b"./".contains(&byte);
            assert_eq!(expected, (9_500..10_500).contains(&count), "{byte}: {count}");
        }
    }
}
