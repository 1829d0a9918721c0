//! PostgreSQL's types, as far as rows are made of them.

use serde::{Deserialize, Serialize};

/// A type that values can be made for. Domains are given as the type that they stand on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric`, or `numeric(precision, scale)`.
    Numeric(Option<Precision>),
    /// `money`. In text it is written with a decimal point: load it with `lc_monetary = 'C'`.
    Money,
    /// `text`.
    Text,
    /// `varchar`, or `varchar(n)` in characters.
    Varchar(Option<u32>),
    /// `char(n)`: blank-padded by the server to n characters.
    Char(u32),
    /// `name`: up to 63 bytes.
    Name,
    /// `bytea`.
    Bytea,
    /// `date`.
    Date,
    /// `time` without time zone.
    Time,
    /// `time with time zone`.
    TimeTz,
    /// `timestamp` without time zone.
    Timestamp,
    /// `timestamp with time zone`.
    TimestampTz,
    /// `interval`.
    Interval,
    /// `uuid`.
    Uuid,
    /// `json`.
    Json,
    /// `jsonb`.
    Jsonb,
    /// `xml`.
    Xml,
    /// `inet`.
    Inet,
    /// `cidr`.
    Cidr,
    /// `macaddr`.
    Macaddr,
    /// `macaddr8`.
    Macaddr8,
    /// `bit(n)`.
    Bit(u32),
    /// `bit varying`, or `bit varying(n)`.
    Varbit(Option<u32>),
    /// `point`.
    Point,
    /// `line`.
    Line,
    /// `lseg`.
    Lseg,
    /// `box`.
    Box,
    /// `path`.
    Path,
    /// `polygon`.
    Polygon,
    /// `circle`.
    Circle,
    /// `tsvector`.
    TsVector,
    /// `tsquery`.
    TsQuery,
    /// `oid`.
    Oid,
    /// `pg_lsn`.
    PgLsn,
    /// An enum type.
    Enum {
        /// As SQL writes it: qualified and quoted where needed.
        name: String,
        /// In the type's order.
        labels: Vec<String>,
        /// Their `pg_enum.oid`, which tuples hold, in the same order. Empty where nobody has asked for them: a tuple
        /// then holds 0.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        oids: Vec<u32>,
        /// Its `pg_type.oid`, which arrays of it hold. 0 where nobody has asked for it.
        #[serde(default, skip_serializing_if = "is_zero")]
        oid: u32,
    },
    /// An array; PostgreSQL does not tell dimensions apart, one is made.
    Array(Box<Kind>),
    /// A range type.
    Range {
        /// As SQL writes it.
        name: String,
        /// Its `pg_type.oid`, which its values hold. 0 where nobody has asked for it.
        #[serde(default, skip_serializing_if = "is_zero")]
        oid: u32,
        /// Type of the bounds.
        element: Box<Kind>,
    },
    /// A multirange type (PostgreSQL 14 and later).
    Multirange {
        /// As SQL writes it.
        name: String,
        /// Its `pg_type.oid`, which its values hold. 0 where nobody has asked for it.
        #[serde(default, skip_serializing_if = "is_zero")]
        oid: u32,
        /// Type of the bounds.
        element: Box<Kind>,
    },
    /// A composite type.
    Composite {
        /// As SQL writes it.
        name: String,
        /// Its `pg_type.oid`, which its values hold. 0 where nobody has asked for it.
        #[serde(default, skip_serializing_if = "is_zero")]
        oid: u32,
        /// Types of its fields, in order.
        fields: Vec<Kind>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(oid: &u32) -> bool {
    *oid == 0
}

/// Modifiers of `numeric(precision, scale)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precision {
    /// Decimal digits altogether, 1 to 1000.
    pub precision: u16,
    /// Of these after the decimal point; below 0 (from PostgreSQL 15) so many zeros before it.
    pub scale: i16,
}

impl Kind {
    /// The most characters that a text kind holds; none if there is no limit, or no text.
    pub fn characters(&self) -> Option<u32> {
        match self {
            Self::Varchar(length) => *length,
            Self::Char(length) => Some(*length),
            Self::Name => Some(63),
            _ => None,
        }
    }

    /// Whether the kind holds text as it is given.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Name)
    }

    /// OID of the type, which every server has the same (`pg_type.dat`); none for types that are created in
    /// a database, and ranges.
    pub fn oid(&self) -> Option<u32> {
        self.oids().map(|(oid, _)| oid)
    }

    /// OIDs of a built-in type and of its arrays, which for an array are the same.
    fn oids(&self) -> Option<(u32, u32)> {
        Some(match self {
            Self::Bool => (16, 1000),
            Self::Bytea => (17, 1001),
            Self::Name => (19, 1003),
            Self::Int8 => (20, 1016),
            Self::Int2 => (21, 1005),
            Self::Int4 => (23, 1007),
            Self::Text => (25, 1009),
            Self::Oid => (26, 1028),
            Self::Json => (114, 199),
            Self::Xml => (142, 143),
            Self::Point => (600, 1017),
            Self::Lseg => (601, 1018),
            Self::Path => (602, 1019),
            Self::Box => (603, 1020),
            Self::Polygon => (604, 1027),
            Self::Line => (628, 629),
            Self::Cidr => (650, 651),
            Self::Float4 => (700, 1021),
            Self::Float8 => (701, 1022),
            Self::Circle => (718, 719),
            Self::Macaddr8 => (774, 775),
            Self::Money => (790, 791),
            Self::Macaddr => (829, 1040),
            Self::Inet => (869, 1041),
            Self::Char(_) => (1042, 1014),
            Self::Varchar(_) => (1043, 1015),
            Self::Date => (1082, 1182),
            Self::Time => (1083, 1183),
            Self::Timestamp => (1114, 1115),
            Self::TimestampTz => (1184, 1185),
            Self::Interval => (1186, 1187),
            Self::TimeTz => (1266, 1270),
            Self::Bit(_) => (1560, 1561),
            Self::Varbit(_) => (1562, 1563),
            Self::Numeric(_) => (1700, 1231),
            Self::Uuid => (2950, 2951),
            Self::PgLsn => (3220, 3221),
            Self::TsVector => (3614, 3643),
            Self::TsQuery => (3615, 3645),
            Self::Jsonb => (3802, 3807),
            Self::Array(element) => {
                let (_, array) = element.oids()?;
                (array, array)
            }
            Self::Enum { .. } | Self::Range { .. } | Self::Multirange { .. } | Self::Composite { .. } => {
                return None;
            }
        })
    }

    /// The type as written in CREATE TABLE.
    pub fn sql(&self) -> String {
        let plain = match self {
            Self::Bool => "boolean",
            Self::Int2 => "smallint",
            Self::Int4 => "int",
            Self::Int8 => "bigint",
            Self::Float4 => "real",
            Self::Float8 => "double precision",
            Self::Money => "money",
            Self::Text => "text",
            Self::Name => "name",
            Self::Bytea => "bytea",
            Self::Date => "date",
            Self::Time => "time",
            Self::TimeTz => "time with time zone",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamp with time zone",
            Self::Interval => "interval",
            Self::Uuid => "uuid",
            Self::Json => "json",
            Self::Jsonb => "jsonb",
            Self::Xml => "xml",
            Self::Inet => "inet",
            Self::Cidr => "cidr",
            Self::Macaddr => "macaddr",
            Self::Macaddr8 => "macaddr8",
            Self::Point => "point",
            Self::Line => "line",
            Self::Lseg => "lseg",
            Self::Box => "box",
            Self::Path => "path",
            Self::Polygon => "polygon",
            Self::Circle => "circle",
            Self::TsVector => "tsvector",
            Self::TsQuery => "tsquery",
            Self::Oid => "oid",
            Self::PgLsn => "pg_lsn",
            Self::Numeric(None) => "numeric",
            Self::Varchar(None) => "varchar",
            Self::Varbit(None) => "bit varying",
            Self::Enum { name, .. }
            | Self::Range { name, .. }
            | Self::Multirange { name, .. }
            | Self::Composite { name, .. } => name,
            Self::Numeric(Some(Precision { precision, scale })) => {
                return format!("numeric({precision},{scale})");
            }
            Self::Varchar(Some(length)) => return format!("varchar({length})"),
            Self::Char(length) => return format!("char({length})"),
            Self::Bit(length) => return format!("bit({length})"),
            Self::Varbit(Some(length)) => return format!("bit varying({length})"),
            Self::Array(element) => return format!("{}[]", element.sql()),
        };
        plain.to_owned()
    }
}
