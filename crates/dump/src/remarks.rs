//! What pg_dump's own comments say of a dump.

use memchr::memmem;

/// What pg_dump writes before a server's version, and at the ends of a dump of one database and of all
/// (src/bin/pg_dump/pg_backup_archiver.c, pg_dumpall.c).
const VERSION: &[u8] = b"-- Dumped from database version ";
const BEGINNING: &[u8] = b"-- PostgreSQL database dump\n";
const END: &[u8] = b"-- PostgreSQL database dump complete";

/// What a comment says, where it says anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    /// Of the server that was dumped.
    pub(crate) server_major: Option<u32>,
    /// Whether a dump has begun here and not ended.
    pub(crate) is_open: Option<bool>,
}

impl Remarks {
    /// What stands in a text of comments; none if nothing does.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        // Between most statements is a line end.
        if text.len() < BEGINNING.len() {
            return None;
        }
        let server_major = memmem::find(text, VERSION).and_then(|at| {
            let version = &text[at + VERSION.len()..];
            let digits = version.iter().take_while(|byte| byte.is_ascii_digit()).count();
            str::from_utf8(&version[..digits]).ok()?.parse().ok()
        });
        // The end's line begins as that of the beginning does, but for its line end.
        let (beginning, end) = (memmem::rfind(text, BEGINNING), memmem::rfind(text, END));
        let is_open = beginning.or(end).map(|_| beginning > end);
        let remarks = Self { server_major, is_open };
        (remarks != Self::default()).then_some(remarks)
    }
}
