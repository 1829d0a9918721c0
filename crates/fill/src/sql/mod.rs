//! Statements that pgrig sends: queries as files beside this one, and what is built from a plan.

pub(crate) mod absent;
pub(crate) mod ddl;
pub(crate) mod script;
