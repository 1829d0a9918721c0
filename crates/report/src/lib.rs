//! Run documents as pages that people look at: documents in, text out.
//!
//! This crate has no I/O and no clock, and knows no server. It must not know how a run was found or where a report goes.
//!
//! - [`embed`] keeps whole run documents in a page, so that a report is accepted where a run is.

pub mod embed;
