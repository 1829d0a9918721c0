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

/// Most values of tuples that are kept, about 200 MB: the searches for a schema of a hundred tables. The rows of a plan share them.
const MOST: usize = 3_000_000;
/// Properties of the server on which its verdicts depend, besides the conditions; the present transaction; and whether the conditions
/// call functions outside of `pg_catalog`, whose bodies may be others in another transaction.
const SERVER: &str = "SELECT concat_ws(' ', current_setting('server_version'), current_setting('TimeZone'), d.encoding, d.datcollate) AS server,
       concat_ws(' ', pg_backend_pid(), transaction_timestamp()) AS transaction,
       EXISTS (SELECT FROM pg_proc WHERE proname = ANY ($1::text[]) AND pronamespace <> 'pg_catalog'::regnamespace) AS calls_others
  FROM pg_database d WHERE d.datname = current_database()";

static KNOWN: Mutex<BTreeMap<u64, PassedTuples>> = Mutex::new(BTreeMap::new());

/// The result of the search with this key.
pub(super) fn result(key: u64) -> Option<PassedTuples> {
    lock().get(&key).cloned()
}

/// Keeps the result of a search. If there is no room, others go, whichever: a plan asks for the results of all its tables in turn, so
/// that the oldest are not those that matter least.
pub(super) fn keep(key: u64, found: &PassedTuples) {
    let mut known = lock();
    let mut kept: usize = known.values().map(PassedTuples::values).sum();
    while kept + found.values() > MOST {
        // Keys are hashes, so the next one may be any.
        let next = known.range(key..).chain(known.range(..key)).map(|(other, _)| *other).next();
        let Some(other) = next.and_then(|next| known.remove(&next)) else { break };
        kept -= other.values();
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

/// The server as far as it decides on conditions with these expressions, with the present transaction if it may judge them otherwise in
/// another one; none if pgrig cannot read the expressions.
pub(super) async fn server(client: &Client, expressions: &[&str]) -> Result<Option<String>, CatalogError> {
    let functions: Option<Vec<Vec<String>>> = expressions.iter().map(|text| functions_in(text)).collect();
    let Some(functions) = functions else { return Ok(None) };
    let row = client.query_one(SERVER, &[&functions.concat()]).await?;
    let (server, transaction): (String, String) = (row.get("server"), row.get("transaction"));
    let calls_others: bool = row.get("calls_others");
    Ok(Some(if calls_others { format!("{server} {transaction}") } else { server }))
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
