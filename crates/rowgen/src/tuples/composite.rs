//! Composite values: a tuple with a header of its own (`HeapTupleHeaderData` in `access/htup_details.h`), as `record_in`
//! makes it from the form in which rowgen writes it.

use super::attribute::Layout;
use super::literal;
use crate::Kind;

/// `SizeofHeapTupleHeader`.
const HEADER: usize = 23;
/// The length, which is not in the payload.
const LENGTH: usize = 4;
/// `HEAP_HASNULL` and `HEAP_HASVARWIDTH`.
const HAS_NULL: u16 = 0x0001;
const HAS_VARWIDTH: u16 = 0x0002;

/// Whether fields of these kinds have a form here: enums, and types with the same OIDs in every database.
pub(super) fn has_form(fields: &[Kind]) -> bool {
    let is_known = |field: &Kind| field.oid().is_some() || matches!(field, Kind::Enum { .. });
    !fields.is_empty() && fields.iter().all(|field| is_known(field) && super::attribute::has_form(field))
}

/// Where the fields of a value begin, the length included, bytes.
pub(super) fn before_fields(fields: usize, has_nulls: bool) -> usize {
    let bitmap = if has_nulls { fields.div_ceil(8) } else { 0 };
    (HEADER + bitmap).next_multiple_of(8)
}

/// Type modifier and OID of the type; no place; number of fields, flags; where the fields begin; null bitmap; the fields
/// as in a row (`heap_form_tuple`).
pub(super) fn payload(oid: u32, fields: &[Kind], text: &str, out: &mut Vec<u8>) -> Option<()> {
    let values = values(text)?;
    if values.len() != fields.len() {
        return None;
    }
    let has_nulls = values.iter().any(Option::is_none);
    let is_varying = |(kind, value): (&Kind, &Option<String>)| value.is_some() && !kind.has_fixed_width();
    let has_varying = fields.iter().zip(&values).any(is_varying);
    let flags = (u16::from(has_nulls) * HAS_NULL) | (u16::from(has_varying) * HAS_VARWIDTH);
    let begin = before_fields(fields.len(), has_nulls);
    let start = out.len() + begin - LENGTH;
    out.extend((-1_i32).to_le_bytes());
    out.extend(oid.to_le_bytes());
    // `ItemPointerSetInvalid`.
    out.extend([0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    out.extend(u16::try_from(fields.len()).ok()?.to_le_bytes());
    out.extend(flags.to_le_bytes());
    out.push(u8::try_from(begin).ok()?);
    let bitmap = out.len();
    out.resize(start, 0);
    for (place, (kind, value)) in fields.iter().zip(&values).enumerate() {
        let Some(value) = value else { continue };
        if has_nulls {
            out[bitmap + place / 8] |= 1 << (place % 8);
        }
        let mut is_read = None;
        Layout::of(kind).write(start, out, |out| is_read = literal::payload(kind, value, out));
        is_read?;
    }
    Some(())
}

/// The fields of `(…)`; an empty one is NULL.
fn values(text: &str) -> Option<Vec<Option<String>>> {
    let mut chars = text.strip_prefix('(')?.chars().peekable();
    let mut values = Vec::new();
    loop {
        let (mut value, mut is_quoted) = (None::<String>, false);
        let end = loop {
            match chars.next()? {
                end @ (',' | ')') if !is_quoted => break end,
                '"' if is_quoted && chars.peek() == Some(&'"') => {
                    value.get_or_insert_default().extend(chars.next());
                }
                '"' => {
                    is_quoted = !is_quoted;
                    value.get_or_insert_default();
                }
                '\\' => value.get_or_insert_default().push(chars.next()?),
                char => value.get_or_insert_default().push(char),
            }
        };
        values.push(value);
        if end == ')' {
            return chars.next().is_none().then_some(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_the_server_reads_them() {
        let read = |text| {
            values(text).map(|all| all.iter().map(|one| one.clone().unwrap_or("NULL".into())).collect())
        };
        let list =
            |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect::<Vec<String>>());
        assert_eq!(read("(1,,x)"), list(&["1", "NULL", "x"]));
        assert_eq!(read("(\"a,b\",\"\",\"it\\\"s \"\"so\"\"\")"), list(&["a,b", "", "it\"s \"so\""]));
        assert_eq!(read("(a b\"c\"\\,)"), list(&["a bc,"]));
        for wrong in ["(1", "1)", "(1)x", "(\"a)"] {
            assert_eq!(values(wrong), None, "{wrong}");
        }
    }
}
