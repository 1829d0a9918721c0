//! Servers that the tests of a program share.

use std::sync::OnceLock;

use crate::RELEASES;
use crate::server::{Server, spec};

/// The server of this release that all tests of the program share. A test uses databases of its own in it, and
/// leaves the server as it is.
pub fn shared(major: u16) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 6] = [const { OnceLock::new() }; 6];
    SERVERS[usize::from(major - RELEASES[0])].get_or_init(|| {
        Server::lasting(spec(major, &[("max_connections", "200"), ("deadlock_timeout", "100ms")]))
    })
}

impl Server {
    /// One that lives until the program ends: for a `static` that tests share.
    pub fn lasting(spec: pgserver::Spec) -> Self {
        Self::start(spec).into_lasting()
    }

    /// Lets it live until the program ends.
    #[must_use]
    pub(crate) fn into_lasting(mut self) -> Self {
        self.leave_to_process_end();
        self
    }
}
