//! The request of the user.

use std::path::PathBuf;

use serde::Serialize;

use crate::load::Load;
use crate::shape::Shape;
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
    /// Whether rows are looked up beside the backups.
    pub probe: bool,
    /// Whether bytes between the server and the client programs are counted. Documents of earlier versions do not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// A rehearsal at three sizes of data that pgrig makes, and a forecast for a larger size.
#[derive(Clone, Debug, Serialize)]
pub struct SizesRequest {
    /// The ways, the trials of each way at each size, and the client programs.
    #[serde(flatten)]
    pub request: Request,
    /// The data.
    pub shape: Shape,
    /// Bytes of all tables with their indexes, for which the user wants to know.
    pub size: u64,
    /// The same at the largest size that is measured, at most.
    pub up_to: u64,
    /// Price of a GB (10^9 bytes) of backup for a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// Seconds that a restore may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<f64>,
    /// Share of all rows that pgrig updates between a full and an incremental backup, 0 to 1.
    pub changes: f64,
    /// The load whose WAL is measured and replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}
