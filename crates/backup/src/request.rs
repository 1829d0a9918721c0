//! The request of the user.

use std::path::PathBuf;

use serde::Serialize;

use crate::way::Way;

/// A rehearsal.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The ways, in order; none for the default ones.
    pub ways: Vec<Way>,
    /// Trials of each way.
    pub trials: u32,
    /// Directory of the client programs.
    pub bin: Option<PathBuf>,
}
