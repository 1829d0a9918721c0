//! PostgreSQL's hash partitioning.

/// `HASH_PARTITION_SEED` (`partitioning/partbounds.h`).
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// The remainder of the partition that PostgreSQL puts a row into: hash partitioned by one integer
/// column (`smallint`, `int` or `bigint`), with `modulus` partitions.
///
/// As `compute_partition_hash_value` (`partbounds.c`) with `hashint2extended`, `hashint4extended` and
/// `hashint8extended` (`hashfunc.c`), which agree on equal numbers; the same in PostgreSQL 11 to 18.
///
/// # Panics
/// If `modulus` is 0.
pub fn hash_partition(key: i64, modulus: u32) -> u32 {
    let [low, high] = halves(key.cast_unsigned());
    let folded = low ^ if key >= 0 { high } else { !high };
    // hash_combine64 of the row's hash, still 0, with the column's.
    let row_hash = hash(folded).wrapping_add(0x49A0_F4DD_15E5_A8E3);
    u32::try_from(row_hash % u64::from(modulus)).expect("below a u32")
}

/// `hash_bytes_uint32_extended` (`common/hashfn.c`): Bob Jenkins's lookup3 of one word.
fn hash(word: u32) -> u64 {
    const START: u32 = 0x9E37_79B9 + 4 + 3_923_095;
    let [seed_low, seed_high] = halves(SEED);
    let (mut a, mut b, mut c) = (START.wrapping_add(seed_high), START.wrapping_add(seed_low), START);
    for (rotation_a, rotation_b, rotation_c) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(rotation_a);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(rotation_b);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(rotation_c);
        b = b.wrapping_add(a);
    }
    a = a.wrapping_add(word);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    u64::from(b) << 32 | u64::from(c)
}

/// Low, high.
#[expect(clippy::cast_possible_truncation)]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}
