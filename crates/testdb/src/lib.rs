//! Databases for integration tests: made fast, lent out, and measured with the suite that uses them. After the articles
//! "Speeding Up Integration Tests with PostgreSQL" and its follow-up.

mod archive;
pub mod bench;
pub mod clone;
pub mod lend;
pub mod load;
pub mod sink;
pub mod source;
pub mod unlog;

pub use server::Session;
