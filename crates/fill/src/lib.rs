//! Fills a server with test data to an exact size, or until the disk is full.
//!
//! The data flow is `Request` → `Plan` → chunks → sink → `Outcome`:
//!
//! - `request/`: the user's request. `check` refuses requests that cannot work on any server.
//! - `plan/`: from the request and the server to a [`Plan`], which is data: `--explain` prints it, the run document
//!   holds it, the run obeys it. [`plan()`] is the one path for pgbench's tables and the user's; `plan/rules/` decides.
//! - `run/`: the plan is carried out by [`run()`]. `steps` runs the steps in order; `chunk_loop` hands chunks to
//!   streams; `load_chunk` loads one; `resume` decides whether a fill that was killed can be completed.
//!   [`rehearse`] tries the steps before the rows on empty tables, and rolls back.
//! - `ledger/`: the tables beside the filled ones that record which chunks are loaded.
//! - `outcome` and `remains`: the results of a fill, and the contents of the database if it failed.
//! - [`limits`] stops a fill or lets it wait because of space or time; `probe/` runs a query at growing sizes.
//! - `schema/`: all tables of a schema, by a plan and a run for each.
//! - `sql/`: the queries as files, and the statements that are built from a plan.
//!
//! Start to read at [`plan()`] and [`run()`], both short.
//!
//! This crate does not know the command line, the other verbs, or how a run document is saved: it tells an
//! [`Observer`] of its progress and returns an [`Outcome`]. It does not start servers. Sessions, settings and volumes are
//! in the crates `connect` and `server`; facts of the user's tables come from `catalog`.
//!
//! After article 000 ("Generating lots of test data with Postgres, fast and faster") and 002
//! ("Speeding up pgbench using COPY FREEZE").

mod cause;
mod cycle;
mod error;
mod leaf;
mod ledger;
pub mod limits;
mod outcome;
mod part_work;
mod plan;
mod probe;
mod remains;
mod request;
mod run;
mod schema;
mod sql;

pub use cause::Cause;
pub use cycle::{CycleError, SqlOrigin};
pub use error::{BegunError, FillError};
pub use outcome::Outcome;
pub use part_work::{FillId, PartWork};
pub use plan::{
    Calculation, Chunking, IndexBuild, Method, Plan, Prediction, Sizes, Spread, plan, plan_and_space,
    volume_monitor,
};
pub use probe::{
    Latency, ProbeError, ProbeKind, ProbePoint, ProbeTable, Prober, TurningPoint, UnknownProbe, turning_point,
};
pub use remains::{Remains, Replaced, StartOver};
pub use request::{
    Amount, CopyFormat, IndexKind, InitStep, InitSteps, Letters, MethodChoice, OwnTable, Part,
    PartitionMethod, Partitions, Persistence, Request, RowOrder, Subject, Triggers,
};
pub use run::compression::{Compressed, Compression};
pub use run::direct::{Abandoned, Failure, NotDirect, remove_abandoned};
pub use run::scratch::{SCRATCH_SCHEMA, clear_scratch};
pub use run::{Arrival, Conduct, Observer, PartEnd, RateMeter, Rehearsed, Unwatched, arrive, rehearse, run};
pub use schema::{
    FillSteps, FilledTable, Modelled, ModelledType, OF_MODEL, OriginalHeap, PlannedTable, RowsRule,
    SchemaAmount, SchemaLimits, SchemaObserver, SchemaOutcome, SchemaPlan, SchemaRequest, SchemaTriggers,
    TableRows, TableState, Unpopulated, create_schema, is_name_of, plan_schema, plan_schema_and_space,
    run_schema, triggers_of_schema,
};
pub use sql::absent::{Lack, Skipped};
pub use sql::script::sql_of_script;
