//! The integration tests of this crate, one program.

mod btree;
mod btree_pages;
mod checksum;
mod layout;
mod pages;
mod pages_of_servers;
mod support;
