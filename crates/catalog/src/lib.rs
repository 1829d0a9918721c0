//! Any table: what the catalogs say of it, and rows that keep all of its constraints.
//!
//! ```text
//! --table ─▶ TableInfo::read ─▶ describe ─▶ Described ─▶ COPY
//!               (facts)        (decisions)      └▶ verify: the server judges a sample
//! ```

mod allowed;
mod compose;
mod condition;
mod constants;
mod describe;
mod error;
mod info;
mod keys;
mod kind;
mod narrow;
mod present;
mod read;
mod references;
mod slot;
mod spec;
mod transaction;
mod verify;

pub use describe::{Described, Wish, describe};
pub use error::CatalogError;
pub use info::{
    CheckInfo, ColumnInfo, DataType, ForeignKeyInfo, KeyElement, KeyInfo, LeafInfo, Referenced, Source,
    TableInfo, TypeShape,
};
pub use keys::MostRows;
pub use present::Present;
pub use transaction::Scope;
pub use verify::{Verified, verify};
