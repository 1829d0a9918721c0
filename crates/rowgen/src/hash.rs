//! PostgreSQL's hash partitioning.

/// `HASH_PARTITION_SEED` (`partitioning/partbounds.h`).
const SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// Added by `hash_combine64` (`common/hashfn.h`).
const COMBINE: u64 = 0x49A0_F4DD_15E5_A8E3;

/// The remainder of the partition that PostgreSQL puts a row into: hash partitioned by one integer
/// column (`smallint`, `int` or `bigint`), with `modulus` partitions.
///
/// # Panics
/// If `modulus` is 0.
pub fn hash_partition(key: i64, modulus: u32) -> u32 {
    let mut hash = RowHash::default();
    hash.integer(key);
    hash.remainder(modulus)
}

/// The hash by which PostgreSQL chooses a row's partition, of one key column after the other.
///
/// As `compute_partition_hash_value` (`partbounds.c`), which leaves NULLs out, with the functions of the default hash
/// operator classes (`hashfunc.c`); the same in PostgreSQL 11 to 18.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowHash(u64);

impl RowHash {
    /// Adds an integer, or a value that is stored as one: a boolean, a date, a time, an enum's OID. `hashint2extended`,
    /// `hashint4extended` and `hashint8extended` agree on equal numbers.
    pub fn integer(&mut self, key: i64) {
        let [low, high] = halves(key.cast_unsigned());
        self.add(hash_word(low ^ if key >= 0 { high } else { !high }));
    }

    /// Adds bytes: of a text with a deterministic collation, or of a uuid.
    pub fn bytes(&mut self, key: &[u8]) {
        self.add(hash_bytes(key));
    }

    /// Adds a numeric (`hash_numeric_extended`): its digits of base 10,000, the most significant one first, without zeros
    /// before and after them; and the weight of the first digit, its exponent to the base 10,000.
    pub fn numeric(&mut self, digits: &[u16], weight: i16) {
        let bytes: Vec<u8> = digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
        self.add(if digits.is_empty() {
            SEED.wrapping_sub(1)
        } else {
            hash_bytes(&bytes) ^ i64::from(weight).cast_unsigned()
        });
    }

    /// Adds a numeric that is NaN or infinite.
    pub fn special_numeric(&mut self) {
        self.add(SEED);
    }

    /// The remainder that decides the partition, among partitions of this modulus.
    ///
    /// # Panics
    /// If `modulus` is 0.
    pub fn remainder(self, modulus: u32) -> u32 {
        u32::try_from(self.0 % u64::from(modulus)).expect("below a u32")
    }

    /// `hash_combine64`.
    fn add(&mut self, hash: u64) {
        let Self(row) = *self;
        self.0 ^= hash.wrapping_add(COMBINE).wrapping_add(row << 54).wrapping_add(row >> 7);
    }
}

/// Bob Jenkins's lookup3, with the seed mixed in (`common/hashfn.c`).
struct Lookup3 {
    a: u32,
    b: u32,
    c: u32,
}

impl Lookup3 {
    fn new(length: usize) -> Self {
        // Lengths are those of values: below 2^30.
        let start =
            0x9E37_79B9_u32.wrapping_add(u32::try_from(length).unwrap_or(u32::MAX)).wrapping_add(3_923_095);
        let [seed_low, seed_high] = halves(SEED);
        let mut state = Self { a: start.wrapping_add(seed_high), b: start.wrapping_add(seed_low), c: start };
        state.mix();
        state
    }

    fn add(&mut self, [a, b, c]: [u32; 3]) {
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    fn mix(&mut self) {
        let Self { mut a, mut b, mut c } = *self;
        for (rotation_a, rotation_b, rotation_c) in [(4, 6, 8), (16, 19, 4)] {
            a = a.wrapping_sub(c) ^ c.rotate_left(rotation_a);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(rotation_b);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(rotation_c);
            b = b.wrapping_add(a);
        }
        *self = Self { a, b, c };
    }

    fn finish(self) -> u64 {
        let Self { mut a, mut b, mut c } = self;
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        c = (c ^ b).wrapping_sub(b.rotate_left(24));
        u64::from(b) << 32 | u64::from(c)
    }
}

/// `hash_bytes_uint32_extended`.
fn hash_word(word: u32) -> u64 {
    let mut state = Lookup3::new(4);
    state.add([word, 0, 0]);
    state.finish()
}

/// `hash_bytes_extended`.
fn hash_bytes(key: &[u8]) -> u64 {
    let mut state = Lookup3::new(key.len());
    let mut blocks = key.chunks_exact(12);
    for block in &mut blocks {
        state.add(words(block));
        state.mix();
    }
    // The lowest byte of the last word is left to the length.
    let rest = blocks.remainder();
    let mut last = [0; 12];
    let (front, back) = rest.split_at(rest.len().min(8));
    last[..front.len()].copy_from_slice(front);
    last[9..9 + back.len()].copy_from_slice(back);
    state.add(words(&last));
    state.finish()
}

fn words(bytes: &[u8]) -> [u32; 3] {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4), word(8)]
}

/// Low, high.
#[expect(clippy::cast_possible_truncation)]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}
