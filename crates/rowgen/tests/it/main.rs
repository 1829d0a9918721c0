//! The integration tests of this crate, one program.

mod encoders;
mod rows_in_servers;
mod spec;
mod support;
mod topics;
mod tuples;
mod tuples_in_servers;
mod values;
