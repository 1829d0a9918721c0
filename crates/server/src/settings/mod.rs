//! Changing a server's settings, and tables' persistence, so that they are always put back: at the end, after an
//! error, on Ctrl-C, and after a kill -9 by the next pgrig.
//!
//! ```text
//! ToChange::look ─▶ Changer::begin (journal on disk) ─▶ set, set_unlogged ─▶ finish ─▶ put_back ─▶ journal deleted
//!                                        └── killed ─▶ Journal::all of the next pgrig ─▶ put_back ──┘
//! ```
//!
//! A change reaches no further than it must ([`Effect`]). What any session may set for itself is set so
//! ([`connect::Target::with_setting`]), and needs no journal. The rest is changed with ALTER SYSTEM and
//! pg_reload_conf(); that it is in force is seen in a session that began after the server had loaded it. What only
//! a restart changes is not changed so, because a value with which the server does not start would be left behind:
//! whoever can restart the server starts it with the value.

mod change;
mod durable;
mod error;
mod journal;
mod look;
mod private;
mod record;
mod restore;
mod tables;

pub use change::Changer;
pub use durable::{SYNC_BY_HAND, SYNC_BY_HAND_PERHAPS};
pub use error::SettingsError;
pub use journal::{Journal, JournalState, Unclaimed};
pub use look::{Changeable, Effect, Looked, Restart, ToChange};
pub use record::{Before, Record, ServerRef, Table};
pub use restore::{PutBack, identify, put_back};
pub use tables::Loggable;

use crate::quote::{identifier, literal};

/// ALTER SYSTEM that sets a value, or with none removes what it had set.
fn alter(name: &str, value: Option<&str>) -> String {
    // The part before a dot is an extension's.
    let name = name.split('.').map(identifier).collect::<Vec<_>>().join(".");
    match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    }
}
