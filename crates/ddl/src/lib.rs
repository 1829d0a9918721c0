//! The engine of `pgrig ddl`: the effects of a migration on tables, measured.
//!
//! ```text
//! Request (Schema, Script) ─▶ run: fill a database ─▶ look at each statement in one copy ─▶ time each in another ─▶ Outcome
//! ```
//!
//! - [`Script`] cuts the migration into statements, as psql does. It refuses those with effects `outside` of their database, and leaves out
//!   the part of a file that takes a migration back (`directions`), and limits of the session's pauses (`idle`).
//! - [`Probing`] is the user's own reader or writer: SQL, or a pgbench script.
//! - [`Schema`] is where the tables come from: a file of SQL, a database's catalogs, or a model.
//! - `run/`: `databases` are made, marked and dropped; `look` runs each statement and reads what changed; `blockers`
//!   holds statements that run outside transactions, so that their locks can be read; `cost` times them, undisturbed (with
//!   [`Effort::Quick`], the run of `look` is also the timed one); `stall` measures the waits of readers and writers meanwhile.
//! - `ways`: the better way in words, by the class and by the actions of the text. `better`: statements that do the same with weaker locks,
//!   made of the `parts` of the text (of partitioned tables: `parted`, of columns that become NOT NULL: `not_null`, of several actions:
//!   `combined`) and of the names that the server gave to `objects` of the statement; measured in the same way. `kept`: DROP TABLE that should
//!   come later in its transaction.
//! - `transaction`: the one that a statement shares with others, which a better way may end.
//! - `dependents`: views, rules, policies, triggers, functions and publications of an original, because of which a statement that runs on the
//!   copy fails there (`run/dependents`).
//! - `triggers`: those of an original that fire for each row of a statement there, and not on the copy (`run/unfired`), also by foreign keys (`run/cascades`).
//! - `run/defaults`: rows for default partitions on which statements work. `rowless`: partitions without generated rows, and
//!   writes that change no row (`run/unmatched`; those of functions: `run/called`): these statements have no forecast. `thinned`: tables of
//!   which earlier statements have removed most rows. `skipped`: statements that did nothing, because a table is not there.
//! - `run/keys`: columns that are counted, and not made by statistics, because the migration adds a unique key.
//! - `extent`: the values that the statistics of a database have of a column, and whether another type takes them.
//! - `strings`: the strings of a migration have one syntax, whatever it sets.
//! - `encoding`: the texts are UTF-8, whatever encoding a migration or schema sets (`setting`); `run/zone` tells if an unknown time zone decides
//!   on a rewrite.
//! - `locale`: that of the databases, which decides on the order of texts, and on whether an index serves LIKE; chosen by `run/locale`.
//! - `find/`: what two readings of the catalogs and the counters prove: work on relations, and a class. No server.
//! - [`Outcome`]: statements with class, proof, locks, seconds, bytes of WAL and disk space; as trials of a run document: `trial`.
//!
//! Start reading at [`run()`] and [`find`]. A composition of engines: it may use `fill` and `catalog`; no engine may
//! use it. It must not know the command line or how a run document is saved.

mod better;
mod blind;
mod blocking;
mod combined;
mod dependents;
mod directions;
mod edge;
mod encoding;
mod error;
mod exchanged;
mod extent;
pub mod find;
mod forecast;
mod idle;
mod kept;
mod lacking;
mod locale;
mod not_null;
mod objects;
mod open;
mod outcome;
mod outside;
mod parted;
mod parts;
mod plan;
mod probing;
mod program;
mod request;
mod rowless;
mod run;
mod schema;
mod script;
mod script_error;
mod setting;
mod skipped;
mod statement;
mod strings;
mod thinned;
mod transaction;
mod trial;
mod triggers;
mod ways;

pub use better::better_statements;
pub use error::DdlError;
pub use forecast::{Boundary, Cause, Figure, Forecast, Memory};
pub use kept::{Keeper, keepers};
pub use locale::{Locale, UnknownLocale};
pub use outcome::{
    Alternative, AtSize, Baseline, Cost, Deadlock, Effects, Failed, Outcome, ProbeKind, Probed, Space,
    Spread, Stall, StatementOutcome, Stopped, TableAt, Wait,
};
pub use plan::{Plan, PlannedDefault, PlannedSize, PlannedTable};
pub use probing::{ProbeScript, Probing};
pub use request::{Amount, Effort, Probes, Request, TableSize};
pub use rowless::{Rowless, Unchanged, UnknownZone, Unmatched, Untimed};
pub use run::{Observer, Site, run};
pub use schema::Schema;
pub use script::{Script, Statement, StatementKind};
pub use script_error::{ProbingError, ScriptError};
pub use thinned::Thinned;
pub use transaction::{is_in_transaction, is_left_open};
pub use ways::better_way;
