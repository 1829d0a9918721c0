//! `postmaster.pid`: the server's lock file. Its lines are described in PostgreSQL's miscinit.c and
//! pidfile.h: pid, data directory, start time, port, socket directory, listen address, shared memory
//! key, status.

use std::fs;
use std::path::{Path, PathBuf};

/// The contents of the file; the server adds later lines as it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: u32,
    /// Start time, seconds since 1970.
    pub(crate) since: Option<i64>,
    pub(crate) port: Option<u16>,
    pub(crate) socket_dir: Option<PathBuf>,
    pub(crate) status: Option<String>,
}

pub(crate) fn path(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

impl PidFile {
    /// Reads the file. None if it does not exist or is not written completely yet.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path(data)).ok()?)
    }

    /// Whether the server accepts connections.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.status.as_deref(), Some("ready" | "standby"))
    }

    /// Whether the server is starting and does not accept connections yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.status.as_deref() == Some("starting")
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |n: usize| lines.get(n - 1).copied().filter(|line| !line.is_empty());
        // A standalone backend writes its pid negated.
        let pid: i64 = line(1)?.parse().ok()?;
        Some(Self {
            pid: u32::try_from(pid.abs()).ok().filter(|pid| *pid > 0)?,
            since: line(3).and_then(|time| time.parse().ok()),
            port: line(4).and_then(|port| port.parse().ok()),
            socket_dir: line(5).map(PathBuf::from),
            status: line(8).map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_postgresql_18() {
        let text = "4711\n/d\n1763753235\n5432\n/s\n\n  5433 32\nready   \n";
        let file = PidFile::parse(text).unwrap();
        assert!(file.is_ready());
        assert_eq!((file.pid, file.since), (4711, Some(1_763_753_235)));
        assert_eq!(file.port, Some(5432));
        assert_eq!(file.socket_dir, Some(PathBuf::from("/s")));
    }

    #[test]
    fn half_written_files() {
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("rubbish"), None);
        let young = PidFile::parse("4711\n/d\n17").unwrap();
        assert!(!young.is_ready());
        assert_eq!(PidFile::parse("-12\n").unwrap().pid, 12);
    }
}
