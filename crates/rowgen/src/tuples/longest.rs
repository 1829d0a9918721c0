//! Greatest lengths of bodies and values.

use super::attribute::{Attribute, Content, payload};
use super::composite::before_fields;
use super::varying::before_attributes;
use crate::generate::{Form, ITEMS, JSON, JSONB, LONG, UNIQUE_TEXT, XML, digits};
use crate::value::Value;
use crate::{Keys, Kind, Letters, Reference, Values};

/// Length of the longest body of these attributes, bytes.
pub(super) fn body(attributes: &[Attribute]) -> u32 {
    let has_nulls = attributes.iter().any(Attribute::may_be_null);
    let before =
        u32::try_from(before_attributes(attributes.len(), has_nulls)).expect("up to 1600 attributes");
    // A shorter value, or NULL, never makes the following attributes begin later.
    let end = attributes.iter().fold(0, |end, attribute| match &attribute.content {
        Content::Null => end,
        Content::Constant(bytes) => attribute.layout.place(end, length(bytes)).end,
        Content::Generated { lengths: (_, most), .. } => attribute.layout.place(end, *most).end,
        Content::Computed(computed) => attribute.layout.place(end, computed.longest).end,
    });
    before + end
}

/// Least and greatest length of the values' bytes, those of a varying-length type without header.
pub(super) fn payloads(kind: &Kind, values: &Values) -> (u32, u32) {
    if let Some((length, _)) = kind.fixed_width() {
        return (length, length);
    }
    if let Values::Reference(Reference { keys, column, .. }) = values
        && let Keys::Made { table, .. } = &**keys
    {
        let key = &table.columns[*column];
        return payloads(&key.kind, &key.values);
    }
    match values {
        Values::Null => (0, 0),
        Values::Nulls { values, .. }
        | Values::Repeated { values, .. }
        | Values::Ranked { values, .. }
        | Values::Ordered { values, .. } => payloads(kind, values),
        Values::Leading { leading, others, .. } => {
            let [(one, most), (other, greater)] = [leading, others].map(|values| payloads(kind, values));
            (one.min(other), most.max(greater))
        }
        values if values.literals().next().is_some() => literals(kind, values.literals()),
        values => generated(kind, values),
    }
}

fn literals<'a>(kind: &Kind, texts: impl Iterator<Item = &'a str>) -> (u32, u32) {
    let mut bytes = Vec::new();
    texts.fold((u32::MAX, 0), |(least, most), text| {
        bytes.clear();
        payload(kind, Value::Text(text), &mut bytes);
        (least.min(length(&bytes)), most.max(length(&bytes)))
    })
}

fn generated(kind: &Kind, values: &Values) -> (u32, u32) {
    match (kind, values) {
        (Kind::Char(length), _) | (_, Values::Long { length, .. }) => (*length, *length),
        (_, Values::Payload { low, high, .. }) => (*low, *high),
        (kind, Values::Topic { topic, turn }) if kind.is_text() => {
            match Form::new(*topic, kind, turn.is_some()) {
                Some(Form::Text { longest, .. }) => (0, longest),
                _ => unreachable!("checked: the topic suits the kind"),
            }
        }
        (Kind::Text | Kind::Varchar(_), values) => {
            let most = |most: u32| kind.characters().map_or(most, |characters| characters.min(most));
            match values {
                Values::Any => (0, most(LONG)),
                Values::Letters(letters) => letters_of(letters, kind),
                Values::Unique(_) => (most(UNIQUE_TEXT), most(UNIQUE_TEXT)),
                // Decimal digits of an `i64`, and a sign.
                _ => (1, most(20)),
            }
        }
        (Kind::Bytea, Values::Unique(_)) => (8, 8),
        (Kind::Bytea, _) => (16, 64),
        // A header of 2 or 4 bytes, and the digits that an `i64` takes.
        (Kind::Numeric(_), _) => (2, 4 + 2 * 6),
        (Kind::Bit(length), _) => (bits(*length), bits(*length)),
        (Kind::Varbit(most), _) => (bits(0), bits(most.unwrap_or(64).min(64))),
        (Kind::Inet | Kind::Cidr, _) => (6, 6),
        (Kind::Path, _) => (12 + 3 * POINT, 12 + 3 * POINT),
        (Kind::Polygon, _) => (36 + 4 * POINT, 36 + 4 * POINT),
        // Braces, quotes and a name, or what stands for them in jsonb.
        (Kind::Json | Kind::Jsonb, Values::Letters(letters)) => (0, letters_of(letters, kind).1 + 16),
        (Kind::Json, _) => (0, JSON),
        (Kind::Jsonb, _) => (0, JSONB),
        (Kind::Xml, _) => (0, XML),
        (Kind::Array(element), Values::Elements(elements)) => {
            let listed = literals(element, elements.listed.iter().map(|(text, _)| text.as_str())).1;
            let most = listed.max(payloads(element, &elements.others).1);
            let count = elements.counts.last().copied().unwrap_or_default();
            // A length, and padding.
            (0, 20 + count * (4 + most).next_multiple_of(8))
        }
        (Kind::Array(element), values) => {
            let align = element.align();
            let header = if element.fixed_width().is_some() { 0 } else { 4 };
            let (_, most) = payloads(element, values);
            (0, 20 + ITEMS * (header + most).next_multiple_of(align))
        }
        (Kind::Range { element, .. }, values) => (0, 5 + bounds(element, values)),
        (Kind::Multirange { element, .. }, values) => (0, 8 + RANGES * (5 + 8 + bounds(element, values))),
        (Kind::Composite { fields, .. }, values) => {
            let field = |field: &Kind| 4 + 8 + payloads(field, values).1;
            let before = u32::try_from(before_fields(fields.len(), true)).expect("up to 1600 fields");
            (0, before + fields.iter().map(field).sum::<u32>())
        }
        (Kind::TsQuery, _) => (0, 4 + 3 * 12 + 2 * (WORD + 1)),
        (Kind::TsVector, _) => (0, 4 + WORDS * (4 + WORD + 1 + 4)),
        (kind, _) => unreachable!("{} is not supported", kind.sql()),
    }
}

/// Least and greatest length of [`Letters`]: at least the characters that keep them in order.
fn letters_of(letters: &Letters, kind: &Kind) -> (u32, u32) {
    let most = kind.characters().unwrap_or(u32::MAX);
    let longest = letters.lengths.last().copied().unwrap_or(1);
    (1, longest.max(digits(letters.alphabet, u64::MAX)).min(most))
}

/// Greatest length of a range's bounds, with alignment, bytes.
fn bounds(element: &Kind, values: &Values) -> u32 {
    let (_, most) = payloads(element, values);
    2 * (most + 1).next_multiple_of(8)
}

const POINT: u32 = 16;
/// Ranges of a multirange, words of a `tsvector`, and characters of a word, at most.
const RANGES: u32 = 3;
const WORDS: u32 = 10;
const WORD: u32 = 13;

fn bits(length: u32) -> u32 {
    4 + length.div_ceil(8)
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a value is below 1 GB")
}
