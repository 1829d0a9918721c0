//! Helpers that the tests of pgrig's crates share. A dev-dependency only; it knows `pgserver` and `connect`.
//!
//! - [`Server`] starts a real PostgreSQL in a throw-away `PGRIG_HOME`; [`shared`] is the server of a release that
//!   all tests of a program share. Start reading there.
//! - [`cache`] is where the fetched PostgreSQL is, once for all test programs; [`templates`] is the same with an
//!   `initdb` that copies the data directory of an earlier call.
//! - [`clients`] are client programs of a release that distributions may lack.
//! - [`until`] and [`until_async`] wait for a condition, with one deadline for all tests.
//! - [`require`] is the only way to skip a test.
//! - [`Mount`] is a small file system, [`fill_up`] leaves no space on one; [`tls`] has servers and certificates for TLS.
//!
//! | variable | meaning |
//! |---|---|
//! | `CI` | nothing may be skipped |
//! | `PGRIG_TEST_CACHE` | directory of the fetched PostgreSQL; by default below the target directory |
//! | `PGRIG_TEST_DIR` | directory of the throw-away homes; by default `/dev/shm` where it has room |

#![allow(clippy::missing_panics_doc, reason = "a panic is how a test fails")]

mod cache;
mod clients;
mod directory;
mod mount;
mod need;
mod program;
mod server;
mod shared;
mod templates;
pub mod tls;
mod wait;

use pgserver::Major;

pub use cache::cache;
pub use clients::{CLIENTS_RELEASE, clients};
pub use directory::{directory, disk_directory, open_to_all};
pub use mount::{Mount, fill_up};
pub use need::{Need, require};
pub use program::{does, told};
pub use server::{Database, Server, block_on, quoted, quoted_literal, spec, target};
pub use shared::shared;
pub use templates::{templates, templates_of};
pub use wait::{DEADLINE, until, until_async, until_ok, until_some, until_some_async};

/// The oldest release and the newest that pgrig works with.
pub const RELEASES: [u16; 2] = [Major::OLDEST.number(), Major::NEWEST.number()];

/// Fails unless `text` contains every part.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "expected {part:?} in: {text}");
    }
}
