//! PostgreSQL's own compression (`pg_lzcompress.c`, the default strategy), byte for byte.
//!
//! The output is groups of eight items behind a control byte, whose bits (lowest first) tell literals (0) from references
//! (1). A reference has 4 bits of length - 3 and 12 bits of distance; a length of 18 or more has a further byte.

/// Shorter values are not compressed (`min_input_size`).
const SHORTEST: usize = 32;
/// Greatest length of the output, percent of the input (`min_comp_rate` is 25).
const MOST_PERCENT: usize = 75;
/// Output bytes without any reference after which compression fails (`first_success_by`).
const FIRST_SUCCESS: usize = 1024;
/// Length of a match that ends the search (`match_size_good`), and the percentage by which it
/// shrinks from candidate to candidate.
const GOOD_MATCH: usize = 128;
const GOOD_DROP: usize = 10;
/// Longest match (`PGLZ_MAX_MATCH`).
const LONGEST: usize = 273;
/// Distances are below this (12 bits).
const DISTANCE: usize = 0x0fff;
/// Positions that are remembered (`PGLZ_HISTORY_SIZE`). Entry 0 stands for none.
const HISTORY: u16 = 4096;
/// Lists of positions at most (`PGLZ_MAX_HISTORY_LISTS`).
const LISTS: usize = 8192;

/// A position of the input, in the list of those with the same hash.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    next: u16,
    previous: u16,
    list: u16,
    position: u32,
}

/// Memory for compression, used again and again.
#[derive(Clone, Debug)]
pub(super) struct Compressor {
    starts: Vec<u16>,
    entries: Vec<Entry>,
    next: u16,
    /// Whether the memory of `next` is in use, so that its position must be removed from its list
    /// first.
    recycles: bool,
}

impl Compressor {
    pub(super) fn new() -> Self {
        Self {
            starts: vec![0; LISTS],
            entries: vec![Entry::default(); HISTORY as usize + 1],
            next: 1,
            recycles: false,
        }
    }

    /// Appends the compressed input to `out`; leaves that as it is if the server would store the input as it is.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        let is_done = input.len() >= SHORTEST && self.try_compress(input, out);
        if !is_done {
            out.truncate(begin);
        }
        is_done
    }

    fn try_compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        let most = if input.len() > i32::MAX as usize / 100 {
            input.len() / 100 * MOST_PERCENT
        } else {
            input.len() * MOST_PERCENT / 100
        };
        let lists = match input.len() {
            ..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => LISTS,
        };
        let mask = lists - 1;
        self.starts[..lists].fill(0);
        (self.next, self.recycles) = (1, false);

        let begin = out.len();
        let mut control = Control { place: begin, bits: 0, count: 8 };
        let mut has_match = false;
        let mut at = 0;
        while at < input.len() {
            let written = out.len() - begin;
            if written >= most || !has_match && written >= FIRST_SUCCESS {
                return false;
            }
            let length = if let Some((length, distance)) = self.longest_match(input, at, mask) {
                control.reference(length, distance, out);
                has_match = true;
                length
            } else {
                control.literal(input[at], out);
                1
            };
            for position in at..at + length {
                self.remember(input, position, mask);
            }
            at += length;
        }
        control.close(out);
        out.len() - begin < most
    }

    /// Length and distance of the match that the server finds.
    fn longest_match(&self, input: &[u8], at: usize, mask: usize) -> Option<(usize, usize)> {
        let here = &input[at..input.len().min(at + LONGEST)];
        let (mut length, mut distance) = (0, 0);
        let mut good = GOOD_MATCH;
        let mut entry = self.starts[hash(input, at, mask)];
        while entry != 0 {
            let Entry { next, position, .. } = self.entries[entry as usize];
            let position = position as usize;
            let away = at - position;
            if away >= DISTANCE {
                break;
            }
            // One that is no longer than the best so far need not be measured.
            if length == 0 || here.get(length).is_some_and(|byte| *byte == input[position + length]) {
                let same = common(here, &input[position..]);
                if same > length {
                    (length, distance) = (same, away);
                }
            }
            entry = next;
            if entry != 0 {
                if length >= good {
                    break;
                }
                good -= good * GOOD_DROP / 100;
            }
        }
        (length > 2).then_some((length, distance))
    }

    fn remember(&mut self, input: &[u8], position: usize, mask: usize) {
        let number = self.next;
        let list = hash(input, position, mask);
        if self.recycles {
            let Entry { next, previous, list, .. } = self.entries[number as usize];
            if previous == 0 {
                self.starts[list as usize] = next;
            } else {
                self.entries[previous as usize].next = next;
            }
            self.entries[next as usize].previous = previous;
        }
        let first = std::mem::replace(&mut self.starts[list], number);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a value is below 1 GB, a list's number below 8192"
        )]
        let entry = Entry { next: first, previous: 0, list: list as u16, position: position as u32 };
        self.entries[number as usize] = entry;
        self.entries[first as usize].previous = number;
        if number == HISTORY {
            (self.next, self.recycles) = (1, true);
        } else {
            self.next = number + 1;
        }
    }
}

/// List of a position: by the next four bytes, which are signed (`char` of the machines that pgrig runs on).
fn hash(input: &[u8], at: usize, mask: usize) -> usize {
    let byte = |byte: u8| isize::from(byte.cast_signed());
    let hash = match input[at..] {
        [a, b, c, d, ..] => byte(a) << 6 ^ byte(b) << 4 ^ byte(c) << 2 ^ byte(d),
        [a, ..] => byte(a),
        [] => 0,
    };
    hash.cast_unsigned() & mask
}

/// Number of bytes that are the same from the beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    let (ones, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let mut same = 0;
    for (one, other) in ones.iter().zip(others) {
        let differing = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

/// The control byte of the items that are being written.
struct Control {
    place: usize,
    bits: u8,
    /// Items so far.
    count: u8,
}

impl Control {
    fn literal(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.item(out);
        out.push(byte);
    }

    #[expect(clippy::cast_possible_truncation, reason = "length and distance have 9 and 12 bits")]
    fn reference(&mut self, length: usize, distance: usize, out: &mut Vec<u8>) {
        let bit = self.item(out);
        self.bits |= bit;
        let high = (distance >> 4 & 0xf0) as u8;
        if length > 17 {
            out.extend([high | 0x0f, distance as u8, (length - 18) as u8]);
        } else {
            out.extend([high | (length - 3) as u8, distance as u8]);
        }
    }

    /// Begins an item; returns its bit.
    fn item(&mut self, out: &mut Vec<u8>) -> u8 {
        if self.count == 8 {
            if out.len() > self.place {
                out[self.place] = self.bits;
            }
            (self.place, self.bits, self.count) = (out.len(), 0, 0);
            out.push(0);
        }
        self.count += 1;
        1 << (self.count - 1)
    }

    fn close(self, out: &mut [u8]) {
        if let Some(place) = out.get_mut(self.place) {
            *place = self.bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads the format as `pglz_decompress` does.
    fn decompressed(mut from: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some((control, rest)) = from.split_first() {
            from = rest;
            for bit in 0..8 {
                if from.is_empty() {
                    break;
                }
                if control >> bit & 1 == 0 {
                    out.push(from[0]);
                    from = &from[1..];
                    continue;
                }
                let mut length = usize::from(from[0] & 0x0f) + 3;
                let distance = usize::from(from[0] & 0xf0) << 4 | usize::from(from[1]);
                from = &from[2..];
                if length == 18 {
                    length += usize::from(from[0]);
                    from = &from[1..];
                }
                for _ in 0..length {
                    out.push(out[out.len() - distance]);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_smaller_and_reads_as_before(
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1_usize..40), 1..60),
        ) {
            let input: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            let mut compressor = Compressor::new();
            // Memory of the last value does not show.
            let mut out = Vec::new();
            compressor.compress(&b"something else ".repeat(500), &mut out);
            out.clear();
            if compressor.compress(&input, &mut out) {
                prop_assert!(out.len() < input.len() * MOST_PERCENT / 100);
                prop_assert_eq!(decompressed(&out), input);
            } else {
                prop_assert!(out.is_empty());
            }
        }
    }

    #[test]
    fn short_and_random_values_stay_as_they_are() {
        let mut out = Vec::new();
        assert!(!Compressor::new().compress(&[0; 31], &mut out));
        assert!(Compressor::new().compress(&[0; 32], &mut out));
        let mut state = 1_u32;
        let random: Vec<u8> = (0..5000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        out.clear();
        assert!(!Compressor::new().compress(&random, &mut out));
        assert!(out.is_empty());
    }
}
