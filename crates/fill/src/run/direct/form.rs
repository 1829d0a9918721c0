//! Checks that the tuples that pgrig makes for a table are valid there: that its attributes have
//! the layout of its columns' kinds and store values unchanged.

use rowgen::{Column, Kind, Precision, Table};

use super::NotDirect;
use super::relation::{Attribute, Field};

/// `pg_type.oid` of text and varchar, which are stored alike.
const TEXT: [u32; 2] = [25, 1043];
/// `atttypmod` of a type without modifiers.
const NONE: i32 = -1;
/// `VARHDRSZ`, which modifiers of texts and numerics are counted from.
const HEADER: i32 = 4;
/// Decimals of a second that times have without a modifier (`MAX_TIME_PRECISION`).
const MICROSECONDS: i32 = 6;

/// Whether the table's attributes are its columns, type by type.
///
/// # Errors
/// The attribute that does not fit, and its type.
pub(super) fn fits(attributes: &[Attribute], table: &Table) -> Result<(), NotDirect> {
    let refuse = |text: String| Err(NotDirect::Column(text));
    if attributes.iter().any(|attribute| attribute.dropped) {
        return refuse("it has a dropped column, which takes a place in each row".to_owned());
    }
    if !attributes.iter().map(|attribute| &attribute.name).eq(table.columns.iter().map(|column| &column.name))
    {
        let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
        return refuse(format!(
            "it has the columns {}, and pgrig made rows for other columns",
            names.join(", ")
        ));
    }
    for (attribute, column) in attributes.iter().zip(&table.columns) {
        let Attribute { name, type_sql, .. } = attribute;
        if attribute.is_virtual() {
            continue;
        }
        if attribute.has_plain_storage {
            return refuse(format!("{name} has STORAGE PLAIN, which pgrig writes by COPY only"));
        }
        if attribute.not_null && !column.not_null {
            return refuse(format!("{name} became NOT NULL after pgrig made rows for it"));
        }
        if !is_stored_alike(attribute, column) {
            return refuse(format!("{name} has type {type_sql}, which pgrig writes by COPY only"));
        }
    }
    Ok(())
}

fn is_stored_alike(attribute: &Attribute, column: &Column) -> bool {
    let is_text = matches!(column.kind, Kind::Text | Kind::Varchar(_)) && TEXT.contains(&attribute.base_oid);
    let is_type = is_text
        || is_type_of_database(attribute, &column.kind)
        || column.kind.oid() == Some(attribute.base_oid);
    is_type && keeps_values(&column.kind, attribute.base_modifier)
}

/// Whether the attribute has the same enum, range, multirange or composite type, or an array of it.
fn is_type_of_database(attribute: &Attribute, kind: &Kind) -> bool {
    let (kind, is_array) = match kind {
        Kind::Array(element) => (&**element, true),
        kind => (kind, false),
    };
    if is_array != attribute.is_array() {
        return false;
    }
    match kind {
        Kind::Enum { labels, .. } => *labels == attribute.enum_labels,
        Kind::Range { element, .. } | Kind::Multirange { element, .. } => {
            attribute.range_subtype.is_some() && attribute.range_subtype == element.oid()
        }
        Kind::Composite { fields, .. } => {
            fields.len() == attribute.fields.len()
                && fields.iter().zip(&attribute.fields).all(|(kind, field)| is_field(field, kind))
        }
        _ => false,
    }
}

fn is_field(field: &Field, kind: &Kind) -> bool {
    let is_type = match kind {
        Kind::Enum { labels, .. } => *labels == field.enum_labels,
        kind => kind.oid() == Some(field.oid),
    };
    is_type && keeps_values(kind, field.modifier)
}

/// Whether values of the kind are stored as they are in a column with this `atttypmod`: neither rounded nor
/// refused nor padded otherwise.
fn keeps_values(kind: &Kind, modifier: i32) -> bool {
    let length = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
    match kind {
        Kind::Array(element) => keeps_values(element, modifier),
        // Texts may be made shorter than they have to be, because of a CHECK.
        Kind::Varchar(Some(most)) => modifier == NONE || length(*most) <= modifier - HEADER,
        Kind::Char(exactly) => modifier == length(*exactly) + HEADER,
        Kind::Bit(exactly) | Kind::Varbit(Some(exactly)) => modifier == length(*exactly),
        // `make_numeric_typmod` in `utils/adt/numeric.c`.
        Kind::Numeric(Some(Precision { precision, scale })) => {
            modifier == (i32::from(*precision) << 16 | i32::from(*scale) & 0x7FF) + HEADER
        }
        Kind::Time | Kind::TimeTz | Kind::Timestamp | Kind::TimestampTz => {
            modifier == NONE || modifier == MICROSECONDS
        }
        _ => modifier == NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_that_change_values_are_told_from_those_that_do_not() {
        // As `SELECT attname, atttypmod FROM pg_attribute` shows them.
        let numeric = |precision, scale| Kind::Numeric(Some(Precision { precision, scale }));
        for (kind, modifier) in [
            (Kind::Text, -1),
            (Kind::Varchar(Some(10)), 14),
            (Kind::Varchar(Some(8)), 14),
            (Kind::Varchar(Some(10)), -1),
            (Kind::Char(84), 88),
            (Kind::Bit(3), 3),
            (numeric(8, 2), 524_294),
            (numeric(5, -2), 329_730),
            (Kind::Timestamp, -1),
            (Kind::Timestamp, 6),
            (Kind::Array(Box::new(numeric(8, 2))), 524_294),
        ] {
            assert!(keeps_values(&kind, modifier), "{kind:?} {modifier}");
        }
        for (kind, modifier) in [
            (Kind::Varchar(Some(10)), 12),
            (Kind::Varchar(None), 14),
            (Kind::Char(84), 84),
            (numeric(8, 2), 524_293),
            (Kind::Numeric(None), 524_294),
            (Kind::Timestamp, 3),
            (Kind::Time, 0),
            (Kind::Interval, 6),
        ] {
            assert!(!keeps_values(&kind, modifier), "{kind:?} {modifier}");
        }
    }
}
