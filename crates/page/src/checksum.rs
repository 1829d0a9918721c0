//! A page's checksum (`storage/checksum_impl.h`).

use multiversion::multiversion;

/// Place of the checksum in a page's header: `pd_checksum`.
const FIELD: std::ops::Range<usize> = 8..10;
/// Number of hashes that are computed side by side. Each takes every 32nd word of the page.
const LANES: usize = 32;
/// One word for each lane, bytes.
const ROW: usize = LANES * size_of::<u32>();
/// FNV-1a's multiplier.
const PRIME: u32 = 16_777_619;
/// Initial values of the lanes: arbitrary, but all different.
const OFFSETS: [u32; LANES] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

/// The checksum that the page has if it is this block of its relation, counted over all segments
/// (`pg_checksum_page`). The content of the page's own checksum field does not matter.
///
/// # Panics
/// For a page without a header.
pub fn checksum(page: &[u8], block: u32) -> u16 {
    let reduced = (hash(page) ^ block) % 65_535 + 1;
    u16::try_from(reduced).expect("at most 65535")
}

/// Writes a finished page's checksum into its header.
///
/// # Panics
/// For a page without a header.
pub fn set_checksum(page: &mut [u8], block: u32) {
    let checksum = checksum(page, block);
    page[FIELD].copy_from_slice(&checksum.to_le_bytes());
}

/// All lanes' hashes XORed (`pg_checksum_block`).
///
/// Plain x86-64 has no instruction that multiplies four 32-bit integers. With those of AVX2, used
/// where the processor has them, this takes half the time.
#[multiversion(targets("x86_64+avx2"))]
fn hash(page: &[u8]) -> u32 {
    let (rows, _) = page.as_chunks::<ROW>();
    let (first, others) = rows.split_first().expect("a page has a header");
    let mut first = *first;
    first[FIELD].fill(0);
    let mut sums = mix(OFFSETS, &first);
    for row in others {
        sums = mix(sums, row);
    }
    for _ in 0..2 {
        sums = mix(sums, &[0; ROW]);
    }
    sums.into_iter().fold(0, |all, sum| all ^ sum)
}

/// A further word in each lane (`CHECKSUM_COMP`).
#[expect(clippy::inline_always, reason = "compiled with its caller's instructions only if inlined")]
#[inline(always)]
fn mix(mut sums: [u32; LANES], row: &[u8; ROW]) -> [u32; LANES] {
    let (words, _) = row.as_chunks();
    for (sum, word) in sums.iter_mut().zip(words) {
        let mixed = *sum ^ u32::from_le_bytes(*word);
        *sum = mixed.wrapping_mul(PRIME) ^ (mixed >> 17);
    }
    sums
}
