//! Random numbers that are a function of where they are used: seed, table, column and row.
//!
//! Every row has a place of its own in a long sequence: SplitMix64's mix of stream and row (Steele, Lea,
//! Flood, "Fast splittable pseudorandom number generators", 2014). From there on a counter runs, and
//! the numbers are a product of it: wyrand (Wang Yi, wyhash), one multiplication each.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random numbers of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

/// The random numbers of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Draw(u64);

impl Stream {
    /// The stream for these names, e.g. table and column.
    pub(crate) fn new(seed: u64, names: &[&str]) -> Self {
        // FNV-1a over the names, each ended by a byte that UTF-8 does not have.
        let bytes = names.iter().flat_map(|name| name.bytes().chain([0xFF]));
        let hash = bytes.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Self(mix(hash ^ mix(seed.wrapping_add(GOLDEN))))
    }

    /// A further stream for the same column.
    pub(crate) fn further(self) -> Self {
        Self(mix(self.0 ^ GOLDEN))
    }

    #[inline]
    pub(crate) fn draw(self, row: u64) -> Draw {
        Draw(mix(self.0.wrapping_add(row.wrapping_mul(GOLDEN))))
    }

    /// Maps row numbers to different, scrambled numbers (a bijection).
    pub(crate) fn scramble(self, row: u64) -> u64 {
        mix(self.0.wrapping_add(row))
    }
}

impl Draw {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        const STEP: u64 = 0xA076_1D64_78BD_642F;
        const FLIP: u64 = 0xE703_7ED1_A0B4_28DB;
        self.0 = self.0.wrapping_add(STEP);
        let product = u128::from(self.0) * u128::from(self.0 ^ FLIP);
        halves(product).0 ^ halves(product).1
    }

    /// From 0 to `count - 1`.
    #[inline]
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        // Lemire's multiplication; a bias of count/2^64 shows in no test table.
        halves(u128::from(self.next()) * u128::from(count)).1
    }

    /// From `low` to `high`, both included.
    #[inline]
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let offset = match high.abs_diff(low).checked_add(1) {
            Some(count) => self.below(count),
            None => self.next(),
        };
        low.wrapping_add_unsigned(offset)
    }

    /// A length from `low` to `high`, both included.
    pub(crate) fn length(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(i64::from(low), i64::from(high))).expect("between two u32")
    }

    /// From 0 to below 1, in steps of 2^-53.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Low, high.
#[inline]
#[expect(clippy::cast_possible_truncation)]
fn halves(product: u128) -> (u64, u64) {
    (product as u64, (product >> 64) as u64)
}

#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
