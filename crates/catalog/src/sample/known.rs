//! Searches that this process has made. A schema is planned for several numbers of rows, and `ddl` plans it for each rule that it
//! tries; the same search then has the same result.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_postgres::Client;

use super::search::PassedTuples;
use crate::error::CatalogError;
use crate::mentioned::functions_in;

/// Most tuples that are kept.
const MOST: usize = 200_000;
/// Properties of the server on which its verdicts depend, besides the conditions; and whether the conditions call functions outside of
/// `pg_catalog`, whose bodies may change.
const SERVER: &str = "SELECT concat_ws(' ', current_setting('server_version'), current_setting('TimeZone'), d.encoding, d.datcollate) AS server,
       EXISTS (SELECT FROM pg_proc WHERE proname = ANY ($1::text[]) AND pronamespace <> 'pg_catalog'::regnamespace) AS calls_others
  FROM pg_database d WHERE d.datname = current_database()";

static KNOWN: Mutex<BTreeMap<u64, PassedTuples>> = Mutex::new(BTreeMap::new());

/// The result of the search with this key.
pub(super) fn result(key: u64) -> Option<PassedTuples> {
    lock().get(&key).cloned()
}

/// Keeps the result of a search.
pub(super) fn keep(key: u64, found: &PassedTuples) {
    let mut known = lock();
    let kept: usize = known.values().map(|other| other.list.len()).sum();
    if kept + found.list.len() > MOST {
        known.clear();
    }
    known.insert(key, found.clone());
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, PassedTuples>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of a search with these facts.
pub(super) fn key(facts: &[&dyn Debug]) -> u64 {
    let mut hashed = Hashed(DefaultHasher::new());
    for fact in facts {
        write!(hashed, "{fact:?};").expect("a hash takes any text");
    }
    hashed.0.finish()
}

/// The server as far as it decides on conditions with these expressions; none if it may judge them otherwise the next time.
pub(super) async fn server(client: &Client, expressions: &[&str]) -> Result<Option<String>, CatalogError> {
    let functions: Option<Vec<Vec<String>>> = expressions.iter().map(|text| functions_in(text)).collect();
    let Some(functions) = functions else { return Ok(None) };
    let row = client.query_one(SERVER, &[&functions.concat()]).await?;
    let calls_others: bool = row.get("calls_others");
    Ok((!calls_others).then(|| row.get("server")))
}

/// Hashes the text that is written to it.
struct Hashed(DefaultHasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_facts_have_another_key() {
        assert_eq!(key(&[&"a", &Some(1)]), key(&[&"a", &Some(1)]));
        assert_ne!(key(&[&"a", &Some(1)]), key(&[&"a", &Some(2)]));
        assert_ne!(key(&[&"a", &"b"]), key(&[&"b", &"a"]));
    }
}
