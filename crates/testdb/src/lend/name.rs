//! Names of the databases that the keeper makes. Name and comment together give the purpose of a database.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Prefix of all names.
pub(super) const PREFIX: &str = "pgrig_testdb_";
const TEMPLATE: &str = "t_";
const MAKING: &str = "making_";
/// Hexadecimal digits of a hash in a template's name, and of a keeper's id.
const LONG: usize = 12;
/// Number of hexadecimal digits of the template's hash in the name of a copy.
const SHORT: usize = 6;
/// Number of hexadecimal digits of the random part, which tells copies of the same template apart.
const RANDOM: usize = 8;

/// A keeper's id: one for each PGRIG_HOME of a machine or container and each server. 12 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeeperId(String);

impl KeeperId {
    /// The id for these parts, which together must be different for different keepers.
    pub fn of(parts: &[&str]) -> Self {
        Self(digest(parts))
    }

    /// Application name of its sessions, by which other keepers see in pg_stat_activity that it
    /// lives.
    pub(super) fn application_name(&self) -> String {
        format!("pgrig testdb {self}")
    }

    /// The key of its advisory lock: the id, and two bytes that people recognise in `pg_locks`.
    pub(super) fn lock(&self) -> i64 {
        let id = i64::from_str_radix(&self.0, 16).unwrap_or_default();
        i64::from(u16::from_be_bytes(*b"pg")) << (4 * LONG) | id
    }
}

impl fmt::Display for KeeperId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The purpose of a database, as its name says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A template, from which leases are copied.
    Template,
    /// A copy that is lent, or will be.
    Lease,
    /// An unfinished database of this keeper.
    Making(KeeperId),
}

/// Reads a name; none if no keeper gave it.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let rest = name.strip_prefix(PREFIX)?;
    if let Some(hash) = rest.strip_prefix(TEMPLATE) {
        return is_hex(hash, LONG).then_some(Meaning::Template);
    }
    let made = rest.strip_prefix(MAKING);
    let (first, random) = made.unwrap_or(rest).split_once('_')?;
    match made {
        _ if !is_hex(random, RANDOM) => None,
        Some(_) if is_hex(first, LONG) => Some(Meaning::Making(KeeperId(first.to_owned()))),
        None if is_hex(first, SHORT) => Some(Meaning::Lease),
        _ => None,
    }
}

/// Name of the template with this content, for this keeper.
pub(super) fn template(keeper: &KeeperId, content: &[&str]) -> String {
    let parts: Vec<&str> = std::iter::once(keeper.0.as_str()).chain(content.iter().copied()).collect();
    format!("{PREFIX}{TEMPLATE}{}", digest(&parts))
}

/// Name of a copy of this template.
pub(super) fn lease(template: &str, random: u32) -> String {
    let hash = template.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(TEMPLATE)).unwrap_or_default();
    format!("{PREFIX}{}_{random:08x}", hash.get(..SHORT).unwrap_or_default())
}

/// Name of an unfinished database.
pub(super) fn making(keeper: &KeeperId, random: u32) -> String {
    format!("{PREFIX}{MAKING}{keeper}_{random:08x}")
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Hash of the parts; each is hashed with its length, so that different lists of parts give
/// different hashes.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(LONG / 2).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let keeper = KeeperId::of(&["here", "a server"]);
        let template = template(&keeper, &["file", "abc"]);
        assert_eq!(meaning(&template), Some(Meaning::Template));
        assert_eq!(meaning(&lease(&template, 7)), Some(Meaning::Lease));
        assert_eq!(meaning(&making(&keeper, u32::MAX)), Some(Meaning::Making(keeper)));
        assert!(making(&KeeperId::of(&[]), 1).len() < 64, "PostgreSQL cuts longer names");
    }

    #[test]
    fn names_of_others_mean_nothing() {
        for name in [
            "postgres",
            "pgrig_testdb_",
            "pgrig_testdb_t_",
            "pgrig_testdb_t_0123456789AB",
            "pgrig_testdb_t_0123456789abc",
            "pgrig_testdb_mine",
            "pgrig_testdb_012345_0123456",
            "pgrig_testdb_01234x_01234567",
            "pgrig_testdb_making_012345_01234567",
            "xpgrig_testdb_012345_01234567",
        ] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }

    #[test]
    fn keepers_have_locks_of_their_own() {
        let key = |id: &str| KeeperId(id.to_owned()).lock();
        assert_eq!(key("0123456789ab"), 0x7067_0123_4567_89ab);
        assert_eq!(key("ffffffffffff"), 0x7067_ffff_ffff_ffff);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(KeeperId::of(&["ab", "c"]), KeeperId::of(&["a", "bc"]));
    }
}
