//! A PostgreSQL server once it is reached: what every verb needs of it, whatever the verb does.
//!
//! ```text
//! connect::Target ─▶ Session            statements, without timeouts
//! Connection ─▶ Survey                  build, settings, role, machine, data directory, volumes; refusals
//!               settings::Changer       changed settings, put back after an error, Ctrl-C or kill -9
//!               interruption            work that the user may stop
//! ```
//!
//! It knows nothing of tables to fill or of what is measured. Start reading at [`Survey`] and [`Session`].

pub mod disturbance;
mod error;
pub mod fault;
mod info;
pub mod interruption;
pub mod machine;
pub mod marked;
pub mod process;
pub mod quote;
mod schema;
mod session;
pub mod settings;
mod settle;
mod survey;
pub mod volume;

pub use error::SurveyError;
pub use info::{ServerInfo, differing_settings};
pub use schema::{FoundSchema, refuse_odd_name, schema_for_tables};
pub use session::{Session, Sessions, ask};
pub use settle::settle;
pub use survey::{DataDirectory, Site, Survey};
