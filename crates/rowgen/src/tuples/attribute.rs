//! An attribute: how its type is laid out, and its values' bytes.

use super::computed::Computed;
use super::{array, composite, jsonb, literal, range};
use crate::generate::{Generator, Reader};
use crate::numeric::{Digits, has_short_header, trimmed};
use crate::units::decimals;
use crate::value::Value;
use crate::{Column, Formula, Kind, Table};

/// A column as it stands in tuples.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) layout: Layout,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// NULL in every row.
    Null,
    /// The same payload in every row.
    Constant(Vec<u8>),
    Generated {
        generator: Generator,
        /// Least and greatest length of the payloads, bytes.
        lengths: (u32, u32),
    },
    /// The values of a generated column.
    Computed(Computed),
}

/// Layout of a type's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Fixed {
        /// Length, bytes.
        length: u32,
        /// Alignment, bytes.
        align: u32,
    },
    /// With a header of 1 byte if the payload has at most `short` bytes, else with an aligned
    /// header of 4 bytes.
    Varlena {
        /// Alignment, bytes.
        align: u32,
        /// Bytes.
        short: Option<usize>,
    },
}

/// Longest payload for a header of 1 byte (`VARATT_CAN_MAKE_SHORT` in `varatt.h`), which values of `typstorage` plain
/// do not have.
pub(super) const SHORT: usize = 126;
/// `VARHDRSZ`.
pub(super) const HEADER: usize = 4;

/// `PGSQL_AF_INET` (`utils/inet.h`).
pub(super) const IPV4: u8 = 2;
/// `NAMEDATALEN`.
const NAME: usize = 64;

/// Whether the kind's values can be written.
pub(super) fn has_form(kind: &Kind) -> bool {
    match kind {
        // One dimension is made.
        Kind::Array(element) => match &**element {
            Kind::Array(_) => false,
            element => has_form(element),
        },
        Kind::Range { element, .. } | Kind::Multirange { element, .. } => range::has_form(element),
        Kind::Enum { .. } => true,
        Kind::Composite { fields, .. } => composite::has_form(fields),
        kind => kind.oid().is_some(),
    }
}

impl Attribute {
    /// The attribute of a column that is supported.
    pub(super) fn new(table: &Table, column: &Column, formula: Option<&Formula>) -> Self {
        if let Some(formula) = formula {
            return Self::computed(table, column, formula);
        }
        let generator = Generator::new(table, column);
        let content = if column.values.is_constant() {
            Content::constant(&generator)
        } else {
            let lengths = super::longest::payloads(&column.kind, &column.values);
            Content::Generated { generator, lengths }
        };
        Self { layout: Layout::of(&column.kind), content }
    }

    fn computed(table: &Table, column: &Column, formula: &Formula) -> Self {
        match formula {
            Formula::Null => Self { layout: Layout::of(&column.kind), content: Content::Null },
            Formula::Column(position) if table.columns[*position].kind == column.kind => {
                Self::new(table, &table.columns[*position], None)
            }
            formula => {
                let content = Content::Computed(Computed::new(table, &column.kind, formula));
                Self { layout: Layout::of(&column.kind), content }
            }
        }
    }
}

impl Content {
    fn constant(generator: &Generator) -> Self {
        // Any row will do.
        match Reader::new(generator).value(0) {
            Value::Null => Self::Null,
            value => {
                let mut bytes = Vec::new();
                payload(generator.kind(), value, &mut bytes);
                Self::Constant(bytes)
            }
        }
    }
}

impl Layout {
    pub(super) fn of(kind: &Kind) -> Self {
        match kind.fixed_width() {
            Some((length, align)) => Self::Fixed { length, align },
            None => Self::Varlena {
                align: kind.varying_align(),
                short: (*kind != Kind::TsQuery).then_some(SHORT),
            },
        }
    }

    /// Appends an attribute whose payload `write` appends. `start` is where the attributes begin in `out`;
    /// that place is aligned for all types.
    #[inline]
    pub(super) fn write(self, start: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Fixed { align, .. } => {
                pad(start, align, out);
                write(out);
            }
            Self::Varlena { align, short } => {
                let header = out.len();
                out.push(0);
                write(out);
                let payload = header + 1..out.len();
                if short.is_some_and(|short| payload.len() <= short) {
                    out[header] = short_header(payload.len());
                } else {
                    let length = payload.len();
                    let aligned = start + (header - start).next_multiple_of(align as usize);
                    out.resize(aligned + HEADER + length, 0);
                    out.copy_within(payload, aligned + HEADER);
                    out[header..aligned].fill(0);
                    out[aligned..aligned + HEADER].copy_from_slice(&long_header(length));
                }
            }
        }
    }

    /// Offsets of an attribute with `payload` bytes of payload that follows `offset`. Offsets count
    /// from where the attributes begin.
    pub(super) fn place(self, offset: u32, payload: u32) -> Extent {
        let begin = match self {
            Self::Fixed { align, .. } => offset.next_multiple_of(align),
            Self::Varlena { short: Some(short), .. } if payload as usize <= short => offset + 1,
            Self::Varlena { align, .. } => offset.next_multiple_of(align) + 4,
        };
        Extent { payload: begin, end: begin + payload }
    }
}

/// Offsets from where the attributes begin, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Offset of the payload.
    pub(super) payload: u32,
    /// Offset of the first byte after the attribute.
    pub(super) end: u32,
}

/// Zeros up to a multiple of `align` from `start`.
pub(super) fn pad(start: usize, align: u32, out: &mut Vec<u8>) {
    out.resize(start + (out.len() - start).next_multiple_of(align as usize), 0);
}

/// `SET_VARSIZE_1B` on little-endian machines.
fn short_header(payload: usize) -> u8 {
    u8::try_from((payload + 1) << 1 | 1).expect("up to 126 bytes")
}

/// `SET_VARSIZE` on little-endian machines.
pub(super) fn long_header(payload: usize) -> [u8; HEADER] {
    u32::try_from((payload + HEADER) << 2).expect("a value is below 1 GB").to_le_bytes()
}

/// Whether the kind's units are stored as one integer.
pub(super) fn is_integer(kind: &Kind) -> bool {
    let apart = matches!(
        kind,
        Kind::Float4 | Kind::Float8 | Kind::TimeTz | Kind::Interval | Kind::Name | Kind::Enum { .. }
    );
    !apart && kind.units().is_some() && kind.fixed_width().is_some()
}

/// Appends a value's bytes, those of a varying-length type without header.
///
/// # Panics
/// For NULL, and for literals that [`literal::is_readable`] does not pass.
#[inline]
pub(super) fn payload(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => unreachable!("NULL has no bytes"),
        Value::Units(units) => write_units(kind, units, out),
        Value::Real(real) => write_real(kind, real, out),
        Value::Uuid(bits) => out.extend(bits.to_be_bytes()),
        Value::Address(address) => write_address(kind, address, out),
        // `VarBit` in `utils/varbit.h`.
        Value::Bits { length, bytes } => {
            out.extend(length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Plain(text) if is_its_text(kind) => write_text(kind, text, text.len(), out),
        Value::Plain(text) => read(kind, std::str::from_utf8(text).expect("ASCII"), out),
        Value::Text(text) if is_its_text(kind) => {
            write_text(kind, text.as_bytes(), text.chars().count(), out);
        }
        Value::Text(text) => read(kind, text, out),
        Value::Json(json) if *kind == Kind::Jsonb => jsonb::object(&json, out),
        Value::Json(json) => json.write(out),
        Value::Elements(draw) => {
            let Kind::Array(element) = kind else { unreachable!("an array's elements") };
            array::drawn(element, draw, out);
        }
    }
}

fn read(kind: &Kind, text: &str, out: &mut Vec<u8>) {
    literal::payload(kind, text, out).expect("checked: it can be read");
}

/// Whether values are stored as the text that they are given in, up to padding.
pub(super) fn is_its_text(kind: &Kind) -> bool {
    kind.is_text() || matches!(kind, Kind::Json | Kind::Xml)
}

pub(super) fn write_units(kind: &Kind, units: i64, out: &mut Vec<u8>) {
    match kind {
        #[expect(clippy::cast_precision_loss)]
        Kind::Float4 | Kind::Float8 => write_real(kind, units as f64, out),
        Kind::Numeric(None) => {
            let (number, places) = trimmed(units, decimals(None));
            write_numeric(number.into(), places, places, out);
        }
        Kind::Numeric(Some(precision)) => {
            write_numeric(units.into(), decimals(Some(*precision)), precision.scale, out);
        }
        Kind::Enum { oids, .. } => {
            let oid = usize::try_from(units).ok().and_then(|label| oids.get(label)).copied();
            out.extend(oid.unwrap_or(0).to_le_bytes());
        }
        // Microseconds; then seconds west of UTC (`utils/date.h`).
        Kind::TimeTz => {
            out.extend(units.to_le_bytes());
            out.extend(0_i32.to_le_bytes());
        }
        // Microseconds; then days and months (`datatype/timestamp.h`).
        Kind::Interval => {
            out.extend(units.to_le_bytes());
            out.extend([0; 8]);
        }
        kind if kind.is_text() => {
            let mut digits = itoa::Buffer::new();
            let digits = digits.format(units).as_bytes();
            write_text(kind, digits, digits.len(), out);
        }
        kind => {
            let (length, _) = kind.fixed_width().expect("other counted kinds have a fixed length");
            out.extend_from_slice(&units.to_le_bytes()[..length as usize]);
        }
    }
}

pub(super) fn write_real(kind: &Kind, real: f64, out: &mut Vec<u8>) {
    if *kind == Kind::Float4 {
        #[expect(clippy::cast_possible_truncation)]
        out.extend((real as f32).to_le_bytes());
    } else {
        out.extend(real.to_le_bytes());
    }
}

fn write_address(kind: &Kind, address: u64, out: &mut Vec<u8>) {
    let bytes = address.to_be_bytes();
    match kind {
        Kind::Macaddr => out.extend_from_slice(&bytes[2..]),
        Kind::Macaddr8 => out.extend_from_slice(&bytes),
        // `inet_struct` in `utils/inet.h`: family, bits of the network, address.
        _ => {
            out.extend([IPV4, 32]);
            out.extend_from_slice(&bytes[4..]);
        }
    }
}

/// Text of so many characters, padded as the kind asks for.
pub(super) fn write_text(kind: &Kind, text: &[u8], characters: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    match kind {
        Kind::Char(length) => {
            out.resize(out.len() + (*length as usize).saturating_sub(characters), b' ');
        }
        Kind::Name => out.resize(out.len() + NAME - text.len(), 0),
        _ => {}
    }
}

/// `make_result` in `utils/adt/numeric.c`: `number` × 10^-`places`, shown with `scale` decimals.
pub(super) fn write_numeric(number: i128, places: i16, scale: i16, out: &mut Vec<u8>) {
    /// `NUMERIC_SHORT`, `NUMERIC_SHORT_SIGN_MASK`, `NUMERIC_SHORT_DSCALE_SHIFT`.
    const SHORT: u16 = 0x8000;
    const SHORT_NEGATIVE: u16 = 0x2000;
    const SHORT_SCALE: u32 = 7;
    /// `NUMERIC_NEG`.
    const NEGATIVE: u16 = 0x4000;
    let digits = Digits::new(number.unsigned_abs(), places);
    let scale = scale.max(0).cast_unsigned();
    let negative = number < 0;
    if has_short_header(scale, digits.weight) {
        // The weight's sign and six bits: a number of seven bits in two's complement.
        let weight = digits.weight.cast_unsigned() & 0x7F;
        let sign = if negative { SHORT_NEGATIVE } else { 0 };
        out.extend((SHORT | sign | scale << SHORT_SCALE | weight).to_le_bytes());
    } else {
        let sign = if negative { NEGATIVE } else { 0 };
        out.extend((sign | scale).to_le_bytes());
        out.extend(digits.weight.to_le_bytes());
    }
    for digit in digits.digits() {
        out.extend(digit.to_le_bytes());
    }
}
