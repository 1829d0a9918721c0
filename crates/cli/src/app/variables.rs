//! Environment variables that pgrig would read as unset.

use crate::app::failure::Usage;

/// Variables that name a server, or that a connection needs.
const NAMES: [&str; 11] = [
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGDATABASE",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGUSER",
    "PGPASSWORD",
    "PGPASSFILE",
    "PGOPTIONS",
    "PGSSLMODE",
];

/// Refuses a variable that is not UTF-8: without it, another server could be meant.
///
/// # Errors
/// If one is not UTF-8.
pub(crate) fn check() -> Result<(), Usage> {
    let is_odd = |name: &&str| std::env::var_os(name).is_some_and(|value| value.to_str().is_none());
    match NAMES.into_iter().find(is_odd) {
        Some(name) => Err(Usage(format!("{name} is not UTF-8: set it in UTF-8, or unset it"))),
        None => Ok(()),
    }
}
