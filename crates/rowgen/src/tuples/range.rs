//! Ranges (`RangeType` in `utils/rangetypes.h`) and multiranges (`MultirangeType` in `utils/multirangetypes.h`), from
//! the forms in which rowgen writes them.

use super::attribute::{Layout, pad};
use super::literal;
use crate::Kind;

/// `RANGE_EMPTY`, `RANGE_LB_INC`, `RANGE_UB_INC`, `RANGE_LB_INF`, `RANGE_UB_INF`.
const EMPTY: u8 = 0x01;
const LOW_INCLUDED: u8 = 0x02;
const HIGH_INCLUDED: u8 = 0x04;
const NO_LOW: u8 = 0x08;
const NO_HIGH: u8 = 0x10;

/// The header of a varlena, in which alignment counts.
const HEADER: usize = 4;

/// A range that is not empty.
struct Range {
    flags: u8,
    low: Option<String>,
    high: Option<String>,
}

/// Whether pgrig writes ranges over this kind: it has to know the order of the values.
pub(super) fn has_form(element: &Kind) -> bool {
    matches!(
        element,
        Kind::Int2
            | Kind::Int4
            | Kind::Int8
            | Kind::Numeric(None)
            | Kind::Float4
            | Kind::Float8
            | Kind::Date
            | Kind::Time
            | Kind::Timestamp
            | Kind::TimestampTz
    )
}

/// OID of the type, the bounds, flags (`range_serialize`).
pub(super) fn payload(oid: u32, element: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    if text == "empty" {
        out.extend(oid.to_le_bytes());
        out.push(EMPTY);
        return Some(());
    }
    let (range, after) = Range::read(element, text)?;
    if !after.is_empty() {
        return None;
    }
    let start = out.len() + HEADER;
    out.extend(oid.to_le_bytes());
    range.write_bounds(element, start, out)?;
    out.push(range.flags);
    Some(())
}

/// OID of the type, number of ranges; where the bounds of each but the first begin; flags; bounds
/// (`write_multirange_data`).
pub(super) fn multirange(oid: u32, element: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    /// Every fourth item holds an offset, the others hold distances
    /// (`MULTIRANGE_ITEM_OFFSET_STRIDE`, `_OFF_BIT`).
    const STRIDE: usize = 4;
    const IS_OFFSET: u32 = 0x8000_0000;
    let ranges = merged(element, read_all(element, text)?)?;
    let start = out.len() + HEADER;
    out.extend([oid, u32::try_from(ranges.len()).ok()?].iter().flat_map(|number| number.to_le_bytes()));
    if ranges.is_empty() {
        return Some(());
    }
    let places = out.len();
    out.resize(places + 4 * (ranges.len() - 1), 0);
    out.extend(ranges.iter().map(|range| range.flags));
    let align = element.align();
    pad(start, align, out);
    let begin = out.len();
    let mut before = 0;
    for (number, range) in ranges.iter().enumerate() {
        let offset = u32::try_from(out.len() - begin).ok()?;
        if let Some(place) = number.checked_sub(1) {
            let value = if number % STRIDE == 0 { offset | IS_OFFSET } else { offset - before };
            out[places + 4 * place..places + 4 * place + 4].copy_from_slice(&value.to_le_bytes());
            before = offset;
        }
        range.write_bounds(element, start, out)?;
        pad(start, align, out);
    }
    Some(())
}

fn read_all(element: &Kind, text: &str) -> Option<Vec<Range>> {
    let mut rest = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut ranges = Vec::new();
    while !rest.is_empty() {
        let (range, after) = Range::read(element, rest)?;
        ranges.push(range);
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix(',').filter(|rest| !rest.is_empty())?;
    }
    Some(ranges)
}

/// The ranges in ascending order, with adjacent and overlapping ones merged. The ranges must
/// include their lower bound and exclude the upper one.
fn merged(element: &Kind, ranges: Vec<Range>) -> Option<Vec<Range>> {
    let mut keyed = Vec::new();
    for range in ranges {
        let low = key(element, range.low.as_deref()?)?;
        let high = range.high.as_deref().map_or(Some(Key::END), |high| key(element, high))?;
        if range.flags & !NO_HIGH != LOW_INCLUDED {
            return None;
        }
        keyed.push((low, high, range));
    }
    keyed.sort_by(|(low, ..), (other, ..)| low.total_cmp(other));
    let mut merged: Vec<(Key, Key, Range)> = Vec::new();
    for (low, high, range) in keyed {
        match merged.last_mut() {
            Some((_, last_high, last)) if low.total_cmp(last_high).is_le() => {
                if high.total_cmp(last_high).is_gt() {
                    (last.flags, last.high, *last_high) = (range.flags, range.high, high);
                }
            }
            _ => merged.push((low, high, range)),
        }
    }
    Some(merged.into_iter().map(|(_, _, range)| range).collect())
}

impl Range {
    /// The range that the text begins with, and the rest after it.
    fn read<'t>(element: &Kind, text: &'t str) -> Option<(Self, &'t str)> {
        let mut flags = match text.as_bytes().first()? {
            b'[' => LOW_INCLUDED,
            b'(' => 0,
            _ => return None,
        };
        let (low, rest) = bound(&text[1..])?;
        let (high, rest) = bound(rest.strip_prefix(',')?)?;
        let closing = rest.chars().next()?;
        match closing {
            ']' => flags |= HIGH_INCLUDED,
            ')' => {}
            _ => return None,
        }
        if low.is_none() {
            flags = flags & !LOW_INCLUDED | NO_LOW;
        }
        if high.is_none() {
            flags = flags & !HIGH_INCLUDED | NO_HIGH;
        }
        let range = Self { flags, low, high };
        range.is_as_stored(element).then_some((range, &rest[1..]))
    }

    /// Whether the server leaves it as it is: it is not empty, and integers and dates begin with a bound that is
    /// included and end with one that is not.
    fn is_as_stored(&self, element: &Kind) -> bool {
        let is_discrete = matches!(element, Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Date);
        let excludes_low = self.flags & (LOW_INCLUDED | NO_LOW) == 0;
        if is_discrete && (excludes_low || self.flags & HIGH_INCLUDED != 0) {
            return false;
        }
        let key = |bound: &Option<String>| bound.as_deref().map(|bound| key(element, bound));
        match (key(&self.low), key(&self.high)) {
            (Some(None), _) | (_, Some(None)) => false,
            (Some(Some(low)), Some(Some(high))) => low.total_cmp(&high).is_lt(),
            _ => true,
        }
    }

    fn write_bounds(&self, element: &Kind, start: usize, out: &mut Vec<u8>) -> Option<()> {
        // Aligned as seen from the header, which is not in `out`: 4 bytes before are the same as 4 after.
        [&self.low, &self.high].into_iter().flatten().try_for_each(|bound| {
            let mut value = Vec::new();
            literal::payload(element, bound, &mut value)?;
            Layout::of(element).write(start, out, |out| out.extend_from_slice(&value));
            Some(())
        })
    }
}

/// A bound, in quotes or not, and the rest after it; none if it is left out.
fn bound(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (bound, after) = quoted.split_once('"')?;
        return (!bound.contains('\\') && !after.starts_with('"')).then(|| (Some(bound.to_owned()), after));
    }
    let (bound, after) = text.split_at(text.find([',', ')', ']'])?);
    Some(((!bound.is_empty()).then(|| bound.to_owned()), after))
}

/// The order of values.
#[derive(Clone, Copy)]
enum Key {
    Whole(i128),
    Real(f64),
}

impl Key {
    /// A key after all others.
    const END: Self = Self::Whole(i128::MAX);

    fn total_cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one.cmp(other),
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Whole(_), Self::Real(_)) => std::cmp::Ordering::Greater,
            (Self::Real(_), Self::Whole(_)) => std::cmp::Ordering::Less,
        }
    }
}

fn key(element: &Kind, text: &str) -> Option<Key> {
    /// As many decimals as an `i64` has digits.
    const DECIMALS: i16 = 18;
    match element {
        Kind::Float4 | Kind::Float8 => literal::real(text).map(Key::Real),
        Kind::Numeric(_) => {
            let (number, places) = literal::decimal(text)?;
            let power = 10_i128.pow(u32::try_from(DECIMALS - places).ok()?);
            Some(Key::Whole(i128::from(number) * power))
        }
        element => literal::units(element, text).map(|units| Key::Whole(units.into())),
    }
}
