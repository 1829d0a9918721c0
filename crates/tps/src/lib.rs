//! The engine of `pgrig tps`: transactions per second and latency of pgbench scripts.
//!
//! ```text
//! request ─▶ plan ─▶ run ─▶ jobs (threads) ─▶ clients ─▶ carry_out ─▶ wire ─▶ PostgreSQL
//!                     │        │ tally             pace: the schedule
//!      observer ◀── seconds ◀──┘        watch: other activity, in a session of its own
//!                     ▼
//!                  outcome ─▶ document ─▶ measure::Trial
//! ```
//!
//! Start reading at [`Request`], [`Plan`] and [`run()`]; a latency is recorded in `run/tally`. This crate must not know the
//! other engines, or the script language beyond the crate `script`.
//!
//! - `Request::check` refuses requests that cannot work on any server; [`Plan`] parses the scripts before a server is
//!   touched, then
//!   asks for the scale. [`run()`] connects, starts jobs, collects their tallies second by second, and ends them (`stop_signal`).
//! - A job is a thread. Its `waiter` wakes it for any of its clients that can continue; jobs share nothing but counters. A
//!   client waits for its socket and not in `recv`, even if it is alone on its thread: the kernel wakes a blocked reader of
//!   a Unix socket also when the server has read the sent bytes.
//! - **`run/pace` owns time**: ramp, warm-up, measured part, and the schedule under a rate. Latency counts from the
//!   scheduled start.
//! - `run/wire` speaks the protocol on a stream from `Target::connect_raw`: messages are composed in one buffer and read in
//!   place from another, one `send` and one `recv` a statement, without allocation. Only the `waiter` waits.
//! - [`watch`] observes the server from a session of its own, and this machine. `document` makes the run document.
//! - [`matrix`] is a loop around all this: axes → cells (their product) → rounds of trials in balanced order. Before each
//!   trial it gives the server the cell's settings, checks them with SHOW, and equalises the server's state. Its caller
//!   carries out the trial like any other run.

mod connections;
mod document;
mod error;
mod exchange;
pub mod matrix;
mod observer;
mod outcome;
mod plan;
mod request;
mod run;
mod signals;
pub mod watch;

pub use connections::refuse_too_many;
pub use document::TPS;
pub use error::TpsError;
pub use exchange::Exchange;
pub use observer::{Debugged, Observer};
pub use outcome::{
    Counts, End, Failed, KeptSecond, LostClient, Measured, MeasuredCommand, MeasuredScript, Moves, Outcome,
    Parted, Phase, Second,
};
pub use plan::{Parsed, Plan};
pub use request::{Connecting, Length, Part, Protocol, Request};
pub use run::{run, wire};
