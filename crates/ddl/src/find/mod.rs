//! Findings about a statement: what two readings of the catalogs and of the session's counters prove, and the locks that
//! it took. Pure: no server.
//!
//! The strongest proof is a file: a relation whose `relfilenode` changes was written anew, whatever the statement says.
//! The next is the backend's own counters in the same transaction (`pg_stat_get_xact_*`), which nobody else can change. For a
//! statement that ends transactions, these are the server's counters in a database that nobody else uses.

mod class;
mod lock;
mod relation;
mod work;

pub use class::Class;
pub use lock::{Held, Lock, LockMode};
pub(crate) use relation::shown_relation;
pub use relation::{Kind, Read, Relation, Relations};
pub use work::{Counted, Known, Proof, Work, WorkKind, works};
pub(crate) use work::{add_uncounted, drop_work_on_empty};
