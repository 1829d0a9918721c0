//! From numbers to judgement: the run document, statistics, thresholds and comparisons.
//!
//! Start reading at [`Run`], the document, and at [`paired`] and [`compare`]. This crate has no I/O and no clock: callers
//! pass times in and save documents. It must know neither the measured subject nor the server.
//!
//! - [`paired`] judges candidates that were timed in the same rounds: `rounds` (times of each arm, round by round) and
//!   `order` (the order of the arms) → `bootstrap` (resampled trimmed means) → `estimate` (value and interval) →
//!   `judgement` (noise floor, Holm, verdict, needed rounds, when to stop); `drift` beside it. Its promises are rates of
//!   error, so its tests simulate.
//! - [`compare`] judges sides of saved runs: `sides` (runs of a baseline and a candidate, paired or not), `exact` (rank
//!   tests with estimate and interval, Holm), `needed` (runs that a verdict takes), `looks` (early looks and their share of
//!   false verdicts), `difference` (differences between the runs' environments, and whether they hinder), `change`
//!   (verdicts within one run).
//! - `figure` turns a run into one value for each figure: `compare` judges these, and documents hold them as `figures`.
//! - [`merge`] makes one document of those of the parts of a run: exact, since it adds histograms and counts of the same time.
//! - [`forecast`] gives a value at a size, with an interval, from values at smaller sizes: `fit` (laws, chosen by
//!   cross-validation), `boundary` (sizes across which no law holds).
//! - `history` finds a change of level in the values of many runs.
//! - There is one [`Verdict`] for every comparison.

mod censored;
pub mod compare;
mod figure;
pub mod forecast;
mod history;
pub mod human;
mod increment;
mod latencies;
mod median;
pub mod merge;
pub mod paired;
mod rate;
mod run;
mod sample;
mod series;
mod threshold;
mod verdict;

pub use censored::{Censored, Quantile, Skipped};
pub use figure::{Better, Figure, FigureUnit, figures, judged_among, judged_figures, unmeasurable};
pub use history::{Shift, shift};
pub use increment::{Increment, PackedLatencies};
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
