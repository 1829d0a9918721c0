//! Reads and prints numbers as the C library does.

/// `isspace` in the C locale.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_space))
}

/// Whether the text looks like an integer, with blanks or a sign before it: `is_an_int` in
/// pgbench.c.
pub(crate) fn is_integer(text: &str) -> bool {
    let text = trim_start(text);
    text.strip_prefix(['+', '-']).unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit())
}

/// `strtol` over the whole text; none if it is no integer, or does not fit.
pub(crate) fn integer(text: &str) -> Option<i64> {
    trim_start(text).parse().ok()
}

/// `atoi`: the integer that the text begins with, 0 if none; saturated.
pub(crate) fn leading_integer(text: &str) -> i64 {
    let text = trim_start(text);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.len() - digits.len();
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return 0;
    }
    text[..sign + end].parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}

/// `strtod` over the whole text; none if it is no number, or too large or small for a normal `double`.
/// Hexadecimal is not read.
pub(crate) fn double(text: &str) -> Option<f64> {
    let text = trim_start(text);
    let value: f64 = text.parse().ok()?;
    let digits = text.split(['e', 'E']).next().unwrap_or(text);
    let named = !digits.bytes().any(|byte| byte.is_ascii_digit());
    let zero = !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (named || value.is_normal() || value == 0.0 && zero).then_some(value)
}

/// `%.15g`, with PostgreSQL's names of values that are not finite (`src/port/snprintf.c`).
pub(crate) fn general(value: f64) -> String {
    const DIGITS: i32 = 15;
    if !value.is_finite() {
        return not_finite(value).to_owned();
    }
    let scientific = format!("{value:.*e}", 14);
    let (mantissa, exponent) = scientific.split_once('e').expect("Rust writes an exponent");
    let exponent: i32 = exponent.parse().expect("Rust writes a number");
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).expect("not negative in this range");
        without_zeros(&format!("{value:.decimals$}")).to_owned()
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
    }
}

/// `%f`.
pub(crate) fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { not_finite(value).to_owned() }
}

fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The text without trailing zeros of its decimals, and without the point if no decimals remain.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_as_c_does() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333333333333"),
            (1e15, "1e+15"),
            (999_999_999_999_999.9, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.000_1, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (-1e300, "-1e+300"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(general(value), text);
        }
        assert_eq!(fixed(1.5), "1.500000");
        assert_eq!(fixed(f64::INFINITY), "Infinity");
    }

    #[test]
    fn numbers_are_read_as_c_does() {
        assert_eq!(leading_integer(" -12ab"), -12);
        assert_eq!(leading_integer("ab"), 0);
        assert_eq!(leading_integer("-"), 0);
        assert_eq!(leading_integer("99999999999999999999s"), i64::MAX);
        assert_eq!(double("1e-320"), None);
        assert_eq!(double("0e-999"), Some(0.0));
        assert_eq!(double(".5"), Some(0.5));
        assert_eq!(double("0x10"), None);
    }
}
