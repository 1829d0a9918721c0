//! Numbers to judgement: the run document, numbers for people and, as the verbs come, statistics.
//!
//! No I/O and no clock: whoever measures passes times in, whoever saves takes the document out.

pub mod human;
mod run;

pub use run::{
    Disk, Environment, FORMAT_VERSION, Machine, Note, Observation, Run, SCHEMA, Server, Setting, Status,
    Trial, Unit,
};
