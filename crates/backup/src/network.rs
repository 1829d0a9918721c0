//! Bytes between the server and the client programs during a backup.

use measure::Event;
use serde::Serialize;
use serde_json::json;

/// Bytes of all connections of a backup, with the protocol of PostgreSQL and, if they are encrypted, with TLS. Without the headers of
/// TCP and IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Bytes from the server.
    pub received: u64,
    /// Bytes to the server.
    pub sent: u64,
    /// Whether most of the backup came by another path, for example from the files of the server.
    pub is_partial: bool,
}

impl Network {
    /// Bytes in both directions.
    pub fn total(&self) -> u64 {
        self.received + self.sent
    }

    /// Tells in the run document that these are not all bytes; none if they are.
    pub(crate) fn event(self, at: f64) -> Option<Event> {
        let what = json!({ "event": "network", "network": self });
        self.is_partial.then(|| Event { at, text: "network".to_owned(), what })
    }

    /// Those of another tool, whose backup takes so many bytes. Compression makes a backup smaller than the bytes that were received, not larger.
    pub(crate) fn of_tool(self, backup: u64) -> Self {
        Self { is_partial: self.received < backup / 2, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_is_larger_than_the_received_bytes_came_by_another_path() {
        let of_tool = |received, backup| Network { received, sent: 5, is_partial: false }.of_tool(backup);
        assert!(of_tool(9_000, 1_000_000).is_partial && of_tool(0, 2).is_partial);
        let event = of_tool(9_000, 1_000_000).event(1.0).unwrap();
        assert_eq!(event.what["network"], json!({ "received": 9_000, "sent": 5, "is_partial": true }));
        assert!(of_tool(10_000_000, 1_000_000).event(1.0).is_none());
        assert!(!of_tool(10_000_000, 1_000_000).is_partial && !of_tool(900_000, 1_000_000).is_partial);
    }
}
