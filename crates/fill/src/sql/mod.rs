//! Statements that pgrig sends: queries from files beside this one, and statements that are built
//! from a plan.

pub(crate) mod absent;
pub(crate) mod ddl;
pub(crate) mod emptied;
pub(crate) mod script;
