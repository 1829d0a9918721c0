//! Numbers to judgement: the run document, numbers for people and, as the verbs come, statistics.
//!
//! No I/O and no clock: whoever measures passes times in, whoever saves takes the document out.

mod censored;
pub mod compare;
mod figure;
pub mod human;
mod latencies;
mod median;
pub mod paired;
mod rate;
mod run;
mod sample;
mod series;
mod threshold;
mod verdict;

pub use censored::{Censored, Quantile, Skipped};
pub use figure::{Better, Figure, FigureUnit, figures, judged_figures};
pub use latencies::{Latencies, LatenciesError, Percentile, Percentiles};
pub use median::{Interval, IntervalKind, Median};
pub use rate::{RateChange, rate_changes, rate_sentences};
pub use run::{
    Disk, Environment, Event, FORMAT_VERSION, Histogram, Machine, Note, Observation, Run, SCHEMA, Server,
    Setting, Status, Trial, Unit, UnreadableRun,
};
pub use sample::Sample;
pub use series::Series;
pub use threshold::{Finding, Metrics, Threshold, ThresholdError};
pub use verdict::Verdict;
