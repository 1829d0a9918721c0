//! Bytes between the server and the client programs during a backup.

use serde::Serialize;

use crate::way::{Format, Way};

/// Bytes of all connections of a backup, with the protocol of PostgreSQL and, if they are encrypted, with TLS. Without the headers of
/// TCP and IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Bytes from the server.
    pub received: u64,
    /// Bytes to the server.
    pub sent: u64,
}

impl Network {
    /// Bytes in both directions.
    pub fn total(&self) -> u64 {
        self.received + self.sent
    }
}

impl Way {
    /// Whether pgrig can count the bytes of such a backup: only pg_dump or pg_basebackup makes it, and its bytes do not depend on a load.
    pub fn is_counted(&self) -> bool {
        matches!(
            self.format,
            Format::Plain
                | Format::Custom
                | Format::Directory
                | Format::Base
                | Format::BaseTar
                | Format::Incremental
        )
    }
}
