//! Makes the tables of a live database unlogged, and logged again.
//!
//! `request` → `look` (what the catalogs say) → `choice` (what must stay, in which order the rest goes; arithmetic in
//! `foreign_keys`) → `plan` (data: statements, and what is left and why) → `apply` (one transaction).

mod apply;
mod choice;
mod error;
mod foreign_keys;
mod look;
mod plan;
mod request;

pub use apply::{Durability, Observer, Unlogged, apply};
pub use error::{Publication, UnlogError};
pub use plan::{ForeignKey, Left, Object, ObjectKind, Step, UnlogPlan, Why, plan};
pub use request::{Direction, UnlogRequest};
