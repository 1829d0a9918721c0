//! Databases that are lent: fresh ones, in milliseconds, dropped when their owner exits or their time is over.
//!
//! ```text
//!  client ─── HTTP ──▶ http ─▶ routes ─▶ keeper (loop) ─▶ state: facts in, actions out
//!  curl, tests ────────▲                    │  ▲
//!                                           ▼  │ what came of it
//!                                          executor ─▶ PostgreSQL: templates, spares, leases
//! ```
//!
//! A **keeper** has the templates of one server, keeps spare copies of those that are in use, lends them, and drops
//! them. All it knows stands in the comments of its databases (`tag`), so that nothing is lost when it is killed:
//! the next one reads them. What has no comment yet has a name that says whose unfinished work it is (`name`).

mod api;
mod client;
mod error;
mod executor;
mod fingerprint;
mod http;
mod keeper;
mod name;
mod owner;
mod routes;
mod socket;
mod state;
mod tag;
mod time;

pub use api::{
    Dropped, Format, Lease, LendRequest, List, Listed, ListedOwner, ListedState, OwnerName, Refusal, Status,
    Which,
};
pub use client::{CallError, Client};
pub use error::LendError;
pub use http::Endpoint;
pub use keeper::{Ended, Keeper, KeeperConfig, Offer};
pub use name::KeeperId;
pub use owner::{Owner, caller};
pub use socket::listen;
pub use state::Rules;
