//! How a B-tree grows by entries in random order.
//!
//! CREATE INDEX fills leaves to 90 %. Entries in random order split them, and nearly all at about the same time: an index that
//! grows by a fifth of its entries nearly doubles, and then stays as large until it has doubled its entries. So bytes for each new
//! entry depend on how many come to how many.
//!
//! The expected number of leaves is computed, not simulated: while nearly all of them split, a few thousand leaves that are drawn
//! at random would still miss it by percents.

/// Factor by which the entries grow at most; beyond, the index grows as one from nothing does.
const MOST: f64 = 4.0;
/// Distance of the points of the curve: logarithm of the factor by which the entries have grown.
const STEP: f64 = 0.002;
/// Number of leaves of the index in the calculation.
const LEAVES: usize = 50;
/// Share of a leaf that is filled on average, in an index that has grown by entries in random order (the logarithm of 2), and
/// the share above which leaves are as CREATE INDEX left them.
const GROWN: f64 = std::f64::consts::LN_2;
const PACKED: f64 = 0.8;
/// Bytes of a page, and those of a leaf for its entries and its high key.
const PAGE: f64 = 8192.0;
const LEAF: f64 = 8152.0;
/// Bytes of these that CREATE INDEX leaves free (nbtsort.c), and those of a line pointer, one of which is spare.
const FREE: f64 = 819.0;
const POINTER: f64 = 4.0;
/// Distance of an entry's size from one that all entries can have, up to which all have it.
const NEAR: f64 = 0.015;

/// A B-tree with entries, before others come in random order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Splits {
    /// Its bytes and entries now.
    bytes: f64,
    entries: f64,
    /// Number of leaves for one leaf now, each point a [`STEP`] further.
    curve: Vec<f64>,
}

impl Splits {
    /// Of an index with so many bytes and entries; `entry` is the size of an entry in a leaf, bytes. `leaves` has the shares of
    /// leaves that are taken; without any, they follow from the index's size.
    pub(crate) fn of(bytes: f64, entries: f64, entry: f64, leaves: &[f64]) -> Self {
        let most = most(entry);
        let usual = |place: f64| {
            let average = entries / (bytes.max(PAGE) / PAGE) / f64::from(most);
            if average >= PACKED { packed(entry) } else { most_of(most, usual(average, place)) }
        };
        let taken = |place: f64| {
            // The high key is no entry.
            if leaves.is_empty() {
                usual(place)
            } else {
                whole_number(at(leaves, place) * LEAF / entry - 1.0)
            }
        };
        let places = (0..LEAVES).map(|number| (number as f64 + 0.5) / LEAVES as f64);
        let begun: Vec<u32> = places.map(|place| taken(place).clamp(1, most)).collect();
        Self { bytes, entries, curve: curve(&begun, most) }
    }

    /// Bytes by which it grows with so many new entries.
    pub(crate) fn added(&self, new: f64) -> f64 {
        let times = 1.0 + new / self.entries.max(1.0);
        let at = times.ln() / STEP;
        let last = self.curve.len() - 1;
        let whole = whole_number(at) as usize;
        let grown = if whole >= last {
            self.curve[last] * times / (last as f64 * STEP).exp()
        } else {
            self.curve[whole] + (self.curve[whole + 1] - self.curve[whole]) * (at - whole as f64)
        };
        self.bytes * (grown - 1.0)
    }
}

/// The size of an entry in leaves, with its line pointer, of an index in which CREATE INDEX takes so many bytes for each.
pub(crate) fn entry_size(packed: f64) -> f64 {
    // Beside the entries, a leaf has its high key, and there is a page of the level above for hundreds of leaves.
    let entry = (LEAF - FREE) / (PAGE / packed + 1.0);
    // Tuples are multiples of 8 bytes long.
    let even = ((entry - POINTER) / 8.0).round().max(2.0) * 8.0 + POINTER;
    if (entry - even).abs() < NEAR * even { even } else { entry }
}

/// Entries of a full leaf.
fn most(entry: f64) -> u32 {
    whole_number(LEAF / entry - 1.0).max(4)
}

/// Entries of a leaf as CREATE INDEX fills it: the first one with less than [`FREE`] bytes moves on.
fn packed(entry: f64) -> u32 {
    whole_number(((LEAF - 2.0 * POINTER - FREE) / entry).ceil() - 1.0)
}

fn most_of(most: u32, share: f64) -> u32 {
    whole_number(f64::from(most) * share)
}

fn whole_number(number: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts stop at the bounds")]
    let whole = number as u32;
    whole
}

/// The share of a leaf that is taken, at this place (0 to 1) among leaves that are `full` on average. In an index that has grown
/// long, leaves with a share `s` are as frequent as 1/s²: then as many leaves split at any time as the new entries need.
fn usual(full: f64, place: f64) -> f64 {
    (full.max(0.5) / GROWN / (2.0 - place)).min(1.0)
}

/// The one of these numbers at a place from 0 to 1.
fn at(numbers: &[f64], place: f64) -> f64 {
    let number = whole_number(place * numbers.len() as f64) as usize;
    numbers[number.min(numbers.len() - 1)]
}

/// Leaves for each one at the beginning, while entries come. `begun` has the entries of leaves at the beginning; leaves hold `most`.
fn curve(begun: &[u32], most: u32) -> Vec<f64> {
    // A half as a split leaves it, and later its own halves.
    let halves = whole(most.div_ceil(2), most);
    let mut of_half: Vec<f64> = Vec::with_capacity(halves.len());
    for at in 0..halves.len() {
        of_half.push(leaves(&halves, &of_half, at));
    }
    let mut sorted = begun.to_vec();
    sorted.sort_unstable();
    let mut all = vec![0.0; halves.len()];
    for alike in sorted.chunk_by(|one, other| one == other) {
        for (sum, chance) in all.iter_mut().zip(whole(alike[0], most)) {
            *sum += chance * alike.len() as f64 / sorted.len() as f64;
        }
    }
    (0..all.len()).map(|at| leaves(&all, &of_half, at)).collect()
}

/// Leaves expected at a point for one that is `whole` with these chances: it, or the two halves that it has split into before.
fn leaves(whole: &[f64], of_half: &[f64], at: usize) -> f64 {
    let split = (1..=at).map(|split| (whole[split - 1] - whole[split]) * of_half[at - split]);
    whole[at] + 2.0 * split.sum::<f64>()
}

/// The chances, by points, that a leaf has not split. Old and new keys are alike, so the next key comes to a leaf with the chance
/// of its share of all entries (Pólya's urn): the number that has come to it is negative binomial.
fn whole(entries: u32, most: u32) -> Vec<f64> {
    let points = whole_number(MOST.ln() / STEP) + 1;
    let at = |point: u32| {
        let stays = (-STEP * f64::from(point)).exp();
        let mut chance = stays.powi(i32::try_from(entries).unwrap_or(i32::MAX));
        let mut all = chance;
        for more in 1..=most.saturating_sub(entries) {
            chance *= (1.0 - stays) * f64::from(entries + more - 1) / f64::from(more);
            all += chance;
        }
        all.min(1.0)
    };
    (0..points).map(at).collect()
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
        // In the middle of the splits, a leaf of two has split.
        let middle = packed.added(45_000.0 * (41.5 / 366.0)) / 1e6;
        assert!((middle - 0.5).abs() < 0.05, "{middle}");
        // All of them have just split.
        let split = Splits::of(1e6, 1e6 * GROWN / 20.0, 20.0, &[0.66, 0.68, 0.7, 0.72]);
        let added = |times: f64| split.added(split.entries * times) / 1e6;
        assert!(added(0.2) < 0.01 && added(0.7) > 0.9, "{} {}", added(0.2), added(0.7));
    }

    #[test]
    fn leaves_hold_what_the_server_puts_into_them() {
        // Of bigint, as bt_page_stats counts them without the high key.
        assert_eq!((packed(20.0), most(20.0)), (366, 406));
        // Bytes for each of 30,000 rows, with the root.
        assert!((entry_size(83.0 * 8192.0 / 30_000.0) - 20.0).abs() < 1e-9);
        assert!((entry_size(8192.0 / 366.0) - 20.0).abs() < 1e-9);
    }
}
