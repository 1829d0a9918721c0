//! Numbers to judgement: the run document and, as the verbs come, the statistics over it.
//!
//! No I/O and no clock: whoever measures passes times in, whoever saves takes the document out.

mod run;

pub use run::{
    Disk, Environment, FORMAT_VERSION, Machine, Note, Observation, Run, SCHEMA, Server, Setting, Status,
    Trial, Unit,
};
