//! Arrays of one dimension (`ArrayType` in `utils/array.h`), as `array_in` makes them.

use super::attribute::{Layout, long_header, pad};
use super::literal;
use crate::{Kind, render};

/// The array's own header, in which its data's alignment counts.
const HEADER: usize = 4;

/// Number of dimensions, no null bitmap, type of the elements; length and lower bound of the dimension;
/// the elements, each with its padding after it, those of varying length with long headers.
pub(super) fn payload(element: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let elements = elements(element, text)?;
    let begin = out.len();
    let dimensions = u32::from(!elements.is_empty());
    let oid = match element {
        Kind::Enum { oid, .. } => *oid,
        element => element.oid()?,
    };
    out.extend([dimensions, 0, oid].iter().flat_map(|number| number.to_le_bytes()));
    if elements.is_empty() {
        return Some(());
    }
    out.extend([u32::try_from(elements.len()).ok()?, 1].iter().flat_map(|number| number.to_le_bytes()));
    // Elements are aligned as seen from the array's header, which is not in `out`. It has 4 bytes, and
    // types are aligned to 8 at most: 4 bytes before `begin` are the same to them as 4 after it.
    let start = begin + HEADER;
    for text in &elements {
        match Layout::of(element) {
            Layout::Fixed { align, .. } => {
                literal::payload(element, text, out)?;
                pad(start, align, out);
            }
            Layout::Varlena { align } => {
                let header = out.len();
                out.extend([0; HEADER]);
                literal::payload(element, text, out)?;
                let length = out.len() - header - HEADER;
                out[header..header + HEADER].copy_from_slice(&long_header(length));
                pad(start, align, out);
            }
        }
    }
    Some(())
}

/// The parts of `{…}`, in quotes where they need it.
fn elements(kind: &Kind, text: &str) -> Option<Vec<String>> {
    let [open, delimiter, close] = render::array(kind).map(char::from);
    let mut rest = text.strip_prefix(open)?.strip_suffix(close)?;
    let mut elements = Vec::new();
    if rest.is_empty() {
        return Some(elements);
    }
    loop {
        let (element, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_part(quoted)?
        } else {
            plain_part(rest, delimiter)?
        };
        elements.push(element);
        if after.is_empty() {
            return Some(elements);
        }
        rest = after.strip_prefix(delimiter)?;
    }
}

/// Up to the closing quote, and what follows that.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((part, chars.as_str())),
            '\\' => part.push(chars.next()?),
            char => part.push(char),
        }
    }
}

/// Up to what means something in an array, and that; NULL is no value.
fn plain_part(text: &str, delimiter: char) -> Option<(String, &str)> {
    let special = |char: char| char == delimiter || "{}\"\\ \t\n\r\u{b}\u{c}".contains(char);
    let (part, after) = text.split_at(text.find(special).unwrap_or(text.len()));
    (!part.is_empty() && !part.eq_ignore_ascii_case("null")).then(|| (part.to_owned(), after))
}
