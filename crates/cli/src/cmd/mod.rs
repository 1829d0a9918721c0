//! One file per verb.

pub(crate) mod ab;
mod ab_text;
pub(crate) mod blockio;
mod blockio_progress;
mod blockio_text;
pub(crate) mod compare;
mod compare_text;
pub(crate) mod fill;
mod fill_text;
mod ladder;
mod ladder_text;
pub(crate) mod micro;
mod micro_progress;
mod micro_table;
mod micro_text;
pub(crate) mod server;
pub(crate) mod size;
pub(crate) mod testdb;
pub(crate) mod tps;
mod tps_hints;
mod tps_live;
mod tps_matrix;
mod tps_matrix_text;
mod tps_text;
mod tps_trials;
mod tps_trials_text;
mod tps_watched;
