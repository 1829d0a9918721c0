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
    },
    /// An array; PostgreSQL does not tell dimensions apart, one is made.
    Array(Box<Kind>),
    /// A range type.
    Range {
        /// As SQL writes it.
        name: String,
        /// Type of the bounds.
        element: Box<Kind>,
    },
    /// A multirange type (PostgreSQL 14 and later).
    Multirange {
        /// As SQL writes it.
        name: String,
        /// Type of the bounds.
        element: Box<Kind>,
    },
    /// A composite type.
    Composite {
        /// As SQL writes it.
        name: String,
        /// Types of its fields, in order.
        fields: Vec<Kind>,
    },
}

/// Of a `numeric(precision, scale)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precision {
    /// Decimal digits altogether, 1 to 1000.
    pub precision: u16,
    /// Of these after the decimal point; below 0 (from PostgreSQL 15) so many zeros before it.
    pub scale: i16,
}

impl Kind {
    /// The most characters that a text kind holds; none if there is no limit, or no text.
    pub(crate) fn characters(&self) -> Option<u32> {
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
