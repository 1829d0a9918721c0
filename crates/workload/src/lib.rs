//! stub
pub mod connect;
