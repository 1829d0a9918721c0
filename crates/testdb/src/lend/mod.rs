//! Databases that are lent: fresh ones, in milliseconds, dropped when their owner exits or their time is over.
//!
//! ```text
//!  client ─── HTTP ──▶ http ─▶ routes ─▶ keeper (loop) ─▶ book: facts in, actions out
//!  curl, tests ────────▲                    │  ▲
//!                                           ▼  │ what came of it
//!                                          hands ─▶ PostgreSQL: templates, spares, loans
//! ```
//!
//! A **keeper** has the templates of one server, keeps spare copies of those that are in use, lends them, and drops
//! them. All it knows stands in the comments of its databases (`tag`), so that nothing is lost when it is killed:
//! the next one reads them. What has no comment yet has a name that says whose unfinished work it is (`name`).

mod api;
mod book;
mod client;
mod error;
mod fingerprint;
mod hands;
mod http;
mod keeper;
mod name;
mod owner;
mod routes;
mod socket;
mod tag;
mod time;

pub use api::{
    Dropped, Format, LendRequest, List, Listed, ListedOwner, ListedState, Loan, OwnerName, Refusal, Status,
    Which,
};
pub use book::Rules;
pub use client::{CallError, Client};
pub use error::LendError;
pub use http::Door;
pub use keeper::{Ended, Keeper, Offer, Opening};
pub use name::KeeperId;
pub use owner::{Owner, caller};
pub use socket::listen;
