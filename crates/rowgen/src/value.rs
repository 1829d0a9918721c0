//! A value between being made and being written.

use crate::json::Json;
use crate::random::Draw;

/// The value of a column in a row; the column's [`crate::Kind`] defines its meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// NULL.
    Null,
    /// In the kind's units, see [`crate::Units`].
    Units(i64),
    /// Of a floating-point kind.
    Real(f64),
    /// `uuid`.
    Uuid(u128),
    /// `inet` and `cidr`: an IPv4 address; `macaddr`, `macaddr8`: theirs.
    Address(u64),
    /// `bit`, `bit varying`: so many bits, the first one in the highest of the first byte.
    Bits {
        /// Number of bits.
        length: u32,
        /// The last one filled up with zeros.
        bytes: &'a [u8],
    },
    /// `bytea`.
    Bytes(&'a [u8]),
    /// In the kind's input syntax; printable ASCII without backslash.
    Plain(&'a [u8]),
    /// In the kind's input syntax.
    Text(&'a str),
    /// `json` and `jsonb`.
    Json(Json),
    /// An array whose elements are drawn from here, see [`crate::generate::any::array`].
    Elements(Draw),
}

impl<'a> Value<'a> {
    /// Bytes that were put together from text.
    pub(crate) fn text(bytes: &'a [u8]) -> Self {
        Self::Text(std::str::from_utf8(bytes).expect("put together from text"))
    }
}
