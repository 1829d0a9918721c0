//! Checksums, beside those that PostgreSQL wrote and beside the definition.

use page::{checksum, set_checksum};
use proptest::prelude::*;

/// A page of zeros but for these bytes.
fn page(parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut page = vec![0; 8192];
    for (at, bytes) in parts {
        page[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    page
}

#[test]
fn checksums_are_those_that_postgresql_wrote() {
    // PostgreSQL 15: CREATE TABLE t (a int, b text), rows (7, 'seven') and (8, NULL), vacuumed.
    let heap = page(&[
        (0, b"\x00\x00\x00\x00\xd0\x5c\x76\x01\x6e\xf7\x04\x00\x20\x00\xb8\x1f"),
        (16, b"\x00\x20\x04\x20\x00\x00\x00\x00\xd8\x9f\x44\x00\xb8\x9f\x38\x00"),
        (0x1fb8, b"\xd6\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        (0x1fc8, b"\x02\x00\x02\x00\x01\x0b\x18\x01\x08\x00\x00\x00"),
        (0x1fd8, b"\xd5\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        (0x1fe8, b"\x01\x00\x02\x00\x02\x0b\x18\x00\x07\x00\x00\x00\x0dseven"),
    ]);
    assert_eq!(checksum(&heap, 0), 0xf76e);
    let visibility_map = page(&[
        (0, b"\x00\x00\x00\x00\xd0\x5c\x76\x01\x04\x29\x00\x00\x18\x00\x00\x20"),
        (16, b"\x00\x20\x04\x20\x00\x00\x00\x00\x03"),
    ]);
    assert_eq!(checksum(&visibility_map, 0), 0x2904);
}

/// `checksum_impl.h`, word by word.
fn as_defined(page: &[u8], block: u32) -> u32 {
    const OFFSETS: [u32; 32] = [
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
    let mut sums = OFFSETS;
    let words = page.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    // The checksum is the lower half of the third word.
    let words = words.enumerate().map(|(at, word)| if at == 2 { word & 0xFFFF_0000 } else { word });
    for (at, word) in words.chain([0; 64]).enumerate() {
        let sum = &mut sums[at % 32];
        let mixed = *sum ^ word;
        *sum = mixed.wrapping_mul(16_777_619) ^ (mixed >> 17);
    }
    (sums.iter().fold(0, |all, sum| all ^ sum) ^ block) % 65_535 + 1
}

proptest! {
    #[test]
    fn checksums_are_as_defined(
        seed in prop::collection::vec(any::<u8>(), 1..500),
        shift in 10_u32..=15,
        block: u32,
    ) {
        let mut page: Vec<u8> = seed.iter().copied().cycle().take(1 << shift).collect();
        let expected = as_defined(&page, block);
        prop_assert_eq!(u32::from(checksum(&page, block)), expected);
        set_checksum(&mut page, block);
        prop_assert_eq!(u32::from(u16::from_le_bytes([page[8], page[9]])), expected);
        prop_assert_eq!(u32::from(checksum(&page, block)), expected, "its own field does not count");
    }
}
