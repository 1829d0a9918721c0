//! Arrays, ranges and composite values: parts in brackets, quoted where they need it.

use crate::Kind;
use crate::value::Value;

/// The opening bracket of a sequence, the separator and the closing bracket.
pub(crate) type Brackets = [u8; 3];

/// A composite value's.
pub(crate) const COMPOSITE: Brackets = *b"(,)";
/// A multirange's.
pub(crate) const MULTIRANGE: Brackets = *b"{,}";

/// An array's: those of boxes have another delimiter (`typdelim` in pg_type.dat).
pub(crate) fn array(element: &Kind) -> Brackets {
    if *element == Kind::Box { *b"{;}" } else { *b"{,}" }
}

/// Appends a sequence whose parts `part` appends.
pub(crate) fn sequence<T>(
    [open, delimiter, close]: Brackets,
    parts: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
    mut part: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(open);
    for (position, item) in parts.into_iter().enumerate() {
        if position > 0 {
            out.push(delimiter);
        }
        part(item, out);
    }
    out.push(close);
}

/// Appends a range from `low`, included, to `high`, excluded; without end if there is no `high`.
pub(crate) fn range(kind: &Kind, low: Value<'_>, high: Option<Value<'_>>, out: &mut Vec<u8>) {
    out.push(b'[');
    element(kind, low, out);
    out.push(b',');
    if let Some(high) = high {
        element(kind, high, out);
    }
    out.push(b')');
}

/// Appends a part of a sequence, in quotes unless it is made of letters, digits and marks that mean
/// nothing in any sequence.
pub(crate) fn element(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    super::value(kind, value, out);
    let text = &out[start..];
    let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"-+.:/".contains(byte);
    if !text.is_empty() && text.iter().all(harmless) && !text.eq_ignore_ascii_case(b"null") {
        return;
    }
    let has_escapes = text.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    out.insert(start, b'"');
    if has_escapes {
        let text = out.split_off(start + 1);
        for byte in text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
    out.push(b'"');
}
