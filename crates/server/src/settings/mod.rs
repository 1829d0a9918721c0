//! Changes a server's settings and tables' persistence, and always restores them: at the end, after
//! an error, on Ctrl-C, and after a kill -9 by the next pgrig.
//!
//! ```text
//! ToChange::look ─▶ Changer::begin (journal on disk) ─▶ set, set_unlogged ─▶ finish ─▶ put_back ─▶ journal deleted
//!                                        └── killed ─▶ Journal::all of the next pgrig ─▶ put_back ──┘
//! ```
//!
//! A change has the smallest possible scope ([`Effect`]). A setting that any session may set is set
//! for pgrig's sessions ([`connect::Target::with_setting`]), and needs no journal. Other settings
//! are changed with ALTER SYSTEM and pg_reload_conf(); a session that begins after the server has
//! loaded them shows whether they are in force. A setting that needs a restart is not changed with
//! ALTER SYSTEM, because a value with which the server does not start would be left behind: the
//! caller that can restart the server starts it with the value.

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

/// The ALTER SYSTEM that sets a value, or resets the setting if there is none.
fn alter(name: &str, value: Option<&str>) -> String {
    // The part before a dot is an extension's.
    let name = name.split('.').map(identifier).collect::<Vec<_>>().join(".");
    match value {
        Some(value) => format!("ALTER SYSTEM SET {name} = {}", literal(value)),
        None => format!("ALTER SYSTEM RESET {name}"),
    }
}
