//! A server that a verb may restart.

/// Restarts a server that is pgrig's own.
pub trait Restarter: Sync {
    /// Restarts the server with these settings in addition to its own. Blocks. If the server does
    /// not start with them, it is started without.
    ///
    /// # Errors
    /// Why it does not start.
    fn restart(&self, settings: &[(String, String)]) -> Result<(), String>;
}
