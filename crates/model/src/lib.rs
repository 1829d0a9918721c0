//! Models of data: a database's statistics of its columns, and how rows are made from them.
//!
//! A [`Model`] is one TOML file: the statements that make the schema, and for each column its statistics, in which text of
//! the original is replaced. [`Facts`] of a server become a model in [`Model::of`], where all rules about privacy are; a
//! model becomes column specifications in [`Table::specs`].
//!
//! Start reading at [`Model`]. This crate must not know a server: `catalog` reads the facts.

mod arrays;
mod depend;
mod elements;
mod error;
mod estimate;
mod facts;
mod fidelity;
mod file;
mod links;
mod locale;
mod lower;
mod make;
mod nulls;
mod numbers;
mod originals;
mod plans;
mod ranges;
mod replace;
mod shapes;
#[cfg(test)]
mod sorted;
mod sound;
#[cfg(test)]
mod testing;
mod unread;

pub use error::ModelError;
pub use facts::{ColumnFacts, ColumnRole, Facts, Joint, Pair, RangeStatistics, Statistics, TableFacts};
pub use fidelity::{Fidelity, Field, Sizes};
pub use file::{Bytes, Column, Follows, How, Model, Others, Table, Values};
pub use locale::{Locale, LocaleProvider};
pub use make::{Privacy, UNKNOWN_TYPE, is_code, shortened};
pub use originals::Originals;
pub use plans::{Plans, PlansCompared, QErrors, QueryPlan, quantile};
pub use shapes::{Cells, Distance, Drawn, DrawnKey, DrawnTable, Measure, Shapes};
pub use unread::unread;
