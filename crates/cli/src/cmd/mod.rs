//! The command line, and a folder for each verb. Verbs do not know each other.

pub(crate) mod ab;
pub(crate) mod backup;
pub(crate) mod blockio;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod ddl;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod fill;
pub(crate) mod line;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod micro;
pub(crate) mod mistakes;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod server;
pub(crate) mod size;
pub(crate) mod testdb;
pub(crate) mod tps;
