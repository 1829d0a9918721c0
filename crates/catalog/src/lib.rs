//! Any table: facts from the catalogs, and a description of rows that keep all of its constraints.
//!
//! ```text
//! --table ─▶ TableInfo::read ─▶ describe ─▶ Described ─▶ COPY
//!               (facts)        (decisions)      └▶ verify: the server judges a sample
//! ```
//!
//! Start reading at [`TableInfo`] and [`describe()`]. This crate must not know how rows are loaded: no chunks, no methods,
//! no pages.
//!
//! # From a constraint to values
//!
//! `describe` decides on the values of every column, in this order: `slot` (whether the server, the user or constraints
//! decide), `condition`, `constants`, `narrow` and `allowed` (the values that CHECKs, domains and partition bounds leave),
//! `references` (the keys that can be referenced), `keys` (the columns that take turns so that keys are unique), `compose`.
//!
//! - `condition` reads conditions as `pg_get_expr` prints them, with all parentheses, from the tokens of the crate `sql`.
//!   The server evaluates the constants in them. Conditions that are not understood are left to `sample`: the server
//!   judges candidates, and columns draw together from those that pass.
//!   The bounds of partitions whose key is an expression are such conditions; so are expressions of generated columns and indexes
//!   that raise errors for some values. `extension` has texts for types of extensions.
//! - `partition_checks` makes CHECKs that only some partitions have conditions on all rows, or on those of these partitions.
//! - `room` finds tables that may lack room for another row, by the catalogs alone.
//! - `verify` loads a sample into a temporary table with the target's types and constraints, in a transaction that is
//!   rolled back.
//! - Unique keys are digits of the row number (`rowgen::Turn`): the column with the fewest values changes fastest, so an
//!   order gets line 1, then line 2. Numbers, dates and times continue after the greatest value in the table.

mod allowed;
mod among;
mod capture;
mod compose;
mod condition;
mod constants;
mod defaults;
mod describe;
mod error;
mod extension;
mod formula;
mod info;
mod keys;
mod kind;
mod looks;
mod mentioned;
mod narrow;
mod partition_checks;
mod planned;
mod present;
mod read;
mod references;
mod room;
mod sample;
mod slot;
mod spec;
pub mod temporary;
mod transaction;
mod verify;

pub use capture::{Aggregates, Drawing, TIMEOUT, capture, draw, drawing, locale, statements};
pub use describe::{DescribeRequest, Described, SequenceTaken, describe};
pub use error::{CatalogError, SampleError};
pub use formula::formula;
pub use info::{
    CheckInfo, ColumnInfo, DataType, ForeignKeyInfo, KeyElement, KeyInfo, LeafInfo, Referenced, SequenceInfo,
    Source, TableInfo, TypeShape,
};
pub use keys::MostRows;
pub use planned::Planned;
pub use present::Present;
pub use read::alike;
pub use transaction::Scope;
pub use verify::{Verified, verify};
