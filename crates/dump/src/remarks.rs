//! pg_dump's own comments in a dump.

/// Texts of pg_dump before a server's version, and at the ends of a dump of one database and of all
/// (src/bin/pg_dump/pg_backup_archiver.c, pg_dumpall.c), each at the beginning of a line.
const VERSION: &[u8] = b"-- Dumped from database version ";
const DATABASE: &[u8] = b"-- PostgreSQL database dump";
const CLUSTER: &[u8] = b"-- PostgreSQL database cluster dump";
/// The text that follows those at the end.
const COMPLETE: &[u8] = b" complete";

/// The facts in a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// Major version of the server that was dumped.
    pub(crate) server_major: Option<u32>,
    /// Whether the dump of a database has begun here and not ended.
    pub(crate) database_is_open: Option<bool>,
    /// Whether the dump of a cluster has begun here and not ended.
    pub(crate) cluster_is_open: Option<bool>,
}

impl Remarks {
    /// The facts in a text of comments; none if there are none.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        // Between most statements is a line end.
        if text.len() < DATABASE.len() {
            return None;
        }
        let mut remarks = Self::default();
        for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end) {
            if let Some(version) = line.strip_prefix(VERSION) {
                remarks.server_major = major(version).or(remarks.server_major);
            }
            remarks.database_is_open = is_open(line, DATABASE).or(remarks.database_is_open);
            remarks.cluster_is_open = is_open(line, CLUSTER).or(remarks.cluster_is_open);
        }
        (remarks != Self::default()).then_some(remarks)
    }
}

fn major(version: &[u8]) -> Option<u32> {
    let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&version[..digits]).ok()?.parse().ok()
}

fn is_open(line: &[u8], what: &[u8]) -> Option<bool> {
    match line.strip_prefix(what)? {
        b"" => Some(true),
        COMPLETE => Some(false),
        _ => None,
    }
}
