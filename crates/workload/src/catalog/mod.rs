//! Any table: what the catalogs say of it, and rows that keep all of its constraints.
//!
//! ```text
//! --table ─▶ TableInfo::read ─▶ describe ─▶ rowgen::Table ─▶ COPY
//!            (facts)            (decisions) └▶ verify: the server itself judges a sample
//! ```

mod condition;
mod error;
mod info;
mod read;

pub use error::CatalogError;
pub use info::{
    CheckInfo, ColumnInfo, DataType, ForeignKeyInfo, KeyElement, KeyInfo, LeafInfo, Source, TableInfo,
    TypeShape,
};
