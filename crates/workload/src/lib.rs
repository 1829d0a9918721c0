//! All that talks to PostgreSQL: connecting, what a server is, and a folder per verb, each
//! configuration → run.

pub mod blockio;
pub mod catalog;
pub mod connect;
pub mod disturbance;
pub mod fault;
pub mod fill;
pub mod interruption;
pub mod machine;
mod marked;
pub mod micro;
pub mod process;
pub mod quote;
pub mod server;
pub mod settings;
pub mod surroundings;
pub mod testdb;
pub mod tps;
pub mod volume;
