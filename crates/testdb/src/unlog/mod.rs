//! Makes the tables of a live database unlogged, and logged again.
//!
//! `request` → `plan` → `run`. The plan is data: statements in their order, and the tables that
//! stay as they are, with reasons. In `plan`, `look` reads the catalogs, `choice` decides which
//! tables must stay and in which order the others are changed, and `foreign_keys` computes that
//! order. `run` carries the statements out in one transaction.

mod error;
mod plan;
mod request;
mod run;

pub use error::{Publication, UnlogError};
pub use plan::{ForeignKey, Left, Object, ObjectKind, Step, UnlogPlan, Why, plan};
pub use request::{Direction, UnlogRequest};
pub use run::{Durability, Observer, Unlogged, apply};
