//! Finds, fetches, initialises, starts and stops a PostgreSQL for pgrig, with its durability always
//! explicit: the configuration of a server is in a [`Profile`] and a list of settings, written into a file
//! that anybody can read (`data/pgrig.conf`), never on a command line and never hidden.
//!
//! Start reading at [`Instance`]. This crate must not know SQL: it is synchronous and has no client. Verbs connect with
//! the crate `connect`.
//!
//! - An instance is a directory. Unfinished things have another name (an archive that is unpacked, initdb's directory), so
//!   that nothing counts that a kill left behind.
//! - An owned server dies with its process: PDEATHSIG sends the postmaster a fast shutdown. The signal is bound to the thread
//!   that forks, so a thread of its own forks, and lives as long as the server. Setting it is the project's one `unsafe`.
//! - As root the server runs as `postgres` or `nobody`. If that account cannot reach PGRIG_HOME, the server's files live under
//!   `/var/lib/pgrig/home-<hash>`, and pgrig says so.
//! - flock(2) works on a read-only descriptor, so lock files have mode 0600 (`lock_file`). A process that waits for a lock
//!   prints its holder after one second.
//! - Settings go to `pgrig.conf`, included by postgresql.conf and not on the command line, so that ALTER SYSTEM works. After
//!   every start SHOW is compared with it.
//! ```no_run
//! # fn main() -> pgserver::Result<()> {
//! let home = pgserver::Home::locate()?;
//! let instance = pgserver::Instance::open(&home, pgserver::Spec::default())?;
//! let running = instance.attach_or_start(&|event| eprintln!("{event}"))?;
//! println!("{}", running.connection().url());
//! running.stop()
//! # }
//! ```
//!
//! # Files
//!
//! ```text
//! PGRIG_HOME/                 Home::root(): runs/ and the like are the caller's
//!   home.json                 format of the home, if it is not 1
//!   postgresql/18.6.0/        fetched binaries            ┐ under Home::server_root(), which is
//!   instances/default/        one Instance                ┘ elsewhere if the server cannot go there
//!     instance.json           version, binaries, profile, settings: changed by start_detached
//!     server.json             the same of the server that runs now, its pid and lifetime
//!     in-use.lock             0600; flock(2), held by the process that owns the server
//!     password                of the superuser, for TCP only
//!     log  log.1              the server's stderr
//!     socket/                 0700
//!     data/                   PGDATA; pgrig.conf in it is included by postgresql.conf
//! ```
//!
//! # Lifetimes
//!
//! A server started by [`Instance::attach_or_start`] belongs to this process: it is stopped by
//! [`Running::stop`] or on drop, and on Linux also by the kernel when this process dies in any way.
//! It also ends when one of its processes crashes (`restart_after_crash=off`): PostgreSQL 15 to 18, told
//! to stop while they restart themselves, never end. The next start recovers it.
//! A server started by [`Instance::start_detached`] outlives it and is shared by all processes that attach.
//!
//! All entry points block, and may be called from inside an async runtime's blocking section.
//!
//! # Environment
//!
//! Read by [`Home::locate`] only: `PGRIG_HOME`, `XDG_DATA_HOME`, `HOME`; `PGRIG_POSTGRESQL_CACHE`
//! (a directory for the fetched binaries, shared between homes); `PGRIG_FETCH=never` (refuse to use
//! the network: for air-gapped machines).

mod account;
mod archive;
mod binaries;
mod config_file;
mod control;
mod diagnose;
mod differences;
mod error;
mod event;
mod fetch;
mod files;
mod home;
mod initdb;
mod instance;
mod launch;
mod libc;
mod lock;
mod lock_file;
mod pidfile;
mod postmaster;
mod process;
mod profile;
mod program;
mod prune;
mod record;
mod restored;
mod running;
mod setting_name;
mod socket;
mod spawn;
mod status;
mod version;

pub use binaries::Binaries;
pub use control::system_identifier;
pub use diagnose::READ_LOG;
pub use error::{Error, Result};
pub use event::{Event, Events};
pub use fetch::{Fetched, fetch};
pub use home::Home;
pub use instance::{Instance, Programs, Spec};
pub use lock_file::{LockFile, TELL_AFTER};
pub use profile::Profile;
pub use program::{Ended, GroupGuard, Program};
pub use prune::prune;
pub use running::{Connection, Running, Tcp};
pub use status::{InstanceState, Lifetime, ServerStatus, Status};
pub use version::{Major, Version};
