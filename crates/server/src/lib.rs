//! A PostgreSQL server that is reached: sessions, survey, settings, volumes, interruption.
//!
//! ```text
//! connect::Target ─▶ Session            statements, without timeouts
//! Connection ─▶ Survey                  build, settings, role, machine, data directory, volumes; refusals
//!               settings::Changer       changed settings, put back after an error, Ctrl-C or kill -9
//!               interruption            work that the user may stop
//!               ClockReading            the server's clock, for work that several processes share
//! ```
//!
//! Start reading at [`Survey`] and [`Session`]. This crate must know neither tables to fill nor the figures of a verb.
//!
//! # settings
//!
//! [`settings`] changes settings and always puts them back. A change reaches no further than it must: sessions set the settings that
//! any session may change (`Target::with_setting`), ALTER SYSTEM and a reload do the rest. pgrig's own server gets settings
//! that need a restart for one start only (`Instance::restart`), so that no value stays behind with which it cannot start.
//!
//! - The **journal** (`PGRIG_HOME/journal/<id>.json`) is on disk before the first change, and is deleted when every value is
//!   restored. It holds no password. It names its process by pid, start time, boot and pid namespace (`process`). Whether
//!   that process still runs decides who may restore, not a lock, because anybody who can open a file can lock it. pgrig
//!   cannot see a process in another pid namespace or on another machine: for such a journal it only prints the statements.
//! - **`put_back` is the only way back.** The process itself calls it at the end, after an error or after Ctrl-C. After a
//!   kill, the next pgrig that finds a journal without its process calls it, and for pgrig's own server it does so before
//!   anybody else is connected. The flock(2) of `<id>.lock` decides between two. It first ends the sessions of the dead
//!   process, which it finds by the journal's id in application_name. Then it changes only values that differ from the journal.
//! - When fsync is turned on again, `durable` forces everything to disk that was written meanwhile.
//! - A reload has happened when a new session says so (`pg_conf_load_time()`). A value is in force when that session has
//!   it from postgresql.auto.conf.
//!
//! # Interruption and faults
//!
//! A verb that must clean up passes the user's interruption to [`interruption::until_stopped`], beside its work. That
//! cancels the statements of the target's sessions until the work ends; then the verb cleans up.
//!
//! [`fault`] turns a panic in a verb's work into an error, so that the verb cleans up as after any other error. A panic in
//! another thread or task ends the work as Ctrl-C does (`fault::noticed`). In builds with assertions `PGRIG_TEST_PANIC`
//! names a point at which to panic.

mod clock;
pub mod disturbance;
mod error;
pub mod fault;
mod info;
pub mod interruption;
pub mod machine;
pub mod marked;
mod pooler;
pub mod process;
pub mod quote;
mod restart;
mod schema;
mod session;
pub mod settings;
mod settle;
mod steps;
mod survey;
pub mod volume;

pub use clock::ClockReading;
pub use error::SurveyError;
pub use info::{DifferingSetting, OLDEST_MAJOR, ServerInfo, differing_settings, removal};
pub use machine::{runs_on, volume_of};
pub use pooler::changes_sessions;
pub use restart::Restarter;
pub use schema::{FoundSchema, refuse_odd_name, schema_for_tables, take_in_hand};
pub use session::{Session, Sessions, ask, run_sql};
pub use settle::settle;
pub use steps::{Steps, unwatched};
pub use survey::{DataDirectory, Site, Survey};
