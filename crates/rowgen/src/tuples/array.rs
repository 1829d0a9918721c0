//! Arrays of one dimension (`ArrayType` in `utils/array.h`), as `array_in` makes them.

use std::borrow::Cow;

use super::attribute::{self, Layout, long_header, pad};
use super::literal;
use crate::generate::any;
use crate::random::Draw;
use crate::{Kind, render};

/// Length of the array's varlena header. The alignment of its elements is counted from before it.
const HEADER: usize = 4;

/// Number of dimensions, no null bitmap, type of the elements; length and lower bound of the dimension;
/// the elements, each with its padding after it, those of varying length with long headers.
pub(super) fn payload(element: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let elements = elements(element, text)?;
    let start = begin(element, u32::try_from(elements.len()).ok()?, out)?;
    let layout = Layout::of(element);
    elements.iter().try_for_each(|text| push(layout, start, out, |out| literal::payload(element, text, out)))
}

/// Appends an array of elements that are drawn, as [`crate::generate::any::array`] draws them.
pub(super) fn drawn(element: &Kind, mut draw: Draw, out: &mut Vec<u8>) {
    let count = any::count_of_elements(&mut draw);
    let start = begin(element, count, out).expect("checked: the element has a form");
    let layout = Layout::of(element);
    let mut scratch = Vec::new();
    for _ in 0..count {
        let pushed = push(layout, start, out, |out| {
            match element {
                Kind::Text | Kind::Varchar(_) => any::text(element, &mut draw, out),
                element => attribute::payload(element, any::value(element, &mut draw, &mut scratch), out),
            }
            Some(())
        });
        pushed.expect("it was written");
    }
}

/// Appends the header of an array of so many elements. Returns the offset from which elements are
/// aligned; none if the type's OID is not known.
fn begin(element: &Kind, count: u32, out: &mut Vec<u8>) -> Option<usize> {
    let begin = out.len();
    let dimensions = u32::from(count > 0);
    let oid = match element {
        Kind::Enum { oid, .. }
        | Kind::Range { oid, .. }
        | Kind::Multirange { oid, .. }
        | Kind::Composite { oid, .. } => *oid,
        element => element.oid()?,
    };
    let numbers = [dimensions, 0, oid, count, 1];
    let numbers = if count > 0 { &numbers[..] } else { &numbers[..3] };
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
    // Elements are aligned as seen from the array's header, which is not in `out`. It has 4 bytes, and
    // types are aligned to 8 at most: 4 bytes before `begin` are the same to them as 4 after it.
    Some(begin + HEADER)
}

/// Appends an element whose payload `write` appends.
fn push(
    layout: Layout,
    start: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    match layout {
        Layout::Fixed { align, .. } => {
            write(out)?;
            pad(start, align, out);
        }
        Layout::Varlena { align, .. } => {
            let header = out.len();
            out.extend_from_slice(&[0; HEADER]);
            write(out)?;
            let length = out.len() - header - HEADER;
            out[header..header + HEADER].copy_from_slice(&long_header(length));
            pad(start, align, out);
        }
    }
    Some(())
}

/// The parts of `{…}`, in quotes where they need it.
fn elements<'a>(kind: &Kind, text: &'a str) -> Option<Vec<Cow<'a, str>>> {
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

/// Up to the closing quote, and the rest after it.
fn quoted_part(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.bytes().position(|byte| byte == b'"' || byte == b'\\')?;
    if let Some(after) = text[end..].strip_prefix('"') {
        return Some((Cow::Borrowed(&text[..end]), after));
    }
    let mut part = text[..end].to_owned();
    let mut chars = text[end..].chars();
    loop {
        match chars.next()? {
            '"' => return Some((Cow::Owned(part), chars.as_str())),
            '\\' => part.push(chars.next()?),
            char => part.push(char),
        }
    }
}

/// The text up to the next character that has a meaning in an array, and the rest; the word NULL is
/// none.
fn plain_part(text: &str, delimiter: char) -> Option<(Cow<'_, str>, &str)> {
    let special = |byte: u8| char::from(byte) == delimiter || b"{}\"\\ \t\n\r\x0b\x0c".contains(&byte);
    let (part, after) = text.split_at(text.bytes().position(special).unwrap_or(text.len()));
    (!part.is_empty() && !part.eq_ignore_ascii_case("null")).then_some((Cow::Borrowed(part), after))
}
