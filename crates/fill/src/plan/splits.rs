//! How a B-tree grows by entries in random order.
//!
//! CREATE INDEX fills leaves to 90 %. Entries in random order split them, and nearly all at about the same time: an index that
//! grows by a fifth of its entries nearly doubles, and then stays as large until it has doubled its entries. So bytes for each new
//! entry depend on how many come to how many.

/// Leaves that are simulated.
const LEAVES: usize = 200;
/// New entries for each one present, up to which they are simulated; beyond, the index grows as one from nothing does.
const MOST: f64 = 3.0;
/// Points of the curve for each entry present.
const POINTS: f64 = 100.0;
/// Share of a leaf that is filled on average, in an index that has grown by entries in random order (the logarithm of 2), and
/// the share above which leaves are as CREATE INDEX left them.
const GROWN: f64 = std::f64::consts::LN_2;
const PACKED: f64 = 0.8;
/// Bytes of a leaf for entries.
const LEAF: f64 = 8152.0;

/// A B-tree with entries, before others come in random order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Splits {
    /// Its bytes and entries now.
    bytes: f64,
    entries: f64,
    /// Number of leaves for one leaf now, after so many hundredths of its entries have come.
    curve: Vec<f64>,
}

impl Splits {
    /// Of an index with so many bytes and entries; `entry` is the size of an entry in a leaf, bytes. `leaves` has the shares of
    /// leaves that are taken; without any, they follow from the index's size.
    pub(crate) fn of(bytes: f64, entries: f64, entry: f64, leaves: &[f64]) -> Self {
        let full = (entries * entry / bytes.max(1.0)).clamp(0.5, 0.9);
        let most = (LEAF / entry).max(4.0);
        let share = |place: f64| {
            if leaves.is_empty() { usual(full, place) } else { at(leaves, place) }
        };
        Self { bytes, entries, curve: curve(share, most) }
    }

    /// Bytes by which it grows with so many new entries.
    pub(crate) fn added(&self, new: f64) -> f64 {
        let times = new / self.entries;
        let at = times * POINTS;
        let last = self.curve.len() - 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let whole = (at as usize).min(last - 1);
        let beyond = at - whole as f64;
        let grown = if whole == last - 1 && beyond > 1.0 {
            self.curve[last] * (1.0 + times) / (1.0 + last as f64 / POINTS)
        } else {
            self.curve[whole] + (self.curve[whole + 1] - self.curve[whole]) * beyond
        };
        self.bytes * (grown - 1.0)
    }
}

/// A leaf: its share of the keys, and its entries.
#[derive(Clone, Copy)]
struct Leaf {
    share: f64,
    entries: f64,
}

/// The share of a leaf that is taken, at this place (0 to 1) among leaves that are `full` on average.
fn usual(full: f64, place: f64) -> f64 {
    if full >= PACKED { full } else { (full / GROWN * 2_f64.powf(place - 1.0)).min(1.0) }
}

/// The one of these numbers at a place from 0 to 1.
fn at(numbers: &[f64], place: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let number = (place * numbers.len() as f64) as usize;
    numbers[number.min(numbers.len() - 1)]
}

/// Leaves for each one at the beginning, while entries come. Leaves hold `most` entries; `share` gives the share of a leaf that
/// is taken at the beginning, for its place (0 to 1).
fn curve(share: impl Fn(f64) -> f64, most: f64) -> Vec<f64> {
    let mut random = Random(1);
    let mut families: Vec<Vec<Leaf>> = (0..LEAVES)
        .map(|number| {
            let place = (number as f64 + 0.5) / LEAVES as f64;
            vec![Leaf { share: 1.0, entries: (share(place).clamp(0.0, 1.0) * most).floor().max(1.0) }]
        })
        .collect();
    let began: Vec<f64> = families.iter().map(|family| family[0].entries).collect();
    let present: f64 = began.iter().sum();
    let mut curve = vec![1.0];
    let mut leaves = LEAVES;
    let mut came = 0.0;
    while came < present * MOST {
        let number = random.below(LEAVES);
        // A leaf with more entries has more of the keys.
        if random.share() * most > began[number] {
            continue;
        }
        let family = &mut families[number];
        let mut place = random.share();
        let at = family.iter().position(|leaf| {
            place -= leaf.share;
            place < 0.0
        });
        let leaf = &mut family[at.unwrap_or(0)];
        leaf.entries += 1.0;
        if leaf.entries > most {
            *leaf = Leaf { share: leaf.share / 2.0, entries: leaf.entries / 2.0 };
            let half = *leaf;
            family.push(half);
            leaves += 1;
        }
        came += 1.0;
        if came >= present * curve.len() as f64 / POINTS {
            curve.push(leaves as f64 / LEAVES as f64);
        }
    }
    curve
}

/// Numbers that look random, the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, most: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let number = (self.share() * most as f64) as usize;
        number.min(most - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_leaves_split_all_at_once_and_grown_ones_by_and_by() {
        let packed = Splits::of(1e6, 45_000.0, 20.0, &[]);
        let ratio = |splits: &Splits, times: f64| splits.added(45_000.0 * times) / 1e6;
        assert!(ratio(&packed, 0.01) < 0.02, "{}", ratio(&packed, 0.01));
        assert!(ratio(&packed, 0.25) > 0.9, "{}", ratio(&packed, 0.25));
        assert!((ratio(&packed, 0.7) - 1.0).abs() < 0.1, "{}", ratio(&packed, 0.7));
        let grown = Splits::of(1e6, 1e6 * GROWN / 20.0, 20.0, &[]);
        for times in [0.1, 0.5, 1.0, 2.5, 10.0] {
            let added = grown.added(grown.entries * times) / 1e6;
            assert!((added - times).abs() < 0.03 + 0.15 * times, "{times}: {added}");
        }
        // All of them have just split.
        let split = Splits::of(1e6, 1e6 * GROWN / 20.0, 20.0, &[0.66, 0.68, 0.7, 0.72]);
        let added = |times: f64| split.added(split.entries * times) / 1e6;
        assert!(added(0.2) < 0.01 && added(0.7) > 0.9, "{} {}", added(0.2), added(0.7));
    }
}
