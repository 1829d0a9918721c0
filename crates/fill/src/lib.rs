//! `fill`: test data to an exact size. Request → plan → chunks → sink → outcome.
//!
//! After article 000 ("Generating lots of test data with Postgres, fast and faster") and 002
//! ("Speeding up pgbench using COPY FREEZE").

mod error;
mod leaf;
mod ledger;
pub mod limits;
mod outcome;
mod plan;
mod probe;
mod remains;
mod request;
mod run;
mod sql;

pub use error::{Cause, FillError};
pub use outcome::Outcome;
pub use plan::{Calculation, Chunking, IndexBuild, Method, Plan, Prediction, Sizes, Spread, plan, sight};
pub use probe::{
    Latency, ProbeError, ProbeKind, ProbePoint, ProbeTable, Prober, TurningPoint, UnknownProbe, turning_point,
};
pub use remains::{Remains, Replaced};
pub use request::{
    Amount, CopyFormat, IndexKind, InitStep, InitSteps, Letters, MethodChoice, OwnTable, PartitionMethod,
    Partitions, Persistence, Request, Subject,
};
pub use run::compression::{Compressed, Compression};
pub use run::direct::{Abandoned, Failure, NotDirect, remove_abandoned};
pub use run::scratch::{SCRATCH_SCHEMA, clear_scratch};
pub use run::{Conduct, Observer, RateMeter, Rehearsed, rehearse, run};
pub use sql::script::sql_of_script;
