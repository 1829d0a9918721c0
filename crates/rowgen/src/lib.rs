//! Rows from a description: deterministic, random access.
//!
//! A value is a pure function of its table, column and row number, so any range of rows can be
//! made anywhere, in any order, on any number of streams, with the same bytes.
//!
//! Start reading at [`Table`] and [`Encoder`]. This crate must not know a server, a file or a clock: `catalog` describes a
//! server's tables, and `fill` loads the rows. `spec/` reads the values of `--column`, `generate/` makes values, `render/`
//! writes them as text, `encode/` as COPY's text and binary formats, `tuples/` as heap pages hold them, and `stored/`
//! computes the space that they take on disk. DDL follows from the same [`Table`].
//!
//! ```
//! use rowgen::{Encoder, Format, pgbench};
//!
//! let accounts = pgbench::accounts(250_000, 2, rowgen::Payload::Blank);
//! let encoder = Encoder::new(&accounts, Format::Text, rowgen::Constants::Sent);
//! let mut bytes = Vec::new();
//! encoder.encode(99_999..100_001, &mut bytes);
//! assert_eq!(bytes, b"100000\t1\t0\t\n100001\t2\t0\t\n");
//! ```

mod check;
mod encode;
mod formula;
mod generate;
mod hash;
mod json;
mod kind;
mod levels;
mod numeric;
pub mod pgbench;
mod phrase;
mod random;
mod ranking;
mod render;
mod sampled;
pub mod spec;
mod spread;
mod stored;
mod table;
mod topic;
mod tuples;
mod units;
mod value;
mod values;

pub use check::Unsuited;
pub use encode::{Constants, Encoder, Format};
pub use formula::{Class, Formula, Function, Operator, Scalar};
pub use hash::{RowHash, hash_partition};
pub use kind::{Kind, Precision};
pub use levels::{Level, information, untied};
pub use ranking::{Correlated, Joint, Line, Link, Ranking};
pub use spec::{ColumnSpec, Keyed, Spec, SpecError};
pub use spread::{Alphabet, Buckets, Common, Described, Elements, Letters, Spread, Statistics};
pub use stored::{Storage, Stored};
pub use table::{Column, Table};
pub use topic::Topic;
pub use tuples::{Body, TupleEncoder, Tuples, Unstorable};
pub use units::Units;
pub use values::{
    Distribution, Keys, Member, Paired, PairedKeys, Payload, Pick, Reference, Shared, Side, Turn, Values,
    Weighted,
};
