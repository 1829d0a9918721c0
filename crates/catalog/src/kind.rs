//! Converts types of the catalog to the types for which rowgen makes values.

use rowgen::{Kind, Precision};

use super::info::{DataType, TypeShape};

impl DataType {
    /// The kind of values to make; none if rowgen makes none for this type.
    pub(super) fn kind(&self) -> Option<Kind> {
        let name = || self.sql.clone();
        Some(match &self.shape {
            TypeShape::Scalar { name, built_in: true } => scalar(name, &self.modifiers)?,
            // The one type of an extension whose values are any text.
            TypeShape::Scalar { name, built_in: false } if name == "citext" => Kind::Text,
            TypeShape::Scalar { .. } => return None,
            TypeShape::Enum { labels } if labels.is_empty() => return None,
            TypeShape::Enum { labels } => {
                Kind::Enum { name: name(), labels: labels.clone(), oids: Vec::new(), oid: 0 }
            }
            TypeShape::Domain { base, .. } => base.kind()?,
            TypeShape::Array { element } => Kind::Array(Box::new(element.kind()?)),
            TypeShape::Range { subtype } => {
                Kind::Range { name: name(), oid: 0, element: Box::new(subtype.kind()?) }
            }
            TypeShape::Multirange { subtype } => {
                Kind::Multirange { name: name(), oid: 0, element: Box::new(subtype.kind()?) }
            }
            TypeShape::Composite { fields } if fields.is_empty() => return None,
            TypeShape::Composite { fields } => Kind::Composite {
                name: name(),
                oid: 0,
                fields: fields.iter().map(DataType::kind).collect::<Option<_>>()?,
            },
        })
    }
}

fn scalar(name: &str, modifiers: &[i32]) -> Option<Kind> {
    let length = modifiers.first().and_then(|&length| u32::try_from(length).ok());
    Some(match name {
        "bool" => Kind::Bool,
        "int2" => Kind::Int2,
        "int4" => Kind::Int4,
        "int8" => Kind::Int8,
        "float4" => Kind::Float4,
        "float8" => Kind::Float8,
        "numeric" => Kind::Numeric(precision(modifiers)),
        "money" => Kind::Money,
        "text" => Kind::Text,
        "varchar" => Kind::Varchar(length),
        // Without a length the catalog has bpchar, which takes any.
        "bpchar" => length.map_or(Kind::Text, Kind::Char),
        // One byte of ASCII.
        "char" => Kind::Varchar(Some(1)),
        "name" => Kind::Name,
        "bytea" => Kind::Bytea,
        "date" => Kind::Date,
        "time" => Kind::Time,
        "timetz" => Kind::TimeTz,
        "timestamp" => Kind::Timestamp,
        "timestamptz" => Kind::TimestampTz,
        "interval" => Kind::Interval,
        "uuid" => Kind::Uuid,
        "json" => Kind::Json,
        "jsonb" => Kind::Jsonb,
        "xml" => Kind::Xml,
        "inet" => Kind::Inet,
        "cidr" => Kind::Cidr,
        "macaddr" => Kind::Macaddr,
        "macaddr8" => Kind::Macaddr8,
        "bit" => Kind::Bit(length.unwrap_or(1)),
        "varbit" => Kind::Varbit(length),
        "point" => Kind::Point,
        "line" => Kind::Line,
        "lseg" => Kind::Lseg,
        "box" => Kind::Box,
        "path" => Kind::Path,
        "polygon" => Kind::Polygon,
        "circle" => Kind::Circle,
        "tsvector" => Kind::TsVector,
        "tsquery" => Kind::TsQuery,
        "oid" => Kind::Oid,
        "pg_lsn" => Kind::PgLsn,
        _ => return None,
    })
}

fn precision(modifiers: &[i32]) -> Option<Precision> {
    let &[precision, scale] = modifiers else { return None };
    Some(Precision { precision: precision.try_into().ok()?, scale: scale.try_into().ok()? })
}
