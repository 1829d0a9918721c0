//! Numbers in decimal.

use std::io::Write;

use crate::Kind;

pub(super) fn integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `units` × 10^-`decimals`.
pub(super) fn decimal(units: i64, decimals: i16, out: &mut Vec<u8>) {
    let Ok(decimals @ 1..) = usize::try_from(decimals) else {
        integer(units, out);
        if units != 0 {
            out.resize(out.len() + usize::from(decimals.unsigned_abs()), b'0');
        }
        return;
    };
    if units < 0 {
        out.push(b'-');
    }
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(units.unsigned_abs()).as_bytes();
    let zeros = (decimals + 1).saturating_sub(digits.len());
    let point = out.len() + zeros + digits.len() - decimals;
    out.resize(out.len() + zeros, b'0');
    out.extend_from_slice(digits);
    out.insert(point, b'.');
}

/// The shortest number that reads as the same.
pub(super) fn real(kind: &Kind, value: f64, out: &mut Vec<u8>) {
    #[expect(clippy::cast_possible_truncation)]
    let written = match kind {
        Kind::Float4 => write!(out, "{:?}", value as f32),
        _ => write!(out, "{value:?}"),
    };
    written.expect("memory takes it");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(units: i64, places: i16) -> String {
        // After other bytes: only the appended ones may move.
        let mut out = b"1,".to_vec();
        decimal(units, places, &mut out);
        String::from_utf8(out.split_off(2)).unwrap()
    }

    #[test]
    fn decimals_stand_where_they_should() {
        for (units, decimals, expected) in [
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (12345, 2, "123.45"),
            (-12345, 0, "-12345"),
            (3, 5, "0.00003"),
            (12, -2, "1200"),
            (0, -2, "0"),
            (i64::MIN, 18, "-9.223372036854775808"),
        ] {
            assert_eq!(written(units, decimals), expected);
        }
    }
}
